/**
 * Records of bytes outside the collected heap: the content of millions of messages as a few thousand large
 * blocks that the collector never looks into.
 *
 *   slot table (5 bytes a slot)        segment (segmentBytes)
 *   slot 7 ──► segment 2, unit 5  ──►  ┌──────┬───────┬─────────────┬──────┬───────┬────┄      ┬───────┐
 *   slot 8 ──► free, next is 3         │ slot │ bytes │ contents …  │ slot │ bytes │           │ never │
 *                                      └──────┴───────┴─────────────┴──────┴───────┴────┄      ┴───────┘
 *                                      offset 0  u32     8 … padded to 8               filled ↑
 *
 * A slot is the record's name and stays while the record moves. The header's slot lets compact() walk a
 * segment and find who lives there; 0 there is a freed record. Bookkeeping is 13 bytes a record and on
 * average 3.5 of padding.
 *
 * New records fill the `young` segment, those that compact() moves fill the `old` one: what has outlived
 * its neighbours once is likely to do so again and is not copied over and over among newcomers. A record
 * above an eighth of a segment gets a block of its own, of exactly its size, so a full segment wastes
 * less than an eighth at its end, whatever the mix of sizes.
 *
 * Closed segments are kept in lists by sixteenths of live bytes (segment-lists.ts), so compact() takes the
 * sparsest at once and does nothing when there is nothing worth doing.
 *
 * Views and offsets of a record are valid until it is freed or compact() is called. Not here: who owns a
 * record, memory limits, checksums.
 */
import { ChunkedUint32, ChunkedUint8 } from './chunked.js';
import { invariant } from './invariant.js';
import { SegmentKind, type Segment } from './segment.js';
import { SegmentLists } from './segment-lists.js';
import { RUN_BYTES_MAX } from './segment-runs.js';
import type { TouchPages } from './segment-runs.js';

/** Names a record; 0 is no record. */
export type Slot = number;

/** Slot and length, in front of each record. */
const RECORD_HEADER_BYTES = 8;
/** Header and padding of one record, on average. */
const RECORD_OVERHEAD_BYTES = 12;
/** Sums with header and padding stay within 31 bits, so they stay small integers. */
const RECORD_BYTES_MAX = 2 ** 30;

const NOWHERE = 255; // in the slot table: this slot is free
// Kept empty for the next burst; at 1 GB/s they last 4 ms, enough to skip zeroing new ones in a steady flow
const SEGMENTS_SPARE_MAX = 4;
// Of these when nothing lives any more, or none is needed: queues that run empty many times a second must not
// make new ones each time
const SEGMENTS_SPARE_IDLE = 2;
const SEGMENTS_OPEN = 2; // young and old: not yet full, so not waste
// Less than this is not worth a move: of a short queue that mail passes through, all will be gone in a moment
const SEGMENTS_WASTED_MIN = 4;
const SLOTS_KEPT = 16_384; // a larger slot table is given back when the last record is freed
const COPY_BY_WORD_BYTES = 256; // up to here a loop is faster than making a view and calling set()
const COPY_BY_BYTE_BYTES = 24; // the same for what comes from outside
// Of a memory limit, the most that one segment may have: below what its marks leave between one another
const SEGMENT_SHARE = 1 / 128;
const SEGMENT_BYTES_MIN = 4096;
const WALK_SHIFT = 4; // passing a freed record costs a sixteenth of moving it

export interface SegmentsOptions {
  /** Size of a segment: a power of two from 4 KiB to 64 MiB. */
  readonly segmentBytes: number;
  /** Of the memory that is made in one piece for what is expected, at most; undefined: RUN_BYTES_MAX. */
  readonly runBytesMax?: number;
  /**
   * Makes the pages of what is expected on another thread (segment-runs.ts); undefined: they are made as they
   * are used.
   */
  readonly touchPages?: TouchPages | undefined;
}

/**
 * A segment is taken whole, when the marks have been looked at: so who may hold little has small ones. A
 * power of two, as `segmentBytes` is.
 */
export function segmentBytesWithin(limitBytes: number, segmentBytes: number): number {
  const most = 2 ** Math.floor(Math.log2(limitBytes * SEGMENT_SHARE));
  return Math.max(SEGMENT_BYTES_MIN, Math.min(segmentBytes, most));
}

