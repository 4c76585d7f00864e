/*
 * Twinpost: who may write, who may deliver, and what a takeover may believe.
 *
 * One queue, three stores (0, 1, 2), three processes:
 *     0  gateway, incarnation 1       owner at the start, mirrors on stores 0 and 1
 *     1  gateway, incarnation 2       may start once incarnation 0 is dead
 *     2  rescue                       may try to take over at any time
 *
 * A process that owns the queue appends numbered changes to its log. Every
 * change in the log counts as sent to every store the owner feeds; each store
 * takes the next one whenever the scheduler likes, also after the sender died.
 * So a cut of one pair in one direction is a step that does not happen:
 *     request cut = APPLY, GRANT, HEARTBEAT do not happen
 *     answer cut  = ACK does not happen, or GRANT_UNHEARD happens
 * and it lasts as long as the scheduler likes. A timeout is a step that may
 * always happen (ISOLATE, START, GIVE_UP). A freeze is a process that takes no
 * step for a while; its leases run out meanwhile.
 *
 * Time exists only as leases. A process sees its lease end no later than the
 * store does: STORE_LEASE_ENDS needs the process's own view to have ended.
 *
 * Each rule has a name; -DNO_<RULE> removes it (see README.md).
 */

#ifndef N
#define N 2                     /* messages */
#endif
#ifndef MAXEPOCH
#define MAXEPOCH 3
#endif
#ifndef STORECRASHES
#define STORECRASHES 1
#endif
#ifndef PROCCRASHES
#define PROCCRASHES 1           /* deaths of process 1 or 2; process 0 may always die */
#endif
#ifndef ATTEMPTS
#define ATTEMPTS 1              /* claim rounds of each claimant */
#endif
#ifndef AGAIN
#define AGAIN 0                 /* restarts of process 1 or 2: it has forgotten all, its claims stand */
#endif
#ifndef STORESTOPS
#define STORESTOPS 0            /* orderly stops: the store comes back from its file */
#endif
/* -DUNPROVEN: incarnation 2 may start while nobody can tell whether incarnation 1 is dead */
/* -DWITHOUT=1, -DWITHOUT=2: incarnation 2, or the rescue, is left out. For rules whose harm lies deep. */
#ifndef WITHOUT
#define WITHOUT 0
#endif
/* -DAHEAD: a start further on. Incarnation 1 has died; store 0 has taken a message and its withdrawal, store 1 neither. */
/*
 * -DCUTOFF=1, -DCUTOFF=2: another. Incarnation 1 had gone on with store 0 alone, and is cut off; incarnation 2,
 * or the rescue, has taken the queue over since. Store 1 is there and knows nothing.
 */
#ifndef CUTOFF
#define CUTOFF 0
#endif
/* -DLOSTONE: another. Store 0 has restarted, empty, which incarnation 1 has heard in time; store 1 has all. */
/* -DJOINERS: a store knows who wrote its set, or fills it, and where that set begins */
/* -DHANDBACK: a rescue gives the queue back when the gateway is seen again */
/* -DDROPS: copies that the set has left behind are dropped */
/* -DLEAVES: a store that leaves the set is told so before it stops */
/* -DOPENFILLS: a store that is in no set is filled while a change of the set is open, too */
/* -DREFILLS: a member that came back empty is filled without leaving the set */

#ifdef LIVE
#define EPOCHS  (MAXEPOCH + 2 * calm)   /* room to settle after the last fault */
#define ROUNDS  (ATTEMPTS + 2 * calm)
#define LOGMAX (2*N + MAXEPOCH + 3)
#else
#define EPOCHS  MAXEPOCH
#define ROUNDS  ATTEMPTS
#define LOGMAX (2*N + MAXEPOCH + 1)
#endif

#define BIT(x)   (1 << (x))
#define IN(x, set) (((set) >> (x)) & 1)

/* ---------------------------------------------------------------- stores */

#define EMPTY  0                /* knows nothing of the queue */
#define FILLED 1                /* being resynced, not a member yet */
#define MEMBER 2                /* has been told an epoch it belongs to */
#define SPILLED 3               /* came back from its file after an orderly stop */
#define LEFT   4                /* has been told a set that it does not belong to */

byte role[3];
byte sepoch[3];                 /* epoch it was told, and that epoch's members */
byte smembers[3];
byte stn[3];                    /* last transaction number applied */
byte sdata[3];                  /* messages held, one bit each */
int  shist[3];                  /* who wrote each change it holds, two bits a number: stands for the digest */
byte fresh[3];                  /* restarted: processes that knew it before and have not begun anew with it, one bit each */
byte stoken[3];                 /* claim number whose operations it accepts */
#ifdef NO_RELEASED_TO_OWNER
byte sbefore[3];                /* claim number of who held it before the gateway that holds it now, and its number then */
byte sclaim[3];
#define NOTE_BEFORE(s)   sbefore[s] = stoken[s]; sclaim[s] = stn[s]
#define FORGET_BEFORE(s) sbefore[s] = 0; sclaim[s] = 0;
#define IS_BEFORE(p, s)  (sbefore[s] == token[p])
#else
#define NOTE_BEFORE(s)   skip
#define FORGET_BEFORE(s)
#define IS_BEFORE(p, s)  (0)
#endif
byte shighest[3];               /* highest claim number ever granted since boot */
byte slease[3];                 /* process + 1 that holds its lease, 0 none */
bit  sgrace[3];                 /* restarted, first lease period not over */
#ifdef DROPS
bit  sdropped[3];               /* the queue was dropped here since the store started */
#endif

/* ------------------------------------------------------------- processes */

#define IDLE  0
#define CLAIM 1
#define OWNER 2
#define DEAD  3

byte state[3];
byte token[3];                  /* claim number: round * 4 + process, so no two are equal */
byte epoch[3];
byte members[3];                /* acknowledged set of mirrors */
byte wanted[3];                 /* set that was sent; equal to members when no change is open */
byte wantedAt[3];               /* its transaction number */
byte held[3];                   /* number of a change not yet sent to the store that joins, 0 none */
byte last[3];                   /* last transaction number in the log */
byte mem[3];                    /* messages in memory, one bit each */
int  phist[3];                  /* who wrote each change of its history, as in shist */
byte wit[3];                    /* members whose restart it heard of while its lease of their old boot ran */
#ifdef NO_WITNESS_UNBROKEN
byte heard[3];                  /* ... and members that were heard in time to be back with their file */
#define FORGET_HEARD(s) heard[0] = heard[0] & ~BIT(s); heard[1] = heard[1] & ~BIT(s); heard[2] = heard[2] & ~BIT(s);
#else
#define FORGET_HEARD(s)
#endif
#ifdef NO_WITNESS_BY_RIGHT
byte bare[3];                   /* stores where its lease runs, and no right was confirmed in it */
#endif
byte feed[3];                   /* stores that share this owner's history */
byte lease[3];                  /* stores where it sees its lease running */
byte ack[9];                    /* [process*3 + store] number known to be applied there */
byte log[3 * (LOGMAX + 1)];
byte claimed[3];                /* claimants: stores that granted the claim */
byte confirmed[3];              /* ... and that held it after the last grant */
byte gone[3];                   /* ... and that said after the last grant: unknown here, first period over */
byte seenEpoch[3];              /* newest epoch seen, and its members */
byte seenMembers[3];
byte attempts[3];
#ifdef REFILLS
byte refilled[3];               /* members that were filled without leaving the set, and do not count yet */
#define NOT_IN(p) refilled[p]
#define CLEAR_REFILLED(p) refilled[p] = 0;
#else
#define NOT_IN(p) 0
#define CLEAR_REFILLED(p)
#endif
#ifdef JOINERS
byte sset[3];                   /* number of the change that told the store its set */
byte setAt[3];                  /* of the one that told the acknowledged set of the process */
#define TOLD_AT(s, n)    sset[s] = n;
#define SET_AT(p, n)     setAt[p] = n;
#define BEFORE_ITS_SET(s, b) (stn[s] < sset[b])
byte swriter[3];                /* process that wrote the set of the copy, or fills it, as ME(p); 0 nobody */
bit  sclaimed[3];               /* another was granted a claim there since; was there one before the last? */
bit  sclaimed2[3];
byte sclaimant[3];              /* who was granted the last one, and its number */
byte sclaimedAt[3];
byte told[9];                   /* [process*3 + store] writer, as it was told to a claimant before it claimed; 0 none */
byte adopted[3];                /* claim by which this process served the queue last */
#define TOLD(p, s)       told[(p) * 3 + (s)]
#define ME(p)            (AGED(p) -> (p) + 5 : (p) + 1)     /* a process before this one is another */
#define WRITES(p, s)     swriter[s] = ME(p); FORGET_CLAIMS(s)
#define FORGET_CLAIMS(s) sclaimed[s] = 0; sclaimed2[s] = 0; sclaimant[s] = 0; sclaimedAt[s] = 0;
#define FORGET_WRITER(s) swriter[s] = 0; FORGET_CLAIMS(s)
#define CLEAR_TOLD(p)    TOLD(p, 0) = 0; TOLD(p, 1) = 0; TOLD(p, 2) = 0;
#define CLAIMS_COPY(p, s) \
    if :: swriter[s] == ME(p) -> skip \
       :: else -> sclaimed2[s] = sclaimed[s]; sclaimed[s] = 1; sclaimant[s] = ME(p); sclaimedAt[s] = token[p] \
    fi;
#define UNUSED(p) (!AGED(p) && token[p] > adopted[p])       /* the queue was never served by this claim */
#define RELEASES_COPY(p, s) \
    if :: UNUSED(p) && sclaimant[s] == ME(p) && sclaimedAt[s] == token[p] -> \
            sclaimed[s] = sclaimed2[s]; sclaimed2[s] = 0; sclaimant[s] = 0; sclaimedAt[s] = 0 \
       :: else fi;
#define ADOPTS(p) adopted[p] = token[p];
#if AGAIN > 0
#define RENAME(x, p) if :: x == (p) + 1 -> x = (p) + 5 :: else fi;
#define NEXT_PROCESS(p) RENAME(swriter[0], p) RENAME(swriter[1], p) RENAME(swriter[2], p) adopted[p] = 0; \
    RENAME(sclaimant[0], p) RENAME(sclaimant[1], p) RENAME(sclaimant[2], p)
