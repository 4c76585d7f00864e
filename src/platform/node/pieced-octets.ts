/** Octets that come in pieces, however small, until there are enough of them: each is copied about twice. */

const FIRST_BYTES = 1024;

export class PiecedOctets {
  #buffer: Buffer = Buffer.alloc(0);
  #length = 0;

  get length(): number {
    return this.#length;
  }

  /** All of them; good until the next call. */
  get bytes(): Buffer {
    return this.#buffer.subarray(0, this.#length);
  }

  add(piece: Uint8Array): void {
    const length = this.#length + piece.length;
    if (length > this.#buffer.length) {
      const grown = Buffer.allocUnsafe(Math.max(length, 2 * this.#buffer.length, FIRST_BYTES));
      grown.set(this.bytes);
      this.#buffer = grown;
    }
    this.#buffer.set(piece, this.#length);
    this.#length = length;
  }

  clear(): void {
    this.#buffer = Buffer.alloc(0);
    this.#length = 0;
  }
}
