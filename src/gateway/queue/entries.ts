/**
 * The life of an entry's bytes: made at submission or recovery, read for delivery and refill, freed at
 * the end. Joins the columns (entry-table.ts) with the records (content-store.ts).
 */
import { invariant } from '../../base/invariant.js';
import { TextPool } from '../../base/text-pool.js';
import type { Crc32 } from '../../platform/ports.js';
import { FLAG_SHARED, NOTE_CRC_BYTES } from '../../protocol/change-rows.js';
import { FLAG_DAMAGED } from '../../protocol/entry-rows.js';
import type { RefillEntries } from '../../recovery/refill-source.js';
import { ABSENT, ALL_ABSENT, AbsentBodies } from './absent-bodies.js';
import type { ContentStore } from './content-store.js';
import { EntryState } from './entry-table.js';
import type { EntryTable } from './entry-table.js';
import type { Partition } from '../mirror/set/partition.js';
import type { MailQueue } from './mail-queue.js';
import { RecentEnvelopes } from './recent-envelopes.js';

/** Bookkeeping bytes that an entry costs beside its records: columns, hash bucket, slot, record header. */
export const ENTRY_BOOKKEEPING_BYTES = 120;

export class Entries {
  readonly table: EntryTable;
  readonly contents: ContentStore;
  readonly envelopes = new RecentEnvelopes();
  /** Which bodies are not here, of partitions that come back. */
  readonly absent: AbsentBodies;
  /** What next hops said of entries, by row. */
  readonly texts: TextPool;
  readonly #crc32: Crc32;

  constructor(
    options: { readonly textsBytesMax: number }, table: EntryTable, contents: ContentStore, crc32: Crc32,
  ) {
    this.table = table;
    this.contents = contents;
    this.texts = new TextPool({ bytesMax: options.textsBytesMax }, { segments: contents.segments });
    this.#crc32 = crc32;
    this.absent = new AbsentBodies(table);
  }

  /** Content and bookkeeping of all entries; their texts stand in the segments too. */
  get usedBytes(): number {
    const bookkeepingBytes = this.table.inUse * ENTRY_BOOKKEEPING_BYTES + this.texts.bookkeepingBytes;
    return this.contents.segments.usedBytes + bookkeepingBytes;
  }

  /** What is used grows by so much at once. */
  get grainBytes(): number {
    return this.contents.segments.grainBytes;
  }

  /** Of empty segments, kept for the next burst. */
  get keptBytes(): number {
    return this.contents.segments.stockBytes;
  }

  /**
   * So many entries are about to come back, with so many bytes of content and head: a store says so. More
   * than `limitBytes` hold can't be here at once.
   */
  expect(count: number, bytes: number, limitBytes: number): void {
    this.table.index.expect(Math.min(count, Math.floor(limitBytes / ENTRY_BOOKKEEPING_BYTES)));
    this.contents.segments.expect(count, bytes);
  }

  expectNoMore(): void {
    this.contents.segments.expectNoMore();
  }

  /** A new row in state FREE. With `shared` 0 its record holds body ‖ head ‖ room, else head ‖ room. */
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

  /** As create(), of an entry whose body is still at the stores. The record holds head ‖ room. */
  createAbsent(
    queue: MailQueue, messageId: number, slot: number, bodyBytes: number, checksum: number,
    arrivalSeconds: number, expirySeconds: number, room: number,
  ): number {
    const row = this.create(
      queue, messageId, slot, 0, bodyBytes, checksum, arrivalSeconds, expirySeconds, room,
    );
    this.table.shared.set(row, ABSENT);
    this.absent.onAbsent(queue.partition);
    return row;
  }

  /** As createAbsent(), of an entry whose head and note, of so many bytes, are still at the stores, too. */
  createAllAbsent(
    queue: MailQueue, messageId: number, headBytes: number, noteBytes: number, bodyBytes: number,
    checksum: number, arrivalSeconds: number, expirySeconds: number, room: number,
  ): number {
    const note = (room | (noteBytes << 16)) >>> 0;
    const row = this.create(
      queue, messageId, headBytes, 0, bodyBytes, checksum, arrivalSeconds, expirySeconds, note,
    );
    this.table.shared.set(row, ALL_ABSENT);
    this.absent.onAbsent(queue.partition);
    return row;
  }

