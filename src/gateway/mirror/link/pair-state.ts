/**
 * States of the two paths of a link together and which may follow which. The machine that moves through
 * them, with its diagram, is path-pair.ts.
 */

export const PairState = {
  /** No path carries requests, nor is one about to: the store counts as lost. */
  DOWN: 0,
  /** One path is in RUN. */
  UP: 1,
  /** It was lost; the other one asks for its part. The store does not count as lost yet. */
  SWITCHING: 2,
  /** Fenced or closed; nothing brings it back. */
  OVER: 3,
} as const;

export type PairState = (typeof PairState)[keyof typeof PairState];

const { DOWN, UP, SWITCHING, OVER } = PairState;

interface PairStateTraits {
  readonly name: string;
  readonly next: readonly PairState[];
}

export const PAIR_STATES: Readonly<Record<PairState, PairStateTraits>> = {
  [DOWN]: { name: 'DOWN', next: [UP, OVER] },
  [UP]: { name: 'UP', next: [SWITCHING, DOWN, OVER] },
  [SWITCHING]: { name: 'SWITCHING', next: [UP, DOWN, OVER] },
  [OVER]: { name: 'OVER', next: [] },
};

export function isValidPairTransition(from: PairState, to: PairState): boolean {
  return PAIR_STATES[from].next.includes(to);
}