function footprintOf(bytes: number): number {
  return (bytes + RECORD_HEADER_BYTES + 7) & ~7;
}

export class Segments {
  private readonly segmentBytes: number;
  private readonly ownFrom: number;
  private readonly unitBits: number;
  private readonly unitMask: number;
  private readonly lists: SegmentLists;
  // The slot table: low 32 bits of (segment number × units a segment + unit), and the bits above.
  private readonly low = new ChunkedUint32();
  private readonly high = new ChunkedUint8();
  private slotCount = 0;
  private freeSlot = 0;
  private young: Segment;
  private old: Segment;
  /** Being emptied by compact(), which goes on at `victimAt`. */
  private victim: Segment | undefined;
  private victimAt = 0;
  private recordCount = 0;
  private live = 0;

  constructor(options: SegmentsOptions) {
    const bytes = options.segmentBytes;
    invariant(
      bytes >= 4096 && bytes <= 2 ** 26 && (bytes & (bytes - 1)) === 0,
      'a segment is a power of two from 4 KiB to 64 MiB',
    );
    this.segmentBytes = bytes;
    this.ownFrom = bytes >>> 3;
    this.unitBits = 28 - Math.clz32(bytes); // log2(bytes / 8)
    this.unitMask = (1 << this.unitBits) - 1;
    this.lists = new SegmentLists(
      bytes, SEGMENTS_SPARE_MAX, NOWHERE * 2 ** (32 - this.unitBits), options.runBytesMax ?? RUN_BYTES_MAX,
      options.touchPages,
    );
    this.young = this.lists.nothing;
    this.old = this.lists.nothing;
    this.low.ensure(1);
    this.high.ensure(1);
    this.high.set(0, NOWHERE);
  }

  /** Bytes of the records that live, with their headers and padding. */
  get liveBytes(): number {
    return this.live;
  }

  /** Bytes held from the system: all segments, spare ones included. */
  get usedBytes(): number {
    return this.lists.heldBytes;
  }

  get records(): number {
    return this.recordCount;
  }

  /** What is held grows by so much at once, however small the records are. */
  get grainBytes(): number {
    return this.segmentBytes;
  }

  /**
   * So many records of so many bytes together are about to come: their memory is made in few pieces
   * (segment-runs.ts).
   */
  expect(records: number, bytes: number): void {
    this.lists.expect(bytes + records * RECORD_OVERHEAD_BYTES);
  }

  /** What was expected has come, or does not come any more. */
  expectNoMore(): void {
    this.lists.expectNoMore();
  }

  /** A new record with undefined contents. */
  allocate(bytes: number): Slot {
    invariant(bytes >= 0 && bytes <= RECORD_BYTES_MAX, 'a record has from 0 to 2^30 bytes');
    const footprint = footprintOf(bytes);
    return this.enter(this.withRoom(footprint), bytes, footprint);
  }

  /**
   * A new record with these contents and `room` undefined bytes behind them: allocate() and write() without
   * looking the new slot up again.
   */
  keep(source: Uint8Array, room = 0): Slot {
    const bytes = source.length + room;
    invariant(bytes <= RECORD_BYTES_MAX, 'a record has from 0 to 2^30 bytes');
    const footprint = footprintOf(bytes);
    const segment = this.withRoom(footprint);
    segment.bytes.set(source, segment.filled + RECORD_HEADER_BYTES);
    return this.enter(segment, bytes, footprint);
  }

  /** The block that the record lies in. */
  segmentOf(slot: Slot): Uint8Array {
    return this.holder(slot).bytes;
  }

  /** Where in segmentOf() its contents start. */
  offsetOf(slot: Slot): number {
    return this.start(slot) + RECORD_HEADER_BYTES;
  }

  bytesOf(slot: Slot): number {
    return this.holder(slot).words[(this.start(slot) >>> 2) + 1] ?? 0;
  }

  /** Copies source into the record from `at` on. */
  write(slot: Slot, at: number, source: Uint8Array): void {
    const segment = this.holder(slot);
    const start = this.start(slot);
    const length = source.length;
    invariant(
      at >= 0 && at + length <= (segment.words[(start >>> 2) + 1] ?? 0), 'a write stays within its record',
    );
    const to = start + RECORD_HEADER_BYTES + at;
    if (length > COPY_BY_BYTE_BYTES) {
      segment.bytes.set(source, to);
      return;
    }
    const bytes = segment.bytes;
    for (let i = 0; i < length; i++) bytes[to + i] = source[i] ?? 0;
  }

