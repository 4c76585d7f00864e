/*
 * Rule 15: the register is rolled back to an older state, or lost, once and at any moment; what stores were told
 * brings the record back. Commit, lease and fence are those of register.pml, cut down to one message.
 *
 * A record is a version: its number stands for its nonce, E its epoch. The holder tells a settled record to its
 * members (TELL); from then on the record counts. Until then the members of the record before count as well.
 * A takeover changes the record, then fences each store that answers, members or not. A store answers with the last
 * record that it was told. Only a holder that has read its copy tells: a fence alone overwrites nothing. So the
 * record of a takeover names the record that it is founded on (B), and the takeovers since (CH): what a store was
 * told is compared with these.
 *
 * Exception, marked `blind`: everybody who was told of a record that the rollback undid is silent towards the
 * process that goes on. Nothing is asserted after it.
 *
 * Stores 0 and 1 are the members at the start, 2 is spare. Process 0 is the holder; both processes can take over (-DONE_TAKER: process 1 only).
 * Each rule has a name; -DNO_<RULE> removes it (README.md).
 */
#ifndef V
#define V 5                     /* records that are ever sent */
#endif
#ifndef STORECRASHES
#define STORECRASHES 0
#endif

#define BIT(x)     (1 << (x))
#define IN(x, set) (((set) >> (x)) & 1)

/* --------------------------------------------------- records, by version; 0: none */

byte E[V + 1];                  /* epoch */
byte T[V + 1];                  /* term: the version that made this holder holder */
byte H[V + 1];                  /* holder */
byte M[V + 1];                  /* members */
byte B[V + 1];                  /* founded on: the last record known to be of a holder that had read its copy */
byte CH[V + 1];                 /* the versions since, both included */
bit  S[V + 1];                  /* rebuilt from what was told: whoever takes it over asks every store, too */
byte versions = 1;

byte cur = 1;                   /* the register */
byte was = 2;                   /* versions that were in it */
byte undone;
bit  rolled;

/* ---------------------------------------------------------------- stores */

bit  data[3];                   /* holds the message */
bit  gone[3];                   /* has restarted, empty: no member counts in this boot */
byte fence[3];                  /* highest term seen (a version) */
byte told[3];                   /* last record told, in a file too */

/* ------------------------------------------------------------- processes */

#define IDLE   0
#define CLAIM  1
#define TAKING 2
#define OWNER  3
#define DEAD   4

byte state[2];
byte kv[2];                     /* the last record of its own */
byte pend[2];                   /* sent, not settled ... */
byte from[2];                   /* ... and what it compares with */
byte late[2];                   /* as pend, sent before it stopped */
byte lfrom[2];
byte bar[2];                    /* members of records before, until this one has been told */
byte feed[2];                   /* stores that share its history */
byte resid[2];                  /* leases left at stores that refuse it or died */
byte ans[2];                    /* taking: stores fenced that have answered */
bit  all[2];                    /* taking: every store must answer */
bit  low[2];                    /* taking: a store has seen a higher term */
bit  firm[2];                   /* its record was told to its members after it had read its copy */
bit  mem[2];                    /* holds the message */

bit  acked;
bit  blind;
byte storeCrashes;

hidden byte i;
hidden byte x;
hidden byte top;

/* ----------------------------------------------------------------- rules */

#define OLDER(a, b)    (E[a] < E[b])
#define POSSIBLE(p)    (M[kv[p]] | M[pend[p]] | bar[p])
#define REFUSES(s, v)  (E[fence[s]] > E[T[v]] || (E[fence[s]] == E[T[v]] && fence[s] != T[v]))
#define RENEWS(p, s)   (!gone[s] && !REFUSES(s, kv[p]))
#define LEASE(p, s)    (RENEWS(p, s) || IN(s, resid[p]))
#define AT_ALL(p, set) ((!IN(0, set) || LEASE(p, 0)) && (!IN(1, set) || LEASE(p, 1)) && (!IN(2, set) || LEASE(p, 2)))
#define MAY_DELIVER(p) (state[p] == OWNER && firm[p] && AT_ALL(p, POSSIBLE(p)))

