/**
 * Walks what a stopped store knows and holds, and hands it out as the records of a spill file
 * (protocol/spill-records.ts), one after another: never more than about RECORD_BYTES in memory at a time.
 * What it was told that it is out of is gone already (store.ts, tell); a copy whose refill has not ended has
 * holes, and is left out. The store must not change meanwhile: nobody is connected any more.
 */

import { ChunkedUint8 } from '../../../base/chunked.js';
import type { Crc32, Packer } from '../../../platform/ports.js';
import { FLAG_BODY_ABSENT, FLAG_SHARED } from '../../../protocol/change-rows.js';
import { ENTRY_ROW_BYTES, writeEntryRow } from '../../../protocol/entry-rows.js';
import {
  SPILL_ACCOUNT, SPILL_COPY, SPILL_END, SPILL_ENTRIES, SPILL_FENCE, SPILL_HEAD, SPILL_PROCESS, encodeAccount,
  encodeCopy, encodeEnd, encodeHead, encodeProcess, encodeRecord, encodeSpilledFence, processRecords,
} from '../../../protocol/spill-records.js';
import type { MirroredPartition } from '../mirrored-partition.js';
import type { Store } from '../store.js';

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
  copies = 0;
  fences = 0;
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

  /** Without anything that a store would miss there is nothing to write. */
  static holds(store: Store): boolean {
    return store.partitions.fenceCount > 0;
  }

  /** The chunks of each record. They are used again for the next one. `bornNs`: of the file they go to. */
  * records(wallMs: number, bornNs: string): Generator<readonly Uint8Array[]> {
    const { packer } = this.#ports;
    const { storeId, bootId, leases, partitions } = this.#store;
    const longestLeaseMs = Math.ceil(leases.longestMs);
    const head = { storeId, wallMs: Math.floor(wallMs), bootId, longestLeaseMs, bornNs };
    yield this.#record(SPILL_HEAD, encodeHead(packer, head));
    for (const account of this.#store.knownAccounts()) {
      if (account.incarnation > 0) yield this.#record(SPILL_ACCOUNT, encodeAccount(packer, account));
    }
    for (const [process, fenceCount, fences] of leases.carried()) {
      if (fenceCount === 0) continue;
      for (const part of processRecords({ process, fenceCount, fences })) {
        yield this.#record(SPILL_PROCESS, encodeProcess(packer, part));
      }
    }
    for (const fence of partitions.fences()) {
      yield this.#record(
        SPILL_FENCE, encodeSpilledFence(packer, { partition: fence.partition, ...fence.carried() }),
      );
      this.fences += 1;
    }
    for (const copy of partitions.copies()) {
      if (!copy.isComplete) continue;
      yield this.#record(SPILL_COPY, encodeCopy(packer, copy));
      yield* this.#entriesOf(copy);
      this.copies += 1;
    }
    yield this.#record(SPILL_END, encodeEnd(packer, this.fences, this.copies, this.entries));
  }

  * #entriesOf(copy: MirroredPartition): Generator<readonly Uint8Array[]> {
    const { entries } = this.#store;
    for (let row = copy.first; row !== 0; row = entries.nextOf(row)) {
      const isAbsent = this.#isBrought(entries.sharedOf(row));
      const bytes = (
        isAbsent ? 0 : entries.bodyBytesOf(row)
      ) + entries.headBytesOf(row) + entries.noteBytesOf(row);
      if (this.#rowCount === RECORD_ROWS || (this.#rowCount > 0 && this.#filled + bytes > RECORD_BYTES)) {
        yield this.#flush();
      }
      if (bytes > this.#payload.length) this.#payload = new Uint8Array(bytes);
      this.#add(row, isAbsent);
    }
    if (this.#rowCount > 0) yield this.#flush();
  }

  #flush(): readonly Uint8Array[] {
    const record = this.#record(
      SPILL_ENTRIES, this.#rows.subarray(0, this.#rowCount * ENTRY_ROW_BYTES),
      this.#payload.subarray(0, this.#filled),
    );
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
