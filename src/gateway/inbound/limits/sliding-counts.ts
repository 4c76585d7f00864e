/**
 * Counts of the last minute by key, in slots of six seconds. What a slot counts leaves with all of it, when
 * ten slots have passed since: so that no minute ever has more than is said here, and a tenth less at most.
 *
 *   │ slot │ … ten whole ones … │ slot │ the one that runs │      a key: a row of their counts and the sum
 *
 * Bounded: at KEYS_MAX keys a new one takes the place of the one that did least among the next few of the
 * table, which the choice goes round. So whoever does much is counted on, however many others do a little:
 * ten million subscribers, or somebody who fills the table. What was counted here since it was last asked is
 * kept apart, for the other workers (rate-limits.ts). Rows are flat: a full table is some 6 MiB
 * (docs/SCALE.md). Pure.
 */

const SLOT_MS = 6_000;
const SLOTS = 11;
const MINUTE_MS = 60_000;
/** Some 250 bytes each. */
const KEYS_MAX = 20_000;
const ROWS_FIRST = 256;
/** Among so many the one that did least gives its place up. */
const CHOICE = 8;

/** A key and what was counted under it. */
export type Counted = readonly [key: string, amount: number];

export class SlidingCounts {
  readonly #rowOf = new Map<string, number>();
  /** By row; undefined: it is free. */
  readonly #keys: (string | undefined)[] = [];
  readonly #free: number[] = [];
  /** SLOTS of each row. */
  #counts = new Float64Array(ROWS_FIRST * SLOTS);
  #sums = new Float64Array(ROWS_FIRST);
  /** Number of the slot that was counted in last. */
  #slots = new Float64Array(ROWS_FIRST);
  /** Counted here and not told to others yet. */
  #untold = new Float64Array(ROWS_FIRST);
  readonly #untoldRows = new Set<number>();
  /** Goes round the table, choosing who leaves. */
  #round = 0;
  #sweptMs = 0;

  get size(): number {
    return this.#rowOf.size;
  }

  /** Of the minute up to now. */
  of(key: string, nowMs: number): number {
    const row = this.#rowOf.get(key);
    return row === undefined ? 0 : this.#sumOf(row, slotOf(nowMs));
  }

  /** Counted here: told to others later. */
  add(key: string, amount: number, nowMs: number): void {
    const row = this.#count(key, amount, nowMs);
    this.#untold[row] = (this.#untold[row] ?? 0) + amount;
    this.#untoldRows.add(row);
  }

  /** Counted by another worker. */
  addTold(key: string, amount: number, nowMs: number): void {
    this.#count(key, amount, nowMs);
  }

  /** What was counted here since it was last taken; at most `max` keys, others the next time. */
  takeUntold(max: number): Counted[] {
    const taken: Counted[] = [];
    for (const row of this.#untoldRows) {
      if (taken.length >= max) break;
      this.#untoldRows.delete(row);
      taken.push([this.#keys[row] ?? '', this.#untold[row] ?? 0]);
      this.#untold[row] = 0;
    }
    return taken;
  }

  /** Forgets who has done nothing for a minute. */
  tick(nowMs: number): void {
    if (nowMs - this.#sweptMs < MINUTE_MS) return;
    this.#sweptMs = nowMs;
    const slot = slotOf(nowMs);
    for (const row of this.#rowOf.values()) if (this.#sumOf(row, slot) === 0) this.#forget(row);
  }

  #count(key: string, amount: number, nowMs: number): number {
    const slot = slotOf(nowMs);
    const row = this.#rowOf.get(key) ?? this.#newRow(key, slot);
    const sum = this.#sumOf(row, slot);
    // Not the slot of now: time may have been seen to run on before this was told.
    const at = row * SLOTS + (this.#slots[row] ?? 0) % SLOTS;
    this.#counts[at] = (this.#counts[at] ?? 0) + amount;
    this.#sums[row] = sum + amount;
    return row;
  }

  /** Up to this slot. */
  #sumOf(row: number, slot: number): number {
    const last = this.#slots[row] ?? 0;
    let sum = this.#sums[row] ?? 0;
    if (slot <= last) return sum;
    for (let left = Math.min(SLOTS, slot - last), next = last + 1; left > 0; left--, next++) {
      const at = row * SLOTS + next % SLOTS;
      sum -= this.#counts[at] ?? 0;
      this.#counts[at] = 0;
    }
    this.#slots[row] = slot;
    this.#sums[row] = sum;
    return sum;
  }

  #newRow(key: string, slot: number): number {
    if (this.#rowOf.size >= KEYS_MAX) this.#forgetLeast(slot);
    const row = this.#free.pop() ?? this.#keys.length;
    if (row === this.#sums.length) this.#grow();
    this.#keys[row] = key;
    this.#slots[row] = slot;
    this.#rowOf.set(key, row);
    return row;
  }

  #grow(): void {
    const rows = Math.min(KEYS_MAX, this.#sums.length * 2);
    this.#counts = grown(this.#counts, rows * SLOTS);
    this.#sums = grown(this.#sums, rows);
    this.#slots = grown(this.#slots, rows);
    this.#untold = grown(this.#untold, rows);
  }

  /** The table is full: every row is somebody's. */
  #forgetLeast(slot: number): void {
    let least = this.#round;
    let leastSum = Infinity;
    for (let seen = 0; seen < CHOICE; seen++) {
      const row = this.#round;
      this.#round = (row + 1) % this.#keys.length;
      const sum = this.#sumOf(row, slot);
      if (sum >= leastSum) continue;
      leastSum = sum;
      least = row;
    }
    this.#forget(least);
  }

  #forget(row: number): void {
    this.#rowOf.delete(this.#keys[row] ?? '');
    this.#untoldRows.delete(row);
    this.#keys[row] = undefined;
    this.#counts.fill(0, row * SLOTS, (row + 1) * SLOTS);
    this.#sums[row] = 0;
    this.#untold[row] = 0;
    this.#free.push(row);
  }
}

function grown(numbers: Float64Array, length: number): Float64Array<ArrayBuffer> {
  const more = new Float64Array(length);
  more.set(numbers);
  return more;
}

function slotOf(nowMs: number): number {
  return Math.floor(nowMs / SLOT_MS);
}
