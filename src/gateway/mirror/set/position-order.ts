/**
 * Rows of entries in the order of their positions: those of a partition, as its mirrors hold them, and those
 * of one queue in it. A doubly linked list through two columns of the table.
 *
 *   first ◄──► … ◄──► recoveredTail ◄──► live … ◄──► last      ascending positions
 *
 * While a partition comes back from a store, its entries are put in front of those accepted meanwhile: blocks
 * come by ascending position, so each goes behind the last one that came back.
 */
import { invariant } from '../../../base/invariant.js';
import type { ChunkedFloat64, ChunkedUint32 } from '../../../base/chunked.js';

/** The columns that a list goes through, and the one that orders it. */
export interface OrderColumns {
  readonly position: ChunkedFloat64;
  readonly previous: ChunkedUint32;
  readonly next: ChunkedUint32;
}

export class PositionOrder {
  /** First and last row, 0 when empty. */
  first = 0;
  last = 0;
  /** Entries in any state. */
  length = 0;
  /** Bytes of content and head of those. */
  bytes = 0;
  readonly #columns: OrderColumns;
  #recoveredTail = 0;

  constructor(columns: OrderColumns) {
    this.#columns = columns;
  }

  following(row: number): number {
    return this.#columns.next.get(row);
  }

  /** A live entry at the end. */
  append(row: number, bytes: number): void {
    const { position } = this.#columns;
    const isAhead = this.last === 0 || position.get(this.last) < position.get(row);
    invariant(isAhead, 'live entries come by ascending position');
    this.#linkBehind(this.last, row, bytes);
  }

  /** An entry that came back: behind the last one that did, in front of all that came since. */
  appendRecovered(row: number, bytes: number): void {
    this.#linkBehind(this.#recoveredTail, row, bytes);
    this.#recoveredTail = row;
  }

  /** All are back. */
  endRecovery(): void {
    this.#recoveredTail = 0;
  }

  /** During recovery: the entry is one of those that came back. */
  hasComeBack(row: number): boolean {
    const { position } = this.#columns;
    return this.#recoveredTail !== 0 && position.get(row) <= position.get(this.#recoveredTail);
  }

  /** Takes the entry out. Returns the one that stood behind it. */
  unlink(row: number, bytes: number): number {
    const { previous, next } = this.#columns;
    const before = previous.get(row);
    const behind = next.get(row);
    if (before === 0) this.first = behind;
    else next.set(before, behind);
    if (behind === 0) this.last = before;
    else previous.set(behind, before);
    if (this.#recoveredTail === row) this.#recoveredTail = before;
    this.length -= 1;
    this.bytes -= bytes;
    return behind;
  }

  #linkBehind(before: number, row: number, bytes: number): void {
    const { previous, next } = this.#columns;
    const behind = before === 0 ? this.first : next.get(before);
    previous.set(row, before);
    next.set(row, behind);
    if (before === 0) this.first = row;
    else next.set(before, row);
    if (behind === 0) this.last = row;
    else previous.set(behind, row);
    this.length += 1;
    this.bytes += bytes;
  }
}
