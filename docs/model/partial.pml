/*
 * Rule 14: a holder that has not read everything (PARTIAL). The register is one atomic variable here, leases are left
 * out: rules 1-13 are checked in register.pml.
 *
 * A partition in two blocks by position. At the start stores 0 and 1 hold one message, m, answered 250 (block 1).
 * A holder that has read m may replace it by a report, r, in one change (block 2). One more message, n, may come
 * (block 2). A taker fences its source, adopts number and history of that copy, and reads block by block; it works
 * on what it has read, and takes mail, before it has read the rest.
 *
 * Terms 1, 2, ... are processes 0, 1, ...: "rule 9 begins anew" is the next one, with nothing in memory. Before it is
 * fenced, an older one still writes. At most one store dies; a holder of a term after the first that has read
 * everything lives on. So mail that is lost was lost by the rules, not by too many faults.
 * Each rule has a name; -DNO_<RULE> removes it (README.md).
 */
#ifndef P
#define P 3                     /* terms */
#endif
#ifndef STORECRASHES
#define STORECRASHES 1
#endif
#define LOGMAX 3                /* changes in one history: m, its report, n */
#define TERMS  (P + 1)

#define BIT(x)     (1 << (x))
#define IN(x, set) (((set) >> (x)) & 1)

#define MSG    1
#define REPORT 2
#define NEWMSG 4
#define BLOCK1 MSG
#define BLOCK2 (REPORT | NEWMSG)

byte rterm = 1;                 /* the register: term, members */
byte rM = 3;

bit  dead[3];                   /* has a new boot; is not used again */
byte fence[3];
byte stn[3];                    /* number of the last change ... */
byte sterm[3];                  /* ... and its term */
byte sdata[3];
byte sseg[3 * TERMS];           /* last number of each term: stands for the digest */

#define IDLE    0
#define TAKING  1
#define PARTIAL 2
#define OWNER   3
#define GONE    4
byte state[P];
byte src[P];
byte ad[P];                     /* adopted: number ... */
byte adterm[P];                 /* ... and its term */
byte known[P];                  /* members of the last record of its own */
byte last[P];
byte whole[P];                   /* what the partition holds in this history */
byte red[P];                    /* what has been read of it */
byte feed[P];                   /* stores known to share its history */
byte pseg[P * TERMS];
byte log[P * (LOGMAX + 1)];     /* its own changes, by number */
#define SSEG(s, k) sseg[(s) * TERMS + (k)]
#define PSEG(p, k) pseg[(p) * TERMS + (k)]
#define LOG(p, k)  log[(p) * (LOGMAX + 1) + (k)]

bit  came;
byte saidBy;                    /* n waits for the commit by process saidBy - 1 ... */
byte at;                        /* ... as this change */
bit  acked;                     /* n was answered 250 */
byte storeCrashes;
#ifdef CANARY
bit  went_on;
#endif
hidden byte i;

#define t(p)         ((p) + 1)
#define WORKS(p)     (state[p] == PARTIAL || state[p] == OWNER)
#define TAKES(p, s)  (!dead[s] && fence[s] <= t(p))
#define MEM(p)       (whole[p] & red[p])
#define PREFIX(p, s) (stn[s] <= PSEG(p, sterm[s]))
#define SIZE(set)    (IN(0, set) + IN(1, set) + IN(2, set))
/* The tail, or the content, that another store is to get can be had: from the source, or from memory. */
#define AT_HAND(p)   (state[p] == OWNER || (!dead[src[p]] && fence[src[p]] == t(p)))

inline COPY_HISTORY(s, p)
{
    sterm[s] = 0; i = 0;
    do
    :: i < TERMS -> SSEG(s, i) = PSEG(p, i); if :: PSEG(p, i) != 0 -> sterm[s] = i :: else fi; i++
    :: else -> break
    od;
    i = 0; stn[s] = last[p]
}

/* Forget a deposed holder that every store it could write to refuses: fewer states, same behaviour. */
#define REACHES(p, s) (!dead[s] && fence[s] <= t(p))
inline TIDY(p)
{
    if
    :: rterm > t(p) && WORKS(p) && !REACHES(p, 0) && !REACHES(p, 1) && !REACHES(p, 2) ->
        state[p] = GONE; src[p] = 0; ad[p] = 0; adterm[p] = 0; last[p] = 0; whole[p] = 0; red[p] = 0; feed[p] = 0; known[p] = 0;
        if :: saidBy == p + 1 -> saidBy = 0; at = 0 :: else fi;
        i = 0;
        do :: i < TERMS -> PSEG(p, i) = 0; i++ :: else -> break od;
        i = 1;
        do :: i <= LOGMAX -> LOG(p, i) = 0; i++ :: else -> break od;
        i = 0
    :: else
    fi
}
inline TIDY_ALL()
{
    TIDY(0); TIDY(1)
#if P > 2
    ; TIDY(2)
#endif
}