#endif
#else
#define TOLD_AT(s, n)
#define SET_AT(p, n)
#define BEFORE_ITS_SET(s, b) (stn[s] < stn[b])
#define WRITES(p, s)
#define FORGET_WRITER(s)
#define CLEAR_TOLD(p)
#define CLAIMS_COPY(p, s)
#define RELEASES_COPY(p, s)
#define ADOPTS(p)
#define NEXT_PROCESS(p)
#endif
#if AGAIN > 0
bit  aged[3];                   /* token[p] is of a process that is gone */
#define AGED(p) (aged[p])
#define AGED_CLEAR(p) aged[p] = 0;
#else
#define AGED(p) (0)
#define AGED_CLEAR(p)
#endif

/* changes in the log */
#define STORE_OP(m)   (1 + (m))
#define REMOVE_OP(m)  (9 + (m))              /* delete and withdraw do the same to a mirror */
#define SET_OP(e, s)  (64 + (e) * 8 + (s))
#define IS_SET(op)    ((op) >= 64)
#define SET_EPOCH(op) (((op) - 64) / 8)
#define SET_OF(op)    ((op) % 8)
#define LOG(p, k)     log[(p) * (LOGMAX + 1) + (k)]
#define ACKED(p, s)   ack[(p) * 3 + (s)]
#define WROTE(p, k)   (((p) + 1) << (2 * (k) - 2))
#define UP_TO(k)      ((1 << (2 * (k))) - 1)

/* -------------------------------------------------- what the world saw */

#define NONE 0
#define OPEN 1                  /* sent to mirrors, client waits */
#define SAID250 2
#define WITHDRAWING 3
#define SAID4XX 4
#define NOREPLY 5               /* connection lost before a reply */

byte said[3];
byte saidBy[3];
byte openAt[3];                 /* transaction number the reply waits for */
byte removedAt[3];              /* transaction number of its deletion ... */
byte removedBy[3];              /* ... by process + 1 */
byte acked;                     /* masks: answered 250, answered 4xx, final dot sent, */
byte refused;
byte dotted;
byte removed;                   /* deletion acknowledged by all in-sync mirrors */
byte next;
byte lastEpoch;                 /* newest epoch any owner worked in, its members, that owner */
byte lastMembers;
byte lastOwner;
byte storeCrashes;
bit  died0;
#if AGAIN > 0
byte again;
#endif
byte procCrashes;

#ifdef UNPROVEN
byte met;                       /* stores that incarnation 2 has reached: they refuse incarnation 1 */
#define MET(p, s) ((p) == 0 && IN(s, met))
#else
#define MET(p, s) (0)
#endif
byte storeStops;
#ifdef NO_FILE_USED_ONCE        /* the file of a stop is read again after a later crash */
byte fepoch[3];
byte fmembers[3];
byte ftn[3];
byte fdata[3];
int  fhist[3];
#endif

hidden byte i;
hidden byte m;
hidden byte op;

/* ----------------------------------------------------------------- rules */

#ifdef NO_ACK_FROM_ALL          /* 250 after the first mirror */
#define ALL_ACKED(p, k) ((IN(0, members[p]) && ACKED(p,0) >= (k)) || \
                         (IN(1, members[p]) && ACKED(p,1) >= (k)) || \
                         (IN(2, members[p]) && ACKED(p,2) >= (k)))
#else
#define ALL_ACKED(p, k) ((!IN(0, members[p]) || ACKED(p,0) >= (k)) && \
                         (!IN(1, members[p]) || ACKED(p,1) >= (k)) && \
                         (!IN(2, members[p]) || ACKED(p,2) >= (k)))
#endif

#define SURVIVORS(p) (members[p] & wanted[p] & ~NOT_IN(p))
#define SURVIVORS_ACKED(p, k) ((!IN(0, SURVIVORS(p)) || ACKED(p,0) >= (k)) && \
                               (!IN(1, SURVIVORS(p)) || ACKED(p,1) >= (k)) && \
                               (!IN(2, SURVIVORS(p)) || ACKED(p,2) >= (k)))

#ifdef NO_LEASE_IN_BOTH_SETS    /* a lease at a member being dropped still counts */
#define LEASE_COUNTS(p) (lease[p] & members[p])
#else
#define LEASE_COUNTS(p) (lease[p] & SURVIVORS(p))
#endif

#ifdef NO_CHECK_BEFORE_DOT
#define MAY_DELIVER(p) (state[p] == OWNER)
#else
#define MAY_DELIVER(p) (state[p] == OWNER && LEASE_COUNTS(p) != 0)
#endif

#ifdef NO_FENCE_ON_OPEN_CONNECTIONS
#define NOT_FENCED(p, s) (state[p] != IDLE && state[p] != CLAIM)
#else
#define NOT_FENCED(p, s) (stoken[s] == token[p] && !MET(p, s))
#endif

#ifdef NO_LEASE_WAIT
#define LEASE_FREE(p, s) (1)
#else                           /* the gateway's next incarnation need not wait for its own lease */
#define LEASE_FREE(p, s) ((slease[s] == 0 || slease[s] == (p) + 1 || (slease[s] == 1 && (p) == 1)) && !HELD_BY_OTHER(p, s))
#endif

/* Without proof that incarnation 1 is dead: at each store one lease from the moment it refuses incarnation 1. */
#if !defined(UNPROVEN) || defined(NO_WAIT_WITHOUT_PROOF)
#define PROVEN(p, s) (1)
#elif defined(NO_WAIT_AT_EACH_STORE)    /* one lease after the first store was reached */
#define PROVEN(p, s) ((p) != 1 || state[0] == DEAD || (IN(s, met) && (met & ~lease[0]) != 0))
#else
#define PROVEN(p, s) ((p) != 1 || state[0] == DEAD || IN(s, met & ~lease[0]))
#endif

#ifdef NO_GRACE_AFTER_RESTART
#define GRACE_OVER(p, s) (1)
#elif defined(NO_GRACE_FOR_HOLDER)      /* the holder's own next incarnation need not wait for it */
#define GRACE_OVER(p, s) (!sgrace[s] || ((p) == 1 && stoken[s] != 0 && (stoken[s] & 3) != 2))
#else
#define GRACE_OVER(p, s) (!sgrace[s])
#endif

#ifdef NO_EMPTY_STORE_REFUSED   /* the claim at a member that came back empty counts */
#define CAN_BE_CLAIMED(s) (1)
#else
#define CAN_BE_CLAIMED(s) (role[s] != EMPTY)
#endif

/*
 * The joiner s is filled by the process that wrote the set of b, the copy that is read: not by another, of the same gateway
 * too, which remembers what it had before.
 */
#if !defined(JOINERS) || defined(NO_FILLED_BY_NAMER)
#define FILLED_BY_NAMER(p, s, b) (1)
#elif defined(NO_FILLED_BY_PROCESS)     /* that it is of the same gateway is enough */
#define FILLED_BY_NAMER(p, s, b) (TOLD(p, s) != 0 && TOLD(p, b) != 0 && (TOLD(p, s) % 4 == 3) == (TOLD(p, b) % 4 == 3))
#else
#define FILLED_BY_NAMER(p, s, b) (TOLD(p, s) != 0 && TOLD(p, s) == TOLD(p, b))
#endif

/*
 * A member's claim counts if the store has a copy; that of a store which is still being filled if it stands where
 * the store that is read stood before the change that lets it join.
 */
#if defined(NO_ONLY_COPIES_COUNT) || defined(NO_EMPTY_STORE_REFUSED)
#define IS_MEMBERS(p, s, b) (1)
#else
#define IS_MEMBERS(p, s, b) (HOLDS_COPY(s) || (role[s] == FILLED && stn[s] != 0 && BEFORE_ITS_SET(s, b) && IN_HISTORY(s, stn[b], shist[b]) && FILLED_BY_NAMER(p, s, b)))
#endif
#define COUNTS(p, s, b) (!IN(s, seenMembers[p]) || (IN(s, confirmed[p]) && IS_MEMBERS(p, s, b)))
#if defined(NO_CLAIM_AT_EVERY_MEMBER)
#define ENOUGH_CLAIMS(p, b) ((seenMembers[p] & claimed[p]) != 0)
#elif defined(NO_CLAIMS_CONFIRMED)      /* a claim once granted is believed for ever */
#define ENOUGH_CLAIMS(p, b) ((seenMembers[p] & ~claimed[p]) == 0)
#else
#define ENOUGH_CLAIMS(p, b) ((COUNTS(p, 0, b) && COUNTS(p, 1, b) && COUNTS(p, 2, b)) || GOES_ON(p))
#endif

/*
 * Going on past members that came back empty. Only the gateway itself, whose old process is proven dead. Every store
 * must have granted the claim or said, after the last grant, that it does not know the queue and that its first lease
 * period is over; and every other gateway that may claim the queue must have said that it does not hold it.
 */
#ifdef NO_OWNER_PROVEN_DEAD     /* a rescue goes on too */
#define MAY_GO_ON(p) (1)
#else
#define MAY_GO_ON(p) ((p) == 1 && state[0] == DEAD)
#endif
#define OTHER 8                 /* in gone: the rescue has said no */
#if defined(NO_OTHERS_ASKED) || defined(NO_OWNER_PROVEN_DEAD)
#define OTHERS_ANSWERED(p) (1)
#else
#define OTHERS_ANSWERED(p) ((gone[p] & OTHER) != 0)
#endif
#ifdef NO_EVERY_STORE_ANSWERS
#define ALL_ANSWERED(p) (OTHERS_ANSWERED(p) && (seenMembers[p] & ~(confirmed[p] | gone[p])) == 0)
#else
#define ALL_ANSWERED(p) (OTHERS_ANSWERED(p) && ((confirmed[p] | gone[p]) & 7) == 7)
#endif
#define GOES_ON(p) (MAY_GO_ON(p) && confirmed[p] != 0 && ALL_ANSWERED(p))

#ifdef NO_FIRST_PERIOD_OVER
#define IS_GONE(s) (role[s] == EMPTY)
#elif defined(NO_CLAIM_WHERE_KNOWN)     /* a store that is being filled counts as one that knows nothing */
#define IS_GONE(s) (role[s] != MEMBER && role[s] != SPILLED && !sgrace[s])
#else
#define IS_GONE(s) (role[s] == EMPTY && !sgrace[s])
#endif

#define HOLDS_COPY(s) (role[s] == MEMBER || role[s] == SPILLED)
#define OBEYS(p, s) (stoken[s] == token[p] && !MET(p, s))

/* Token 0 is the owner's, who must claim before it writes. */
#define IS_RESCUES(tok) ((tok) != 0 && ((tok) & 3) == 2)
#define SAME_GATEWAY(p, s) (IS_RESCUES(stoken[s]) == ((p) == 2))
#define AT_LAST(s) (HOLDS_COPY(s) && sepoch[s] >= lastEpoch)
#define NONE_NEWER(s, x) (!HOLDS_COPY(x) || sepoch[x] <= sepoch[s])

