/**
 * Fills an emptied copy while live changes go on.
 *
 *   FENCE how=FILL the copy stands empty at (number, digest), incomplete, the cursor in front of all
 *   REFILL         entries of ascending positions ≤ number, each linked behind the cursor, before live ones
 *   REFILL_END     the count sent agrees with the count taken: it is complete, and may be a member
 *
 *      first … cursor | live …           the cursor moves back when its entry is deleted (stored-entries.ts)
 *
 * A sender that deletes a range over the cursor splits it first or refills up to it: rows beyond the
 * cursor are not here yet. docs/PROTOCOL.md "Entry rows". Not here: discarding the old entries (store.ts),
 * live changes (section.ts).
 */

import { CREDIT_OVERHEAD_BYTES, FLAG_BODY_ABSENT, FLAG_SHARED } from '../../protocol/change-rows.js';
import { ENTRY_ROW_BYTES, FLAG_DAMAGED, checkEntryRow, entryRoom } from '../../protocol/entry-rows.js';
import { REFUSAL_CHECKSUM, REFUSAL_COUNT, REFUSAL_INVALID } from '../../protocol/reasons.js';
import type { Crc32 } from '../../platform/ports.js';
import type { Contents } from './contents.js';
import type { StoredEntries } from './stored-entries.js';
import type { MirroredPartition } from './mirrored-partition.js';

const TAKEN = 0;

export class RefillTarget {
  readonly #crc32: Crc32;
  readonly #entries: StoredEntries;
  readonly #contents: Contents;

  constructor(
    parts: { readonly crc32: Crc32; readonly entries: StoredEntries; readonly contents: Contents },
  ) {
    this.#crc32 = parts.crc32;
    this.#entries = parts.entries;
    this.#contents = parts.contents;
  }

  /** Bytes of payload the rows describe, or -1 when a row breaks a rule. */
  payloadBytes(view: DataView, rowsAt: number, rowCount: number): number {
    let bytes = 0;
    for (let i = 0; i < rowCount; i += 1) {
      const row = rowsAt + i * ENTRY_ROW_BYTES;
      if (checkEntryRow(view, row) !== '') return -1;
      const flags = view.getUint8(row);
      if (flags === FLAG_BODY_ABSENT) return -1;
      bytes += view.getUint32(row + 8, true) + view.getUint32(row + 16, true);
      if ((flags & FLAG_BODY_ABSENT) === 0) bytes += view.getUint32(row + 4, true);
    }
    return bytes;
  }

  /** What the rows cost of the sender's credit. */
  costBytes(view: DataView, rowsAt: number, rowCount: number): number {
    let bytes = rowCount * CREDIT_OVERHEAD_BYTES;
    for (let i = 0; i < rowCount; i += 1) {
      const row = rowsAt + i * ENTRY_ROW_BYTES;
      bytes += view.getUint32(row + 8, true) + entryRoom(view, row);
      if ((view.getUint8(row) & FLAG_BODY_ABSENT) === 0) bytes += view.getUint32(row + 4, true);
    }
    return bytes;
  }

  /**
   * Takes the rows of one frame in order. After a refusal the refill must begin again: what came before it
   * stays. `asItWas`: they are a store's own, back from its file, which has checksums of its own. What had
   * been damaged in memory is so again, and does not cost the rest.
   */
  take(
    copy: MirroredPartition, view: DataView, rowsAt: number, rowCount: number, payload: Uint8Array,
    asItWas = false,
  ): number {
    if (copy.isComplete) return REFUSAL_INVALID;
    let at = 0;
    for (let i = 0; i < rowCount; i += 1) {
      const row = rowsAt + i * ENTRY_ROW_BYTES;
      const flags = view.getUint8(row);
      const bodyBytes = (flags & FLAG_BODY_ABSENT) === 0 ? view.getUint32(row + 4, true) : 0;
      const headBytes = view.getUint32(row + 8, true);
      const noteBytes = view.getUint32(row + 16, true);
      const reason = this.#takeEntry(copy, view, row, payload, at, asItWas);
      if (reason !== TAKEN) return reason;
      at += bodyBytes + headBytes + noteBytes;
    }
    return TAKEN;
  }

  #takeEntry(
    copy: MirroredPartition, view: DataView, row: number, payload: Uint8Array, start: number,
    asItWas: boolean,
  ): number {
    const flags = view.getUint8(row);
    const bodyBytes = view.getUint32(row + 4, true);
    const headBytes = view.getUint32(row + 8, true);
    const crc = view.getUint32(row + 12, true);
    const noteBytes = view.getUint32(row + 16, true);
    const id = view.getFloat64(row + 24, true);
    const position = view.getFloat64(row + 32, true);
    if (position <= copy.refillPosition || position > copy.refillNumber) return REFUSAL_INVALID;
    const contents = this.#contents;
    const absent = (flags & FLAG_BODY_ABSENT) !== 0;
    const room = entryRoom(view, row);
    const noteStart = start + (absent ? 0 : bodyBytes) + headBytes;
    const note = payload.subarray(noteStart, noteStart + noteBytes);
    const noteCrc = view.getUint32(row + 20, true);
    if (!asItWas && noteBytes > 0 && this.#crc32(note, 0) !== noteCrc) return REFUSAL_CHECKSUM;
    const asItIs = asItWas || (flags & FLAG_DAMAGED) !== 0;
    const reason = (flags & FLAG_SHARED) === 0
      ? contents.takeOwn(payload, start, bodyBytes + headBytes, crc, room, asItIs)
      : contents.takeShared(
        copy.ownerAccount, id, absent, bodyBytes, headBytes, crc, payload, start, room, asItIs,
      );
    if (reason !== TAKEN) return reason;
    const entry = this.#entries.create(id, contents.slot, bodyBytes, headBytes, crc, contents.shared);
    this.#entries.setNote(entry, note, noteCrc);
    this.#entries.link(copy, entry, position, copy.refillRow);
    copy.refillRow = entry;
    copy.refillPosition = position;
    copy.refillCount += 1;
    return TAKEN;
  }

  /** Answers 0 or COUNT; a refill that lost rows stays what it is: incomplete, to be begun again. */
  end(copy: MirroredPartition, count: number): number {
    if (copy.isComplete) return REFUSAL_INVALID;
    if (count !== copy.refillCount) return REFUSAL_COUNT;
    copy.isComplete = true;
    return TAKEN;
  }
}
