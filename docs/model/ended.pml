/*
 * The adoption of an orphan, and the end of a partition that nobody needs any more.
 *
 * At the start process O holds a partition with stores 0 and 1; message m was answered 250. No configuration names O
 * any more: whether it lives or not, G, of its group, adopts the partition by rule 9. When it is empty, G ends it: the
 * record says "held by nobody", each store is told of that and drops its copy, then the record is deleted. A store that
 * is away is waited for, or given up by an operator: a line in the register then takes the place of the record. At any
 * moment N, the owner in another life, may be configured again: it begins the partition anew, and takes message n, or
 * takes none and is gone again: then the partition ends once more, and another life, L, may come.
 *
 * G may die while it holds the partition, and go on as another process: that one knows what the record names.
 *
 * A store that is away, or a process behind a cut, is one whose steps do not happen. A crash of a store is a new boot,
 * empty, that knows nothing. Leases have no clock, as in register.pml.
 *
 * Each rule has a name; -DNO_<RULE> removes it (README.md).
 */
#define BIT(x)     (1 << (x))
#define IN(x, set) (((set) >> (x)) & 1)
#define M 1
#define N_MAIL 2

/* The register: who holds it, since which term, by which members; lines of stores given up. */
#define NONE   0
#define OWNER  1
#define TAKER  2
#define NEXT   3
#define NOBODY 4
byte who = OWNER;
byte epoch = 1;
byte members = 3;
byte left;                      /* by the record: may have a copy, though no member */
byte line[2];                   /* epoch of the end that the store is to be told; 0: none */

/* Stores. */
byte data[2];
byte fence[2];
byte told[2];                   /* epoch of the newest record told */
byte mind[2];                   /* its holder */
byte crashes;
byte reborn;                    /* in another boot than the one that O knows */

/* O */
bit  oHolds = 1;
byte resid;                     /* leases of O that run on after a fence */

/* G */
#define IDLE    0
#define FENCING 1
#define HOLDS   2
#define ENDING  3
byte g;
byte gMem;
byte strays;                    /* left, and not told, as far as this process knows */
byte toldEnd;                   /* stores that said that they know of the end */

/* N */
#define READ    1
#define ASKED   2
#define FOUNDS  3
#define READS   4
#define SERVES  5
#define GONE    6
byte n;
byte base;                      /* the newest record that N knows: its epoch, and who holds it */
byte baseWho;
byte heard;
byte nMem;
bit  nAcked;
bit  again;                     /* it has ended twice */

byte dotted;
bit  over;                      /* m is deleted at every member */

#define RENEWS(s)  (fence[s] <= 1 && !IN(s, reborn))
#define O_LEASE(s) (RENEWS(s) || IN(s, resid))     /* at every member of the record that O knows */
#define O_DELIVERS (oHolds && O_LEASE(0) && O_LEASE(1))
#define G_DELIVERS (g == HOLDS && who == TAKER)

inline O_DOTS() { d_step { O_DELIVERS && !(dotted & M) && who == OWNER -> dotted = dotted | M; gMem = 0 } }
inline O_LOSES() { d_step { oHolds && who != OWNER -> oHolds = 0; resid = 0 } }     /* rule 12, or it dies */
inline LEASE_ENDS(s) { d_step { IN(s, resid) -> resid = resid & ~BIT(s) } }

