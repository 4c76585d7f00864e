/**
 * How many entries are in each state, how large they are, and how old the oldest of them is: kept with every
 * change of a state, so that reading is no walk.
 *
 *   counts, bytes   one sum a state
 *   ages            a ring of counters a state, one for each 32 s of arrival; the oldest is the first that is
 *                   not 0. The place looked at last is kept, so that a reading goes on from there. A page of
 *                   the ring is made when something arrives in it.
 *
 * Sizes are those of contents; heads are counted by the queues (mail-queue.ts). Ages are exact
 * to 32 s and never too large.
 */
import type { EntryState } from './entry-table.js';

const STATES = 9;
const SECONDS_SHIFT = 5;
/** 2^18 × 32 s = 97 days; the longest lifetime is 60. */
const SLOTS = 2 ** 18;
/** A page has 4 KiB, and 9 hours. */
const PAGE_SHIFT = 10;
const PAGE_SLOTS = 2 ** PAGE_SHIFT;

export class StateCensus {
  readonly #counts = new Float64Array(STATES);
  readonly #sizes = new Float64Array(STATES);
  readonly #pages: (Uint32Array | undefined)[] =
    new Array<undefined>(STATES * (SLOTS / PAGE_SLOTS)).fill(undefined);
  /** No entry of a state arrived in a slot before this one. */
  readonly #firstSlots = new Float64Array(STATES).fill(Number.MAX_SAFE_INTEGER);

  count(state: EntryState): number {
    return this.#counts[state] ?? 0;
  }

  bytes(state: EntryState): number {
    return this.#sizes[state] ?? 0;
  }

  /** Seconds since the oldest entry of a state arrived; 0 when there is none. */
  oldestAgeSeconds(state: EntryState, nowSeconds: number): number {
    if (this.count(state) === 0) {
      this.#firstSlots[state] = Number.MAX_SAFE_INTEGER;
      return 0;
    }
    const nowSlot = Math.floor(nowSeconds / 2 ** SECONDS_SHIFT);
    // Older than the ring: such entries have long expired, or a clock was set.
    let slot = Math.max(this.#firstSlots[state] ?? 0, nowSlot - SLOTS + 1);
    while (slot < nowSlot) {
      const page = this.#pages[(state * SLOTS + (slot % SLOTS)) >>> PAGE_SHIFT];
      if (page !== undefined && page[slot % PAGE_SLOTS] !== 0) break;
      slot = page === undefined ? Math.min(nowSlot, slot - (slot % PAGE_SLOTS) + PAGE_SLOTS) : slot + 1;
    }
    this.#firstSlots[state] = slot;
    return Math.max(0, nowSeconds - (slot + 1) * 2 ** SECONDS_SHIFT + 1);
  }

  enter(state: number, arrivalSeconds: number, bytes: number): void {
    const slot = arrivalSeconds >>> SECONDS_SHIFT;
    this.#add(state, slot, 1, bytes);
    if (slot < (this.#firstSlots[state] ?? 0)) this.#firstSlots[state] = slot;
  }

  leave(state: number, arrivalSeconds: number, bytes: number): void {
    this.#add(state, arrivalSeconds >>> SECONDS_SHIFT, -1, -bytes);
  }

  #add(state: number, slot: number, count: number, bytes: number): void {
    const number = (state * SLOTS + (slot & (SLOTS - 1))) >>> PAGE_SHIFT;
    const page = this.#pages[number] ??= new Uint32Array(PAGE_SLOTS);
    const at = slot & (PAGE_SLOTS - 1);
    page[at] = (page[at] ?? 0) + count;
    this.#counts[state] = (this.#counts[state] ?? 0) + count;
    this.#sizes[state] = (this.#sizes[state] ?? 0) + bytes;
  }
}
