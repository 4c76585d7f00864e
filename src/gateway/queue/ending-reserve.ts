/**
 * Reports that go to stores without credit. A report ends mail, but needs room before its source gives any
 * back: with full stores in which everything bounces nothing would ever move. A store takes a little beyond
 * what it granted out of its reserve (docs/PROTOCOL.md "Acknowledgement and credit"); so few reports may use
 * that at a time that the reserve lasts. One that has gone out makes room for the next. A report about very
 * many recipients is longer than that by itself: it goes when it is the only one.
 */
import { REPORTS_BEYOND_CREDIT_BYTES_MAX } from '../../protocol/messages/changes.js';
import type { EntryTable } from './entry-table.js';

/** All at once: a store keeps 15% of its memory beside credit, 39 MiB of 256. */
const BEYOND_BYTES_MAX = 32 * 1024;
/** One alone: shortened, with 1,000 recipients, some 300 KiB. */
const ALONE_BYTES_MAX = REPORTS_BEYOND_CREDIT_BYTES_MAX;

interface Report {
  readonly messageId: number;
  readonly row: number;
  readonly bytes: number;
}

export class EndingReserve {
  readonly #table: EntryTable;
  #reports: Report[] = [];

  constructor(table: EntryTable) {
    this.#table = table;
  }

  admits(bytes: number): boolean {
    this.#reports = this.#reports.filter(({ messageId, row }) => this.#table.messageId(row) === messageId);
    let used = bytes;
    for (const report of this.#reports) used += report.bytes;
    return used <= (this.#reports.length === 0 ? ALONE_BYTES_MAX : BEYOND_BYTES_MAX);
  }

  add(messageId: number, row: number, bytes: number): void {
    this.#reports.push({ messageId, row, bytes });
  }
}
