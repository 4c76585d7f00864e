/**
 * All entries of all mirrored partitions of a store, as one flat table: an entry is a row number, its fields
 * stand in chunked columns, its bytes in segments. Nothing here is an object per message, so ten million
 * of them do not slow the collector.
 *
 *   index: (position, key of the copy) -> row   HashIndex, row-aligned
 *   ids:   row -> message id                     f64
 *   cells: row × 8 + field                       u32, one cache line half per entry
 *
 *     PREV NEXT   neighbours in the copy, by position; 0 = none
 *     SLOT        body ‖ head ‖ room in one record; with a shared body without it; 0 = no bytes
 *     BODY HEAD   lengths as the row told them
 *     CRC         CRC-32 of body ‖ head
 *     SHARED      row in SharedBodies, 0 = the body is in SLOT
 *     NOTE        bytes of the note, 0 = no note: it stands in the room, behind its CRC-32 (4 bytes,
 *                 little-endian)
 *
 *   copy.first -> row <-> row <-> … <- copy.last       ascending positions
 *
 *   a range cut out as a whole (detach) keeps its chain of NEXT, and stays in the index until it is freed in
 *   steps; PREV = DETACHED says that its rows are in no copy any more
 *
 * Owns: linking and unlinking (with the refill and pull cursors of the copy), freeing of an entry's
 * records. Which change may do what to an entry is section.ts.
 */

import { ChunkedFloat64, ChunkedUint32, UINT32_PLACE } from '../../base/chunked.js';
import { HashIndex } from '../../base/hash-index.js';
import { Rows } from '../../base/rows.js';
import type { Segments } from '../../base/segments.js';
import type { TextPool } from '../../base/text-pool.js';
import { NOTE_CRC_BYTES } from '../../protocol/change-rows.js';
import type { MirroredPartition } from './mirrored-partition.js';
import type { SharedBodies } from './shared-bodies.js';

const FIELDS = 8;
const PREV = 0;
const NEXT = 1;
const SLOT = 2;
const BODY = 3;
const HEAD = 4;
const CRC = 5;
const SHARED = 6;
const NOTE = 7;
/** Never a row. */
const DETACHED = 0xffffffff;

/**
 * Columns and index of one entry, rounded up: 32 cells + 8 id + 20 index + slot table 12..24. Part of what
 * memory counts.
 */
export const ENTRY_OVERHEAD_BYTES = 96;

/** Larger columns are given back when the last entry has gone. */
const KEPT_ROWS = 16_384;

export class StoredEntries {
  readonly #rows = new Rows();
  readonly #index: HashIndex;
  readonly #ids = new ChunkedFloat64();
  readonly #cells = new ChunkedUint32();
  readonly #segments: Segments;
  readonly #shared: SharedBodies;
  readonly #texts: TextPool;
  readonly #noteCrc = new Uint8Array(NOTE_CRC_BYTES);

  constructor(
    options: { readonly indexSeed: number },
    parts: { readonly segments: Segments; readonly shared: SharedBodies; readonly texts: TextPool },
  ) {
    this.#index = new HashIndex(options.indexSeed);
    this.#segments = parts.segments;
    this.#shared = parts.shared;
    this.#texts = parts.texts;
  }

  /** Entries alive, those waiting to be discarded included. */
  get count(): number {
    return this.#rows.inUse;
  }

