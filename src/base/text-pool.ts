/**
 * Short texts of rows of a table that may get lost: a bounded pool of records in segments,
 * of which the oldest goes when there is no more room. Owned beside the table by whoever frees its
 * rows, and never counted on.
 *
 *   put ─► … ─► oldest ─► dropped by the bound        drop: the row is freed
 */
import type { Segments, Slot } from './segments.js';

/** Header and padding of a record, its slot, and its place in the map, rounded up. */
const TEXT_BOOKKEEPING_BYTES = 64;

/** Of the memory limit, what next hops have said; and in all: more than anybody reads. */
const TEXTS_SHARE = 1 / 32;
const TEXTS_BYTES_MAX = 32 * 1024 * 1024;

/** What a process with this memory limit keeps at most. */
export function textsBytesMax(limitBytes: number): number {
  return Math.min(TEXTS_BYTES_MAX, Math.floor(limitBytes * TEXTS_SHARE));
}

export class TextPool {
  readonly #bytesMax: number;
  readonly #segments: Segments;
  /** In the order in which they came. */
  readonly #slots = new Map<number, Slot>();
  #bytes = 0;

  /** `bytesMax`: of all texts together with what they cost beside their bytes. */
  constructor(options: { readonly bytesMax: number }, parts: { readonly segments: Segments }) {
    this.#bytesMax = options.bytesMax;
    this.#segments = parts.segments;
  }

  get count(): number {
    return this.#slots.size;
  }

  /** What is held, in the segments and beside them. */
  get heldBytes(): number {
    return this.#bytes;
  }

  /** Beside what the segments count. */
  get bookkeepingBytes(): number {
    return this.#slots.size * TEXT_BOOKKEEPING_BYTES;
  }

  /** What one more text would take. */
  static costOf(text: Uint8Array): number {
    return text.length + TEXT_BOOKKEEPING_BYTES;
  }

  /** The text of the row from now on; one of no bytes is none. */
  put(row: number, text: Uint8Array): void {
    this.drop(row);
    const cost = TextPool.costOf(text);
    if (text.length === 0 || cost > this.#bytesMax) return;
    for (const oldest of this.#slots.keys()) {
      if (this.#bytes + cost <= this.#bytesMax) break;
      this.drop(oldest);
    }
    this.#slots.set(row, this.#segments.keep(text));
    this.#bytes += cost;
  }

  /** A view, valid until the next record is made; undefined when there is none. */
  of(row: number): Uint8Array | undefined {
    const slot = this.#slots.get(row);
    return slot === undefined ? undefined : this.#segments.read(slot);
  }

  drop(row: number): void {
    const slot = this.#slots.get(row);
    if (slot === undefined) return;
    this.#bytes -= this.#segments.bytesOf(slot) + TEXT_BOOKKEEPING_BYTES;
    this.#segments.free(slot);
    this.#slots.delete(row);
  }
}
