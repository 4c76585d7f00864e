/**
 * Walks what a stopped store still holds, as a member, as a copy that has left its set, or as it came back from a
 * file itself, and hands it out as the records of a spill file (records.ts), one after another: never more than about
 * RECORD_BYTES in memory at a time. A copy whose refill has not ended has holes: it is left out.
 * The store must not change meanwhile: nobody is connected any more.
 */

import { ChunkedUint8 } from '../../../base/chunked.js';
import type { Crc32, Packer } from '../../../platform/ports.js';
import { FLAG_BODY_ABSENT, FLAG_SHARED } from '../../../protocol/change-rows.js';
import { ENTRY_ROW_BYTES, writeEntryRow } from '../../../protocol/entry-rows.js';
import { ROLE_FILLING } from '../../../protocol/reasons.js';
import type { MirroredQueue } from '../mirrored-queue.js';
import type { Store } from '../store.js';
import { SPILL_ACCOUNT, SPILL_END, SPILL_ENTRIES, SPILL_HEAD, SPILL_QUEUE, encodeAccount, encodeEnd, encodeHead, encodeQueue, encodeRecord } from './records.js';

/** Payload of one record, unless one entry has more. */
const RECORD_BYTES = 1024 * 1024;
const RECORD_ROWS = 4096;

export interface SpillWriterPorts {
  readonly crc32: Crc32;
  readonly packer: Packer;
}

export class SpillWriter {
  readonly #ports: SpillWriterPorts;
  readonly #store: Store;
  #index = 0;
  /** Entries handed out. */
  entries = 0;
  queues = 0;
  /** By row of a shared body: 1 when an entry has brought it. */
  readonly #brought = new ChunkedUint8();
  readonly #rows = new Uint8Array(RECORD_ROWS * ENTRY_ROW_BYTES);
  readonly #view = new DataView(this.#rows.buffer);
  #rowCount = 0;
  #payload = new Uint8Array(RECORD_BYTES);
  #filled = 0;

  constructor(ports: SpillWriterPorts, store: Store) {
    this.#ports = ports;
    this.#store = store;
  }

  /** Queues that belong into the file; without any there is nothing to write. */
  static holds(store: Store): boolean {
    let some = false;
    store.queues.visit(0, (queue) => {
      some = isKept(queue);
      return !some;
    });
    return some;
  }

  /** The chunks of each record. They are used again for the next one. */
  * records(wallMs: number): Generator<readonly Uint8Array[]> {
    const { packer } = this.#ports;
    yield this.#record(SPILL_HEAD, encodeHead(packer, { storeId: this.#store.storeId, wallMs: Math.floor(wallMs) }));
    for (const account of this.#store.accounts()) {
      if (account.incarnation > 0) yield this.#record(SPILL_ACCOUNT, encodeAccount(packer, account));
    }
    const kept: MirroredQueue[] = [];
    this.#store.queues.visit(0, (queue) => {
      if (isKept(queue)) kept.push(queue);
      return true;
    });
    for (const queue of kept) {
      yield this.#record(SPILL_QUEUE, encodeQueue(packer, queue));
      yield* this.#entriesOf(queue);
      this.queues += 1;
    }
    yield this.#record(SPILL_END, encodeEnd(packer, this.queues, this.entries));
  }

  * #entriesOf(queue: MirroredQueue): Generator<readonly Uint8Array[]> {
    const { entries } = this.#store;
    for (let row = queue.first; row !== 0; row = entries.nextOf(row)) {
      const isAbsent = this.#isBrought(entries.sharedOf(row));
      const bytes = (isAbsent ? 0 : entries.bodyBytesOf(row)) + entries.headBytesOf(row) + entries.noteBytesOf(row);
      if (this.#rowCount === RECORD_ROWS || (this.#rowCount > 0 && this.#filled + bytes > RECORD_BYTES)) yield this.#flush();
      if (bytes > this.#payload.length) this.#payload = new Uint8Array(bytes);
      this.#add(row, isAbsent);
    }
    if (this.#rowCount > 0) yield this.#flush();
  }

  #flush(): readonly Uint8Array[] {
    const record = this.#record(SPILL_ENTRIES, this.#rows.subarray(0, this.#rowCount * ENTRY_ROW_BYTES), this.#payload.subarray(0, this.#filled));
    this.entries += this.#rowCount;
    this.#rowCount = 0;
    this.#filled = 0;
    if (this.#payload.length > RECORD_BYTES) this.#payload = new Uint8Array(RECORD_BYTES);
    return record;
  }

  #add(row: number, isAbsent: boolean): void {
    const { entries, shared } = this.#store;
    const bodyBytes = entries.bodyBytesOf(row);
    const headBytes = entries.headBytesOf(row);
    const sharedRow = entries.sharedOf(row);
    const noteBytes = entries.noteBytesOf(row);
    if (sharedRow !== 0) {
      if (!isAbsent) this.#copy(shared.slotOf(sharedRow), 0, bodyBytes);
      this.#copy(entries.slotOf(row), 0, headBytes);
      this.#brought.ensure(sharedRow + 1);
      this.#brought.set(sharedRow, 1);
    } else {
      this.#copy(entries.slotOf(row), 0, bodyBytes + headBytes);
    }
    const noteCrc = noteBytes === 0 ? 0 : entries.copyNote(row, this.#payload, this.#filled);
    this.#filled += noteBytes;
    const flags = (sharedRow === 0 ? 0 : FLAG_SHARED) | (isAbsent ? FLAG_BODY_ABSENT : 0);
    writeEntryRow(
      this.#view, this.#rowCount * ENTRY_ROW_BYTES, flags, bodyBytes, headBytes, entries.crcOf(row),
      noteBytes, noteCrc, entries.idOf(row), entries.positionOf(row), entries.roomOf(row),
    );
    this.#rowCount += 1;
  }

  #copy(slot: number, from: number, bytes: number): void {
    if (bytes === 0) return;
    this.#store.segments.copyTo(slot, from, bytes, this.#payload, this.#filled);
    this.#filled += bytes;
  }

  #isBrought(sharedRow: number): boolean {
    return sharedRow !== 0 && sharedRow < this.#brought.length && this.#brought.get(sharedRow) === 1;
  }

  #record(type: number, control: Uint8Array, payload?: Uint8Array): readonly Uint8Array[] {
    const record = encodeRecord(this.#ports.crc32, type, this.#index, control, payload);
    this.#index += 1;
    return record;
  }
}

function isKept(queue: MirroredQueue): boolean {
  return queue.role !== ROLE_FILLING;
}