/* By term, then by epoch: a term is told only after its holder has read a copy. */
#ifdef NO_BY_TERM               /* by epoch alone */
#define NEWER(a, b) (E[a] > E[b])
#else
#define NEWER(a, b) (E[T[a]] > E[T[b]] || (E[T[a]] == E[T[b]] && E[a] > E[b]))
#endif
/* What a store was told is on the line of record v, or older than what v is founded on. */
#define FITS(x, v)   ((x) == 0 || IN(x, CH[v]) || !NEWER(x, B[v]))
#define NEWEST01     (NEWER(told[1], told[0]) -> told[1] : told[0])
#define NEWEST       (NEWER(told[2], NEWEST01) -> told[2] : NEWEST01)

#define MINE(p) (cur != 0 && H[cur] == p && T[cur] == T[kv[p]])
/* The register shows less than the holder knows, and nobody else's takeover: that one may be rightful. */
#ifdef NO_OWN_LINE              /* any record of a lower epoch */
#define STALE(p) (cur != pend[p] && E[cur] < E[kv[p]])
#else
#define STALE(p) (cur == 0 || (cur != pend[p] && NEWER(kv[p], cur) && (T[cur] == T[kv[p]] || E[T[cur]] < E[T[kv[p]]])))
#endif

/* ------------------------------------------------------------- bookkeeping */

/* Stores know an undone record, and p heard of none: exception. */
#define KNOWS(s) (IN(told[s], undone) || IN(fence[s], undone))
inline LOOK(p, aware)
{
    if :: !IN(kv[p], undone) && !(aware) && (KNOWS(0) || KNOWS(1) || KNOWS(2)) -> blind = 1 :: else fi
}

/* Forget what can have no effect any more: fewer states, same behaviour. */
inline TIDY(p)
{
    if :: late[p] != 0 && (IN(late[p], was) || (cur != lfrom[p] && (rolled || !IN(lfrom[p], was)))) -> late[p] = 0; lfrom[p] = 0 :: else fi
}

inline NEW(p, epoch, term, set, base, chain)
{
    versions++; x = versions;
    E[x] = epoch; H[x] = p; M[x] = set;
    T[x] = (term == 0 -> x : term);
    B[x] = (base == 0 -> x : base);
    CH[x] = (chain) | BIT(x);
    if :: state[p] == CLAIM -> S[x] = all[p] :: else fi;
    pend[p] = x; from[p] = cur; x = 0
}

inline STOP(p)
{
    if :: pend[p] != 0 -> late[p] = pend[p]; lfrom[p] = from[p] :: else fi;
    pend[p] = 0; from[p] = 0; kv[p] = 0; bar[p] = 0; feed[p] = 0; resid[p] = 0; ans[p] = 0; low[p] = 0;
    all[p] = 0; firm[p] = 0; mem[p] = 0;
    TIDY(p)
}

#define KEEPS(q, s) (state[q] == OWNER && RENEWS(q, s) && IN(s, POSSIBLE(q)))
inline LEAVE_LEASES(s)
{
    if :: KEEPS(0, s) -> resid[0] = resid[0] | BIT(s) :: else fi;
    if :: KEEPS(1, s) -> resid[1] = resid[1] | BIT(s) :: else fi
}

/* ---------------------------------------------------------------- the holder */

/* The message comes, reaches every member of every possible record, and is answered 250: one step. */
#define CAN(p, s) (!IN(s, POSSIBLE(p)) || (IN(s, feed[p]) && !gone[s] && !REFUSES(s, kv[p])))
inline COMMIT(p) { d_step {
    state[p] == OWNER && firm[p] && !acked && CAN(p, 0) && CAN(p, 1) && CAN(p, 2) ->
    acked = 1; mem[p] = 1;
    if :: IN(0, POSSIBLE(p)) -> data[0] = 1 :: else fi;
    if :: IN(1, POSSIBLE(p)) -> data[1] = 1 :: else fi;
    if :: IN(2, POSSIBLE(p)) -> data[2] = 1 :: else fi
} }

inline RESYNC(p, s) { d_step {
    state[p] == OWNER && !IN(s, POSSIBLE(p)) && (!IN(s, feed[p]) || data[s] != mem[p]) && !gone[s] && !REFUSES(s, kv[p]) ->
    LEAVE_LEASES(s);
    fence[s] = T[kv[p]]; data[s] = mem[p]; feed[p] = feed[p] | BIT(s); resid[p] = resid[p] & ~BIT(s)
} }

