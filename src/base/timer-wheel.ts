/**
 * Deadlines of tens of millions of rows without a timer or an object each: a hierarchical wheel (Varghese
 * and Lauck 1987) whose lists run through columns aligned with the caller's rows.
 *
 *   level 0   32 slots of 1 tick      ── slots of the block of 32 ticks that `now` is in
 *   level 1   32 slots of 32 ticks    ── slots of the block of 1,024 ticks, later than now's own
 *   level 2   …                          and so on: ten levels reach 2^50 ticks
 *
 *   due and now in base 32:   due  0 3 17 20        the highest digit in which they differ is the level,
 *                             now  0 3  9 31        the digit itself the slot: level 1, slot 17
 *
 * So all of a lower level is due before all of a higher one, the earliest deadline is found by two bit
 * scans, and empty time is skipped, not stepped through. When `now` reaches the start of a slot above
 * level 0, its rows are dealt out to lower levels, each at most once a level. advance() bounds both the
 * callbacks and the rows dealt out; what is left goes on with the next call.
 *
 * A row never fires early: its deadline is rounded up to a tick. Rows of one tick fire in the order in
 * which they were scheduled (unless dealing out was cut by the bound just then). A deadline that has
 * passed fires with the next advance().
 *
 * Columns lie in pages of 4,096 rows (due f64, next u32, previous u32: 64 KiB), made when the first of
 * these rows is scheduled and given back with the last: one deadline for row ten million costs one page.
 * Links from HEAD on name the slot at the end of a list; 0 in `previous` is a row that is not scheduled.
 */
import { invariant } from './invariant.js';

const LEVEL_BITS = 5;
const SLOTS = 32;
const LEVELS = 10;
const LOW_LEVELS = 6; // 30 bits: what of a tick number is worked on as one small integer
const LOW_TICKS = 2 ** (LOW_LEVELS * LEVEL_BITS);
const HEAD = 0x8000_0000;
/** Rows dealt out by one advance(): about a tenth of a millisecond. */
const DEALT_MAX = 4096;
const PAGE_BITS = 12;
const PAGE_ROWS = 1 << PAGE_BITS;
/** Empty pages kept, so that a row now and then does not make and drop its page each time. */
const PAGES_SPARE_MAX = 8;

export interface TimerWheelOptions {
  /** Grain of the deadlines. */
  readonly tickMs: number;
  /** The clock now; deadlines are on the same clock. */
  readonly startMs: number;
}

class RowPage {
  readonly due = new Float64Array(PAGE_ROWS);
  readonly next = new Uint32Array(PAGE_ROWS);
  readonly previous = new Uint32Array(PAGE_ROWS);
  /** Rows of this page that are scheduled; a page without any has zeros in `previous`. */
  count = 0;
}

export class TimerWheel {
  readonly #tickMs: number;
  readonly #startMs: number;
  readonly #pages: (RowPage | undefined)[] = [];
  readonly #spares: RowPage[] = [];
  /** First and last row of each slot (level × 32 + slot), 0 when it is empty. */
  readonly #first = new Uint32Array(LEVELS * SLOTS);
  readonly #last = new Uint32Array(LEVELS * SLOTS);
  /** Which slots of a level have rows. */
  readonly #filled = new Int32Array(LEVELS);
  /** Every row due before this tick has fired; its upper and lower part. */
  #nowHigh = 0;
  #nowLow = 0;
  /** The slot being dealt out, −1 for none: its rows are due before or with all others. */
  #dealing = -1;
  #count = 0;
  #isAdvancing = false;

  constructor(options: TimerWheelOptions) {
    invariant(options.tickMs > 0, 'a tick takes time');
    this.#tickMs = options.tickMs;
    this.#startMs = options.startMs;
  }

  /** Rows that are scheduled. */
  get size(): number {
    return this.#count;
  }

  isScheduled(row: number): boolean {
    const page = this.#pages[row >>> PAGE_BITS];
    return page !== undefined && page.previous[row & (PAGE_ROWS - 1)] !== 0;
  }

