/**
 * Holds the content of one message while it arrives, without joining it and without growing past the limits.
 *
 * Bytes from the socket lie in a buffer that the next read uses again, so each piece is copied out of it,
 * but the last: the gateway takes its own copy while that read is worked on, and most messages are one read.
 * A piece that is large, or the first, becomes a copy of its size. Small ones behind the first are copied
 * into blocks, because each piece kept costs some hundred bytes besides its own: a client that sends byte by
 * byte would use many times the memory counted.
 *
 *   chunks: [ trace header ][ first piece ][ block ....... ][ large piece ][ block ..][ last piece: not
 *   copied ]
 *
 * Owns the bytes counted at Reception.reserve; release() gives them back, always all of them.
 */

import type { Reception } from '../../mail-types.js';

/** A piece of at least this many bytes is kept by itself: its own cost is then below a quarter. */
const KEEP_BYTES_MIN = 1024;
const BLOCK_BYTES_FIRST = 4 * 1024;
const BLOCK_BYTES_MAX = 64 * 1024;

const KEPT = 0;
export const LOST_TOO_BIG = 1;
export const LOST_NO_MEMORY = 2;
export type ContentFate = typeof KEPT | typeof LOST_TOO_BIG | typeof LOST_NO_MEMORY;

const NOTHING = new Uint8Array(0);
const LINE_END = Uint8Array.of(13, 10);

export class ContentBuffer {
  readonly #reception: Reception;
  readonly #bytesMax: number;
  /** Slot 0 is for the trace header. */
  chunks: Uint8Array[] = [NOTHING];
  /** Content bytes seen, also when they could not be kept. */
  bytes = 0;
  fate: ContentFate = KEPT;

  #reservedBytes = 0;
  #block: Uint8Array = NOTHING;
  /** Where the piece of the block that is not yet in `chunks` starts and ends. */
  #blockFrom = 0;
  #blockTo = 0;

  constructor(reception: Reception, bytesMax: number) {
    this.#reception = reception;
    this.#bytesMax = bytesMax;
  }

  /**
   * Takes source[from .. to). The last piece is only looked at: `source` must stay as it is until release().
   */
  append(source: Uint8Array, from: number, to: number, isLast: boolean): void {
    const count = to - from;
    if (count === 0) return;
    this.bytes += count;
    if (this.fate !== KEPT) return;
    if (this.bytes > this.#bytesMax) {
      this.#lose(LOST_TOO_BIG);
    } else if (isLast || count >= KEEP_BYTES_MIN || this.bytes === count) {
      if (!this.#reserve(count)) return;
      this.#closePiece();
      // Not subarray(): of a Buffer it is one, whose slice() is no copy, and the gateway takes its copies
      // with that.
      const piece = new Uint8Array(source.buffer, source.byteOffset + from, count);
      this.chunks.push(isLast ? piece : piece.slice());
    } else {
      this.#copy(source, from, to);
    }
  }

  /** The last line of a content whose length was told has no end: it gets one. */
  endLine(): void {
    if (this.fate !== KEPT || !this.#reserve(LINE_END.length)) return;
    this.bytes += LINE_END.length;
    this.#closePiece();
    this.chunks.push(LINE_END);
  }

  /** Counts what stands in front of it besides. False: there is no room, and nothing is kept any more. */
  reservePrefix(bytes: number): boolean {
    return this.#reserve(bytes);
  }

  /** The first octet of what is kept; undefined: nothing is. */
  get firstOctet(): number | undefined {
    return this.chunks[1]?.[0];
  }

  /** What has come, while it is kept; the trace header's place in front is empty. */
  pieces(): readonly Uint8Array[] {
    this.#closePiece();
    return this.chunks;
  }

  /** Puts the trace header in front, or another one in its place; the list is complete then. */
  finish(traceHeader: Uint8Array): readonly Uint8Array[] {
    this.#closePiece();
    this.chunks[0] = traceHeader;
    return this.chunks;
  }

  /**
   * Puts `octets` in place of what stands in front of octet `at` of pieces()[piece], which may lie behind the
   * last. False: there is no room, and nothing is kept any more.
   */
  replaceStart(octets: Uint8Array, piece: number, at: number): boolean {
    if (!this.#reserve(octets.length)) return false;
    const [prefix = NOTHING, ...pieces] = this.pieces();
    const rest = pieces.slice(piece);
    const before = pieces.slice(0, piece).reduce((sum, { length }) => sum + length, at);
    const [first] = rest;
    if (first !== undefined) rest[0] = new Uint8Array(first.buffer, first.byteOffset + at, first.length - at);
    this.chunks = [prefix, octets, ...rest.filter(({ length }) => length > 0)];
    this.bytes += octets.length - before;
    return true;
  }

  /** Forgets the content and gives its memory back. */
  release(): void {
    // Whatever is kept was counted.
    if (this.#reservedBytes === 0) return;
    this.#reception.release(this.#reservedBytes);
    this.#reservedBytes = 0;
    this.chunks = [NOTHING];
    this.#block = NOTHING;
    this.#blockFrom = 0;
    this.#blockTo = 0;
  }

  #copy(source: Uint8Array, from: number, to: number): void {
    let at = from;
    while (at < to) {
      if (this.#blockTo === this.#block.length) {
        this.#closePiece();
        const wanted = this.#block.length === 0 ? BLOCK_BYTES_FIRST : this.#block.length * 2;
        const size = Math.min(wanted, BLOCK_BYTES_MAX);
        if (!this.#reserve(size)) return;
        this.#block = new Uint8Array(size);
        this.#blockFrom = 0;
        this.#blockTo = 0;
      }
      const count = Math.min(to - at, this.#block.length - this.#blockTo);
      this.#block.set(source.subarray(at, at + count), this.#blockTo);
      this.#blockTo += count;
      at += count;
    }
  }

  #closePiece(): void {
    if (this.#blockTo === this.#blockFrom) return;
    this.chunks.push(this.#block.subarray(this.#blockFrom, this.#blockTo));
    this.#blockFrom = this.#blockTo;
  }

  #reserve(bytes: number): boolean {
    if (!this.#reception.reserve(bytes)) {
      this.#lose(LOST_NO_MEMORY);
      return false;
    }
    this.#reservedBytes += bytes;
    return true;
  }

  #lose(fate: ContentFate): void {
    this.fate = fate;
    this.release();
  }
}