  /** The contents, as a view. */
  read(slot: Slot): Uint8Array {
    const segment = this.holder(slot);
    const start = this.start(slot);
    const from = start + RECORD_HEADER_BYTES;
    return segment.bytes.subarray(from, from + (segment.words[(start >>> 2) + 1] ?? 0));
  }

  /** Copies `bytes` bytes of the record, from `from` on, into target at `at`. */
  copyTo(slot: Slot, from: number, bytes: number, target: Uint8Array, at: number): void {
    const segment = this.holder(slot);
    const start = this.start(slot);
    invariant(
      from >= 0 && bytes >= 0 && from + bytes <= (segment.words[(start >>> 2) + 1] ?? 0),
      'a read stays within its record',
    );
    invariant(at >= 0 && at + bytes <= target.length, 'what is read fits its target');
    const source = segment.bytes;
    const first = start + RECORD_HEADER_BYTES + from;
    if (bytes > COPY_BY_BYTE_BYTES) {
      target.set(source.subarray(first, first + bytes), at);
      return;
    }
    for (let i = 0; i < bytes; i++) target[at + i] = source[first + i] ?? 0;
  }

  /** Ends the record; its slot may come back for another one. */
  free(slot: Slot): void {
    const segment = this.holder(slot);
    const word = this.start(slot) >>> 2;
    const footprint = footprintOf(segment.words[word + 1] ?? 0);
    segment.words[word] = 0;
    segment.live -= footprint;
    this.live -= footprint;
    this.recordCount -= 1;
    this.high.set(slot, NOWHERE);
    this.low.set(slot, this.freeSlot);
    this.freeSlot = slot;
    if (segment.live === 0) this.emptied(segment);
    else this.lists.onLess(segment);
  }

  /**
   * Moves live records out of the sparsest segments and gives those back, until what is held is at most 8/7
   * of the live bytes, or a few segments more than these (open and spare segments aside), or the budget is
   * spent. Small budgets add up: a segment half emptied is gone on with by the next call. Returns the bytes
   * moved.
   */
  compact(budgetBytes: number): number {
    let moved = 0;
    let left = budgetBytes;
    while (left > 0) {
      let victim = this.victim;
      if (victim === undefined) {
        this.leaveSparseRuns();
        victim = this.lists.takeOfSparseRun() ?? (this.isWasteful() ? this.lists.takeSparsest() : undefined);
        if (victim === undefined) break;
        this.victim = victim;
        this.victimAt = 0;
      }
      const from = this.victimAt;
      const bytes = this.evacuate(victim, left);
      moved += bytes;
      left -= bytes + (Math.max(0, this.victimAt - from - bytes) >>> WALK_SHIFT);
    }
    return moved;
  }

  /** Bytes of empty segments that are kept for the next burst, beside what is used. */
  get stockBytes(): number {
    return this.lists.stock.bytes;
  }

  /**
   * Called many times a minute: what a burst leaves is kept for the next one, up to so many bytes
   * (segment-stock.ts).
   */
  keepStock(nowMs: number, bytesMax: number): void {
    this.lists.stock.tick(nowMs, bytesMax);
  }

  /** Called a few times a second: spare segments that were not needed in between are given back. */
  rest(): void {
    this.lists.dropUnused(SEGMENTS_SPARE_IDLE);
  }

  /** Whether compact() has something to do; what was expected (segment-runs.ts) aside. */
  get hasGaps(): boolean {
    return this.victim !== undefined || this.isWasteful();
  }

  /** An open segment would keep its run for as long as nothing fills it. */
  private leaveSparseRuns(): void {
    if (this.young.run?.isSparse === true) this.young = this.closed(this.young);
    if (this.old.run?.isSparse === true) this.old = this.closed(this.old);
  }

  private closed(segment: Segment): Segment {
    this.lists.close(segment);
    return this.lists.nothing;
  }

  private isWasteful(): boolean {
    const dense = this.lists.heldBytes - this.lists.spareBytes - SEGMENTS_OPEN * this.segmentBytes;
    return dense - this.live > Math.max(this.live / 7, SEGMENTS_WASTED_MIN * this.segmentBytes);
  }

