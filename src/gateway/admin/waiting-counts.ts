/** How many partitions wait, by what they wait for: the words of recovery/ownership/waiting.ts. */

export interface WaitingCounts {
  readonly register: number;
  readonly lease: number;
  readonly stores: number;
  /** The one that asks for a person. */
  readonly copiesAway: number;
}

export function countWaiting(waiting: readonly { readonly waitsFor: string }[]): WaitingCounts {
  const countOf = (word: string): number => waiting.filter(({ waitsFor }) => waitsFor === word).length;
  return {
    register: countOf('register'), lease: countOf('lease'), stores: countOf('stores'),
    copiesAway: countOf('copies away'),
  };
}
