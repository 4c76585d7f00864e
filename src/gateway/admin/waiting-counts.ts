/** How many partitions wait, by what they wait for: the words of recovery/ownership/waiting.ts. */
import type { WaitingFigures } from '../../observability/figures.js';

export function countWaiting(waiting: readonly { readonly waitsFor: string }[]): WaitingFigures {
  const countOf = (word: string): number => waiting.filter(({ waitsFor }) => waitsFor === word).length;
  return {
    register: countOf('register'), lease: countOf('lease'), stores: countOf('stores'),
    copiesAway: countOf('copies away'),
  };
}
