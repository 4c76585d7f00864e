/**
 * States of a client session of `send` (session.ts): what each waits for, and where it may go.
 *
 *   CONNECTING ─open, TLS first─► SECURING ─open, in TLS─► GREETING
 *   CONNECTING ─open─► GREETING ─220 /EHLO─► HELLO ─250─► READY ─quit /QUIT─► QUITTING
 *                                             ▲ │ │          ▲
 *                            open, in TLS /EHLO │ │ 250      │ 235
 *                                             │ │ └/AUTH─► AUTH
 *                           SECURING ◄─220─ STARTTLS ◄─250 /STARTTLS
 *   any ─ other reply, lost, silent ─► CLOSED
 */

export const State = {
  /** No bytes can be sent yet. */
  CONNECTING: 0,
  /** The server speaks first (RFC 5321 3.1). */
  GREETING: 1,
  /** EHLO sent. */
  HELLO: 2,
  /** STARTTLS sent. */
  STARTTLS: 3,
  /** TLS is negotiated (RFC 3207). */
  SECURING: 4,
  /** AUTH PLAIN sent (RFC 4954). */
  AUTH: 5,
  /** Replies are the owner's. */
  READY: 6,
  /** QUIT sent. */
  QUITTING: 7,
  CLOSED: 8,
} as const;
export type State = (typeof State)[keyof typeof State];

/** By state: its name in traces. */
export const STATE_NAME: readonly string[] = [
  'CONNECTING', 'GREETING', 'HELLO', 'STARTTLS', 'SECURING', 'AUTH', 'READY', 'QUITTING', 'CLOSED',
];

/** By state: the states that may follow, besides CLOSED, which may follow every state but itself. */
const NEXT: readonly (readonly State[])[] = [
  [State.GREETING, State.SECURING],
  [State.HELLO],
  [State.STARTTLS, State.AUTH, State.READY],
  [State.SECURING],
  [State.GREETING, State.HELLO],
  [State.READY],
  [State.QUITTING],
  [],
  [],
];

/** Whether the machine may go from one state to the other. */
export function isValidTransition(from: State, to: State): boolean {
  if (to === State.CLOSED) return from !== State.CLOSED;
  return NEXT[from]?.includes(to) === true;
}