inline CHANGED(p, what) { last[p]++; LOG(p, last[p]) = what; PSEG(p, t(p)) = last[p] }

inline ACCEPT(p) { d_step {
    WORKS(p) && !came ->
    came = 1; saidBy = p + 1;
    CHANGED(p, NEWMSG); at = last[p];
    whole[p] = whole[p] | NEWMSG; red[p] = red[p] | NEWMSG
} }

/* One change ends m and makes its report. */
inline ENDS(p) { d_step {
    WORKS(p) && (MEM(p) & MSG) && last[p] < LOGMAX ->
    CHANGED(p, REPORT);
    whole[p] = (whole[p] & ~MSG) | REPORT; red[p] = red[p] | REPORT
} }

inline APPLY(p, s) { d_step {
    WORKS(p) && IN(s, feed[p]) && TAKES(p, s) && stn[s] < last[p] && LOG(p, stn[s] + 1) != 0 ->
    stn[s]++; sterm[s] = t(p); SSEG(s, t(p)) = stn[s];
    sdata[s] = sdata[s] | LOG(p, stn[s]);
    if :: LOG(p, stn[s]) == REPORT -> sdata[s] = sdata[s] & ~MSG :: else fi
} }

/* 250 for n. p knows the members of the last record of its own: nobody changes them under its term but it. */
#define HAS(p, s) (!IN(s, known[p]) || (IN(s, feed[p]) && TAKES(p, s) && stn[s] >= at))
inline COMMIT(p) { d_step {
    WORKS(p) && saidBy == p + 1 && HAS(p, 0) && HAS(p, 1) && HAS(p, 2) -> acked = 1; saidBy = 0; at = 0
} }

/* ------------------------------------------------------------------ takeover */

inline TAKE(p) { d_step {
    p > 0 && rterm == p && state[p] == IDLE && (p == 1 || state[p - 1] != OWNER) ->
    rterm = t(p); known[p] = rM; state[p] = TAKING;
    TIDY_ALL()
} }

inline FROM(p, s) { d_step {
    state[p] == TAKING && rterm == t(p) && IN(s, known[p]) && TAKES(p, s) ->
    fence[s] = t(p); state[p] = PARTIAL; src[p] = s; feed[p] = BIT(s);
    last[p] = stn[s]; ad[p] = stn[s]; adterm[p] = sterm[s]; whole[p] = sdata[s];
    i = 0;
    do :: i < TERMS -> PSEG(p, i) = SSEG(s, i); i++ :: else -> break od;
    TIDY_ALL()
} }

inline READ(p, block) { d_step {
    state[p] == PARTIAL && !dead[src[p]] && fence[src[p]] == t(p) && (red[p] & (block)) != (block) ->
    red[p] = red[p] | (block);
    if :: red[p] == 7 -> state[p] = OWNER; src[p] = 0; ad[p] = 0; adterm[p] = 0 :: else fi
} }

/* The source has died: go on from a member that was equal at the adopted number. */
inline READ_ON(p, s) { d_step {
    state[p] == PARTIAL && dead[src[p]] && IN(s, known[p]) && TAKES(p, s) &&
#ifndef NO_READ_ON_EQUAL
    (IN(s, feed[p]) || (stn[s] == ad[p] && sterm[s] == adterm[p])) &&
#endif
    s != src[p] ->
    fence[s] = t(p); src[p] = s;
#ifdef CANARY
    went_on = 1;
#endif
#ifdef NO_READ_ON_EQUAL
    if :: !IN(s, feed[p]) -> whole[p] = MEM(p) | (sdata[s] & ~red[p]) :: else fi
#endif
} }

inline ALIGN(p, s) { d_step {
    WORKS(p) && IN(s, known[p] & ~feed[p]) && TAKES(p, s) && (fence[s] < t(p) || PREFIX(p, s)) &&
    (!PREFIX(p, s) || AT_HAND(p)) ->
    fence[s] = t(p);
    if
    :: PREFIX(p, s) -> feed[p] = feed[p] | BIT(s); sdata[s] = whole[p]; COPY_HISTORY(s, p)
    :: else
    fi;
    TIDY_ALL()
} }

/* A store that is no member is filled through the holder, by position, to the end. */
inline FILL(p, s) { d_step {
    WORKS(p) && !IN(s, known[p] | feed[p]) && TAKES(p, s) &&
#ifdef NO_FILL_WHOLE
    (1) ->
    sdata[s] = MEM(p);
#else
    AT_HAND(p) ->
    sdata[s] = whole[p];
#endif
    fence[s] = t(p); feed[p] = feed[p] | BIT(s); COPY_HISTORY(s, p);
    TIDY_ALL()
} }

/* ------------------------------------------------------------ members change */