#if defined(NO_NEWEST_EPOCH_ONLY)               /* an older epoch's copy is believed */
#define GOOD_SOURCE(p, s) (IN(s, claimed[p]) && HOLDS_COPY(s) && stoken[s] == token[p])
#elif defined(NO_SOURCE_SHOWS_EPOCH) || defined(NO_ATOMIC_CLAIM)
#define GOOD_SOURCE(p, s) (IN(s, seenMembers[p] & claimed[p]) && role[s] != EMPTY && stoken[s] == token[p])
#elif defined(NO_LEAVER_NOT_READ)      /* a store that left the newest set is read when no member has a copy */
#define GOOD_SOURCE(p, s) (IN(s, claimed[p]) && HOLDS_COPY(s) && stoken[s] == token[p] && sepoch[s] == seenEpoch[p])
#else
#define GOOD_SOURCE(p, s) (IN(s, seenMembers[p] & claimed[p]) && HOLDS_COPY(s) && \
                           stoken[s] == token[p] && sepoch[s] == seenEpoch[p])
#endif

#ifdef NO_DEAD_BEFORE_RESTART   /* a second incarnation starts beside a frozen first */
#define MAY_START(p) ((p) == 2 || (p) == 1)
#else
#ifdef UNPROVEN
#define MAY_START(p) ((p) == 2 || (p) == 1)
#else
#define MAY_START(p) ((p) == 2 || ((p) == 1 && state[0] == DEAD))
#endif
#endif

/* Store s stands at a number that process p knows, with the digest that p knows for it. */
#ifdef NO_TAIL_BY_DIGEST        /* the number alone is looked at */
#define IN_HISTORY(s, n, h) (stn[s] <= (n))
#else
#define IN_HISTORY(s, n, h) (stn[s] <= (n) && shist[s] == ((h) & UP_TO(stn[s])))
#endif

/*
 * Liveness (-DLIVE): at some moment `calm` begins. From then on nothing fails,
 * nothing is cut, nobody suspects without cause, no new mail comes, a lease that
 * can be renewed does not end, and a claimant probes all stores before it claims.
 */
#ifdef LIVE
bit calm;
#define UNUSABLE(p, s) (!IN(s, feed[p]) || role[s] == EMPTY || stoken[s] != token[p])
#define USABLE_MEMBER(p) ((IN(0, members[p] & wanted[p]) && !UNUSABLE(p,0)) || \
                          (IN(1, members[p] & wanted[p]) && !UNUSABLE(p,1)) || \
                          (IN(2, members[p] & wanted[p]) && !UNUSABLE(p,2)))
#define SERVES(p) (state[p] == OWNER && USABLE_MEMBER(p))
#define TROUBLE        (!calm)
#define CAUSE(p, s)    (!calm || (UNUSABLE(p, s) && USABLE_MEMBER(p)))
/* ... leases are a gateway's, not a queue's: they run wherever a living owner has the right, from the first moment */
#define HELD_BY(q, p, s) ((p) != (q) && state[q] == OWNER && stoken[s] == token[q])
#define HELD_BY_OTHER(p, s) (calm && (HELD_BY(0, p, s) || HELD_BY(1, p, s) || HELD_BY(2, p, s)))
/* ... and an owner hears of a restart before its lease of the old boot ends */
#define NOT_RENEWED(p, s) (!calm || (state[p] != OWNER && state[p] != CLAIM) || ((role[s] == EMPTY || stoken[s] != token[p]) && !CAN_LEARN(p, s)))
#define CAN_BE_GONE(p, x) (MAY_GO_ON(p) && state[3-(p)] != OWNER && role[x] == EMPTY && !sgrace[x])
/* Member x of this set has no copy, and is no joiner on its way to the set that member b shows. */
#define JOINS(x, b, e)    (HOLDS_COPY(b) && sepoch[b] == (e) && IS_MEMBERS(0, x, b))
#define LACKS(x, set, e)  (IN(x, set) && !HOLDS_COPY(x) && \
                           !(IN(0, set) && JOINS(x,0,e)) && !(IN(1, set) && JOINS(x,1,e)) && !(IN(2, set) && JOINS(x,2,e)))
#define ONE_LACKS(set, e) (LACKS(0, set, e) || LACKS(1, set, e) || LACKS(2, set, e))
#define MUST_GO_ON(p)     ONE_LACKS(seenMembers[p], seenEpoch[p])
/* Only who goes on past a member asks stores beside the set, and waits for their first lease periods and leases, too. */
#define ASKS(p, s, x)  (IN(x, smembers[s]) || (role[x] != EMPTY && ONE_LACKS(smembers[s], sepoch[s])))
#define FREE(p, s, x)  (!ASKS(p, s, x) || CAN_BE_GONE(p, x) || (role[x] != EMPTY && !sgrace[x] && LEASE_FREE(p, x)))
#define NEWEST(s)      (sepoch[s] >= sepoch[0] && sepoch[s] >= sepoch[1] && sepoch[s] >= sepoch[2])
#ifdef NO_PROBE_FIRST           /* claims without asking first whether all can be had */
#define PROBED(p, s)   (1)
#else
#define PROBED(p, s)   (!calm || (NEWEST(s) && FREE(p,s,0) && FREE(p,s,1) && FREE(p,s,2) && \
                        !SERVES(0) && !SERVES(1) && !SERVES(2) && state[3-(p)] != CLAIM))
#endif
/* Claims that can't come, or do not suffice. Who has all that it needs takes over and does not give up. */
#define MISSES(p, s)   ((!IN(s, claimed[p]) && !GRANTABLE(p, s) && (IN(s, seenMembers[p]) || (MUST_GO_ON(p) && role[s] != EMPTY)) && \
                         !(CAN_BE_GONE(p, s) && SAME_BOOT(p, s))) || \
                        (IN(s, claimed[p]) && stoken[s] != token[p]))
#define IN_VAIN(p)     (!calm || MISSES(p,0) || MISSES(p,1) || MISSES(p,2) || \
                        (MUST_GO_ON(p) && (!MAY_GO_ON(p) || state[3-p] == OWNER)))
#else
#define HELD_BY_OTHER(p, s) (0)
#define TROUBLE        (1)
#define CAUSE(p, s)    (1)
#define NOT_RENEWED(p, s) (1)
#define PROBED(p, s)   (1)
#define IN_VAIN(p)     (1)
#endif

/* --------------------------------------------------------- after any step */

inline NOTE_EPOCH(p)
{
    if
    :: epoch[p] >= lastEpoch -> lastEpoch = epoch[p]; lastMembers = members[p]
    :: else
    fi
}

/* Replies and finished deletions follow from acknowledgements at once. */
inline SETTLE(p)
{
    m = 0;
    do
    :: m < N ->
        if
        :: said[m] == OPEN && saidBy[m] == p && ALL_ACKED(p, openAt[m]) ->
            said[m] = SAID250; acked = acked | BIT(m); openAt[m] = 0
        :: said[m] == WITHDRAWING && saidBy[m] == p && ALL_ACKED(p, openAt[m]) ->
            assert(!IN(m, dotted));                             /* property 3 */
            said[m] = SAID4XX; refused = refused | BIT(m); openAt[m] = 0
        :: else
        fi;
        if
        :: removedBy[m] == p + 1 && ALL_ACKED(p, removedAt[m]) ->
            removed = removed | BIT(m); removedBy[m] = 0; removedAt[m] = 0
        :: else
        fi;
        m++
    :: else -> break
    od;
    m = 0
}

/* Forget changes that no store can take any more. Changes nothing but the number of states. */
#ifdef NO_FENCE_ON_OPEN_CONNECTIONS
#define WAITS_FOR(p, s, k) (IN(s, feed[p]) && role[s] != EMPTY && stn[s] < k)
#else
#define WAITS_FOR(p, s, k) (IN(s, feed[p]) && role[s] != EMPTY && stn[s] < k && \
                            (stoken[s] == token[p] || IS_BEFORE(p, s)))
#endif
#ifdef NO_TAIL_BY_DIGEST
inline TIDY(p) { skip }
#else
inline TIDY(p)
{
    i = 1;
    do
    :: i <= LOGMAX ->
        if
        :: LOG(p, i) != 0 && !WAITS_FOR(p, 0, i) && !WAITS_FOR(p, 1, i) && !WAITS_FOR(p, 2, i) -> LOG(p, i) = 0
        :: else
        fi;
        i++
    :: else -> break
    od;
    i = 0
}
#endif
inline TIDY_ALL() { TIDY(0); TIDY(1); TIDY(2) }

/* ------------------------------------------------------ owner and mirrors */

inline APPEND(p, change)
{
    last[p]++; LOG(p, last[p]) = change; phist[p] = phist[p] | WROTE(p, last[p])
}

#define FIRST(mask) ((mask & 1) -> 0 : ((mask & 2) -> 1 : 2))

inline ACCEPT(p) { d_step {
    TROUBLE && p != 2 && state[p] == OWNER && next < N ->
    said[next] = OPEN; saidBy[next] = p;
    APPEND(p, STORE_OP(next)); openAt[next] = last[p];
    mem[p] = mem[p] | BIT(next);
    next++
} }

/* The gateway gives up on a message that not all mirrors hold yet. */
inline REFUSE(p, msg) { d_step {
    TROUBLE && state[p] == OWNER && said[msg] == OPEN && saidBy[msg] == p ->
    mem[p] = mem[p] & ~BIT(msg);
#if defined(NO_WITHDRAW)
    said[msg] = SAID4XX; refused = refused | BIT(msg); openAt[msg] = 0
#else
    APPEND(p, REMOVE_OP(msg)); openAt[msg] = last[p];
#ifdef NO_4XX_AFTER_WITHDRAW
    said[msg] = SAID4XX; refused = refused | BIT(msg); openAt[msg] = 0
#else
    said[msg] = WITHDRAWING
#endif
#endif
} }

inline DELIVER(p) { d_step {
    MAY_DELIVER(p) && mem[p] != 0 &&
    !(said[FIRST(mem[p])] == OPEN && saidBy[FIRST(mem[p])] == p) ->
    m = FIRST(mem[p]);
    assert(!IN(m, refused));                                    /* property 3 */
    assert((acked & ~dotted & (BIT(m) - 1)) == 0);              /* property 4 */
    assert(!IN(m, removed));                                    /* property 5 */
    dotted = dotted | BIT(m);
    mem[p] = mem[p] & ~BIT(m);
    APPEND(p, REMOVE_OP(m));
    removedAt[m] = last[p]; removedBy[m] = p + 1;
    m = 0
} }

