/**
 * States of a server session (session.ts): what each waits for, how long, and where it may go.
 *
 *   GREETING ─ greeted ─▶ COMMAND ─ DATA/354 ─▶ CONTENT ─ final dot/submit ─▶ ANSWERING
 *                         │ ▲ ▲ ▲                  │ fault, too big, hops/refusal │ outcome/250, 451, 452
 *                         │ │ │ └──────────────────┘                              │
 *                         │ │ └───────────────────────────────────────────────────┘
 *                         │ └─ TLS stands ─ SECURING
 *                         └─── STARTTLS/220 ──▲
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
  /** A message is in the gateway's hands, and not answered. */
  ANSWERING: 3,
  /** TLS is negotiated (RFC 3207). */
  SECURING: 4,
  /** All is said; the last bytes are on their way. */
  CLOSING: 5,
  CLOSED: 6,
} as const;
export type State = (typeof State)[keyof typeof State];

/** By state: its name in traces. */
export const STATE_NAME: readonly string[] = [
  'GREETING', 'COMMAND', 'CONTENT', 'ANSWERING', 'SECURING', 'CLOSING', 'CLOSED',
];

/** By state: the states that may follow, besides CLOSED, which may follow every state but itself. */
const NEXT: readonly (readonly State[])[] = [
  [State.COMMAND, State.CLOSING],
  [State.CONTENT, State.SECURING, State.CLOSING],
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