/* Adoption: by the record, whatever key is missing. */
inline G_TAKES() { d_step { g == IDLE && who == OWNER && epoch == 1 -> who = TAKER; epoch = 2; g = FENCING } }
inline G_FENCES(s) { d_step {
    g == FENCING && IN(s, members) && fence[s] < 2 ->
    if :: oHolds && RENEWS(s) -> resid = resid | BIT(s) :: else fi;
    fence[s] = 2
} }
inline G_READS(s) { d_step {
    g == FENCING && IN(s, members) && fence[s] == 2 &&
#ifndef NO_ADOPTION_WAITS
    !IN(s, resid) &&
#endif
    (1) ->
    g = HOLDS; gMem = data[s]; told[s] = 2; mind[s] = TAKER
} }
/* A member that is silent leaves; it is not told. */
inline G_DROPS() { d_step { g == HOLDS && who == TAKER && epoch == 2 && members == 3 && fence[0] == 2 ->
    members = 1; epoch = 3; strays = 2; told[0] = 3; mind[0] = TAKER;
#ifndef NO_LEFT_IS_RECORDED
    left = 2
#endif
} }
inline G_DIES() { d_step { g == HOLDS && strays != left -> strays = left } }
inline G_DOTS() { d_step { G_DELIVERS && (gMem & M) -> dotted = dotted | M; gMem = 0 } }
inline G_DELETES(s) { d_step { g == HOLDS && gMem == 0 && IN(s, members) && fence[s] == 2 && (data[s] & M) -> data[s] = 0 } }
#define LEFT_AT(s) (IN(s, members) && (data[s] & M))
inline G_ENDS() { d_step {
    g == HOLDS && who == TAKER &&
#ifndef NO_END_WHEN_EMPTY
    gMem == 0 && !LEFT_AT(0) && !LEFT_AT(1) &&
#endif
    (1) ->
    over = (dotted & M); who = NOBODY; epoch++; left = 0;
#ifndef NO_END_NAMES_STRAYS
    members = members | strays;
#endif
    g = ENDING; gMem = 0; toldEnd = 0
} }

/* The end is told: what is older goes. */
inline STORE_DROPS(s, e) {
    if
    :: told[s] > e -> skip
    :: else ->
        told[s] = e; mind[s] = NOBODY;
        if
#ifndef NO_OLDER_ONLY
        :: fence[s] > e -> skip
#endif
        :: else -> data[s] = 0; fence[s] = e
        fi
    fi
}
inline TELL_END(s) { d_step {
    who == NOBODY && IN(s, members) && !IN(s, toldEnd) -> STORE_DROPS(s, epoch); toldEnd = toldEnd | BIT(s)
} }
inline TELL_LINE(s) { d_step { line[s] -> STORE_DROPS(s, line[s]); line[s] = 0 } }
/* A line before the record goes. */
inline GIVE_UP(s) { d_step {
    who == NOBODY && IN(s, members) && !IN(s, toldEnd) && !line[s] ->
#ifndef NO_LINE_FIRST
    line[s] = epoch;
#endif
    toldEnd = toldEnd | BIT(s)
} }
inline END_GOES() { d_step {
    who == NOBODY &&
#ifndef NO_END_TOLD
    (members & ~toldEnd) == 0 &&
#endif
    (1) ->
    who = NONE; members = 0
} }
inline CRASH(s) { d_step { crashes < 1 && !(n == SERVES && IN(s, members)) && !(who != NOBODY && who != NONE && IN(s, members)) ->
    if :: oHolds && RENEWS(s) -> resid = resid | BIT(s) :: else fi;
    crashes++; reborn = reborn | BIT(s); data[s] = 0; fence[s] = 0; told[s] = 0; mind[s] = 0 } }