  find(copy: MirroredPartition, position: number): number {
    // What is asked for most is the oldest, which a delivery has ended.
    const { first } = copy;
    if (first !== 0 && this.#index.keyOf(first) === position) return first;
    const row = this.#index.find(position, copy.key);
    return row !== 0 && this.#cells.get(row * FIELDS + PREV) === DETACHED ? 0 : row;
  }

  /** Takes a row and fills it; it is in no copy until link(). */
  create(
    id: number, slot: number, bodyBytes: number, headBytes: number, crc: number, shared: number,
  ): number {
    const row = this.#rows.take();
    const at = row * FIELDS;
    const cells = this.#cells;
    cells.ensure(at + FIELDS);
    this.#ids.ensure(row + 1);
    this.#ids.set(row, id);
    const fields = cells.chunkOf(at);
    const place = at & UINT32_PLACE;
    fields[place + SLOT] = slot;
    fields[place + BODY] = bodyBytes;
    fields[place + HEAD] = headBytes;
    fields[place + CRC] = crc;
    fields[place + SHARED] = shared;
    fields[place + NOTE] = 0;
    return row;
  }

  /** Puts the row behind `after` (0: at the front) and into the index. */
  link(copy: MirroredPartition, row: number, position: number, after: number): void {
    const cells = this.#cells;
    const next = after === 0 ? copy.first : cells.get(after * FIELDS + NEXT);
    const fields = cells.chunkOf(row * FIELDS);
    const place = (row * FIELDS) & UINT32_PLACE;
    fields[place + PREV] = after;
    fields[place + NEXT] = next;
    if (after === 0) copy.first = row;
    else cells.set(after * FIELDS + NEXT, row);
    if (next === 0) copy.last = row;
    else cells.set(next * FIELDS + PREV, row);
    this.#index.set(row, position, copy.key);
    copy.count += 1;
    copy.bytes += (fields[place + BODY] ?? 0) + (fields[place + HEAD] ?? 0);
  }

  /**
   * Takes the row out of copy and index. Its own PREV stays as it was, so that unlinking several rows and
   * linking them again behind their PREV in the opposite order restores the copy exactly.
   */
  unlink(copy: MirroredPartition, row: number): void {
    const cells = this.#cells;
    const at = row * FIELDS;
    const prev = cells.get(at + PREV);
    const next = cells.get(at + NEXT);
    if (prev === 0) copy.first = next;
    else cells.set(prev * FIELDS + NEXT, next);
    if (next === 0) copy.last = prev;
    else cells.set(next * FIELDS + PREV, prev);
    if (copy.refillRow === row) copy.refillRow = prev;
    if (copy.pullRow === row) copy.pullRow = prev;
    this.#index.remove(row);
    copy.count -= 1;
    copy.bytes -= cells.get(at + BODY) + cells.get(at + HEAD);
  }

  /**
   * Takes `count` rows from `first` on out of the copy in one cut; answers the last of them, 0 when there are
   * fewer (then nothing has changed). Costs a look at each row, a tenth of freeing it.
   */
  detach(copy: MirroredPartition, first: number, count: number): number {
    const cells = this.#cells;
    let last = first;
    for (let left = count; left > 1; left -= 1) {
      last = cells.get(last * FIELDS + NEXT);
      if (last === 0) return 0;
    }
    const before = cells.get(first * FIELDS + PREV);
    const behind = cells.get(last * FIELDS + NEXT);
    let bytes = 0;
    for (let row = first; row !== behind;) {
      const fields = cells.chunkOf(row * FIELDS);
      const place = (row * FIELDS) & UINT32_PLACE;
      bytes += (fields[place + BODY] ?? 0) + (fields[place + HEAD] ?? 0);
      fields[place + PREV] = DETACHED;
      if (copy.refillRow === row) copy.refillRow = before;
      if (copy.pullRow === row) copy.pullRow = before;
      row = fields[place + NEXT] ?? 0;
    }
    cells.set(last * FIELDS + NEXT, 0);
    this.#join(copy, before, behind);
    copy.count -= count;
    copy.bytes -= bytes;
    return last;
  }

  /** Undoes detach(): the chain stands between the rows that it was cut out of. Cursors are the caller's. */
  attach(copy: MirroredPartition, first: number, last: number, before: number): void {
    const cells = this.#cells;
    const behind = before === 0 ? copy.first : cells.get(before * FIELDS + NEXT);
    let prev = before;
    for (let row = first; row !== 0; row = cells.get(row * FIELDS + NEXT)) {
      cells.set(row * FIELDS + PREV, prev);
      copy.count += 1;
      copy.bytes += cells.get(row * FIELDS + BODY) + cells.get(row * FIELDS + HEAD);
      prev = row;
    }
    this.#join(copy, before, first);
    this.#join(copy, last, behind);
  }

  /** Makes the two neighbours; 0 is the end of the copy on that side. */
  #join(copy: MirroredPartition, before: number, behind: number): void {
    const cells = this.#cells;
    if (before === 0) copy.first = behind;
    else cells.set(before * FIELDS + NEXT, behind);
    if (behind === 0) copy.last = before;
    else cells.set(behind * FIELDS + PREV, before);
  }

