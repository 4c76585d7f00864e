/**
 * The checksum that payloads behind one another must have, by what their rows say (base/crc-join.ts): so the
 * bytes of a section, or of a whole frame, are looked at once and in one go, which is cheaper the longer it
 * is (platform/node/crc-fold.ts). Only rows of kind STORE with a body of their own, and DELETE, can be told
 * so.
 */

import { joinCrc } from '../../base/crc-join.js';
import { CHANGE_ROW_BYTES, KIND_DELETE, KIND_STORE } from '../../protocol/change-rows.js';

export class PayloadSum {
  /** Of the payloads counted. */
  bytes = 0;
  stores = 0;
  #joined = 0;

  begin(): void {
    this.bytes = 0;
    this.stores = 0;
    this.#joined = 0;
  }

  /**
   * Counts rows; false when one of them is of another kind, or they are longer than `bytesMax` in all: then
   * nothing can be told.
   */
  add(view: DataView, rowsAt: number, rowCount: number, bytesMax: number): boolean {
    let joined = this.#joined;
    let bytes = this.bytes;
    for (let i = 0; i < rowCount; i += 1) {
      const row = rowsAt + i * CHANGE_ROW_BYTES;
      const kind = view.getUint8(row);
      if (kind === KIND_DELETE) continue;
      if (kind !== KIND_STORE || view.getUint8(row + 1) !== 0) return false;
      const size = view.getUint32(row + 4, true) + view.getUint32(row + 8, true);
      bytes += size;
      // The rows of a frame may not have been judged yet: they may claim anything.
      if (bytes > bytesMax) return false;
      joined = joinCrc(joined, view.getUint32(row + 12, true), size);
      this.stores += 1;
    }
    this.#joined = joined;
    this.bytes = bytes;
    return true;
  }

  /** Is this the checksum of all that was counted? */
  matches(crc: number): boolean {
    return crc === this.#joined >>> 0;
  }
}