inline ALIGN(p, s) { d_step {
    state[p] == OWNER && IN(s, M[kv[p]]) && !IN(s, feed[p]) && !gone[s] && !REFUSES(s, kv[p]) ->
    LEAVE_LEASES(s);
    fence[s] = T[kv[p]]; data[s] = mem[p]; feed[p] = feed[p] | BIT(s)
} }

#define MAY_ADD(p, s, set) (!IN(s, (set) & ~M[kv[p]]) || (IN(s, feed[p]) && !gone[s] && (!acked || data[s])))
inline CHANGE(p, set) { d_step {
    state[p] == OWNER && versions < V && pend[p] == 0 && firm[p] && bar[p] == 0 && set != M[kv[p]] && cur == kv[p] &&
    MAY_ADD(p, 0, set) && MAY_ADD(p, 1, set) && MAY_ADD(p, 2, set) ->
    NEW(p, E[kv[p]] + 1, T[kv[p]], set, 0, 0)
} }

inline CAS(p) { d_step {
    pend[p] != 0 && cur != pend[p] && !IN(pend[p], was) && cur == from[p] -> cur = pend[p]; was = was | BIT(cur);
    TIDY(0); TIDY(1)
} }
inline CAS_LATE(p) { d_step {
    late[p] != 0 && !IN(late[p], was) && cur == lfrom[p] -> cur = late[p]; was = was | BIT(cur); late[p] = 0; lfrom[p] = 0;
    TIDY(0); TIDY(1)
} }

inline LEARN(p) { d_step {
    (state[p] == OWNER || state[p] == TAKING || state[p] == CLAIM) && cur != kv[p] && cur != 0 ->
    if
    :: state[p] == CLAIM && cur == pend[p] ->
        state[p] = TAKING; kv[p] = cur; pend[p] = 0; from[p] = 0; ans[p] = 0
    :: state[p] == CLAIM && cur != pend[p] && cur != from[p] -> STOP(p); state[p] = IDLE
    :: state[p] == TAKING -> STOP(p); state[p] = IDLE
    :: state[p] == OWNER && MINE(p) && (cur == pend[p] || E[cur] > E[kv[p]]) ->
#ifdef NO_TOLD_BEFORE_USE
        bar[p] = 0;
#else
        bar[p] = POSSIBLE(p);
#endif
        kv[p] = cur; pend[p] = 0; from[p] = 0;
        resid[p] = resid[p] & POSSIBLE(p)
    :: state[p] == OWNER && !MINE(p) && E[cur] > E[kv[p]] ->
        STOP(p); state[p] = IDLE
    :: else
    fi
} }

inline TELL(p, s) { d_step {
    state[p] == OWNER && !REFUSES(s, kv[p]) && NEWER(kv[p], told[s]) ->
    told[s] = kv[p];
    if :: E[T[kv[p]]] > E[fence[s]] -> LEAVE_LEASES(s); fence[s] = T[kv[p]] :: else fi
} }

/* The record counts: its members were told, and the register, read after that, still shows it. */
#define HEARD(p, s) (!IN(s, M[kv[p]]) || told[s] == kv[p])
inline CONFIRM(p) { d_step {
    state[p] == OWNER && (bar[p] != 0 || !firm[p]) && HEARD(p, 0) && HEARD(p, 1) && HEARD(p, 2) &&
#ifndef NO_READ_AFTER_TELLING
    cur == kv[p] &&
#endif
    (1) ->
    bar[p] = 0; firm[p] = 1;
    LOOK(p, 0)
} }

/* The register shows less than the holder knows, and its leases run: it writes its record again, above all told. */
inline ABOVE(epoch) { if :: epoch > top -> top = epoch :: else fi }
inline ABOVE_MEMBER(p, s) { if :: IN(s, M[kv[p]]) -> ABOVE(E[told[s]]); ABOVE(E[fence[s]]) :: else fi }
inline REWRITE(p) { d_step {
    state[p] == OWNER && STALE(p) && versions < V &&
    AT_ALL(p, POSSIBLE(p)) ->
    if :: pend[p] != 0 -> bar[p] = bar[p] | M[pend[p]]; late[p] = pend[p]; lfrom[p] = from[p] :: else fi;
    bar[p] = bar[p] | M[kv[p]];
    top = E[kv[p]]; ABOVE(E[pend[p]]);
    ABOVE_MEMBER(p, 0); ABOVE_MEMBER(p, 1); ABOVE_MEMBER(p, 2);
    NEW(p, top + 1, T[kv[p]], M[kv[p]], 0, 0);
    top = 0
} }