inline APPLY(p, s) { d_step {
    IN(s, feed[p]) && role[s] != EMPTY && NOT_FENCED(p, s) && stn[s] < last[p] &&
    LOG(p, stn[s] + 1) != 0 && IN_HISTORY(s, last[p], phist[p]) &&
    !(role[s] == FILLED && stn[s] + 1 == held[p]) &&
#ifdef NO_TAIL_BY_DIGEST
    !(role[s] != FILLED && IS_SET(LOG(p, stn[s] + 1)) && !IN(s, SET_OF(LOG(p, stn[s] + 1)))) ->
#else
    !(IS_SET(LOG(p, stn[s] + 1)) && !IN(s, SET_OF(LOG(p, stn[s] + 1)))) ->
#endif
    stn[s]++;
    shist[s] = shist[s] | (phist[p] & (UP_TO(stn[s]) & ~UP_TO(stn[s] - 1)));
    op = LOG(p, stn[s]);
    if
#ifdef NO_TAIL_BY_DIGEST
    :: IS_SET(op) && !IN(s, SET_OF(op)) -> skip
#endif
    :: IS_SET(op) && IN(s, SET_OF(op)) -> sepoch[s] = SET_EPOCH(op); smembers[s] = SET_OF(op); role[s] = MEMBER; TOLD_AT(s, stn[s]) WRITES(p, s)
    :: op >= 9 && op < 64 -> sdata[s] = sdata[s] & ~BIT(op - 9)
    :: else -> sdata[s] = sdata[s] | BIT(op - 1)
    fi;
    op = 0;
    TIDY(p)
} }

#ifdef REFILLS
#define LET_IN_NOW(p) if :: refilled[p] != 0 -> fresh[0] = fresh[0] & ~(IN(0, refilled[p]) << p); fresh[1] = fresh[1] & ~(IN(1, refilled[p]) << p); \
    fresh[2] = fresh[2] & ~(IN(2, refilled[p]) << p); refilled[p] = 0 :: else fi;
#else
#define LET_IN_NOW(p)
#endif
inline ACK(p, s) { d_step {
    state[p] == OWNER && IN(s, feed[p]) && role[s] != EMPTY && NOT_FENCED(p, s) &&
    ACKED(p, s) < stn[s] && !IN(s, NOT_IN(p)) ->
    ACKED(p, s) = stn[s];
    if
    :: wantedAt[p] != 0 && SURVIVORS_ACKED(p, wantedAt[p]) ->
        members[p] = wanted[p]; SET_AT(p, wantedAt[p]) wantedAt[p] = 0; held[p] = 0; wit[p] = 0; epoch[p]++; LET_IN_NOW(p)
        NOTE_EPOCH(p)
    :: else
    fi;
    SETTLE(p)
} }

inline SEND_SET(p, set)
{
    wanted[p] = set;
    APPEND(p, SET_OP(epoch[p] + 1, set)); wantedAt[p] = last[p]
}

/* Drop mirror s. One change of the set is open at a time, and stays. */
inline ISOLATE(p, s) { d_step {
    CAUSE(p, s) && state[p] == OWNER && IN(s, members[p]) && wantedAt[p] == 0 && epoch[p] < EPOCHS &&
    (members[p] & feed[p] & ~BIT(s) & ~NOT_IN(p)) != 0 ->
    SEND_SET(p, members[p] & ~BIT(s));
#ifdef NO_EPOCH_AT_SURVIVOR_FIRST
    members[p] = wanted[p]; wantedAt[p] = 0; epoch[p]++;
    NOTE_EPOCH(p);
    SETTLE(p)
#endif
} }

#ifdef NO_SURVIVOR_NEEDED       /* both mirrors are given up for a fresh store at once */
inline REPLACE_ALL(p, s) { d_step {
    state[p] == OWNER && !IN(s, members[p]) && wantedAt[p] == 0 && epoch[p] < EPOCHS &&
    role[s] == EMPTY ->
    role[s] = FILLED; stn[s] = last[p]; sdata[s] = mem[p];
    stoken[s] = token[p]; shighest[s] = token[p];
    ACKED(p, s) = last[p]; feed[p] = BIT(s);
    members[p] = BIT(s);
    SEND_SET(p, BIT(s));
    epoch[p]++;
    NOTE_EPOCH(p);
    wantedAt[p] = 0
} }
#endif

#ifdef NO_STANDING_BY_A_CHANGE  /* a drop whose survivor went silent is turned round */
inline TURN_ROUND(p, s) { d_step {
    state[p] == OWNER && IN(s, members[p] & ~wanted[p]) && (members[p] & wanted[p]) != 0 &&
    last[p] == wantedAt[p] ->
    feed[p] = feed[p] & ~wanted[p];
    wanted[p] = BIT(s);
    LOG(p, last[p]) = SET_OP(epoch[p] + 1, BIT(s))
} }
#endif

/*
 * A store that knows the queue is filled by its holder; who is not claims it first (the gateway with a token above all
 * told). One that knows it not makes it anew by an OPEN, and no claim of before is known there.
 */
#define CAN_HAVE(p, s) (!MET(p, s) && (role[s] == EMPTY || stoken[s] == token[p] || \
                        (GRACE_OVER(p, s) && LEASE_FREE(p, s) && ((p) != 2 || token[p] > shighest[s]))))
#ifdef NO_NEWER_SET_FENCES      /* a claim that is granted is a right to empty what is there */
#define IS_NEWER(p, s) (0)
#else
#define IS_NEWER(p, s) (HOLDS_COPY(s) && (sepoch[s] > epoch[p] + (wantedAt[p] != 0) || IS_ANOTHERS(p, s)))
#endif
#ifdef NO_OTHER_SET_FENCES      /* a set that bears the number of the change that is open is taken for that one */
#define IS_ANOTHERS(p, s) (0)
#else
#define IS_ANOTHERS(p, s) (wantedAt[p] != 0 && sepoch[s] == epoch[p] + 1 && smembers[s] != wanted[p])
#endif
#ifdef OPENFILLS
#define MAY_FILL(p) (1)
#else
#define MAY_FILL(p) (wantedAt[p] == 0)
#endif
#define FIRST_TOKEN(p)  ((p) == 2 -> 0 : 4 + (p))       /* its incarnation, which is below the token of a claim */
inline HAVE(p, s)
{
    if
    :: role[s] == EMPTY -> FORGET_BEFORE(s) shighest[s] = FIRST_TOKEN(p)
    :: role[s] != EMPTY && stoken[s] != token[p] ->
        if :: SAME_GATEWAY(p, s) -> skip :: else -> NOTE_BEFORE(s) fi;
        if :: token[p] > shighest[s] -> shighest[s] = token[p] :: else fi
    :: else
    fi;
    stoken[s] = token[p]; WRITES(p, s)
    if :: slease[s] != p + 1 -> slease[s] = 0 :: else fi
}
/* Property 9: who is not the last owner empties no copy of the last set, while no newer one is anywhere. */
#define EMPTIES(p, s) assert(!(AT_LAST(s) && IN(s, lastMembers) && lastOwner != (p) && NONE_NEWER(s, 0) && NONE_NEWER(s, 1) && NONE_NEWER(s, 2)))

/* Empty store s and fill it again; live changes follow in the same stream. */
inline RESYNC(p, s) { d_step {
    state[p] == OWNER && !IN(s, members[p] | wanted[p]) && MAY_FILL(p) &&
    epoch[p] < EPOCHS &&
    (members[p] == 1 || members[p] == 2 || members[p] == 4) &&
    CAN_HAVE(p, s) && !IS_NEWER(p, s) &&
    !(role[s] == FILLED && stoken[s] == token[p] && IN(s, feed[p])) ->
    EMPTIES(p, s);                                              /* property 9 */
    HAVE(p, s);
    role[s] = FILLED; sepoch[s] = 0; smembers[s] = 0; TOLD_AT(s, 0)
    stn[s] = last[p]; sdata[s] = mem[p]; shist[s] = phist[p]; fresh[s] = fresh[s] & ~BIT(p);
    ACKED(p, s) = last[p];
    feed[p] = feed[p] | BIT(s);
    TIDY_ALL()
} }

#ifdef NO_TAIL_BY_DIGEST        /* a mirror that was dropped goes on from its number, whatever it holds */
inline RETURN(p, s) { d_step {
    state[p] == OWNER && !IN(s, members[p] | wanted[p]) && wantedAt[p] == 0 && epoch[p] < EPOCHS &&
    role[s] == MEMBER && stoken[s] == token[p] && stn[s] <= last[p] &&
    (stn[s] == last[p] || LOG(p, stn[s] + 1) != 0) ->
    role[s] = FILLED; sepoch[s] = 0; smembers[s] = 0;
    ACKED(p, s) = stn[s]; feed[p] = feed[p] | BIT(s)
} }
#endif

/*
 * After a takeover: a member that stands lower in the same history gets what it misses, out of the ring of the
 * store that was read, and then the live changes. One step; the store is a prefix before and after.
 */
inline TAIL(p, s) { d_step {
    state[p] == OWNER && IN(s, feed[p]) && IN(s, wanted[p] & ~NOT_IN(p)) && role[s] != EMPTY && NOT_FENCED(p, s) &&
    stn[s] < last[p] && LOG(p, stn[s] + 1) == 0 ->
    stn[s] = last[p]; sdata[s] = mem[p]; shist[s] = phist[p];
#ifdef JOINERS
    if :: role[s] != MEMBER || sepoch[s] != epoch[p] + (wantedAt[p] != 0) -> WRITES(p, s) :: else fi;
#endif
    role[s] = MEMBER; smembers[s] = wanted[p];
    if
    :: wantedAt[p] != 0 -> sepoch[s] = epoch[p] + 1; TOLD_AT(s, wantedAt[p])
    :: else -> sepoch[s] = epoch[p]; TOLD_AT(s, setAt[p])
    fi;
    TIDY_ALL()
} }

