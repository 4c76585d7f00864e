/**
 * Walks the rows of a section before anything is applied: are kinds, flags and lengths sound, how many
 * payload bytes follow, and what do the rows cost of the sender's credit. The payload of one section starts
 * where that of the one before ends, so a row that lies here makes the whole frame unreadable: the connection
 * is closed.
 *
 * docs/PROTOCOL.md "Change rows" and "Acknowledgement and credit".
 */

import {
  CHANGE_ROW_BYTES, CREDIT_OVERHEAD_BYTES, FLAG_BODY_ABSENT, FLAG_SHARED, FLAG_SKIPPED,
  KIND_DELETE, KIND_STORE, changeRoom, checkChangeRow,
} from '../../protocol/change-rows.js';
import type { SharedBodies } from './shared-bodies.js';

export class SectionMeasure {
  readonly #shared: SharedBodies;
  /** Bytes of payload that the rows describe. */
  payloadBytes = 0;
  /** What they cost of the credit, those passed over as repeats not counted. Nothing else takes memory. */
  costBytes = 0;

  constructor(parts: { readonly shared: SharedBodies }) {
    this.#shared = parts.shared;
  }

  /** Answers '' or the name of the broken rule. `account` is that of the copy's owner. */
  measure(view: DataView, rowsAt: number, rowCount: number, repeats: number, account: number): string {
    let payloadBytes = 0;
    let costBytes = 0;
    for (let i = 0; i < rowCount; i += 1) {
      const row = rowsAt + i * CHANGE_ROW_BYTES;
      const rule = checkChangeRow(view, row);
      if (rule !== '') return rule;
      const kind = view.getUint8(row);
      const flags = view.getUint8(row + 1);
      const isLeftOut = (flags & (FLAG_BODY_ABSENT | FLAG_SHARED)) === FLAG_BODY_ABSENT;
      if (kind === KIND_STORE && isLeftOut) return 'row body absent but not shared';
      if ((flags & FLAG_SKIPPED) !== 0 || kind === KIND_DELETE) continue;
      const headBytes = view.getUint32(row + 8, true);
      const bytes = (flags & FLAG_BODY_ABSENT) === 0 ? view.getUint32(row + 4, true) + headBytes : headBytes;
      payloadBytes += bytes;
      if (i < repeats) continue;
      if (kind !== KIND_STORE) continue;
      const storedBytes = this.#isHere(account, flags, view, row) ? headBytes : bytes;
      costBytes += CREDIT_OVERHEAD_BYTES + changeRoom(view, row) + storedBytes;
    }
    this.payloadBytes = payloadBytes;
    this.costBytes = costBytes;
    return '';
  }

  /** A repeat brings a shared body whole that was left out at first: it may cost no more than it did then. */
  #isHere(account: number, flags: number, view: DataView, row: number): boolean {
    return (flags & FLAG_SHARED) !== 0 && this.#shared.find(account, view.getFloat64(row + 16, true)) !== 0;
  }
}
