/**
 * Growable columns of numbers outside the collected heap.
 *
 *   chunks[0]           chunks[1]          chunks[2]
 *   ┌────────────────┐  ┌────────────────┐ ┌───────┄
 *   │ 64 KiB         │  │ 64 KiB         │ │ …          element i is in chunk i >>> SHIFT
 *   └────────────────┘  └────────────────┘ └───────┄    at place i & MASK
 *
 * Growth adds a chunk and copies nothing. Only the first chunk starts small and doubles up to its full
 * 64 KiB, so that a thousand small tables do not cost a thousand full chunks; that is the largest copy
 * ever made. New elements are 0.
 *
 * get and set are written out in each class: shared code would see four kinds of array and be several
 * times slower. An index outside the grown range is a bug of ours and stops the process.
 */
import { InvariantError } from './invariant.js';

/** Bytes of a full chunk: the most that one step of growth may copy. */
export const CHUNK_BYTES = 65_536;
/** Elements of a first chunk when it is made. */
const FIRST_ELEMENTS = 16;

interface NumberArray {
  readonly length: number;
  fill(value: number, from?: number, to?: number): unknown;
  readonly [index: number]: number;
  set(source: ArrayLike<number>): void;
}

/** The class of an array: makes one of zeros. */
interface NumberArrayClass<A> {
  readonly BYTES_PER_ELEMENT: number;
  new (elements: number): A;
}

/** Out of line, so that get and set stay small enough to be inlined. */
function outside(index: number, length: number): never {
  throw new InvariantError(`element ${String(index)} of a column that holds ${String(length)}`);
}

/** What the columns share: growing and giving back. */
abstract class Chunked<A extends NumberArray> {
  protected readonly chunks: A[] = [];
  protected grown = 0;
  private capacity = 0;
  private readonly chunkElements: number;
  private readonly chunkClass: NumberArrayClass<A>;

  protected constructor(chunkClass: NumberArrayClass<A>) {
    this.chunkClass = chunkClass;
    this.chunkElements = CHUNK_BYTES / chunkClass.BYTES_PER_ELEMENT;
  }

  /** How many elements may be read and written. */
  get length(): number {
    return this.grown;
  }

  /** Makes elements 0 … length − 1 usable; never shrinks. */
  ensure(length: number): void {
    if (length <= this.grown) return;
    if (length > this.capacity) this.grow(length);
    this.grown = length;
  }

  /** Forgets the elements from `length` on and gives their chunks back. */
  truncate(length: number): void {
    if (length >= this.grown) return;
    this.grown = length;
    const kept = Math.ceil(length / this.chunkElements);
    if (kept < this.chunks.length) this.chunks.length = kept;
    const last = this.chunks[kept - 1];
    this.capacity = last === undefined ? 0 : (kept - 1) * this.chunkElements + last.length;
    // What comes back by ensure() must be 0 again.
    if (last !== undefined) last.fill(0, length - (kept - 1) * this.chunkElements);
  }

  private grow(length: number): void {
    const first = this.chunks[0];
    if (this.chunks.length <= 1 && (first === undefined || first.length < this.chunkElements)) {
      this.growFirst(first, length);
    }
    while (this.capacity < length) {
      this.chunks.push(new this.chunkClass(this.chunkElements));
      this.capacity += this.chunkElements;
    }
  }

  private growFirst(first: A | undefined, length: number): void {
    let elements = first === undefined ? FIRST_ELEMENTS : first.length;
    while (elements < length && elements < this.chunkElements) elements *= 2;
    const larger = new this.chunkClass(elements);
    if (first !== undefined) larger.set(first);
    this.chunks[0] = larger;
    this.capacity = elements;
  }
}

/** Bytes: states, small counts. */
export class ChunkedUint8 extends Chunked<Uint8Array> {
  constructor() {
    super(Uint8Array);
  }

  get(index: number): number {
    const chunk = this.chunks[index >>> 16];
    if (chunk === undefined || index >= this.grown) return outside(index, this.grown);
    return chunk[index & 0xffff] ?? 0;
  }

  set(index: number, value: number): void {
    const chunk = this.chunks[index >>> 16];
    if (chunk === undefined || index >= this.grown) return outside(index, this.grown);
    chunk[index & 0xffff] = value;
  }
}

/** Place of an element within its chunk. */
export const UINT32_PLACE = 0x3fff;

/** Row numbers, slots, sizes, checksums. */
export class ChunkedUint32 extends Chunked<Uint32Array> {
  constructor() {
    super(Uint32Array);
  }

  /**
   * The chunk of an element, where it stands at `index & UINT32_PLACE`: for several fields of one row, if
   * their number is a power of two, so that no row lies in two chunks. Not to be kept: growing may replace
   * it.
   */
  chunkOf(index: number): Uint32Array {
    const chunk = this.chunks[index >>> 14];
    if (chunk === undefined || index >= this.grown) return outside(index, this.grown);
    return chunk;
  }

  get(index: number): number {
    const chunk = this.chunks[index >>> 14];
    if (chunk === undefined || index >= this.grown) return outside(index, this.grown);
    return chunk[index & 0x3fff] ?? 0;
  }

  set(index: number, value: number): void {
    const chunk = this.chunks[index >>> 14];
    if (chunk === undefined || index >= this.grown) return outside(index, this.grown);
    chunk[index & 0x3fff] = value;
  }
}

/** Whole numbers up to 2^53: ids, positions, times. */
export class ChunkedFloat64 extends Chunked<Float64Array> {
  constructor() {
    super(Float64Array);
  }

  get(index: number): number {
    const chunk = this.chunks[index >>> 13];
    if (chunk === undefined || index >= this.grown) return outside(index, this.grown);
    return chunk[index & 0x1fff] ?? 0;
  }

  set(index: number, value: number): void {
    const chunk = this.chunks[index >>> 13];
    if (chunk === undefined || index >= this.grown) return outside(index, this.grown);
    chunk[index & 0x1fff] = value;
  }
}