  /** The body is still at the stores: whatever needs it asks for it first (absent-bodies.ts). */
  isAbsent(row: number): boolean {
    return this.table.shared.get(row) >= ALL_ABSENT;
  }

  /** So are head and note: nothing is known of the entry but what its row says. */
  isAllAbsent(row: number): boolean {
    return this.table.shared.get(row) === ALL_ABSENT;
  }

  /** The body of an absent one is here: as a content that it shares, or, if that is 0, these bytes. */
  putBody(queue: MailQueue, row: number, body: Uint8Array, shared: number): void {
    invariant(this.table.shared.get(row) === ABSENT, 'only an absent body comes');
    this.absent.onHere(queue.partition, row);
    this.table.shared.set(row, shared);
    if (shared !== 0) {
      this.contents.addEntry(shared);
      return;
    }
    const { segments } = this.contents;
    const headSlot = this.table.slot.get(row);
    const headBytes = segments.bytesOf(headSlot);
    const slot = segments.allocate(body.length + headBytes);
    segments.write(slot, 0, body);
    segments.write(slot, body.length, segments.read(headSlot));
    segments.free(headSlot);
    this.table.slot.set(row, slot);
  }

  /** Body ‖ head of an entry of which nothing was here, and its note; `shared` as in putBody(). */
  putAll(queue: MailQueue, row: number, own: Uint8Array, note: Uint8Array, shared: number): void {
    invariant(this.isAllAbsent(row), 'only what is absent comes');
    const { table, contents } = this;
    const room = this.room(row);
    this.absent.onHere(queue.partition, row);
    const kept = shared === 0 ? own : own.subarray(table.bodyBytes.get(row));
    table.slot.set(row, contents.storeBytes(kept, room));
    table.shared.set(row, shared);
    table.note.set(row, room);
    if (shared !== 0) contents.addEntry(shared);
    if (note.length > 0) this.setNote(row, note);
  }

  /** Body, head and note go, for the stores have them as they are here. */
  dropAll(partition: Partition, row: number): void {
    const { table, contents } = this;
    const shared = table.shared.get(row);
    invariant(shared !== ALL_ABSENT, 'only what is here goes');
    const headBytes = this.headBytes(row);
    if (shared === ABSENT) {
      invariant(!this.absent.isAsked(partition, row), 'what is on its way is waited for');
    } else {
      if (shared !== 0) contents.dropEntry(shared);
      this.absent.onAbsent(partition);
    }
    contents.segments.free(table.slot.get(row));
    table.slot.set(row, headBytes);
    table.shared.set(row, ALL_ABSENT);
  }

  /** The body goes, for the stores have it. One that is shared stays for the others. */
  dropBody(partition: Partition, row: number): void {
    const shared = this.table.shared.get(row);
    invariant(shared < ALL_ABSENT, 'only what is here goes');
    if (shared === 0) this.#keepHead(row);
    else this.contents.dropEntry(shared);
    this.table.shared.set(row, ABSENT);
    this.absent.onAbsent(partition);
  }