#ifdef DROPS
inline FORGET_QUEUE(s)
{
    role[s] = EMPTY; sepoch[s] = 0; smembers[s] = 0; stn[s] = 0; sdata[s] = 0; shist[s] = 0; TOLD_AT(s, 0)
    stoken[s] = 0; FORGET_BEFORE(s) FORGET_WRITER(s) shighest[s] = 0; slease[s] = 0; sdropped[s] = 1;
    TIDY_ALL()
}
inline DROP(p, s) { d_step {
    state[p] == OWNER && role[s] != EMPTY && OBEYS(p, s) && !IN(s, members[p] | wanted[p]) ->
    EMPTIES(p, s);                                              /* property 9 */
    feed[p] = feed[p] & ~BIT(s); lease[p] = lease[p] & ~BIT(s);
    FORGET_QUEUE(s)
} }
/* A copy that is ours by a claim, though we do not serve the queue, and that a newer set does not name. */
#define LEAVES_OUT(x, s) (HOLDS_COPY(x) && !IS_RESCUES(stoken[x]) && sepoch[x] > sepoch[s] && !IN(s, smembers[x]))
inline DROP_LEFT(p, s) { d_step {
    p == 2 && state[p] == IDLE && role[s] != EMPTY && IS_RESCUES(stoken[s]) &&
    (LEAVES_OUT(0, s) || LEAVES_OUT(1, s) || LEAVES_OUT(2, s)) ->
    FORGET_QUEUE(s)
} }
/*
 * An owner whose copy was dropped by another repeats its OPEN. What it acknowledged there before tells it that it was
 * fenced. If it never read an answer, the OPEN names the first members: refused by the store, which remembers the drop.
 */
#if defined(NO_DROPPED_REFUSED) || defined(NO_DROPPED_FENCES)
inline OPEN_AGAIN(p, s) { d_step {
    p == 0 && state[p] == OWNER && IN(s, members[p] & wanted[p] & 3) && role[s] == EMPTY && !IN(p, fresh[s]) && !MET(p, s) &&
#ifdef NO_DROPPED_REFUSED
    ACKED(p, s) == 0 ->
    HAVE(p, s);
    role[s] = MEMBER; sepoch[s] = 1; smembers[s] = 3
#else
    ACKED(p, s) != 0 ->
    HAVE(p, s);
    role[s] = FILLED
#endif
} }
#endif
#endif

/* --------------------------------------------------- no member in sync is left */

/* Its lease of a boot that is over: it has not begun anew with the store since. */
#define OLD_LEASE(p, s) (IN(s, lease[p]) && slease[s] != (p) + 1)
/*
 * The owner hears that a member has restarted while its lease of the old boot runs: nobody has claimed it there
 * before, and what it had is gone.
 */
#ifdef NO_LEARNED_IN_TIME
#define IN_TIME(p, s) (1)
#else
#ifdef NO_WITNESS_BY_RIGHT      /* a lease that began anew with the handshake counts, though another holds the queue there */
#define IN_TIME(p, s) (OLD_LEASE(p, s) || IN(s, bare[p]))
#else
#define IN_TIME(p, s) OLD_LEASE(p, s)
#endif
#endif
#ifdef NO_SPILLED_EMPTIED       /* a new boot id is enough */
#define NOTHING_THERE(s) (1)
#else
#define NOTHING_THERE(s) (role[s] != SPILLED)
#endif
/* Members that a takeover can't do without, whether the change that is open has been applied or not. */
#define CORE(p) ((members[p] & wanted[p]) != 0 -> members[p] & wanted[p] : wanted[p])
#ifdef NO_WITNESS_UNBROKEN      /* that it came back with its file was heard in time; that the copy is gone may be heard whenever */
#define HEARD(p, s) (IN_TIME(p, s) || IN(s, heard[p]))
inline HEAR(p, s) { d_step {
    state[p] == OWNER && IN(s, CORE(p)) && IN(p, fresh[s]) && !IN(s, heard[p]) && IN_TIME(p, s) && role[s] == SPILLED && !MET(p, s) ->
    heard[p] = heard[p] | BIT(s); lease[p] = lease[p] & ~BIT(s)
} }
#else
#define HEARD(p, s) IN_TIME(p, s)
#endif
#define CAN_LEARN(p, s) (state[p] == OWNER && IN(s, CORE(p)) && IN(p, fresh[s]) && \
                         !IN(s, wit[p]) && HEARD(p, s) && NOTHING_THERE(s) && !MET(p, s))
inline LEARN(p, s) { d_step {
    CAN_LEARN(p, s) -> wit[p] = wit[p] | BIT(s); lease[p] = lease[p] & ~BIT(s)
} }
#ifdef NO_WITNESS_BY_RIGHT
/* A link that is back has a lease, whoever holds the queue there; another's claim did not wait for it. */
inline GREET(p, s) { d_step {
    state[p] == OWNER && IN(s, CORE(p)) && !IN(s, bare[p] | lease[p]) && !IN(p, fresh[s]) && !MET(p, s) -> bare[p] = bare[p] | BIT(s)
} }
inline BARE_ENDS(p, s) { d_step { IN(s, bare[p]) -> bare[p] = bare[p] & ~BIT(s) } }
#endif

/*
 * No member is left in sync: each has restarted, or obeys us and holds another history. If the owner heard of one
 * restart in time, or one member obeys it, nobody else has taken the queue over; if every old copy is gone or obeys,
 * nobody can any more. It founds the next epoch on whatever store takes it.
 */
#ifdef NO_EVERY_MEMBER_LOST
#define IS_LOST(p, s) (1)
#else
#define OF_SET(p) ((members[p] & wanted[p]) != 0 -> members[p] : members[p] | wanted[p])      /* the second: founding */
/* One that a sent change drops need only obey: those that were told of the change, and stay, must all be lost. */
#define DROPPED(p, s) (IN(s, members[p] & ~wanted[p]))
#define IS_LOST(p, s) (!IN(s, OF_SET(p)) || (IN(p, fresh[s]) && NOTHING_THERE(s)) || \
                       (OBEYS(p, s) && (!IN(s, feed[p]) || DROPPED(p, s))))
#endif
#define ALL_LOST(p) (IS_LOST(p, 0) && IS_LOST(p, 1) && IS_LOST(p, 2))
#ifdef NO_WITNESS_IN_SET_SENT   /* the restart of a member that a sent change drops counts */
#define WITNESS(p) (wit[p])
#else
#define WITNESS(p) (wit[p] & CORE(p))
#endif
#define IS_OURS(p, s) (IN(s, WITNESS(p)) || (IN(s, members[p] & wanted[p]) && OBEYS(p, s) && !IN(p, fresh[s]) && !IN(s, feed[p])))
#define IS_OURS_SOMEWHERE(p) (IS_OURS(p, 0) || IS_OURS(p, 1) || IS_OURS(p, 2))
#define TAKES_IT(p, s) (OBEYS(p, s) || (role[s] == EMPTY && !MET(p, s)))
/* A member that is back with its file would show the old set: it is taken and emptied before a set is founded. */
inline EMPTY_OLD(p, s) { d_step {
    state[p] == OWNER && IN(s, OF_SET(p)) && IN(p, fresh[s]) && role[s] == SPILLED && stoken[s] == 0 && shighest[s] <= token[p] && !MET(p, s) &&
    IS_OURS_SOMEWHERE(p) ->
    role[s] = FILLED; sepoch[s] = 0; smembers[s] = 0; stn[s] = 0; sdata[s] = 0; shist[s] = 0; TOLD_AT(s, 0)
    feed[p] = feed[p] & ~BIT(s); stoken[s] = token[p]; FORGET_BEFORE(s) WRITES(p, s) shighest[s] = token[p];
    TIDY_ALL()
} }

inline FOUND(p, s) { d_step {
    state[p] == OWNER && TAKES_IT(p, s) && ALL_LOST(p) && IS_OURS_SOMEWHERE(p) &&
    (epoch[p] + 1 < EPOCHS || (wantedAt[p] == 0 && epoch[p] < EPOCHS)) ->
    assert(lastOwner == p);                                     /* property 7 */
    if :: wantedAt[p] != 0 -> epoch[p]++ :: else fi;    /* a set that was sent may have been applied */
    HAVE(p, s);
    role[s] = FILLED; sepoch[s] = 0; smembers[s] = 0; TOLD_AT(s, 0)
    stn[s] = last[p]; sdata[s] = mem[p]; shist[s] = phist[p]; fresh[s] = fresh[s] & ~BIT(p);
    ACKED(p, s) = last[p];
    feed[p] = BIT(s); held[p] = 0; CLEAR_REFILLED(p)
#ifndef NO_WITNESS_OF_FOUNDERS  /* what was heard of earlier boots says nothing of a set founded since */
    wit[p] = 0;
#endif
    SEND_SET(p, BIT(s));
    TIDY_ALL()
} }

inline ADD(p, s) { d_step {
    state[p] == OWNER && !IN(s, members[p] | wanted[p]) && wantedAt[p] == 0 &&
    epoch[p] < EPOCHS &&
    (members[p] == 1 || members[p] == 2 || members[p] == 4) &&
    (members[p] & ~NOT_IN(p)) != 0 && role[s] == FILLED && IN(s, feed[p]) && NOT_FENCED(p, s) ->
    SEND_SET(p, members[p] | BIT(s));
#ifndef NO_SURVIVORS_BEFORE_JOINER
    held[p] = wantedAt[p]
#endif
} }

#ifdef LEAVES
/* The set without it counts: a store that is to stop hears of it, and writes it into its file. */
inline TELL_LEAVER(p, s) { d_step {
    state[p] == OWNER && wantedAt[p] == 0 && !IN(s, members[p]) && role[s] == MEMBER && OBEYS(p, s) && IN(s, feed[p]) &&
    stn[s] < last[p] && IN_HISTORY(s, last[p], phist[p]) &&
    IS_SET(LOG(p, stn[s] + 1)) && SET_EPOCH(LOG(p, stn[s] + 1)) == epoch[p] ->
    op = LOG(p, stn[s] + 1);
    stn[s]++; shist[s] = phist[p] & UP_TO(stn[s]);
    sepoch[s] = SET_EPOCH(op); smembers[s] = SET_OF(op); role[s] = LEFT; TOLD_AT(s, stn[s]) WRITES(p, s) feed[p] = feed[p] & ~BIT(s);
    op = 0;
    TIDY_ALL()
} }
#endif