/* N: the record, then the lines; with neither, every store that it knows. */
inline N_READS_RECORD() { d_step {
    n == IDLE && (who == NOBODY || who == NONE) && g == ENDING ->
    if :: who == NOBODY -> base = epoch; baseWho = NOBODY; n = FOUNDS :: else -> n = READ; base = 0; baseWho = NONE; heard = 0 fi
} }
inline N_READS_LINES() { d_step {
    n == READ ->
    n = ASKED;
#ifndef NO_LINE_COUNTS
    if :: line[0] > base -> base = line[0]; baseWho = NOBODY :: else fi;
    if :: line[1] > base -> base = line[1]; baseWho = NOBODY :: else fi;
#endif
    if :: baseWho == NOBODY -> n = FOUNDS :: else fi
} }
inline N_HEARS(s) { d_step {
    n == ASKED && !IN(s, heard) -> heard = heard | BIT(s);
    if :: told[s] > base -> base = told[s]; baseWho = mind[s] :: else fi
} }
inline N_DECIDES() { d_step {
    n == ASKED && heard == 3 && who == NONE ->
    if :: baseWho == NONE || baseWho == NOBODY -> n = FOUNDS :: else -> n = READS fi
} }
/* What a store was told is believed over a register that knows nothing (rule 15). */
inline N_TAKES(s) { d_step {
    n == READS && who == NONE && told[s] == base && data[s] ->
    who = NEXT; epoch = base + 1; members = BIT(s); fence[s] = base + 1; nMem = data[s]; n = SERVES
} }
inline N_FOUNDS(s) { d_step {
    n == FOUNDS && (who == NOBODY || who == NONE) && fence[s] <= base ->
#ifdef NO_ABOVE_END
    epoch = 1;
#else
    epoch = base + 1;
#endif
#ifndef NO_FOUNDER_NAMES_LEFT
    if :: baseWho == NOBODY && who == NOBODY -> left = members & ~BIT(s) :: else fi;
#endif
    who = NEXT; members = BIT(s); fence[s] = epoch; data[s] = 0; nMem = 0; n = SERVES
} }
/* It ends again, empty; L then reads what N read. */
inline N_ENDS() { d_step {
    n == SERVES && who == NEXT && !nAcked && !again ->
    again = 1; who = NOBODY; epoch++; members = members | left; left = 0; toldEnd = 0; n = GONE
} }
inline L_READS() { d_step { n == GONE && who == NONE -> n = READ; base = 0; baseWho = NONE; heard = 0 } }
inline N_ACCEPTS() { d_step {
    n == SERVES && who == NEXT && !nAcked ->
    nAcked = 1; nMem = nMem | N_MAIL;
    if :: IN(0, members) -> data[0] = data[0] | N_MAIL :: else -> data[1] = data[1] | N_MAIL fi
} }
/* A tell that was sent before comes late. */
inline LATE_TELL(s, e) { d_step { g == ENDING && who == NEXT && e > 0 -> STORE_DROPS(s, e) } }

proctype Run()
{
    do
    :: O_DOTS() :: O_LOSES() :: LEASE_ENDS(0) :: LEASE_ENDS(1)
    :: G_TAKES() :: G_FENCES(0) :: G_FENCES(1) :: G_READS(0) :: G_READS(1) :: G_DROPS() :: G_DOTS()
    :: G_DELETES(0) :: G_DELETES(1) :: G_ENDS()
    :: TELL_END(0) :: TELL_END(1) :: TELL_LINE(0) :: TELL_LINE(1) :: GIVE_UP(0) :: GIVE_UP(1) :: END_GOES()
    :: CRASH(0) :: CRASH(1)
    :: N_READS_RECORD() :: N_READS_LINES() :: N_HEARS(0) :: N_HEARS(1) :: N_DECIDES() :: N_TAKES(0) :: N_TAKES(1)
    :: G_DIES() :: N_ENDS() :: L_READS()
    :: N_FOUNDS(0) :: N_FOUNDS(1) :: N_ACCEPTS() :: LATE_TELL(0, base) :: LATE_TELL(1, base)
    :: d_step { O_DELIVERS && G_DELIVERS && !(dotted & M) -> printf("PROPERTY 2\n"); assert(false) }
    :: d_step { over == 0 && g == ENDING && !(dotted & M) -> printf("PROPERTY 1\n"); assert(false) }
    :: d_step { nAcked && !((IN(0, members) -> data[0] : data[1]) & N_MAIL) -> printf("PROPERTY 1\n"); assert(false) }
    :: d_step { n == SERVES && (nMem & M) -> printf("PROPERTY 5\n"); assert(false) }
#ifdef CANARY                   /* it can be begun anew after a store was given up, and take mail */
    :: d_step { nAcked && line[1] -> printf("PROPERTY 9\n"); assert(false) }
#endif
    od
}

init { d_step { data[0] = M; data[1] = M; fence[0] = 1; fence[1] = 1; told[0] = 1; told[1] = 1; mind[0] = OWNER; mind[1] = OWNER }; run Run() }
