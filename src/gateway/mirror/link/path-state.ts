/**
 * States of one connection of a link and which may follow which. The machine that moves through them, with
 * its diagram, is path-connection.ts.
 */

export const PathState = {
  /** Made, not started. */
  NEW: 0,
  /** No connection; the next attempt waits for its time. */
  WAITING: 1,
  /** The transport was asked to connect. */
  CONNECTING: 2,
  /** HELLO is sent. */
  GREETING: 3,
  /** The store has proved that it knows the secret; PROOF is sent. */
  PROVING: 4,
  /** Welcomed, stands by: heartbeats only. */
  READY: 5,
  /** Welcomed and active: requests go here. */
  RUN: 6,
  /** Fenced or closed; nothing brings it back. */
  STOPPED: 7,
} as const;

export type PathState = (typeof PathState)[keyof typeof PathState];

const { NEW, WAITING, CONNECTING, GREETING, PROVING, READY, RUN, STOPPED } = PathState;

interface StateRow {
  readonly name: string;
  /** What silence in this state means, for the log. */
  readonly waitsFor: string;
  readonly next: readonly PathState[];
}

export const PATH_STATES: Readonly<Record<PathState, StateRow>> = {
  [NEW]: { name: 'NEW', waitsFor: 'start', next: [WAITING, STOPPED] },
  [WAITING]: { name: 'WAITING', waitsFor: 'the next attempt', next: [CONNECTING, STOPPED] },
  [CONNECTING]: { name: 'CONNECTING', waitsFor: 'the connection', next: [GREETING, WAITING, STOPPED] },
  [GREETING]: { name: 'GREETING', waitsFor: 'CHALLENGE', next: [PROVING, WAITING, CONNECTING, STOPPED] },
  [PROVING]: { name: 'PROVING', waitsFor: 'WELCOME', next: [READY, RUN, WAITING, CONNECTING, STOPPED] },
  [READY]: { name: 'READY', waitsFor: 'any sign of life', next: [WAITING, CONNECTING, STOPPED] },
  [RUN]: { name: 'RUN', waitsFor: 'any sign of life', next: [WAITING, STOPPED] },
  [STOPPED]: { name: 'STOPPED', waitsFor: 'nothing', next: [] },
};

export function isValidTransition(from: PathState, to: PathState): boolean {
  return PATH_STATES[from].next.includes(to);
}
