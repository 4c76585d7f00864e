/**
 * States of a server session (session.ts): what each waits for, how long, and where it may go.
 *
 *   GREETING ─ greeted ─▶ COMMAND ─ DATA/354 ─▶ CONTENT ─ final dot/submit ─▶ ANSWERING
 *                         │ ▲ ▲ ▲                  │ fault, too big, hops/refusal │ outcome/250, 451, 452
 *                         │ │ │ └──────────────────┘                              │
 *                         │ │ └───────────────────────────────────────────────────┘
 *                         │ └─ TLS stands ─ SECURING
 *                         ├─── STARTTLS/220 ──▲
 *                         │ BDAT
 *                         ▼
 *                       CHUNK ─ all its octets/250, or a refusal ─▶ COMMAND;  the last one/submit ─▶ ANSWERING
 *
 *   any but ANSWERING ─ QUIT, 421, the client's end ─▶ CLOSING ─ closed ─▶ CLOSED
 *   ANSWERING ─ outcome, then its end, or NO_REPLY ──▶ CLOSING
 *   any ─ reset, cut off ─▶ CLOSED
 *
 * In ANSWERING nothing is obeyed: what the client pipelined waits. Pure.
 */

export const State = {
  /** The client must wait until it is greeted (RFC 5321 3.1). */
  GREETING: 0,
  /** The next command. */
  COMMAND: 1,
  /** Content up to the line that is a dot (RFC 5321 4.1.1.4). */
  CONTENT: 2,
  /** So many octets of content (BDAT, RFC 3030). */
  CHUNK: 3,
  /** A message is in the gateway's hands, and not answered. */
  ANSWERING: 4,
  /** TLS is negotiated (RFC 3207). */
  SECURING: 5,
  /** All is said; the last bytes are on their way. */
  CLOSING: 6,
  CLOSED: 7,
} as const;
export type State = (typeof State)[keyof typeof State];

/** By state: its name in traces. */
export const STATE_NAME: readonly string[] = [
  'GREETING', 'COMMAND', 'CONTENT', 'CHUNK', 'ANSWERING', 'SECURING', 'CLOSING', 'CLOSED',
];

/** By state: the states that may follow, besides CLOSED, which may follow every state but itself. */
const NEXT: readonly (readonly State[])[] = [
  [State.COMMAND, State.CLOSING],
  [State.CONTENT, State.CHUNK, State.SECURING, State.CLOSING],
  [State.COMMAND, State.ANSWERING, State.CLOSING],
  [State.COMMAND, State.ANSWERING, State.CLOSING],
  [State.COMMAND],
  [State.COMMAND],
  [],
  [],
];

/** Whether the machine may go from one state to the other. */
export function isValidTransition(from: State, to: State): boolean {
  if (to === State.CLOSED) return from !== State.CLOSED;
  return NEXT[from]?.includes(to) === true;
}