#ifdef REFILLS
/* A member came back empty. It is filled, and counts for nothing yet, though it is in the set. */
inline REFILL_MEMBER(p, s) { d_step {
    state[p] == OWNER && IN(s, members[p]) && wantedAt[p] == 0 && epoch[p] < EPOCHS && !HOLDS_COPY(s) &&
    !(role[s] == FILLED && IN(s, refilled[p] & feed[p])) && IN(p, fresh[s]) && CAN_HAVE(p, s) ->
    HAVE(p, s);
    role[s] = FILLED; stn[s] = last[p]; sdata[s] = mem[p]; shist[s] = phist[p];
    feed[p] = feed[p] | BIT(s);
#ifdef NO_LET_IN_BY_A_CHANGE    /* it counts as soon as it has all */
    ACKED(p, s) = last[p]; fresh[s] = fresh[s] & ~BIT(p);
#else
    ACKED(p, s) = 0; refilled[p] = refilled[p] | BIT(s);
#endif
    TIDY_ALL()
} }
/* ... before a survivor has acknowledged a change of the set that names it. */
inline LET_IN(p, s) { d_step {
    state[p] == OWNER && wantedAt[p] == 0 && epoch[p] < EPOCHS && IN(s, refilled[p]) && role[s] == FILLED && OBEYS(p, s) &&
    (members[p] & feed[p] & ~refilled[p]) != 0 ->
#ifndef NO_WITNESS_VOID_LET_IN  /* who may be a member from here on may be claimed as one: what was heard before says nothing */
    wit[p] = wit[p] & ~BIT(s);
#endif
    SEND_SET(p, members[p]); held[p] = wantedAt[p]
} }
#endif

/* ----------------------------------------------------------------- leases */

/*
 * A lease that had lapsed begins anew, and the right to this queue is confirmed in it: one step for both, for
 * without the second the first is of no use.
 */
#ifdef NO_CONFIRMED_EACH_TERM   /* the lease is the gateway's, whoever holds the queue */
inline HEARTBEAT(p, s) { d_step {
    state[p] == OWNER && role[s] != EMPTY && !MET(p, s) && !IN(s, lease[p]) && IN(s, members[p] | wanted[p]) ->
    lease[p] = lease[p] | BIT(s)
} }
#else
inline HEARTBEAT(p, s) { d_step {
    state[p] == OWNER && role[s] != EMPTY && stoken[s] == token[p] && !MET(p, s) &&
    IN(s, members[p] | wanted[p]) &&    /* elsewhere it would be of no use; fewer states */
    (slease[s] != p + 1 || !IN(s, lease[p])) ->
    slease[s] = p + 1; lease[p] = lease[p] | BIT(s);
#ifdef HANDBACK
    if :: state[lastOwner] == IDLE -> lastOwner = p :: else fi
#endif
} }
#endif

/*
 * Its own view ends, then the store's. In the span between, the process may not
 * deliver and nobody may claim, which is no more than steps that do not happen:
 * one step for both loses nothing.
 */
inline LEASE_ENDS(p, s) { d_step {
    NOT_RENEWED(p, s) && IN(s, lease[p]) ->
    lease[p] = lease[p] & ~BIT(s);
    if :: slease[s] == p + 1 -> slease[s] = 0 :: else fi
} }

/* A lease whose holder does not know of it. */
inline STORE_LEASE_ENDS(s) { d_step {
    slease[s] != 0 && !IN(s, lease[slease[s] - 1]) -> slease[s] = 0
} }

/* One lease period after a restart: every lease given before it has ended. */
inline GRACE_ENDS(s) { d_step {
    sgrace[s] && !OLD_LEASE(0, s) && !OLD_LEASE(1, s) && !OLD_LEASE(2, s) -> sgrace[s] = 0
} }

/* --------------------------------------------------------------- takeover */

#ifdef JOINERS
/*
 * What a probe tells of who wrote. Not of a member's copy that another has claimed since, who may have counted on the joiner and
 * gone on with it alone; nor where the highest claim is one by which this process served the queue.
 */
#ifdef NO_CLAIMED_SINCE
#define IS_TOLD(p, s) (1)
#else
#define IS_TOLD(p, s) ((!HOLDS_COPY(s) || !sclaimed[s] || (sclaimant[s] == ME(p) && !sclaimed2[s])) && \
                       (adopted[p] == 0 || shighest[s] > adopted[p]))
#endif
#define PROBE(p, s) if :: IS_TOLD(p, s) -> TOLD(p, s) = swriter[s] :: else -> TOLD(p, s) = 0 fi;
#else
#define PROBE(p, s)
#endif

/* Probing: the newest epoch among the stores that answered is that of store s. */
inline START(p, s) { d_step {
    PROBED(p, s) && state[p] == IDLE && MAY_START(p) && attempts[p] < ROUNDS && HOLDS_COPY(s) ->
    attempts[p]++;
    state[p] = CLAIM;
    i = token[p];
    if :: shighest[0] > i -> i = shighest[0] :: else fi;
    if :: shighest[1] > i -> i = shighest[1] :: else fi;
    if :: shighest[2] > i -> i = shighest[2] :: else fi;
    token[p] = (i / 4 + 1) * 4 + p;
    AGED_CLEAR(p)
    i = 0;
    PROBE(p, 0) PROBE(p, 1) PROBE(p, 2)
    seenEpoch[p] = sepoch[s]; seenMembers[p] = smembers[s]; claimed[p] = 0;
#if AGAIN > 0
    feed[p] = 0;                    /* its hello has fenced the process before it */
#endif
    members[p] = 0;
    fresh[0] = fresh[0] & ~BIT(p); fresh[1] = fresh[1] & ~BIT(p); fresh[2] = fresh[2] & ~BIT(p)
} }

#ifdef UNPROVEN
/* Incarnation 2 says hello: from now on the store refuses incarnation 1. */
inline HELLO(s) { d_step {
    state[1] == CLAIM && state[0] != DEAD && !IN(s, met) -> met = met | BIT(s)
} }
#endif

inline TAKE(p, s)
{
    if
    :: SAME_GATEWAY(p, s) -> skip
    :: else -> NOTE_BEFORE(s)
    fi;
    stoken[s] = token[p]; shighest[s] = token[p]; slease[s] = p + 1; CLAIMS_COPY(p, s)
    TIDY_ALL()
}

#define SEES_GONE(p) ((IN(0, seenMembers[p]) && !HOLDS_COPY(0)) || (IN(1, seenMembers[p]) && !HOLDS_COPY(1)) || \
                      (IN(2, seenMembers[p]) && !HOLDS_COPY(2)))
#ifdef NO_ROUND_IN_ONE_BOOT     /* a claim round goes on past the restart of a store that it has heard */
#define SAME_BOOT(p, s) (1)
#else
#define SAME_BOOT(p, s) (!IN(p, fresh[s]))
#endif
#define GRANTABLE(p, s) (SAME_BOOT(p, s) && CAN_BE_CLAIMED(s) && GRACE_OVER(p, s) && token[p] > shighest[s] && \
                         LEASE_FREE(p, s) && PROVEN(p, s) && \
                         (IN(s, seenMembers[p]) || (MAY_GO_ON(p) && SEES_GONE(p))))

inline GRANT(p, s) { d_step {
    state[p] == CLAIM && GRANTABLE(p, s) ->
    TAKE(p, s);
    lease[p] = lease[p] | BIT(s);
    claimed[p] = claimed[p] | BIT(s);
#ifndef NO_CLAIMS_CONFIRMED
    confirmed[p] = BIT(s);
#endif
#ifndef NO_ASKED_AGAIN          /* an answer from before the last grant counts */
    gone[p] = 0;
#endif
#ifndef NO_ATOMIC_CLAIM
    if
    :: sepoch[s] > seenEpoch[p] -> seenEpoch[p] = sepoch[s]; seenMembers[p] = smembers[s]
    :: else
    fi
#endif
} }

/*
 * Granted after the claimant gave up or died. (Granted, but the answer lost on
 * the way: the same as heard and not used.)
 */
inline GRANT_UNHEARD(p, s) { d_step {
    TROUBLE && (state[p] == IDLE || state[p] == DEAD) && token[p] != 0 && GRANTABLE(p, s) ->
    TAKE(p, s)
} }

/* Asked after the last grant, a store says that the earlier claim still stands. */
inline CONFIRM(p, s) { d_step {
    state[p] == CLAIM && confirmed[p] != 0 && IN(s, claimed[p] & ~confirmed[p]) &&
    role[s] != EMPTY && stoken[s] == token[p] ->
    confirmed[p] = confirmed[p] | BIT(s)
} }

/* ... and a store that has nothing says so. */
#ifdef NO_ASKED_AGAIN
#define MAY_ASK(p) (1)
#else
#define MAY_ASK(p) (confirmed[p] != 0)
#endif
inline SAYS_GONE(p, s) { d_step {
    state[p] == CLAIM && MAY_ASK(p) && MAY_GO_ON(p) && !IN(s, claimed[p] | gone[p]) && IS_GONE(s) &&
    SAME_BOOT(p, s) && SEES_GONE(p) -> gone[p] = gone[p] | BIT(s)
} }
inline SAYS_NOT_MINE(p) { d_step {
    state[p] == CLAIM && MAY_ASK(p) && MAY_GO_ON(p) && SEES_GONE(p) && state[3-p] != OWNER &&
    (gone[p] & OTHER) == 0 -> gone[p] = gone[p] | OTHER
} }

inline GIVE_UP(p) { d_step {
    IN_VAIN(p) && state[p] == CLAIM -> state[p] = IDLE; lease[p] = 0; claimed[p] = 0; confirmed[p] = 0; gone[p] = 0;
    fresh[0] = fresh[0] & ~BIT(p); fresh[1] = fresh[1] & ~BIT(p); fresh[2] = fresh[2] & ~BIT(p)
} }

/*
 * A claim of an earlier round or process, found in the lists: only at a store that is surely in the last set. Elsewhere
 * the copy is dropped.
 */
#if AGAIN > 0
#define OLDER(p, s) ((p) == 2 && IS_RESCUES(stoken[s]) && (stoken[s] != token[p] || AGED(p)))
#ifdef NO_LAST_SET_RELEASED
#define LEFT_OVER(p, s) OLDER(p, s)
#else
#define LEFT_OVER(p, s) (OLDER(p, s) && HOLDS_COPY(s) && IN(s, smembers[s]) && NONE_NEWER(s, 0) && NONE_NEWER(s, 1) && NONE_NEWER(s, 2))
#endif
#else
#define LEFT_OVER(p, s) (0)
#endif

