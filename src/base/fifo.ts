/**
 * A queue of numbers, first in, first out, for any length.
 *
 *   chunks:  [· · 7 8] [9 1 4 2] [6 · · ·]        · free
 *                 ↑ head              ↑ head + length
 *
 * Chunks of 64 KiB are added at the end and dropped at the front. While all fits one chunk, that chunk
 * starts small and doubles, so that ten thousand short queues stay cheap; nothing larger than 64 KiB is
 * ever copied. An emptied queue gives its memory back.
 */
const CHUNK_VALUES = 8192; // 64 KiB
const CHUNK_SHIFT = 13;
const FIRST_VALUES = 16;
const KEPT_VALUES = 256; // a chunk up to this size (2 KiB) is kept by an empty queue

export class NumberFifo {
  private readonly chunks: Float64Array[] = [];
  /** Place of the oldest value in chunks[0]. */
  private head = 0;
  private count = 0;

  get length(): number {
    return this.count;
  }

  push(value: number): void {
    const at = this.head + this.count;
    const chunk = this.chunks[at >>> CHUNK_SHIFT];
    const place = at & (CHUNK_VALUES - 1);
    if (chunk !== undefined && place < chunk.length) {
      chunk[place] = value;
      this.count += 1;
      return;
    }
    this.makeRoom();
    this.push(value);
  }

  /** Takes the oldest value out; 0 when there is none. */
  shift(): number {
    if (this.count === 0) return 0;
    const value = this.chunks[0]?.[this.head] ?? 0;
    this.head += 1;
    this.count -= 1;
    if (this.count === 0) this.startAgain();
    else if (this.head === CHUNK_VALUES) {
      this.chunks.shift();
      this.head = 0;
    }
    return value;
  }

  /** The value `index` places behind the oldest; 0 past the end. */
  peek(index: number): number {
    if (index < 0 || index >= this.count) return 0;
    const at = this.head + index;
    return this.chunks[at >>> CHUNK_SHIFT]?.[at & (CHUNK_VALUES - 1)] ?? 0;
  }

  private makeRoom(): void {
    const first = this.chunks[0];
    if (first === undefined) this.chunks.push(new Float64Array(FIRST_VALUES));
    else if (first.length === CHUNK_VALUES) this.chunks.push(new Float64Array(CHUNK_VALUES));
    else if (this.head > first.length >>> 1) this.slide(first, first);
    else this.slide(first, new Float64Array(first.length * 2));
  }

  /** Moves the values of a small first chunk to the front of `target`. */
  private slide(first: Float64Array, target: Float64Array): void {
    target.set(first.subarray(this.head, this.head + this.count));
    this.chunks[0] = target;
    this.head = 0;
  }

  private startAgain(): void {
    this.head = 0;
    const first = this.chunks[0];
    this.chunks.length = first !== undefined && first.length <= KEPT_VALUES ? 1 : 0;
  }
}
