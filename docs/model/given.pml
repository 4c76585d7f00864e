/*
 * Rule 16: an operator gives copies up that do not answer, and they, or their holder, come back.
 *
 * At the start process A holds a partition with stores 0 and 1 (-DMEMORY_ONLY: with no members, the copies being lost);
 * message m was answered 250. To give the copies up *sets the record aside*, as it is: holder, term, members. The
 * partition goes on under a new record, held by B with a store of its own; that one is sound, and modelled as one copy.
 * Behind the cut A may still hold what was set aside: it delivers, and answers 250 for message n.
 * A record that was set aside is healed like any other: if its members come back, rule 9 is run on it by a process of
 * the group (B, which may die and begin again); what it reads is stored in the new record, and ended in the old one
 * after that. If it has no members, A is still its holder, and delivers.
 *
 * Each rule has a name; -DNO_<RULE> removes it (README.md).
 */
#define BIT(x)     (1 << (x))
#define IN(x, set) (((set) >> (x)) & 1)

/* The register. */
bit  given;                     /* set aside */
byte term = 1;                  /* of the record that was set aside; 1: A's */
#ifdef MEMORY_ONLY
#define MEMBERS 0
#else
#define MEMBERS 3
#endif
byte members = MEMBERS;

/* Stores 0 and 1. */
bit  dead[2];
byte fence[2];
byte data[2];
bit  wiped;

/* A */
bit  holds = 1;
bit  sess = 1;
byte mem = 1;
byte resid;

/* B: the adoption */
#define IDLE   0
#define TAKING 1
#define READY  2
byte state;
byte t;
byte got;                       /* read, not ended in the old record */

byte new;                       /* held, and committed, in the new record */
byte acked = 1;
byte dotted;
bit  away;                      /* all copies of what was given up are gone */
byte deaths;

#define RENEWS(s)  (!dead[s] && fence[s] <= 1)
#define LEASE(s)   (RENEWS(s) || IN(s, resid))
#define A_DELIVERS (holds && (members == 0 -> sess : ((!IN(0, members) || LEASE(0)) && (!IN(1, members) || LEASE(1)))))

/* A, which may be behind a cut. */
inline A_ACCEPTS() { d_step {
    holds && !(acked & 2) && !(mem & 2) && members != 0 && (!IN(0, members) || RENEWS(0)) && (!IN(1, members) || RENEWS(1)) ->
    mem = mem | 2; acked = acked | 2;
    if :: IN(0, members) -> data[0] = data[0] | 2 :: else fi;
    if :: IN(1, members) -> data[1] = data[1] | 2 :: else fi
} }
inline A_DOTS(m) { d_step {
    A_DELIVERS && (mem & (m)) -> dotted = dotted | (m); mem = mem & ~(m)
} }
inline A_ENDS(m, s) { d_step { holds && !(mem & (m)) && (data[s] & (m)) && RENEWS(s) -> data[s] = data[s] & ~(m) } }
inline A_LEARNS() { d_step {
#ifdef NO_SET_ASIDE             /* given up in place: the record is B's now */
    holds && (given || term != 1) ->
#else
    holds && term != 1 ->
#endif
    holds = 0; mem = 0; resid = 0                               /* rule 12 */
} }
inline A_DIES() { d_step { holds && deaths < 1 -> deaths++; holds = 0; mem = 0; resid = 0; sess = 0 } }
inline SESSION_ENDS() { d_step { sess && members == 0 -> sess = 0 } }
inline SESSION_NEW() { d_step { !sess && holds && term == 1 -> sess = 1 } }
inline LEASE_ENDS(s) { d_step { IN(s, resid) -> resid = resid & ~BIT(s) } }

/* The operator. With no members only when the session is gone (rule 7). */
inline GIVE_UP() { d_step { !given && (members != 0 || !sess) -> given = 1 } }

/* A store that no record names is filled by whoever needs one. */
inline REFILL(s) { d_step {
#ifdef NO_SET_ASIDE
    given &&
#else
    given && !IN(s, members) &&
#endif
    !dead[s] -> data[s] = 0; fence[s] = 100; wiped = 1
} }

inline B_TAKES() { d_step {
    given && members != 0 && term < 3 && (state == IDLE) -> term++; t = term; state = TAKING; got = 0
} }
inline B_FENCES(s) { d_step {
    state == TAKING && IN(s, members) && !dead[s] && fence[s] < t ->
    if :: holds && RENEWS(s) -> resid = resid | BIT(s) :: else fi;
    fence[s] = t
} }
inline B_READS(s) { d_step {
    state == TAKING && IN(s, members) && !dead[s] && fence[s] == t &&
#ifndef NO_WAIT
    !IN(s, resid) &&
#endif
    (1) ->
    state = READY; got = data[s]
} }
inline B_STORES() { d_step { state == READY && (got & ~new) != 0 && term == t -> new = new | got } }
/* All that was read is committed in the new record: it ends in the old one, and the old record goes. */
inline B_ENDS() { d_step {
    state == READY && term == t &&
#ifndef NO_STORE_BEFORE_END
    (got & ~new) == 0 &&
#endif
    (1) ->
    members = 0; data[0] = 0; data[1] = 0; holds = 0; mem = 0; resid = 0; term = 100
} }
inline B_DOTS(m) { d_step { new & (m) -> dotted = dotted | (m) } }
inline B_DIES() { d_step { state != IDLE && term != 3 -> state = IDLE; t = 0; got = 0 } }
inline STORE_DIES(s) { d_step {
    deaths < 1 && !dead[s] && IN(s, members) -> deaths++; if :: holds && RENEWS(s) -> resid = resid | BIT(s) :: else fi;
    dead[s] = 1; data[s] = 0
} }

/* Every message answered 250 and not delivered is somewhere where the rules will find it. */
#define DUE      (acked & ~dotted)
#define COPY(s)  (IN(s, members) && !dead[s] -> data[s] : 0)
#define LOST     ((DUE & ~(new | (holds -> mem : 0) | COPY(0) | COPY(1) | ((state == READY && got) -> got : 0))) != 0)

proctype Run()
{
    do
    :: A_ACCEPTS() :: A_DOTS(1) :: A_DOTS(2) :: A_ENDS(1, 0) :: A_ENDS(1, 1) :: A_ENDS(2, 0) :: A_ENDS(2, 1)
    :: A_LEARNS()
#ifndef MEMORY_ONLY
    :: A_DIES()
#endif
    :: SESSION_ENDS() :: SESSION_NEW() :: LEASE_ENDS(0) :: LEASE_ENDS(1)
    :: GIVE_UP() :: REFILL(0) :: REFILL(1)
    :: B_TAKES() :: B_FENCES(0) :: B_FENCES(1) :: B_READS(0) :: B_READS(1) :: B_STORES() :: B_ENDS()
    :: B_DOTS(1) :: B_DOTS(2) :: B_DIES() :: STORE_DIES(0) :: STORE_DIES(1)
    :: d_step { LOST -> printf("PROPERTY 1\n"); assert(false) }
    :: d_step { A_DELIVERS && (mem & new & ~dotted) != 0 -> printf("PROPERTY 2\n"); assert(false) }
    :: d_step { A_DELIVERS && state == READY && term == t -> printf("PROPERTY 2\n"); assert(false) }
    od
}

init { d_step { data[0] = MEMBERS & 1; data[1] = MEMBERS & 1; fence[0] = 1; fence[1] = 1 }; run Run() }
