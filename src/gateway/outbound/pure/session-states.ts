/**
 * States of a client session (smtp-session.ts) with what each waits for, how long, and where it may go.
 *
 *      │open, TLS first (RFC 8314)           ┌────2xx, STARTTLS is offered and wanted──► STARTTLS
 *      ├─────► SECURING ─open─┐              │ ┌──open, in TLS/EHLO── SECURING ◄─220──────┘
 *      │                      ▼              │ ▼
 *  CONNECTING ─open─► GREETING ─220/EHLO─► HELLO ─2xx──────────► IDLE ◄─────────────────────────────────┐
 *                                            │ not known/HELO     │ begin/MAIL (RCPT.. DATA)            │
 *                                            │ (smtp only)        │                                     │
 *                                            ▼                    ▼                                     │
 *                                        HELO_ONLY ─2xx─► IDLE   MAIL ─► RCPT ─(each)─► DATA            │
 *                                                                 │       │  nobody      │ 354          │
 *                                                 refused, no DATA│       │  accepted    ▼              │
 *                                                 sent /RSET      │       │ /RSET     CONTENT ─dot─► FINAL
 *                                                                 ▼       ▼         (all written)       │
 *                                                                RESET ◄── refused                      │
 *                                                                 │ ▲                                   │
 *                                                                 │ └─reply── LONE_DOT ◄─354 though     │
 *                                                                 │            nobody was accepted      │
 *                                                                 └─2xx─────────────────────────────────┘
 *  FINAL ─answered, next envelope already sent─► MAIL
 *  IDLE ─quit/QUIT─► QUITTING;  every state ─lost, timeout, 421, nonsense─► CLOSED
 *
 *  HELLO ─2xx, a user is to be proved/AUTH─► AUTH ─334/the next line─► AUTH ─235─► IDLE
 *
 * Without the TLS that is wanted HELLO and HELO_ONLY end the session where it must be had; without a
 * mechanism of AUTH in common they end it where there is a user, and so does each refusal of AUTH.
 *
 * Timeouts: RFC 5321 4.5.3.2 or longer, the figures that Postfix's users know. Those of many replies in a row
 * have a bound together (smtp-session.ts). Pure.
 */

export const State = {
  /** No bytes can be sent yet. */
  CONNECTING: 0,
  /** Connected; the peer speaks first (RFC 5321 3.1). */
  GREETING: 1,
  /** EHLO or LHLO sent. */
  HELLO: 2,
  /** EHLO is not known there (500, 501, 502, 504), HELO sent (RFC 5321 3.2, 4.1.4). */
  HELO_ONLY: 3,
  /** STARTTLS sent (RFC 3207). */
  STARTTLS: 4,
  /** TLS is negotiated. What was said before counts for nothing. */
  SECURING: 5,
  /** A line of AUTH sent (RFC 4954): the last EHLO before it was in TLS, where TLS must be had. */
  AUTH: 6,
  /** Ready for a mail transaction; the peer owes no reply. */
  IDLE: 7,
  /** MAIL sent. */
  MAIL: 8,
  /** The reply to a RCPT is awaited. */
  RCPT: 9,
  /** The reply to DATA is awaited; with PIPELINING it was sent along with MAIL. */
  DATA: 10,
  /** 354 came; content is being written, the final dot has not been sent. */
  CONTENT: 11,
  /** The final dot may have left: from here the peer may have the message (RFC 1047). */
  FINAL: 12,
  /** 354 came although nobody was accepted: the transaction is ended with an empty content (RFC 2920 3.1). */
  LONE_DOT: 13,
  /** RSET sent. */
  RESET: 14,
  /** QUIT sent; nothing is at stake any more. */
  QUITTING: 15,
  CLOSED: 16,
} as const;
export type State = (typeof State)[keyof typeof State];

/** By state: its name in traces. */
export const STATE_NAME: readonly string[] = [
  'CONNECTING', 'GREETING', 'HELLO', 'HELO_ONLY', 'STARTTLS', 'SECURING', 'AUTH', 'IDLE', 'MAIL', 'RCPT',
  'DATA', 'CONTENT', 'FINAL', 'LONE_DOT', 'RESET', 'QUITTING', 'CLOSED',
];

/** By state: what was going on, as the end of "connection lost while …". */
export const STATE_DOING: readonly string[] = [
  'connecting',
  'waiting for the greeting',
  'waiting for the reply to EHLO',
  'waiting for the reply to HELO',
  'waiting for the reply to STARTTLS',
  'negotiating TLS',
  'waiting for the reply to AUTH',
  'idle',
  'waiting for the reply to MAIL',
  'waiting for the reply to RCPT',
  'waiting for the reply to DATA',
  'sending the content',
  'waiting for the reply to the final dot (the next hop may have the message)',
  'ending a transaction without recipients',
  'waiting for the reply to RSET',
  'waiting for the reply to QUIT',
  'closed',
];

/** By state: milliseconds without progress until the session is given up; 0 = none (IDLE: the pool's). */
export type StateTimeouts = readonly number[];

export const DEFAULT_TIMEOUTS: StateTimeouts = [
  30_000, // CONNECTING
  300_000, // GREETING
  300_000, // HELLO
  300_000, // HELO_ONLY
  60_000, // STARTTLS
  60_000, // SECURING
  300_000, // AUTH: some answer a wrong password late on purpose
  0, // IDLE
  300_000, // MAIL
  300_000, // RCPT
  120_000, // DATA
  180_000, // CONTENT: anew with each piece that leaves
  600_000, // FINAL: long on purpose, giving up here makes duplicates (RFC 1047)
  120_000, // LONE_DOT
  20_000, // RESET
  5_000, // QUITTING: politeness only
  0, // CLOSED
];

/** By state: the states that may follow, besides CLOSED, which may follow every state but itself. */
const NEXT: readonly (readonly State[])[] = [
  [State.GREETING, State.SECURING],
  [State.HELLO],
  [State.HELO_ONLY, State.STARTTLS, State.AUTH, State.IDLE],
  [State.IDLE],
  [State.SECURING],
  [State.GREETING, State.HELLO],
  [State.AUTH, State.IDLE],
  [State.MAIL, State.QUITTING],
  [State.RCPT, State.RESET],
  [State.RCPT, State.DATA, State.RESET],
  [State.CONTENT, State.LONE_DOT, State.RESET],
  [State.FINAL],
  [State.FINAL, State.IDLE, State.MAIL],
  [State.RESET],
  [State.IDLE],
  [],
  [],
];

/** Whether the machine may go there. AUTH, RCPT and FINAL follow themselves, once a reply. */
export function isValidTransition(from: State, to: State): boolean {
  if (to === State.CLOSED) return from !== State.CLOSED;
  return NEXT[from]?.includes(to) === true;
}
