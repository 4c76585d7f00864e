/**
 * The life of an entry's bytes: made at submission or recovery, read for delivery and refill, freed at
 * the end. Joins the columns (entry-table.ts) with the records (content-store.ts).
 */
import { invariant } from '../../base/invariant.js';
import { TextPool } from '../../base/text-pool.js';
import type { Crc32 } from '../../platform/ports.js';
import { FLAG_SHARED, NOTE_CRC_BYTES } from '../../protocol/change-rows.js';
import type { RefillEntries } from '../../recovery/refill-source.js';
import type { ContentStore } from './content-store.js';
import { EntryState } from './entry-table.js';
import type { EntryTable } from './entry-table.js';
import type { Partition } from '../mirror/partition.js';
import type { MailQueue } from './mail-queue.js';
import { RecentEnvelopes } from './recent-envelopes.js';

/** Bookkeeping bytes that an entry costs beside its records: columns, hash bucket, slot, record header. */
export const ENTRY_BOOKKEEPING_BYTES = 120;

export class Entries {
  readonly table: EntryTable;
  readonly contents: ContentStore;
  readonly envelopes = new RecentEnvelopes();
  /** What next hops said of entries, by row. */
  readonly texts: TextPool;
  private readonly crc32: Crc32;

  constructor(options: { readonly textsBytesMax: number }, table: EntryTable, contents: ContentStore, crc32: Crc32) {
    this.table = table;
    this.contents = contents;
    this.texts = new TextPool({ bytesMax: options.textsBytesMax }, { segments: contents.segments });
    this.crc32 = crc32;
  }

  /** Content and bookkeeping of all entries; their texts stand in the segments too. */
  get usedBytes(): number {
    const bookkeepingBytes = this.table.inUse * ENTRY_BOOKKEEPING_BYTES + this.texts.bookkeepingBytes;
    return this.contents.segments.usedBytes + bookkeepingBytes;
  }

  /** Of empty segments, kept for the next burst. */
  get keptBytes(): number {
    return this.contents.segments.stockBytes;
  }

  /** So many entries are about to come back, with so many bytes of content and head: a store says so. More than `limitBytes` hold can't be here at once. */
  expect(count: number, bytes: number, limitBytes: number): void {
    this.table.index.expect(Math.min(count, Math.floor(limitBytes / ENTRY_BOOKKEEPING_BYTES)));
    this.contents.segments.expect(count, bytes);
  }

  expectNoMore(): void {
    this.contents.segments.expectNoMore();
  }

  /** A new row in state FREE; `shared` is 0 when the record holds body ‖ head ‖ room. */
  create(
    queue: MailQueue, messageId: number, slot: number, shared: number, bodyBytes: number, checksum: number,
    arrivalSeconds: number, expirySeconds: number, room: number,
  ): number {
    const table = this.table;
    const row = table.take(messageId, queue.handle);
    table.slot.set(row, slot);
    table.shared.set(row, shared);
    table.bodyBytes.set(row, bodyBytes);
    table.checksum.set(row, checksum);
    table.note.set(row, room);
    table.arrivalSeconds.set(row, arrivalSeconds);
    table.expirySeconds.set(row, expirySeconds);
    if (shared !== 0) this.contents.addEntry(shared);
    return row;
  }

  /** Body and head together, as the queue's byte count has it. */
  bytes(row: number): number {
    const own = this.contents.segments.bytesOf(this.table.slot.get(row)) - this.room(row);
    return this.table.shared.get(row) === 0 ? own : own + this.table.bodyBytes.get(row);
  }

  headBytes(row: number): number {
    return this.bytes(row) - this.table.bodyBytes.get(row);
  }

  /** A view of the head; valid until the next allocation or compaction. */
  head(row: number): Uint8Array {
    const record = this.contents.segments.read(this.table.slot.get(row));
    const from = this.table.shared.get(row) === 0 ? this.table.bodyBytes.get(row) : 0;
    return record.subarray(from, record.length - this.room(row));
  }

  /** What the entry keeps for its note. */
  room(row: number): number {
    return this.table.note.get(row) & 0xffff;
  }

  hasNote(row: number): boolean {
    return this.table.note.get(row) > 0xffff;
  }

  /** A view of the note, empty when there is none. */
  note(row: number): Uint8Array {
    const bytes = this.table.note.get(row) >>> 16;
    if (bytes === 0) return NO_BYTES;
    const record = this.contents.segments.read(this.table.slot.get(row));
    const from = record.length - this.room(row);
    return record.subarray(from, from + bytes);
  }

  /** Writes the note into its room. */
  setNote(row: number, note: Uint8Array): void {
    const room = this.room(row);
    invariant(note.length + NOTE_CRC_BYTES <= room, 'a note fits the room that its entry was stored with');
    const slot = this.table.slot.get(row);
    const { segments } = this.contents;
    segments.write(slot, segments.bytesOf(slot) - room, note);
    this.table.note.set(row, (room | (note.length << 16)) >>> 0);
  }

  copyBody(row: number, target: Uint8Array, at: number): void {
    const shared = this.table.shared.get(row);
    const slot = shared === 0 ? this.table.slot.get(row) : this.contents.sharedSlot(shared);
    this.contents.segments.copyTo(slot, 0, this.table.bodyBytes.get(row), target, at);
  }

  /** Ends the entry: out of all orders, records freed, row given back. Returns the entry that stood behind it in the partition. */
  remove(queue: MailQueue, row: number): number {
    const table = this.table;
    const segments = this.contents.segments;
    const following = queue.unlink(row, this.bytes(row));
    segments.free(table.slot.get(row));
    const shared = table.shared.get(row);
    if (shared !== 0) this.contents.dropEntry(shared);
    if (this.hasNote(row)) this.texts.drop(row);
    this.envelopes.forget(row);
    table.transition(row, EntryState.FREE);
    table.release(row);
    return following;
  }

  /** The partition as a refill reads it. */
  refillView({ order }: Partition): RefillEntries {
    const table = this.table;
    return {
      first: () => order.first,
      following: (row) => order.following(row),
      position: (row) => table.position.get(row),
      messageId: (row) => table.messageId(row),
      flags: (row) => (table.shared.get(row) === 0 ? 0 : FLAG_SHARED),
      bodyBytes: (row) => table.bodyBytes.get(row),
      headBytes: (row) => this.headBytes(row),
      noteBytes: (row) => this.note(row).length,
      checksum: (row) => table.checksum.get(row),
      room: (row) => this.room(row),
      noteChecksum: (row) => this.crc32(this.note(row), 0),
      writePayload: (row, target, at) => {
        const body = table.bodyBytes.get(row);
        this.copyBody(row, target, at);
        const head = this.head(row);
        target.set(head, at + body);
        target.set(this.note(row), at + body + head.length);
      },
    };
  }
}

const NO_BYTES = new Uint8Array(0);