/* ----------------------------------------------------------------- takeover */

#ifdef ONE_TAKER                /* only process 1 takes over */
#define TAKES_OVER(p) ((p) == 1)
#else
#define TAKES_OVER(p) (1)
#endif
/* On the record in the register; if there is none, on what one store was told: then all must answer later. */
inline START(p) { d_step {
    state[p] == IDLE && versions < V && TAKES_OVER(p) && cur != 0 && (H[cur] != p || p == 1) ->
    state[p] = CLAIM;
    all[p] = S[cur];
    NEW(p, E[cur] + 1, 0, M[cur], B[cur], CH[cur])
} }
inline START_LOST(p, s) { d_step {
    state[p] == IDLE && versions < V && TAKES_OVER(p) && cur == 0 && told[s] != 0 ->
    state[p] = CLAIM; all[p] = 1;
    top = E[told[s]]; ABOVE(E[fence[s]]);
    NEW(p, top + 1, 0, M[told[s]], told[s], BIT(told[s]));
    top = 0
} }

inline FENCE(p, s) { d_step {
    state[p] == TAKING && !IN(s, ans[p]) &&
#ifdef NO_ASK_EVERY_STORE       /* a member of the record is enough */
    IN(s, M[kv[p]]) &&
#endif
    (1) ->
    ans[p] = ans[p] | BIT(s);
    if :: REFUSES(s, kv[p]) -> low[p] = 1; all[p] = 1 :: else -> LEAVE_LEASES(s); fence[s] = kv[p] fi;
#ifdef NO_FENCE_TELLS_NOTHING
    told[s] = kv[p];
#endif
    if :: !FITS(told[s], kv[p]) -> all[p] = 1 :: else fi
} }

/* Stores know better, and all have answered: found the record anew on the newest one told, above all terms. */
inline REBASE(p) { d_step {
    state[p] == TAKING && ans[p] == 7 && (low[p] || !FITS(NEWEST, kv[p])) && versions < V && cur == kv[p] ->
    state[p] = CLAIM; all[p] = 1;
    top = E[kv[p]]; ABOVE(E[told[0]]); ABOVE(E[told[1]]); ABOVE(E[told[2]]); ABOVE(E[fence[0]]); ABOVE(E[fence[1]]); ABOVE(E[fence[2]]);
    i = NEWEST;
    NEW(p, top + 1, 0, M[i], i, BIT(i));
    i = 0; top = 0; ans[p] = 0; low[p] = 0; kv[p] = 0
} }

#define LEASES_OUT(p, s) (!IN(s, resid[1 - p]))
inline TAKE_OVER(p, s) { d_step {
    state[p] == TAKING && IN(s, M[kv[p]]) && IN(s, ans[p]) && !gone[s] && fence[s] == kv[p] && LEASES_OUT(p, s) &&
#ifndef NO_ALL_ANSWER
    (!all[p] || (ans[p] == 7 && !low[p] && FITS(NEWEST, kv[p]))) &&
#endif
    (1) ->
#ifndef NO_ASK_EVERY_STORE
    LOOK(p, all[p]);
#endif
    state[p] = OWNER; mem[p] = data[s]; feed[p] = BIT(s); bar[p] = 0; resid[p] = 0;
#ifdef NO_TAKER_TELLS           /* a taker works before its members were told */
    firm[p] = 1;
#endif
    ans[p] = 0; all[p] = 0
} }

/* -------------------------------------------------------------------- faults */

