/**
 * States of a server session (session.ts): what each waits for, how long, and where it may go.
 *
 *   PROXY ─ its header ─▶ GREETING, or SECURING where TLS comes first
 *   GREETING ─ greeted ─▶ COMMAND ─ DATA/354 ─▶ CONTENT ─ final dot/submit ─▶ ANSWERING
 *                         │ ▲ ▲ ▲                  │ fault, too big, hops/refusal │ outcome/250, 451, 452
 *                         │ │ │ └──────────────────┘                              │
 *                         │ │ └───────────────────────────────────────────────────┘
 *                         │ └─ TLS stands ─ SECURING
 *                         ├─── STARTTLS/220 ──▲
 *                         │ BDAT
 *                         ▼
 *                       CHUNK ─ all its octets/250, a refusal ─▶ COMMAND;  the last one/submit ─▶ ANSWERING
 *
 *   with checks, hooks, DKIM: CONTENT, CHUNK ─ all of it/judge ─▶ JUDGING ─ accepted/submit ─▶ ANSWERING
 *                                                     └───── refused/550, 451 ──▶ COMMAND
 *   COMMAND ─ AUTH/334 ─▶ RESPONSE ─ wrong, "*", SCRAM proven/235 ─▶ COMMAND
 *   COMMAND, RESPONSE ─ a password ─▶ CHECKING ─ verdict/235, 535, 454 ─▶ COMMAND
 *                                     CHECKING ─ the client's end, before its check began/501 ─▶ COMMAND
 *                                     CHECKING ─ a minute, before its check began/454 ─▶ COMMAND
 *   COMMAND ─ XCLIENT ─▶ GREETING ─ greeted: at once, or when blocklists have answered ─▶ COMMAND
 *   COMMAND ─ RCPT that somebody else knows ─▶ LOOKING_UP ─ answer/250, 550, 451 ─▶ COMMAND
 *   any but JUDGING, ANSWERING ─ QUIT, 421, the client's end ─▶ CLOSING ─ closed ─▶ CLOSED
 *   SECURING ─ TLS stands, and comes first ─▶ GREETING
 *   any ─ reset, cut off; ANSWERING ─ NO_REPLY ─▶ CLOSED
 *
 * In JUDGING and ANSWERING nothing is obeyed: what the client pipelined waits. A message whose client resets
 * in JUDGING is dropped: nobody was told that we have it. Pure.
 */

export const State = {
  /** A balancer says first whose connection it is (policy/proxy-header.ts). */
  PROXY: 0,
  /** The client must wait until it is greeted (RFC 5321 3.1). */
  GREETING: 1,
  /** The next command. */
  COMMAND: 2,
  /** Content up to the line that is a dot (RFC 5321 4.1.1.4). */
  CONTENT: 3,
  /** So many octets of content (BDAT, RFC 3030). */
  CHUNK: 4,
  /** A line of a SASL exchange (RFC 4954 4). */
  RESPONSE: 5,
  /** A password is checked. */
  CHECKING: 6,
  /** A recipient is looked up by somebody else. */
  LOOKING_UP: 7,
  /** A whole message waits for what hooks say of it (hooks/message-hook.ts). */
  JUDGING: 8,
  /** A message is in the gateway's hands, and not answered. */
  ANSWERING: 9,
  /** TLS is negotiated: after STARTTLS (RFC 3207), or before the greeting (RFC 8314 3.3). */
  SECURING: 10,
  /** All is said; the last bytes are on their way. */
  CLOSING: 11,
  CLOSED: 12,
} as const;
export type State = (typeof State)[keyof typeof State];

/** Some of the states, a bit each: asked several times a command. */
export type StateSet = number;

function setOf(...states: readonly State[]): StateSet {
  return states.reduce((bits: number, state) => bits | (1 << state), 0);
}

export function isIn(set: StateSet, state: State): boolean {
  return ((set >> state) & 1) !== 0;
}

/** Sets of states by what may be done in them. */
export const BEFORE_COMMANDS = setOf(State.PROXY, State.GREETING, State.SECURING);
/** What the client sends is worked on. */
export const LISTENING = setOf(State.COMMAND, State.CONTENT, State.CHUNK, State.RESPONSE);
/** A command is being answered; with the answer the next one may come. */
export const IN_COMMAND = setOf(State.RESPONSE, State.CHECKING, State.LOOKING_UP);
/** Nothing is under way: a gateway that stops says so at once. */
export const AT_REST = setOf(State.GREETING, State.COMMAND, State.RESPONSE);
/** Whatever the client says is not heard any more. */
export const ENDING = setOf(State.CLOSING, State.CLOSED);

/** By state: its name in traces. */
export const STATE_NAME: readonly string[] = [
  'PROXY', 'GREETING', 'COMMAND', 'CONTENT', 'CHUNK', 'RESPONSE', 'CHECKING', 'LOOKING_UP', 'JUDGING',
  'ANSWERING', 'SECURING', 'CLOSING', 'CLOSED',
];

/** By state: the states that may follow, besides CLOSED, which may follow every state but itself. */
const NEXT: readonly StateSet[] = [
  setOf(State.GREETING, State.SECURING, State.CLOSING),
  setOf(State.COMMAND, State.CLOSING),
  setOf(
    State.GREETING, State.CONTENT, State.CHUNK, State.RESPONSE, State.CHECKING, State.LOOKING_UP,
    State.SECURING, State.CLOSING,
  ),
  setOf(State.COMMAND, State.JUDGING, State.ANSWERING, State.CLOSING),
  setOf(State.COMMAND, State.JUDGING, State.ANSWERING, State.CLOSING),
  setOf(State.COMMAND, State.CHECKING, State.CLOSING),
  setOf(State.COMMAND, State.CLOSING),
  setOf(State.COMMAND, State.CLOSING),
  setOf(State.COMMAND, State.ANSWERING),
  setOf(State.COMMAND),
  setOf(State.COMMAND, State.GREETING, State.CLOSING),
  setOf(),
  setOf(),
];

/** Whether the machine may go from one state to the other. */
export function isValidTransition(from: State, to: State): boolean {
  if (to === State.CLOSED) return from !== State.CLOSED;
  return isIn(NEXT[from] ?? 0, to);
}
