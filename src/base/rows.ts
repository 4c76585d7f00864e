/**
 * Row numbers 1, 2, 3 … for tables of flat columns. A row given back is handed out again before a new one
 * is made, the latest first: its columns are still in the processor's cache. 0 is never a row, so columns
 * may use it for "none".
 *
 * Owns a stack of the free rows (4 bytes each at the deepest) and one bit a row, so that a row given back
 * twice stops the process instead of being handed to two owners. The columns belong to the caller. Once
 * no row is in use numbering starts at 1 again and the stack is given back.
 */
import { ChunkedUint32 } from './chunked.js';
import { invariant } from './invariant.js';

/**
 * A stack this deep is given back when the last row is released; a smaller one is kept for the next burst.
 */
const KEPT_ROWS = 16_384;

export class Rows {
  readonly #free = new ChunkedUint32();
  readonly #used = new ChunkedUint32();
  #freeCount = 0;
  #usedCount = 0;
  #highestRow = 0;

  /** Rows handed out and not given back. */
  get inUse(): number {
    return this.#usedCount;
  }

  /** The largest row handed out since all rows were free: columns need highest + 1 elements. */
  get highest(): number {
    return this.#highestRow;
  }

  take(): number {
    let row: number;
    if (this.#freeCount > 0) {
      this.#freeCount -= 1;
      row = this.#free.get(this.#freeCount);
    } else {
      this.#highestRow += 1;
      row = this.#highestRow;
      this.#used.ensure((row >>> 5) + 1);
    }
    const word = row >>> 5;
    this.#used.set(word, this.#used.get(word) | (1 << (row & 31)));
    this.#usedCount += 1;
    return row;
  }

  release(row: number): void {
    const word = row >>> 5;
    const bit = 1 << (row & 31);
    const bits = this.#used.get(word);
    invariant((bits & bit) !== 0, 'a row is given back once, by its owner');
    this.#used.set(word, bits & ~bit);
    this.#usedCount -= 1;
    if (this.#usedCount === 0) {
      this.#startAgain();
      return;
    }
    this.#free.ensure(this.#freeCount + 1);
    this.#free.set(this.#freeCount, row);
    this.#freeCount += 1;
  }

  #startAgain(): void {
    if (this.#highestRow > KEPT_ROWS) {
      this.#free.truncate(0);
      this.#used.truncate(0);
    }
    this.#freeCount = 0;
    this.#highestRow = 0;
  }
}
