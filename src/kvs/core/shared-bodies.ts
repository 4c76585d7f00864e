/**
 * Bodies that several entries of one gateway name: a message to many partitions of this store stands in
 * memory once. A body is known by (message id, gateway), counted by its entries, freed with the last of them.
 *
 * Owns: the count and the record of each shared body. docs/PROTOCOL.md "Change rows", SHARED and BODY_ABSENT.
 */

import { ChunkedUint32 } from '../../base/chunked.js';
import { HashIndex } from '../../base/hash-index.js';
import { invariant } from '../../base/invariant.js';
import { Rows } from '../../base/rows.js';
import type { Segments } from '../../base/segments.js';

const FIELDS = 4;
const SLOT = 0;
const BYTES = 1;
const CRC = 2;
const COUNT = 3;

export class SharedBodies {
  readonly #rows = new Rows();
  readonly #index: HashIndex;
  readonly #cells = new ChunkedUint32();
  readonly #segments: Segments;

  constructor(options: { readonly indexSeed: number }, parts: { readonly segments: Segments }) {
    this.#index = new HashIndex(options.indexSeed);
    this.#segments = parts.segments;
  }

  get count(): number {
    return this.#rows.inUse;
  }

  /** The body's row, 0 when it is not here. */
  find(gateway: number, id: number): number {
    return this.#index.find(id, gateway);
  }

  /** Keeps a record as a shared body with a count of one. `crc` is that of the body alone. */
  create(gateway: number, id: number, slot: number, bytes: number, crc: number): number {
    const row = this.#rows.take();
    const at = row * FIELDS;
    this.#cells.ensure(at + FIELDS);
    this.#cells.set(at + SLOT, slot);
    this.#cells.set(at + BYTES, bytes);
    this.#cells.set(at + CRC, crc);
    this.#cells.set(at + COUNT, 1);
    this.#index.set(row, id, gateway);
    return row;
  }

  hold(row: number): void {
    this.#cells.set(row * FIELDS + COUNT, this.countOf(row) + 1);
  }

  /** One entry less; the last one frees the record. */
  release(row: number): void {
    const count = this.countOf(row);
    invariant(count > 0, 'a shared body is released once per entry');
    this.#cells.set(row * FIELDS + COUNT, count - 1);
    if (count > 1) return;
    const slot = this.slotOf(row);
    if (slot !== 0) this.#segments.free(slot);
    this.#index.remove(row);
    this.#rows.release(row);
  }

  slotOf(row: number): number {
    return this.#cells.get(row * FIELDS + SLOT);
  }
  bytesOf(row: number): number {
    return this.#cells.get(row * FIELDS + BYTES);
  }
  crcOf(row: number): number {
    return this.#cells.get(row * FIELDS + CRC);
  }
  countOf(row: number): number {
    return this.#cells.get(row * FIELDS + COUNT);
  }
}
