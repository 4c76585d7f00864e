/**
 * Filling one mirror again while mail goes on (docs/PROTOCOL.md "Entry rows").
 *
 *   FENCE (FILL, number n) ─► entries by ascending position ≤ n in small frames ─► REFILL_END(count)
 *
 * The walk reads the partition as it is when each frame is built. The cursor is the position up to which
 * the mirror has entries: live changes to entries behind it are sent as they are, those between cursor and
 * n as SKIPPED, because the refill will show their outcome. Where a body, or the whole entry, is still at
 * the store that this process reads, the walk asks for it and for some behind it, and waits: so a
 * partition that is larger than memory passes through it (rule 14 of docs/model). Pure; the caller paces
 * it by the byte window.
 */
import { ENTRY_ROW_BYTES, writeEntryRow } from '../protocol/entry-rows.js';

/** The partition that is read. Rows are opaque numbers, 0 ends the walk. */
export interface RefillEntries {
  first(): number;
  following(row: number): number;
  position(row: number): number;
  messageId(row: number): number;
  /** Entry row flags: SHARED or 0. */
  flags(row: number): number;
  bodyBytes(row: number): number;
  headBytes(row: number): number;
  noteBytes(row: number): number;
  /** What the entry keeps for its note. */
  room(row: number): number;
  checksum(row: number): number;
  noteChecksum(row: number): number;
  /** All of it can be sent. */
  isHere(row: number): boolean;
  /** The walk waits for this body, or soon will. */
  want(row: number): void;
  /** It is in a frame: the refill needs its body no more. */
  onSent(row: number): void;
  /** Writes body ‖ head ‖ note. */
  writePayload(row: number, target: Uint8Array, at: number): void;
}

/** One REFILL frame's parts. */
export interface RefillFrame {
  readonly rows: Uint8Array;
  readonly payload: Uint8Array;
  readonly creditBytes: number;
}

const ENTRIES_PER_FRAME_MAX = 4096;
/** Bodies that are not here are asked for so many frames ahead: one is sent while the next ones come. */
const FRAMES_AHEAD = 4;
const ENTRIES_AHEAD_MAX = 256;

export class RefillSource {
  readonly baseNumber: number;
  sentCount = 0;
  /** Position up to which entries have been sent; baseNumber when the walk is over. */
  cursor = 0;
  private nextRow: number;
  private readonly entries: RefillEntries;
  private readonly frameBytes: number;
  private readonly entryCreditBytes: number;

  constructor(
    options: { baseNumber: number; frameBytes: number; entryCreditBytes: number }, entries: RefillEntries,
  ) {
    this.baseNumber = options.baseNumber;
    this.frameBytes = options.frameBytes;
    this.entryCreditBytes = options.entryCreditBytes;
    this.entries = entries;
    this.nextRow = entries.first();
    this.skipLive();
  }

  get isOver(): boolean {
    return this.nextRow === 0;
  }

  /** The entry the walk stands at was taken out of the partition. */
  onUnlinked(row: number, following: number): void {
    if (row !== this.nextRow) return;
    this.nextRow = following;
    this.skipLive();
  }

  /**
   * The next frame within the byte bound and `creditBytes`; undefined when over, without credit for one
   * entry, or while the body of the next one is not here.
   */
  nextFrame(creditBytes: number): RefillFrame | undefined {
    const entries = this.entries;
    let count = 0;
    let bytes = 0;
    let cost = 0;
    for (let row = this.nextRow; row !== 0 && count < ENTRIES_PER_FRAME_MAX; row = entries.following(row)) {
      if (entries.position(row) > this.baseNumber) break;
      const size = entries.bodyBytes(row) + entries.headBytes(row) + entries.noteBytes(row);
      // The note stands in its room, which costs, empty or not.
      const rowCost = size - entries.noteBytes(row) + entries.room(row) + this.entryCreditBytes;
      if (cost + rowCost > creditBytes) break;
      if (count > 0 && bytes + size > this.frameBytes) break;
      if (!entries.isHere(row)) {
        this.wantFrom(row);
        break;
      }
      count += 1;
      bytes += size;
      cost += rowCost;
    }
    if (count === 0) return undefined;
    return this.build(count, bytes, cost);
  }

  private build(count: number, bytes: number, creditBytes: number): RefillFrame {
    const entries = this.entries;
    const rows = new Uint8Array(count * ENTRY_ROW_BYTES);
    const view = new DataView(rows.buffer);
    const payload = new Uint8Array(bytes);
    let row = this.nextRow;
    let at = 0;
    for (let i = 0; i < count; i++) {
      const bodyBytes = entries.bodyBytes(row);
      const headBytes = entries.headBytes(row);
      const noteBytes = entries.noteBytes(row);
      const flags = entries.flags(row);
      this.cursor = entries.position(row);
      writeEntryRow(
        view, i * ENTRY_ROW_BYTES, flags, bodyBytes, headBytes, entries.checksum(row), noteBytes,
        noteBytes === 0 ? 0 : entries.noteChecksum(row), entries.messageId(row), this.cursor,
        entries.room(row),
      );
      entries.writePayload(row, payload, at);
      at += bodyBytes + headBytes + noteBytes;
      entries.onSent(row);
      row = entries.following(row);
    }
    this.nextRow = row;
    this.sentCount += count;
    this.skipLive();
    return { rows, payload, creditBytes };
  }

  private wantFrom(first: number): void {
    const { entries } = this;
    let bytes = 0;
    let row = first;
    for (let count = 0; count < ENTRIES_AHEAD_MAX && row !== 0; count++, row = entries.following(row)) {
      if (entries.position(row) > this.baseNumber || bytes >= FRAMES_AHEAD * this.frameBytes) return;
      bytes += entries.bodyBytes(row) + entries.headBytes(row);
      if (!entries.isHere(row)) entries.want(row);
    }
  }

  /** Entries stored after the refill began reach the mirror as live changes. */
  private skipLive(): void {
    if (this.nextRow !== 0 && this.entries.position(this.nextRow) > this.baseNumber) this.nextRow = 0;
    if (this.nextRow === 0) this.cursor = this.baseNumber;
  }
}