  /** In place of the record of body ‖ head ‖ room one of head ‖ room. */
  #keepHead(row: number): void {
    const { segments } = this.contents;
    const slot = this.table.slot.get(row);
    const bodyBytes = this.table.bodyBytes.get(row);
    const headSlot = segments.allocate(segments.bytesOf(slot) - bodyBytes);
    segments.write(headSlot, 0, segments.read(slot).subarray(bodyBytes));
    segments.free(slot);
    this.table.slot.set(row, headSlot);
  }

  /** Body and head together, as the queue's byte count has it. */
  bytes(row: number): number {
    if (this.isAllAbsent(row)) return this.table.slot.get(row) + this.table.bodyBytes.get(row);
    const own = this.contents.segments.bytesOf(this.table.slot.get(row)) - this.room(row);
    return this.table.shared.get(row) === 0 ? own : own + this.table.bodyBytes.get(row);
  }

  headBytes(row: number): number {
    return this.bytes(row) - this.table.bodyBytes.get(row);
  }

  /** A view of the head; valid until the next allocation or compaction. */
  head(row: number): Uint8Array {
    invariant(!this.isAllAbsent(row), 'a head is here before it is read');
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
    invariant(!this.isAllAbsent(row), 'a note is here before it is read');
    const record = this.contents.segments.read(this.table.slot.get(row));
    const from = record.length - this.room(row);
    return record.subarray(from, from + bytes);
  }

  /** Writes the note into its room. */
  setNote(row: number, note: Uint8Array): void {
    const room = this.room(row);
    invariant(note.length + NOTE_CRC_BYTES <= room, 'a note fits the room that its entry was stored with');
    invariant(!this.isAllAbsent(row), 'an entry is here before it is noted what became of it');
    const slot = this.table.slot.get(row);
    const { segments } = this.contents;
    segments.write(slot, segments.bytesOf(slot) - room, note);
    this.table.note.set(row, (room | (note.length << 16)) >>> 0);
  }

  noteChecksum(row: number): number {
    return this.#crc32(this.note(row), 0);
  }

  copyBody(
    row: number, target: Uint8Array, at: number, bytes = this.table.bodyBytes.get(row), from = 0,
  ): void {
    const shared = this.table.shared.get(row);
    invariant(shared < ALL_ABSENT, 'a body is here before it is read');
    const slot = shared === 0 ? this.table.slot.get(row) : this.contents.sharedSlot(shared);
    this.contents.segments.copyTo(slot, from, bytes, target, at);
  }

  /**
   * Ends the entry: out of all orders, records freed, row given back. Returns the entry that stood behind it
   * in the partition.
   */
  remove(queue: MailQueue, row: number): number {
    const table = this.table;
    const segments = this.contents.segments;
    const isAbsent = this.isAbsent(row);
    const following = queue.unlink(row, this.bytes(row));
    this.absent.onUnlinked(queue.partition, row, following, isAbsent);
    if (!this.isAllAbsent(row)) segments.free(table.slot.get(row));
    const shared = table.shared.get(row);
    if (shared !== 0 && !isAbsent) this.contents.dropEntry(shared);
    if (this.hasNote(row)) this.texts.drop(row);
    this.envelopes.forget(row);
    table.transition(row, EntryState.FREE);
    table.release(row);
    return following;
  }

  /** It is not what was accepted. One that is still at the stores is checked when it comes. */
  isDamaged(row: number): boolean {
    if (this.isAbsent(row)) return false;
    const body = new Uint8Array(this.table.bodyBytes.get(row));
    this.copyBody(row, body, 0);
    return this.#crc32(this.head(row), this.#crc32(body, 0)) !== this.table.checksum.get(row);
  }

  /** Of an entry row that a refill sends. */
  #flags(row: number): number {
    if (this.table.shared.get(row) !== 0) return FLAG_SHARED;
    // Whatever is damaged is held: only there is a look at all bytes worth it.
    return this.table.state(row) === EntryState.HELD && this.isDamaged(row) ? FLAG_DAMAGED : 0;
  }

  /** The partition as a refill reads it; `onSent`: what was sent may go from here, if the stores have it. */
  refillView(partition: Partition, onSent: (row: number) => void): RefillEntries {
    const table = this.table;
    const { order } = partition;
    return {
      isHere: (row) => !this.isAbsent(row),
      want: (row) => { this.absent.wantToRefill(partition, row); },
      onSent,
      first: () => order.first,
      following: (row) => order.following(row),
      position: (row) => table.position.get(row),
      messageId: (row) => table.messageId(row),
      flags: (row) => this.#flags(row),
      bodyBytes: (row) => table.bodyBytes.get(row),
      headBytes: (row) => this.headBytes(row),
      noteBytes: (row) => table.note.get(row) >>> 16,
      checksum: (row) => table.checksum.get(row),
      room: (row) => this.room(row),
      noteChecksum: (row) => this.noteChecksum(row),
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
