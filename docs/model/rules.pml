/*
 * Rule 17, first part: an operator's order (hold message m), and when it may say that it is done. Second part
 * (-DPOISON): a message that kills whoever works on it.
 *
 * Process A holds the partition, B may take it over. An order writes its rule into the register, then reads which
 * records there are, and waits until the holder that the record names has acknowledged it. A lease ends at any time
 * after the store was fenced. Each rule has a name; -DNO_<RULE> removes it (README.md).
 */
#ifndef POISON

#define IDLE   0
#define CLAIM  1
#define TAKING 2
#define OWNER  3
byte state[2];
bit  knows[2];                  /* the rule */
bit  ack[2];
byte holder;                    /* the record */
bit  rule;                      /* in the register */
bit  fenced;
bit  lease = 1;                 /* of A at the members */
bit  session = 1;               /* of A in the register */
byte order;                     /* 0 begins, 1 rule written, 2 holder read, 3 said that it is done */
byte named;                     /* the holder that the order waits for */
bit  started;                   /* m was started after the order had said that it is done */

#define MAY_START(p) (state[p] == OWNER && ((p) == 1 || lease) && !knows[p])

active proctype Operator()
{
#ifdef NO_HOLDERS_AFTER_RULE    /* reads who holds, then writes the rule */
    d_step { named = holder; order = 2 };
    rule = 1;
#else
    d_step { rule = 1; order = 1 };
    d_step { named = holder; order = 2 };
#endif
    if
    :: d_step { ack[named] -> order = 3 }
#ifdef NO_RECORD_NAMES          /* waits only for holders that have a session */
    :: d_step { named == 0 && !session -> order = 3 }
#endif
    :: d_step { order == 2 -> order = 4 }                       /* says who has not acknowledged (exit 3) */
    fi
}

active [2] proctype Process()
{
    byte p = _pid - 1;
    if :: p == 0 -> state[0] = OWNER :: else fi;
    do
    :: d_step { p == 1 && state[1] == IDLE ->
        state[1] = CLAIM;
#ifdef NO_READ_AT_TAKEOVER      /* rules as they were known before */
        knows[1] = rule
#endif
        }
    :: d_step { state[p] == CLAIM ->
        holder = 1; state[p] = TAKING;
#ifndef NO_READ_AT_TAKEOVER
        knows[p] = rule
#endif
        }
    :: d_step { state[p] == TAKING && !fenced -> fenced = 1 }
    :: d_step { state[p] == TAKING && fenced && !lease -> state[p] = OWNER }
    :: d_step { p == 0 && lease && fenced -> lease = 0 }
    :: d_step { p == 0 && session -> session = 0 }
    :: d_step { rule && !knows[p] && state[p] != IDLE -> knows[p] = 1 }        /* told by a watch */
#ifdef NO_ACK_AFTER_WAIT
    :: d_step { knows[p] && state[p] >= TAKING -> ack[p] = 1 }
#else
    :: d_step { knows[p] && state[p] == OWNER -> ack[p] = 1 }
#endif
    :: d_step { MAY_START(p) && order == 3 -> printf("PROPERTY 10\n"); assert(false) }
    od
}

#else /* ---------------------------------------------------------------------------------------------------- POISON */

byte mark[2];                   /* at stores 0 and 1: how often it was about to be worked on */
byte kills;
byte state[4];                  /* 0 may take over, 1 has read, 2 works, 3 dead */
byte read[4];
byte at[4];                     /* stores that have its mark */
byte now;                       /* the holder */

active [4] proctype Process()
{
    byte p = _pid;
    do
    :: d_step { state[p] == 0 && now == p ->
        if :: read[p] = mark[0] :: read[p] = mark[1] fi;
        state[p] = 1 }
    :: d_step { state[p] == 1 && read[p] < 2 && !(at[p] & 1) -> mark[0] = read[p] + 1; at[p] = at[p] | 1 }
    :: d_step { state[p] == 1 && read[p] < 2 && !(at[p] & 2) -> mark[1] = read[p] + 1; at[p] = at[p] | 2 }
#ifdef NO_MARK_AT_ALL_MEMBERS
    :: d_step { state[p] == 1 && read[p] < 2 && at[p] != 0 -> state[p] = 2 }
#else
    :: d_step { state[p] == 1 && read[p] < 2 && at[p] == 3 -> state[p] = 2 }
#endif
    :: d_step { state[p] == 2 -> state[p] = 3; kills++; now++; assert(kills <= 2) }        /* property 11 */
    :: d_step { state[p] == 1 -> state[p] = 3; now++ }                                     /* dies of something else */
    od
}
#endif