  /** Frees the row and all it holds; it must be unlinked. */
  discard(row: number): void {
    const fields = this.#cells.chunkOf(row * FIELDS);
    const place = (row * FIELDS) & UINT32_PLACE;
    const slot = fields[place + SLOT] ?? 0;
    if (slot !== 0) this.#segments.free(slot);
    const shared = fields[place + SHARED] ?? 0;
    if (shared !== 0) this.#shared.release(shared);
    // Only what was tried has a text.
    if (fields[place + NOTE] !== 0) this.#texts.drop(row);
    const highest = this.#rows.highest;
    this.#rows.release(row);
    if (this.#rows.inUse === 0 && highest > KEPT_ROWS) {
      this.#cells.truncate(0);
      this.#ids.truncate(0);
    }
  }

  /**
   * Frees up to `most` entries of a chain that left its copy as a whole; answers the row to go on with, 0 at
   * the end.
   */
  discardChain(first: number, most: number): number {
    let row = first;
    for (let left = most; left > 0 && row !== 0; left -= 1) {
      const next = this.#cells.get(row * FIELDS + NEXT);
      this.#index.remove(row);
      this.discard(row);
      row = next;
    }
    return row;
  }

  /** Bytes kept for the note and its checksum, since the entry was stored. */
  roomOf(row: number): number {
    const slot = this.slotOf(row);
    return slot === 0 ? 0 : this.#segments.bytesOf(slot) - this.#ownBytesOf(row);
  }

  /**
   * Writes the note into its room, which the caller has looked at; one of no bytes takes it away.
   * Nothing is allocated.
   */
  setNote(row: number, note: Uint8Array, crc: number): void {
    this.#cells.set(row * FIELDS + NOTE, note.length);
    if (note.length === 0) {
      this.#texts.drop(row);
      return;
    }
    const slot = this.slotOf(row);
    const at = this.#ownBytesOf(row);
    const crcBytes = this.#noteCrc;
    for (let i = 0; i < NOTE_CRC_BYTES; i += 1) crcBytes[i] = (crc >>> (8 * i)) & 0xff;
    this.#segments.write(slot, at, crcBytes);
    this.#segments.write(slot, at + NOTE_CRC_BYTES, note);
  }

  /** Copies the note; the caller knows that there is one, and how long. Answers its checksum. */
  copyNote(row: number, target: Uint8Array, at: number): number {
    const slot = this.slotOf(row);
    const from = this.#ownBytesOf(row);
    const crcBytes = this.#noteCrc;
    this.#segments.copyTo(slot, from, NOTE_CRC_BYTES, crcBytes, 0);
    this.#segments.copyTo(slot, from + NOTE_CRC_BYTES, this.noteBytesOf(row), target, at);
    let crc = 0;
    for (let i = 0; i < NOTE_CRC_BYTES; i += 1) crc = (crc | ((crcBytes[i] ?? 0) << (8 * i))) >>> 0;
    return crc;
  }

  /** What stands in front of the room. */
  #ownBytesOf(row: number): number {
    return this.headBytesOf(row) + (this.sharedOf(row) === 0 ? this.bodyBytesOf(row) : 0);
  }

  prevOf(row: number): number {
    return this.#cells.get(row * FIELDS + PREV);
  }
  nextOf(row: number): number {
    return this.#cells.get(row * FIELDS + NEXT);
  }
  slotOf(row: number): number {
    return this.#cells.get(row * FIELDS + SLOT);
  }
  bodyBytesOf(row: number): number {
    return this.#cells.get(row * FIELDS + BODY);
  }
  headBytesOf(row: number): number {
    return this.#cells.get(row * FIELDS + HEAD);
  }
  crcOf(row: number): number {
    return this.#cells.get(row * FIELDS + CRC);
  }
  sharedOf(row: number): number {
    return this.#cells.get(row * FIELDS + SHARED);
  }
  noteBytesOf(row: number): number {
    return this.#cells.get(row * FIELDS + NOTE);
  }
  idOf(row: number): number {
    return this.#ids.get(row);
  }
  positionOf(row: number): number {
    return this.#index.keyOf(row);
  }
}