/* After a claim that led to nothing: everywhere. After a hand-back: at the members of the set. */
#ifdef NO_ONLY_MEMBERS_RELEASED
#define GIVES_BACK(p, s) (1)
#else
#define GIVES_BACK(p, s) (members[p] == 0 || IN(s, members[p]))
#endif
#ifdef HANDBACK
#ifdef NO_ALL_ACKED_BEFORE_RELEASE
#define ALL_THERE(p) (1)
#else
#define ALL_THERE(p) (ALL_ACKED(p, last[p]))
#endif
inline HAND_BACK(p) { d_step {
    p == 2 && state[p] == OWNER && (state[0] == OWNER || state[1] == IDLE || state[1] == CLAIM) && wantedAt[p] == 0 &&
    ALL_THERE(p) ->
    removed = removed | (dotted & ~mem[p]);         /* no fault: what was sent on is not sent again */
    state[p] = IDLE; lease[p] = 0; mem[p] = 0; feed[p] = 0; wit[p] = 0; wanted[p] = 0; epoch[p] = 0;
    fresh[0] = fresh[0] & ~BIT(p); fresh[1] = fresh[1] & ~BIT(p); fresh[2] = fresh[2] & ~BIT(p);
    m = 0;
    do
    :: m < N -> if :: removedBy[m] == p + 1 -> removedBy[m] = 0; removedAt[m] = 0 :: else fi; m++
    :: else -> break
    od;
    m = 0;
    TIDY_ALL()
} }
#endif

/*
 * A queue goes back to its owner, who has no token there and must claim: what the process that lets it go, or one before
 * it, did with the claim elsewhere, this store can't know.
 */
#ifdef NO_RELEASED_TO_OWNER     /* what was not changed here goes back to whom it was taken from, with the old token */
#ifdef NO_CHANGED_TO_OWNER      /* so does what was changed */
#define GIVEN_TO(s) sbefore[s]
#else
#define GIVEN_TO(s) (stn[s] == sclaim[s] -> sbefore[s] : 0)
#endif
#define CAN_RELEASE(p, s) ((p) == 2 || sbefore[s] != 0)
#else
#define GIVEN_TO(s) 0
#define CAN_RELEASE(p, s) ((p) == 2)
#endif
#define OF_THIS_ROUND(p, s) (stoken[s] == token[p] && !AGED(p) && GIVES_BACK(p, s))
inline RELEASE(p, s) { d_step {
    state[p] == IDLE && token[p] != 0 && role[s] != EMPTY && (OF_THIS_ROUND(p, s) || LEFT_OVER(p, s)) &&
    CAN_RELEASE(p, s) ->
    RELEASES_COPY(p, s)
    stoken[s] = GIVEN_TO(s); FORGET_BEFORE(s)
    if :: slease[s] == p + 1 -> slease[s] = 0 :: else fi;
    TIDY_ALL()
} }

/* All claims are in: take the queue as store b holds it. */
#ifdef REFILLS                  /* a member without a copy that is gone past is one that came back empty: it is filled */
#define IS_FED(p, s, b) IS_MEMBERS(p, s, b)
#else
#define IS_FED(p, s, b) (1)
#endif
inline TAKE_OVER(p, b) { d_step {
    state[p] == CLAIM && ENOUGH_CLAIMS(p, b) && GOOD_SOURCE(p, b) ->
    state[p] = OWNER;
    if
    :: seenEpoch[p] < lastEpoch ->      /* only when nothing newer is left, in stores or in a living owner */
        assert(!AT_LAST(0) && !AT_LAST(1) && !AT_LAST(2) && state[lastOwner] != OWNER);   /* property 6 */
        acked = 0; refused = 0; removed = 0; lastEpoch = 0      /* all copies are lost: no promise is left */
    :: else
    fi;
    epoch[p] = seenEpoch[p]; members[p] = seenMembers[p]; wanted[p] = seenMembers[p];
    last[p] = stn[b]; mem[p] = sdata[b]; phist[p] = shist[b]; wantedAt[p] = 0; held[p] = 0; wit[p] = 0;
    SET_AT(p, sset[b])
    feed[p] = 0;
    i = 0;
    do
    :: i < 3 ->
        fresh[i] = fresh[i] & ~BIT(p);
        if
        :: IN(i, seenMembers[p]) && role[i] != EMPTY && stoken[i] == token[p] && IN_HISTORY(i, last[p], phist[p]) && IS_FED(p, i, b) ->
            feed[p] = feed[p] | BIT(i); ACKED(p, i) = stn[i]
        :: IN(i, seenMembers[p]) && (stoken[i] != token[p] || !IS_FED(p, i, b)) -> fresh[i] = fresh[i] | BIT(p)
        :: else
        fi;
        i++
    :: else -> break
    od;
    i = 0;
    claimed[p] = 0; confirmed[p] = 0; gone[p] = 0; seenEpoch[p] = 0; seenMembers[p] = 0; CLEAR_REFILLED(p) CLEAR_TOLD(p) ADOPTS(p)
    lastOwner = p;
    NOTE_EPOCH(p)
} }

/* ----------------------------------------------------------------- faults */

inline DIE(p) { d_step {
    TROUBLE && state[p] != DEAD && (p == 0 || (state[p] != IDLE && procCrashes < PROCCRASHES)) ->
    if :: p != 0 -> procCrashes++ :: else fi;
    if :: state[p] == OWNER -> seenMembers[p] = 0 :: else fi;
    state[p] = DEAD;
    FORGET_ALL(p)
} }

inline FORGET_ALL(p)
{
    CLEAR_REFILLED(p) CLEAR_TOLD(p)
    mem[p] = 0; lease[p] = 0; claimed[p] = 0; confirmed[p] = 0; gone[p] = 0; wit[p] = 0;
    fresh[0] = fresh[0] & ~BIT(p); fresh[1] = fresh[1] & ~BIT(p); fresh[2] = fresh[2] & ~BIT(p);
    members[p] = 0; wanted[p] = 0; wantedAt[p] = 0; epoch[p] = 0; SET_AT(p, 0)
    ACKED(p, 0) = 0; ACKED(p, 1) = 0; ACKED(p, 2) = 0;
    m = 0;
    do
    :: m < N ->
        if
        :: (said[m] == OPEN || said[m] == WITHDRAWING) && saidBy[m] == p ->
            said[m] = NOREPLY; openAt[m] = 0
        :: else
        fi;
        if :: removedBy[m] == p + 1 -> removedBy[m] = 0; removedAt[m] = 0 :: else fi;
        m++
    :: else -> break
    od;
    m = 0
}

#if AGAIN > 0
/* It dies, and its next process is there at once: an own incarnation of the gateway, or of the rescue. */
inline RESTART(p) { d_step {
    TROUBLE && (state[p] == OWNER || state[p] == CLAIM) && again < AGAIN ->
    again++; NEXT_PROCESS(p) aged[p] = 1;
    if :: state[p] == OWNER -> seenMembers[p] = 0 :: else fi;
    state[p] = IDLE;
    FORGET_ALL(p)
} }
#define CORE_FENCED(p, s) (!IN(s, CORE(p)) || (role[s] != EMPTY && stoken[s] != token[p]))
inline LOSE(p) { d_step {
    state[p] == OWNER && CORE_FENCED(p, 0) && CORE_FENCED(p, 1) && CORE_FENCED(p, 2) ->
    seenMembers[p] = 0;
    state[p] = IDLE; FORGET_ALL(p)
} }
#endif

#define OWNS(p) ((state[p] == OWNER || state[p] == CLAIM) << (p))
inline RESTARTED(s)
{
    fresh[s] = OWNS(0) | OWNS(1) | OWNS(2);
#ifdef UNPROVEN
    met = met & ~BIT(s);
#endif
    stoken[s] = 0; FORGET_BEFORE(s) FORGET_WRITER(s) FORGET_HEARD(s) shighest[s] = 0; slease[s] = 0; sgrace[s] = 1
#ifdef DROPS
    ; sdropped[s] = 0
#endif
}

inline STORE_DIES(s) { d_step {
    TROUBLE && storeCrashes < STORECRASHES && role[s] != EMPTY &&
    (s != 1 || died0) ->            /* stores 0 and 1 start alike: 0 dies first */
    storeCrashes++;
    if :: s == 0 -> died0 = 1 :: else fi;
    role[s] = EMPTY; sepoch[s] = 0; smembers[s] = 0; stn[s] = 0; sdata[s] = 0; shist[s] = 0; TOLD_AT(s, 0)
#ifdef NO_FILE_USED_ONCE
    if
    :: fepoch[s] != 0 -> role[s] = SPILLED; sepoch[s] = fepoch[s]; smembers[s] = fmembers[s];
        stn[s] = ftn[s]; sdata[s] = fdata[s]; shist[s] = fhist[s]
    :: else
    fi;
#endif
    RESTARTED(s);
    TIDY_ALL()
} }

/* An orderly stop: a member writes what it holds to a file, and is back with it, member of nothing. */
inline STORE_STOPS(s) { d_step {
    TROUBLE && storeStops < STORESTOPS && (role[s] == MEMBER || role[s] == LEFT) && (s != 1 || died0) ->
    storeStops++;
    if :: s == 0 -> died0 = 1 :: else fi;
    role[s] = SPILLED;
#ifdef NO_FILE_USED_ONCE
    fepoch[s] = sepoch[s]; fmembers[s] = smembers[s]; ftn[s] = stn[s]; fdata[s] = sdata[s]; fhist[s] = shist[s];
#endif
    RESTARTED(s);
    TIDY_ALL()
} }

/*
 * An owner that is fenced where it counts, and has no other member left, gives the
 * queue up and lets its leases end. Otherwise it would keep every claimant away
 * and deliver nothing. For safety this is no more than DIE.
 */
#ifdef LIVE
#define FENCED_AT(p, s) (IN(s, members[p] & wanted[p]) && role[s] != EMPTY && stoken[s] != token[p])
inline STEP_DOWN(p) { d_step {
    calm && state[p] == OWNER && !USABLE_MEMBER(p) &&
    (FENCED_AT(p,0) || FENCED_AT(p,1) || FENCED_AT(p,2)) ->
    state[p] = DEAD; lease[p] = 0; members[p] = 0; wanted[p] = 0; mem[p] = 0
} }
#endif

/* -------------------------------------------------------------- processes */

#define EACH_STORE(step, p) :: step(p, 0) :: step(p, 1) :: step(p, 2)