  /** Moves records of victim until it is empty or the budget is spent; at least one step is made. */
  private evacuate(victim: Segment, budget: number): number {
    const words = victim.words;
    let at = this.victimAt;
    let moved = 0;
    let walked = 0;
    while (victim.live > 0 && moved + (walked >>> WALK_SHIFT) < budget) {
      invariant(at < victim.filled, 'a walk meets every live record of a segment');
      const slot = words[at >>> 2] ?? 0;
      const footprint = footprintOf(words[(at >>> 2) + 1] ?? 0);
      if (slot === 0) walked += footprint;
      else {
        this.move(victim, at, footprint, slot);
        moved += footprint;
      }
      at += footprint;
    }
    this.victimAt = at;
    if (victim.live === 0) this.emptied(victim);
    return moved;
  }

  private move(from: Segment, at: number, footprint: number, slot: Slot): void {
    let to = this.old;
    if (to.filled + footprint > to.bytes.length) {
      this.lists.close(to);
      to = this.lists.take();
      this.old = to;
    }
    const start = to.filled;
    if (footprint > COPY_BY_WORD_BYTES) to.bytes.set(from.bytes.subarray(at, at + footprint), start);
    else {
      const source = from.words;
      const target = to.words;
      const shift = (start - at) >> 2;
      for (let i = at >>> 2; i < (at + footprint) >>> 2; i++) target[i + shift] = source[i] ?? 0;
    }
    from.live -= footprint;
    to.filled = start + footprint;
    to.live += footprint;
    this.place(slot, to.number, start);
  }

  /** Nothing lives in the segment any more. */
  private emptied(segment: Segment): void {
    if (segment.kind === SegmentKind.OPEN) segment.filled = 0;
    else {
      if (segment === this.victim) this.victim = undefined;
      this.lists.release(segment);
    }
    if (this.recordCount === 0) this.startAgain();
  }

  /** The last record is gone: give back what a burst had needed. */
  private startAgain(): void {
    if (this.young.run !== undefined) this.young = this.closed(this.young);
    if (this.old.run !== undefined) this.old = this.closed(this.old);
    this.lists.dropSpares(SEGMENTS_SPARE_IDLE);
    if (this.slotCount < SLOTS_KEPT) return;
    this.low.truncate(1);
    this.high.truncate(1);
    this.slotCount = 0;
    this.freeSlot = 0;
  }

  /** The segment whose end takes the next record. */
  private withRoom(footprint: number): Segment {
    if (footprint > this.ownFrom) return this.lists.takeOwn(footprint);
    const young = this.young;
    if (young.filled + footprint <= young.bytes.length) return young;
    this.lists.close(young);
    this.young = this.lists.take();
    return this.young;
  }

  /** Makes the next bytes of the segment a record. */
  private enter(segment: Segment, bytes: number, footprint: number): Slot {
    let slot = this.freeSlot;
    if (slot !== 0) this.freeSlot = this.low.get(slot);
    else slot = this.newSlot();
    const at = segment.filled;
    const word = at >>> 2;
    segment.words[word] = slot;
    segment.words[word + 1] = bytes;
    segment.filled = at + footprint;
    segment.live += footprint;
    this.place(slot, segment.number, at);
    this.live += footprint;
    this.recordCount += 1;
    return slot;
  }

  private newSlot(): Slot {
    this.slotCount += 1;
    this.low.ensure(this.slotCount + 1);
    this.high.ensure(this.slotCount + 1);
    return this.slotCount;
  }

  private place(slot: Slot, segmentNumber: number, at: number): void {
    this.low.set(slot, (segmentNumber << this.unitBits) | (at >>> 3));
    this.high.set(slot, segmentNumber >>> (32 - this.unitBits));
  }

  private holder(slot: Slot): Segment {
    const high = this.high.get(slot);
    invariant(high !== NOWHERE, 'a slot names a record that lives');
    return this.lists.at((high << (32 - this.unitBits)) | (this.low.get(slot) >>> this.unitBits));
  }

  /** Offset of the record's header in its segment. */
  private start(slot: Slot): number {
    return (this.low.get(slot) & this.unitMask) << 3;
  }
}
