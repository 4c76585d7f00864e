/**
 * What operators have left in the register stands until it is taken back or its time is over, by this
 * gateway's clock: which of it is in force, and when the next one ends. Pure.
 */
interface Standing {
  /** When it was given. */
  readonly wallMs: number;
  /** 0: until it is taken back. */
  readonly untilWallMs: number;
}

/** Orders in the register; what stands beyond them was written by somebody else, and is not obeyed. */
export const LEFT_ORDERS_MAX = 64;

/** Without those whose time is over, the first ones to be given; no more than `most`. */
export function standing<T extends Standing>(
  told: ReadonlyMap<string, T>, nowWallMs: number, most: number,
): ReadonlyMap<string, T> {
  const all = [...told].filter(([, one]) => !isOver(one, nowWallMs));
  all.sort(([a, { wallMs: aMs }], [b, { wallMs: bMs }]) => aMs - bMs || (a < b ? -1 : 1));
  return new Map(all.slice(0, most));
}

export function isOver({ untilWallMs }: Standing, nowWallMs: number): boolean {
  return untilWallMs !== 0 && untilWallMs <= nowWallMs;
}

/** Infinity: none of them ends by itself. */
export function nextEnd(all: Iterable<Standing>): number {
  let next = Infinity;
  for (const { untilWallMs } of all) if (untilWallMs !== 0) next = Math.min(next, untilWallMs);
  return next;
}
