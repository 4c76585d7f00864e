/**
 * Counts of the last minute by key, in slots of six seconds. What a slot counts leaves with all of it, when
 * ten slots have passed since: so that no minute ever has more than is said here, and a tenth less at most.
 *
 *   │ slot │ … ten whole ones … │ slot │ the one that runs │      a key: a row of their counts and the sum
 *
 * Bounded: at KEYS_MAX keys a new one takes the place of the one that did least among the next few of the
 * table, which the choice goes round. So whoever does much is counted on, however many others do a little:
 * ten million subscribers, or somebody who fills the table. What was counted here since it was last asked is
 * kept apart, for the other workers (rate-limits.ts). Pure.
 */

const SLOT_MS = 6_000;
const SLOTS = 11;
const MINUTE_MS = 60_000;
/** Some 500 bytes each. */
const KEYS_MAX = 50_000;
/** Among so many the one that did least gives its place up. */
const CHOICE = 8;

class Row {
  readonly #counts = new Float64Array(SLOTS);
  sum = 0;
  /** Number of the slot that was counted in last. */
  #slot: number;
  /** Counted here and not told to others yet. */
  untold = 0;

  constructor(slot: number) {
    this.#slot = slot;
  }

  advance(slot: number): void {
    if (slot <= this.#slot) return;
    for (let left = Math.min(SLOTS, slot - this.#slot), at = this.#slot + 1; left > 0; left--, at++) {
      this.sum -= this.#counts[at % SLOTS] ?? 0;
      this.#counts[at % SLOTS] = 0;
    }
    this.#slot = slot;
  }

  add(amount: number): void {
    const at = this.#slot % SLOTS;
    this.#counts[at] = (this.#counts[at] ?? 0) + amount;
    this.sum += amount;
  }
}

/** A key and what was counted under it. */
export type Counted = readonly [key: string, amount: number];

export class SlidingCounts {
  readonly #rows = new Map<string, Row>();
  readonly #untold = new Set<string>();
  /** Goes round the table, choosing who leaves. */
  #round: MapIterator<[string, Row]>;
  #sweptMs = 0;

  constructor() {
    this.#round = this.#rows.entries();
  }

  get size(): number {
    return this.#rows.size;
  }

  /** Of the minute up to now. */
  of(key: string, nowMs: number): number {
    const row = this.#rows.get(key);
    row?.advance(slotOf(nowMs));
    return row?.sum ?? 0;
  }

  /** Counted here: told to others later. */
  add(key: string, amount: number, nowMs: number): void {
    const row = this.#rowOf(key, nowMs);
    row.add(amount);
    row.untold += amount;
    this.#untold.add(key);
  }

  /** Counted by another worker. */
  addTold(key: string, amount: number, nowMs: number): void {
    this.#rowOf(key, nowMs).add(amount);
  }

  /** What was counted here since it was last taken; at most `max` keys, others the next time. */
  takeUntold(max: number): Counted[] {
    const taken: Counted[] = [];
    for (const key of this.#untold) {
      if (taken.length >= max) break;
      this.#untold.delete(key);
      const row = this.#rows.get(key);
      if (row === undefined) continue;
      taken.push([key, row.untold]);
      row.untold = 0;
    }
    return taken;
  }

  /** Forgets who has done nothing for a minute. */
  tick(nowMs: number): void {
    if (nowMs - this.#sweptMs < MINUTE_MS) return;
    this.#sweptMs = nowMs;
    const slot = slotOf(nowMs);
    for (const [key, row] of this.#rows) {
      row.advance(slot);
      if (row.sum === 0) this.#rows.delete(key);
    }
  }

  #rowOf(key: string, nowMs: number): Row {
    const slot = slotOf(nowMs);
    let row = this.#rows.get(key);
    if (row === undefined) {
      if (this.#rows.size >= KEYS_MAX) this.#forgetLeast(slot);
      row = new Row(slot);
      this.#rows.set(key, row);
    }
    row.advance(slot);
    return row;
  }

  #forgetLeast(slot: number): void {
    let least: string | undefined;
    let leastSum = Infinity;
    for (let seen = 0; seen < CHOICE; seen++) {
      const next = this.#round.next();
      if (next.done === true) {
        this.#round = this.#rows.entries();
        continue;
      }
      const [key, row] = next.value;
      row.advance(slot);
      if (row.sum >= leastSum) continue;
      leastSum = row.sum;
      least = key;
    }
    if (least === undefined) return this.#forgetLeast(slot);
    this.#rows.delete(least);
    this.#untold.delete(least);
  }
}

function slotOf(nowMs: number): number {
  return Math.floor(nowMs / SLOT_MS);
}