proctype Process(byte p)
{
    do
#if N > 0
    :: ACCEPT(p)
#endif
#if N > 0
    :: REFUSE(p, 0)
#endif
#if N > 1
    :: REFUSE(p, 1)
#endif
#if N > 2
    :: REFUSE(p, 2)
#endif
#if N > 0
    :: DELIVER(p)
#endif
    EACH_STORE(APPLY, p)
    EACH_STORE(ACK, p)
    EACH_STORE(ISOLATE, p)
    EACH_STORE(RESYNC, p)
    EACH_STORE(ADD, p)
#ifdef NO_TAIL_BY_DIGEST
    EACH_STORE(RETURN, p)
#else
    EACH_STORE(TAIL, p)
#endif
#if STORECRASHES + STORESTOPS > 0
    EACH_STORE(LEARN, p)
#ifdef NO_WITNESS_UNBROKEN
    EACH_STORE(HEAR, p)
#endif
#ifdef NO_WITNESS_BY_RIGHT
    EACH_STORE(GREET, p)
    EACH_STORE(BARE_ENDS, p)
#endif
#endif
#if STORESTOPS > 0
    EACH_STORE(EMPTY_OLD, p)
#endif
    EACH_STORE(FOUND, p)
#ifdef DROPS
    EACH_STORE(DROP, p)
#if defined(NO_DROPPED_REFUSED) || defined(NO_DROPPED_FENCES)
    EACH_STORE(OPEN_AGAIN, p)
#endif
#endif
#ifdef LEAVES
    EACH_STORE(TELL_LEAVER, p)
#endif
#ifdef REFILLS
    EACH_STORE(REFILL_MEMBER, p)
    EACH_STORE(LET_IN, p)
#endif
#ifdef NO_SURVIVOR_NEEDED
    EACH_STORE(REPLACE_ALL, p)
#endif
#ifdef NO_STANDING_BY_A_CHANGE
    EACH_STORE(TURN_ROUND, p)
#endif
    EACH_STORE(HEARTBEAT, p)
    EACH_STORE(LEASE_ENDS, p)
    :: DIE(p)
#if defined(LIVE) && !defined(NO_STEPPING_DOWN)
    :: STEP_DOWN(p)
#endif
    od
}

proctype Claimant(byte p)
{
    do
    EACH_STORE(START, p)
    EACH_STORE(GRANT, p)
    EACH_STORE(GRANT_UNHEARD, p)
#ifndef NO_CLAIMS_CONFIRMED
    EACH_STORE(CONFIRM, p)
#endif
#if STORECRASHES + STORESTOPS > 0
    EACH_STORE(SAYS_GONE, p)
    :: SAYS_NOT_MINE(p)
#endif
    :: GIVE_UP(p)
#if AGAIN > 0
    :: RESTART(p)
    :: LOSE(p)
#endif
#ifdef HANDBACK
    :: HAND_BACK(p)
#endif
    EACH_STORE(RELEASE, p)
#ifdef DROPS
    EACH_STORE(DROP_LEFT, p)
#endif
    EACH_STORE(TAKE_OVER, p)
    od
}

proctype Stores()
{
    do
#ifdef UNPROVEN
    :: HELLO(0) :: HELLO(1) :: HELLO(2)
#endif
#if STORESTOPS > 0
    :: STORE_STOPS(0) :: STORE_STOPS(1) :: STORE_STOPS(2)
#endif
    :: STORE_LEASE_ENDS(0) :: STORE_LEASE_ENDS(1) :: STORE_LEASE_ENDS(2)
    :: GRACE_ENDS(0) :: GRACE_ENDS(1) :: GRACE_ENDS(2)
    :: STORE_DIES(0) :: STORE_DIES(1) :: STORE_DIES(2)
#ifdef LIVE
    :: d_step { !calm -> calm = 1 }
#endif
    od
}

/* Everything answered 250 and not yet sent on. Properties 3 to 5 stand where the step is. */
#define DUE (acked & ~dotted)

/* Property 1: each in-sync mirror of the last epoch could be the only one left. */
#define MIRROR_LACKS(s) (IN(s, lastMembers) && HOLDS_COPY(s) && sepoch[s] >= lastEpoch && (DUE & ~sdata[s]) != 0)
/* Property 1: so could the owner. */
#define OWNER_LACKS (state[lastOwner] == OWNER && (DUE & ~mem[lastOwner]) != 0)
/* Property 1: nor does one count that has all and was told of no set with it: a takeover would take it for empty. */
#ifdef REFILLS
#define UNTOLD(p, s) (state[p] == OWNER && lastOwner == p && DUE != 0 && wantedAt[p] == 0 && IN(s, SURVIVORS(p)) && \
                      role[s] == FILLED && OBEYS(p, s) && stn[s] == last[p] && ACKED(p, s) == last[p])
#define ONE_UNTOLD(p) (UNTOLD(p, 0) || UNTOLD(p, 1) || UNTOLD(p, 2))
#endif
/* Property 2 */
#define TWO_DELIVER ((MAY_DELIVER(0) && MAY_DELIVER(1)) || (MAY_DELIVER(0) && MAY_DELIVER(2)) || \
                     (MAY_DELIVER(1) && MAY_DELIVER(2)))

#ifdef LIVE
/*
 * A member of the newest epoch came back empty, and nobody can prove the others complete: the gateway's own next
 * incarnation will not come, or the old process may live, or a rescue holds the queue.
 */
#define LOST(s, x) (NEWEST(s) && HOLDS_COPY(s) && LACKS(x, smembers[s], sepoch[s]))
#define GOING_ON (WITHOUT != 1 && state[0] == DEAD && (state[1] == IDLE || state[1] == CLAIM) && state[2] != OWNER)
#define WAIT_FOR_MEMBER (!GOING_ON && state[lastOwner] != OWNER && (LOST(0,1) || LOST(0,2) || LOST(1,0) || LOST(1,2) || LOST(2,0) || LOST(2,1)))
/*
 * The owner lives, but no member of its set is left, and it opened none of them again in time; or it did, and a member that
 * its open change drops has a copy which a claimant released to it meanwhile: another may have had the queue by that one.
 */
#define RELEASED(p, s) (IN(s, members[p] & ~wanted[p]) && HOLDS_COPY(s) && stoken[s] == 0)
#define WAIT_FOR_SURVIVOR (state[lastOwner] == OWNER && !USABLE_MEMBER(lastOwner) && (wit[lastOwner] == 0 || \
                           RELEASED(lastOwner, 0) || RELEASED(lastOwner, 1) || RELEASED(lastOwner, 2)))
/* The owner is gone, and so is every copy. */
#define ALL_GONE (state[lastOwner] != OWNER && !HOLDS_COPY(0) && !HOLDS_COPY(1) && !HOLDS_COPY(2))
/* Every claimant is dead. */
#define NOBODY (state[0] == DEAD && (WITHOUT == 1 || state[1] == DEAD) && (WITHOUT == 2 || state[2] == DEAD))
#endif

proctype Watch()
{
    do
    :: d_step { MIRROR_LACKS(0) || MIRROR_LACKS(1) || MIRROR_LACKS(2) -> printf("PROPERTY 1 mirror\n"); assert(false) }
    :: d_step { OWNER_LACKS -> printf("PROPERTY 1 owner\n"); assert(false) }
#ifdef REFILLS
    :: d_step { ONE_UNTOLD(0) || ONE_UNTOLD(1) || ONE_UNTOLD(2) -> printf("PROPERTY 1 untold\n"); assert(false) }
#endif
    :: d_step { TWO_DELIVER -> printf("PROPERTY 2\n"); assert(false) }
#ifdef LIVE
    #ifdef LIVE_DRAINS_ALWAYS
    :: timeout -> assert(DUE == 0 || NOBODY); break              /* drains */
#else
    :: timeout -> assert(DUE == 0 || WAIT_FOR_MEMBER || WAIT_FOR_SURVIVOR || ALL_GONE || NOBODY); break    /* drains */
#endif
#endif
    od
}

init { d_step {
    role[0] = MEMBER; role[1] = MEMBER;
    sepoch[0] = 1; sepoch[1] = 1; smembers[0] = 3; smembers[1] = 3;
    stoken[0] = 4; stoken[1] = 4; shighest[0] = 4; shighest[1] = 4;
    slease[0] = 1; slease[1] = 1;
    state[0] = OWNER; token[0] = 4; epoch[0] = 1; members[0] = 3; wanted[0] = 3; feed[0] = 3;
    lease[0] = 3;
#ifdef AHEAD
    next = 1; said[0] = NOREPLY;
    last[0] = 2; phist[0] = 5; LOG(0, 1) = STORE_OP(0); LOG(0, 2) = REMOVE_OP(0);
    stn[0] = 2; shist[0] = 5;
    state[0] = DEAD; epoch[0] = 0; members[0] = 0; wanted[0] = 0; lease[0] = 0;
#endif
    lastEpoch = 1; lastMembers = 3;
#ifdef LOSTONE
    died0 = 1; wit[0] = 1; fresh[0] = 1; lease[0] = 2;
    role[0] = EMPTY; sepoch[0] = 0; smembers[0] = 0; stoken[0] = 0; shighest[0] = 0; slease[0] = 0;
    stn[1] = 1; shist[1] = 1; last[0] = 1; phist[0] = 1; ACKED(0, 0) = 1; ACKED(0, 1) = 1;
#endif
#if CUTOFF > 0
    died0 = 1; lastMembers = 1;
    role[1] = EMPTY; sepoch[1] = 0; smembers[1] = 0; stoken[1] = 0; shighest[1] = 0; slease[1] = 0;
    smembers[0] = 1; stn[0] = 1; shist[0] = 1; last[0] = 1; phist[0] = 1;
    members[0] = 1; wanted[0] = 1; feed[0] = 1; lease[0] = 1; ACKED(0, 0) = 1;
#endif
#ifdef JOINERS
    swriter[0] = 1;
#if CUTOFF == 0
    swriter[1] = 1;
#else
    sset[0] = 1; setAt[0] = 1;
#endif
#endif
#if CUTOFF == 1 || CUTOFF == 2
    lease[0] = 0; lastOwner = CUTOFF;
    state[CUTOFF] = OWNER; token[CUTOFF] = 8 + CUTOFF; attempts[CUTOFF] = 1; epoch[CUTOFF] = 1;
    members[CUTOFF] = 1; wanted[CUTOFF] = 1; feed[CUTOFF] = 1; lease[CUTOFF] = 1; ACKED(CUTOFF, 0) = 1;
    last[CUTOFF] = 1; phist[CUTOFF] = 1;
    stoken[0] = token[CUTOFF]; shighest[0] = token[CUTOFF]; slease[0] = CUTOFF + 1;
#ifdef JOINERS
    setAt[CUTOFF] = 1; adopted[CUTOFF] = token[CUTOFF];
    sclaimed[0] = 1; sclaimant[0] = CUTOFF + 1; sclaimedAt[0] = token[CUTOFF];
#endif
#if CUTOFF == 1
    met = 7;
#endif
#endif
    };
    atomic {
        run Watch(); run Process(0);
#if WITHOUT != 1
        run Process(1);
#endif
#if WITHOUT != 2
        run Process(2);
#endif
#if WITHOUT != 1
        run Claimant(1);
#endif
#if WITHOUT != 2
        run Claimant(2);
#endif
        run Stores()
    }
}