inline LEASE_ENDS(p, s) { d_step { IN(s, resid[p]) -> resid[p] = resid[p] & ~BIT(s) } }
inline DIE(p) { d_step { state[p] == OWNER && p == 0 -> STOP(p); state[p] = DEAD } }
#ifdef RESTARTS                 /* process 1 may die as holder, too; the next one is process 1 again */
#define MAY_FALL(p) (state[p] == TAKING || (state[p] == OWNER && p == 1))
#else
#define MAY_FALL(p) (state[p] == TAKING)
#endif
inline GIVE_UP(p) { d_step { MAY_FALL(p) -> STOP(p); state[p] = IDLE } }

inline STORE_DIES(s) { d_step {
    storeCrashes < STORECRASHES && !gone[s] ->
    storeCrashes++; LEAVE_LEASES(s);
    gone[s] = 1; data[s] = 0; fence[s] = 0;
#ifdef NO_FILES
    told[s] = 0;
#endif
    feed[0] = feed[0] & ~BIT(s); feed[1] = feed[1] & ~BIT(s)
} }

inline ROLL_BACK(v) { d_step {
    !rolled && v <= versions && (v == 0 || IN(v, was)) && cur != v ->
    rolled = 1; cur = v;
    i = 1;
    do
    :: i <= versions -> if :: IN(i, was) && (v == 0 || OLDER(v, i)) -> undone = undone | BIT(i) :: else fi; i++
    :: else -> break
    od;
    i = 0;
    TIDY(0); TIDY(1)
} }

proctype Process(byte p)
{
    do
    :: COMMIT(p)
    :: RESYNC(p, 0) :: RESYNC(p, 1) :: RESYNC(p, 2)
    :: ALIGN(p, 0) :: ALIGN(p, 1) :: ALIGN(p, 2)
    :: CHANGE(p, 1) :: CHANGE(p, 2) :: CHANGE(p, 3) :: CHANGE(p, 4) :: CHANGE(p, 5) :: CHANGE(p, 6)
    :: CAS(p) :: CAS_LATE(p) :: LEARN(p)
    :: TELL(p, 0) :: TELL(p, 1) :: TELL(p, 2)
    :: CONFIRM(p) :: REWRITE(p)
    :: START(p) :: START_LOST(p, 0) :: START_LOST(p, 1) :: START_LOST(p, 2)
    :: FENCE(p, 0) :: FENCE(p, 1) :: FENCE(p, 2) :: REBASE(p)
    :: TAKE_OVER(p, 0) :: TAKE_OVER(p, 1) :: TAKE_OVER(p, 2)
    :: LEASE_ENDS(p, 0) :: LEASE_ENDS(p, 1) :: LEASE_ENDS(p, 2)
    :: DIE(p) :: GIVE_UP(p)
    od
}

proctype World()
{
    do
    :: STORE_DIES(0) :: STORE_DIES(1) :: STORE_DIES(2)
    :: ROLL_BACK(0) :: ROLL_BACK(1) :: ROLL_BACK(2) :: ROLL_BACK(3)
    :: d_step { !blind && acked && ((MAY_DELIVER(0) && !mem[0]) || (MAY_DELIVER(1) && !mem[1])) -> printf("PROPERTY 1\n"); assert(false) }
    :: d_step { !blind && MAY_DELIVER(0) && MAY_DELIVER(1) -> printf("PROPERTY 2\n"); assert(false) }
#ifdef CANARY                   /* a rollback can be healed: must be found */
    :: d_step { !blind && rolled && undone != 0 && acked && state[0] == DEAD && state[1] == OWNER && MAY_DELIVER(1) ->
        printf("PROPERTY 9\n"); assert(false) }
#endif
    od
}

init { d_step {
    E[1] = 1; T[1] = 1; M[1] = 3; B[1] = 1; CH[1] = 2;
    fence[0] = 1; fence[1] = 1; told[0] = 1; told[1] = 1;
#ifdef START_ROLLED             /* the holder went to {2}, learned it, told nobody; the register is rolled back */
    E[2] = 3; T[2] = 1; M[2] = 4; B[2] = 2; CH[2] = 4;
    versions = 2; was = 6; undone = 4; rolled = 1; fence[2] = 1;
    state[0] = OWNER; kv[0] = 2; firm[0] = 1; feed[0] = 7; bar[0] = 3
#else
    state[0] = OWNER; kv[0] = 1; firm[0] = 1; feed[0] = 3
#endif
    };
    atomic { run World(); run Process(0); run Process(1) }
}