/* Its copy is gone; or it is of another history, and p has read everything, or two that are in step take its place. */
#ifdef NO_PARTIAL_NO_COPY       /* a holder that has not read everything counts as a copy */
#define MAY_DROP(p, s, set) (dead[s] || !IN(s, feed[p]))
#elif defined(NO_TWO_IN_STEP)   /* one member in step is enough */
#define MAY_DROP(p, s, set) (dead[s] || (!IN(s, feed[p]) && (state[p] == OWNER || SIZE((set) & feed[p]) >= 1)))
#else
#define MAY_DROP(p, s, set) (dead[s] || (!IN(s, feed[p]) && (state[p] == OWNER || SIZE((set) & feed[p]) >= 2)))
#endif
#define STAYS(p, s, set) (!IN(s, known[p] & ~(set)) || MAY_DROP(p, s, set))
#define JOINS(p, s, set) (!IN(s, (set) & ~known[p]) || (IN(s, feed[p]) && TAKES(p, s) && stn[s] == last[p]))
/* No members: only when a holder that has read everything is left. */
#define EMPTY(p, set)    ((set) != 0 || state[p] == OWNER)

inline CHANGE(p, set) { d_step {
    WORKS(p) && rterm == t(p) && set != known[p] && SIZE(set) <= 2 && EMPTY(p, set) &&
    STAYS(p, 0, set) && STAYS(p, 1, set) && STAYS(p, 2, set) && JOINS(p, 0, set) && JOINS(p, 1, set) && JOINS(p, 2, set) ->
    rM = set; known[p] = set
} }

inline STORE_DIES(s) { d_step {
    storeCrashes < STORECRASHES && !dead[s] ->
    storeCrashes++; dead[s] = 1; sdata[s] = 0; stn[s] = 0; sterm[s] = 0; fence[s] = 0;
    i = 0;
    do :: i < TERMS -> SSEG(s, i) = 0; i++ :: else -> break od;
    TIDY_ALL()
} }

/* --------------------------------------------------------------- properties */

#define COMPLETE(set)    (((set) & (MSG | REPORT)) != 0 && (!acked || ((set) & NEWMSG)))
#define TWICE(set)       (((set) & MSG) && ((set) & REPORT))
#define MEMBER_LACKS(s)  (IN(s, rM) && !dead[s] && !COMPLETE(sdata[s]))
#define HOLDER(p)        (rterm == t(p) && state[p] == OWNER)
#define HOLDER_LACKS(p)  (HOLDER(p) && !COMPLETE(MEM(p)))
#define HOLDER_TWICE(p)  (HOLDER(p) && TWICE(MEM(p)))
#define LIVES(s)         (IN(s, rM) && !dead[s])
#define H                (rterm - 1)

proctype Process(byte p)
{
    do
    :: ACCEPT(p) :: ENDS(p)
    :: APPLY(p, 0) :: APPLY(p, 1) :: APPLY(p, 2) :: COMMIT(p)
    :: TAKE(p) :: FROM(p, 0) :: FROM(p, 1) :: FROM(p, 2)
    :: READ(p, BLOCK1) :: READ(p, BLOCK2)
    :: READ_ON(p, 0) :: READ_ON(p, 1) :: READ_ON(p, 2)
    :: ALIGN(p, 0) :: ALIGN(p, 1) :: ALIGN(p, 2)
    :: FILL(p, 0) :: FILL(p, 1) :: FILL(p, 2)
    :: CHANGE(p, 0) :: CHANGE(p, 1) :: CHANGE(p, 2) :: CHANGE(p, 3) :: CHANGE(p, 4) :: CHANGE(p, 5) :: CHANGE(p, 6)
    od
}

proctype World()
{
    do
    :: STORE_DIES(0) :: STORE_DIES(1) :: STORE_DIES(2)
    :: d_step { MEMBER_LACKS(0) || MEMBER_LACKS(1) || MEMBER_LACKS(2) -> printf("PROPERTY 1\n"); assert(false) }
    :: d_step { HOLDER_LACKS(H) -> printf("PROPERTY 1\n"); assert(false) }
    :: d_step { HOLDER_TWICE(H) -> printf("PROPERTY 7\n"); assert(false) }
    :: d_step { !LIVES(0) && !LIVES(1) && !LIVES(2) && !HOLDER(H) -> printf("PROPERTY 8\n"); assert(false) }
#ifdef CANARY                   /* reading goes on past the death of the source: must be found */
    :: d_step { went_on && HOLDER(H) -> printf("PROPERTY 9\n"); assert(false) }
#endif
    od
}

init { d_step {
    fence[0] = 1; fence[1] = 1; stn[0] = 1; stn[1] = 1; sterm[0] = 1; sterm[1] = 1;
    sdata[0] = MSG; sdata[1] = MSG; SSEG(0, 1) = 1; SSEG(1, 1) = 1;
    state[0] = OWNER; last[0] = 1; whole[0] = MSG; red[0] = 7; feed[0] = 3; known[0] = 3; PSEG(0, 1) = 1
    };
    atomic {
        run World(); run Process(0); run Process(1)
#if P > 2
        ; run Process(2)
#endif
    }
}