  /** Sets the deadline of a row, or moves it. */
  schedule(row: number, dueMs: number): void {
    invariant(row > 0 && row < HEAD, 'a row is from 1 to 2^31 − 1');
    if (this.isScheduled(row)) this.#unlink(row);
    const tick =
      Math.max(Math.ceil((dueMs - this.#startMs) / this.#tickMs), this.#nowHigh * LOW_TICKS + this.#nowLow);
    invariant(tick < Number.MAX_SAFE_INTEGER / 16, 'a deadline lies within 2^49 ticks');
    this.#link(row, tick);
  }

  /** Forgets the deadline of a row, if it has one. */
  cancel(row: number): void {
    if (this.isScheduled(row)) this.#unlink(row);
  }

  /**
   * Calls onDue for rows due at nowMs, earliest first, at most `most` times; returns how many. Each is no
   * longer scheduled when it is called for; the callback may schedule and cancel any row, but not advance.
   * More may be due than one call does: nextDueMs() says so.
   */
  advance(nowMs: number, onDue: (row: number) => void, most: number): number {
    invariant(!this.#isAdvancing, 'advance is not called by its own callback');
    this.#isAdvancing = true;
    const nowTick = Math.floor((nowMs - this.#startMs) / this.#tickMs);
    let fired = 0;
    let toDeal = DEALT_MAX;
    while (fired < most) {
      if (this.#dealing >= 0) {
        toDeal -= this.#deal(toDeal);
        if (this.#dealing >= 0) break;
      }
      const slot = this.#earliestSlot();
      const tick = slot < 0 ? Infinity : this.#startOf(slot);
      if (tick > nowTick) {
        this.#moveTo(nowTick);
        break;
      }
      this.#moveTo(tick);
      if (slot >= SLOTS) this.#dealing = slot;
      else {
        const row = this.#first[slot] ?? 0;
        this.#unlink(row);
        fired += 1;
        onDue(row);
      }
    }
    this.#isAdvancing = false;
    return fired;
  }

  /**
   * When advance() has something to do next: the earliest deadline, or before it a time to deal out a
   * slot. Never after the earliest deadline (rounded up to a tick). Infinity when nothing is scheduled.
   */
  nextDueMs(): number {
    if (this.#dealing >= 0) return this.#startMs + (this.#nowHigh * LOW_TICKS + this.#nowLow) * this.#tickMs;
    const slot = this.#earliestSlot();
    return slot < 0 ? Infinity : this.#startMs + this.#startOf(slot) * this.#tickMs;
  }

  #earliestSlot(): number {
    for (let level = 0; level < LEVELS; level++) {
      const bits = this.#filled[level] ?? 0;
      if (bits !== 0) return level * SLOTS + 31 - Math.clz32(bits & -bits);
    }
    return -1;
  }

  /** First tick of a slot: the digits of now above its level, then the slot. */
  #startOf(slot: number): number {
    const level = slot >>> LEVEL_BITS;
    const digit = slot & (SLOTS - 1);
    if (level < LOW_LEVELS) return this.#nowHigh * LOW_TICKS + startOfDigit(this.#nowLow, level, digit);
    return startOfDigit(this.#nowHigh, level - LOW_LEVELS, digit) * LOW_TICKS;
  }

  #moveTo(tick: number): void {
    if (tick <= this.#nowHigh * LOW_TICKS + this.#nowLow) return;
    this.#nowHigh = Math.floor(tick / LOW_TICKS);
    this.#nowLow = tick - this.#nowHigh * LOW_TICKS;
  }

  /** Deals rows of the slot out to lower levels; returns how many. */
  #deal(most: number): number {
    const slot = this.#dealing;
    let dealt = 0;
    let row = this.#first[slot] ?? 0;
    while (row !== 0 && dealt < most) {
      const tick = this.#pageOf(row).due[row & (PAGE_ROWS - 1)] ?? 0;
      this.#unlink(row);
      this.#link(row, tick);
      dealt += 1;
      row = this.#first[slot] ?? 0;
    }
    if (row === 0) this.#dealing = -1;
    return dealt;
  }

  /** Appends the row to the slot that its tick has, seen from now. */
  #link(row: number, tick: number): void {
    const high = Math.floor(tick / LOW_TICKS);
    let slot: number;
    if (high === this.#nowHigh) slot = slotOf(tick - high * LOW_TICKS, this.#nowLow);
    else slot = LOW_LEVELS * SLOTS + slotOf(high, this.#nowHigh);
    const page = this.#pages[row >>> PAGE_BITS] ?? this.#addPage(row >>> PAGE_BITS);
    const at = row & (PAGE_ROWS - 1);
    const last = this.#last[slot] ?? 0;
    if (last === 0) {
      this.#first[slot] = row;
      const level = slot >>> LEVEL_BITS;
      this.#filled[level] = (this.#filled[level] ?? 0) | (1 << (slot & (SLOTS - 1)));
    } else this.#pageOf(last).next[last & (PAGE_ROWS - 1)] = row;
    this.#last[slot] = row;
    page.due[at] = tick;
    page.next[at] = HEAD + slot;
    page.previous[at] = last === 0 ? HEAD + slot : last;
    page.count += 1;
    this.#count += 1;
  }

  #unlink(row: number): void {
    const page = this.#pageOf(row);
    const at = row & (PAGE_ROWS - 1);
    const next = page.next[at] ?? 0;
    const previous = page.previous[at] ?? 0;
    if (previous < HEAD) this.#pageOf(previous).next[previous & (PAGE_ROWS - 1)] = next;
    else this.#first[previous - HEAD] = next < HEAD ? next : 0;
    if (next < HEAD) this.#pageOf(next).previous[next & (PAGE_ROWS - 1)] = previous;
    else {
      const slot = next - HEAD;
      this.#last[slot] = previous < HEAD ? previous : 0;
      if (previous >= HEAD) {
        const level = slot >>> LEVEL_BITS;
        this.#filled[level] = (this.#filled[level] ?? 0) & ~(1 << (slot & (SLOTS - 1)));
      }
    }
    page.previous[at] = 0;
    page.count -= 1;
    this.#count -= 1;
    if (page.count === 0) this.#dropPage(row >>> PAGE_BITS, page);
  }

  #pageOf(row: number): RowPage {
    const page = this.#pages[row >>> PAGE_BITS];
    if (page === undefined) invariant(false, 'a scheduled row has its page');
    return page;
  }

  #addPage(index: number): RowPage {
    while (this.#pages.length <= index) this.#pages.push(undefined);
    const page = this.#spares.pop() ?? new RowPage();
    this.#pages[index] = page;
    return page;
  }

  #dropPage(index: number, page: RowPage): void {
    this.#pages[index] = undefined;
    if (this.#spares.length < PAGES_SPARE_MAX) this.#spares.push(page);
  }
}

/** Level × 32 + slot of a value seen from `now`, both below 2^30: the highest digit in which they differ. */
function slotOf(value: number, now: number): number {
  const differs = value ^ now;
  const level = differs === 0 ? 0 : Math.floor((31 - Math.clz32(differs)) / LEVEL_BITS);
  return level * SLOTS + ((value >>> (level * LEVEL_BITS)) & (SLOTS - 1));
}

/** `now` with the digit at this level replaced and those below it 0. */
function startOfDigit(now: number, level: number, digit: number): number {
  const above = (level + 1) * LEVEL_BITS;
  return (above >= 30 ? 0 : (now >>> above) << above) + (digit << (level * LEVEL_BITS));
}
