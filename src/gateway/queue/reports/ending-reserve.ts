/**
 * Reports that go to stores without credit. A report ends mail, but needs room before its source gives any
 * back: with full stores in which everything bounces nothing would ever move. A store takes a little beyond
 * what it granted out of its reserve (docs/PROTOCOL.md "Acknowledgement and credit"); so few reports may use
 * that at a time that the reserve lasts. One that has gone out makes room for the next. A report about very
 * many recipients is longer than that by itself: it goes when it is the only one.
 *
 * A message that an operator leads by another route (orders/rebinding.ts) is at stores twice a moment, and
 * then longer if the name of its new queue is: that counts until it is gone.
 */
import { REPORTS_BEYOND_CREDIT_BYTES_MAX } from '../../../protocol/messages/changes.js';
import type { EntryTable } from '../entry-table.js';

/** All at once: a store keeps 15% of its memory beside credit, 39 MiB of 256. */
const BEYOND_BYTES_MAX = 32 * 1024;
/** One alone: shortened, with 1,000 recipients, some 300 KiB. */
const ALONE_BYTES_MAX = REPORTS_BEYOND_CREDIT_BYTES_MAX;

/** Beside so little a long one is the only one. */
const LITTLE_BYTES = 8 * 1024;

interface Report {
  readonly messageId: number;
  readonly row: number;
  bytes: number;
}

export class EndingReserve {
  readonly #table: EntryTable;
  #reports: Report[] = [];

  constructor(table: EntryTable) {
    this.#table = table;
  }

  admits(bytes: number): boolean {
    this.#reports = this.#reports.filter(({ messageId, row }) => this.#table.messageId(row) === messageId);
    let used = 0;
    for (const report of this.#reports) used += report.bytes;
    return used + bytes <= (used <= LITTLE_BYTES ? ALONE_BYTES_MAX : BEYOND_BYTES_MAX);
  }

  add(messageId: number, row: number, bytes: number): void {
    this.#reports.push({ messageId, row, bytes });
  }

  /** No more than this remains of what was added; nothing at 0 or below. */
  lessen(messageId: number, row: number, bytes: number): void {
    const at = this.#reports.findIndex((one) => one.row === row && one.messageId === messageId);
    const report = this.#reports[at];
    if (report === undefined) return;
    report.bytes = bytes;
    if (bytes <= 0) this.#reports.splice(at, 1);
  }
}
