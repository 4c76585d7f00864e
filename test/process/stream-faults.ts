/**
 * What a bad network does to one direction of a TCP connection, decided by a seed: the fault proxy
 * (fault-proxy.ts) asks it for each chunk what to hand on, and when.
 *
 *   bytes      in ─► flip a bit, repeat some, cut into pieces, end the stream ─► pieces      damage()
 *   time       a piece ─► delay + jitter, the line's speed, waiting for others ─► due        dueMs()
 *
 * All that happens to bytes happens at offsets of the stream, not at chunks: the same seed does the same
 * to the same stream, however the kernel cut it. Of a stream that was damaged only what lies before the
 * first damage is sure to have reached the other side whole: goodThrough.
 */
import { Prng } from '../../src/base/prng.js';

/** All off by default. "Every n bytes" is drawn evenly from 1 to 2n, each time anew. */
export interface StreamFaults {
  readonly delayMs?: number;
  /** Up to this long in addition, drawn for each piece; order is kept. */
  readonly jitterMs?: number;
  /** Bytes a second: a slow line. */
  readonly bytesPerSecond?: number;
  /** What comes within so long is handed on together, in one write. */
  readonly joinMs?: number;
  /** Cut into pieces of 1 to this many bytes. */
  readonly splitBytesMax?: number;
  readonly flipEveryBytes?: number;
  readonly repeatEveryBytes?: number;
  /** The rest is dropped and the connection closed, within so many bytes. */
  readonly truncateWithinBytes?: number;
  /** The sender's end comes early, the rest is dropped; the other direction goes on. */
  readonly halfCloseWithinBytes?: number;
}

export type DamageKind = 'flip' | 'repeat' | 'truncate' | 'half-close';

export interface Damage {
  readonly kind: DamageKind;
  /** Of the stream, counted from when the faults were set. */
  readonly offset: number;
}

export interface Piece {
  readonly bytes: Uint8Array;
  /** Offset in the undamaged stream behind the last byte of this piece. */
  readonly through: number;
}

const REPEATED_BYTES_MAX = 64;
/** A slow line hands on so many pieces a second at least: it trickles, as a real one does. */
const SLOW_PIECES_A_SECOND = 50;
const SLOW_PIECE_BYTES_MIN = 512;

export class DamagedStream {
  readonly damage: Damage[] = [];
  /** Set when nothing of the stream is handed on any more. */
  ended: 'truncate' | 'half-close' | undefined;
  readonly #faults: StreamFaults;
  readonly #prng: Prng;
  readonly #jitter: Prng;
  readonly #pieceBytesMax: number;
  #offset: number;
  #goodThrough = Infinity;
  #flipAt: number;
  #repeatAt: number;
  #endAt: number;
  #splitAt: number;
  #lastDueMs = 0;

  /** `offset`: how much of the stream had passed before these faults were set. */
  constructor(faults: StreamFaults, seed: number, offset = 0) {
    this.#faults = faults;
    this.#prng = new Prng(seed);
    this.#jitter = this.#prng.fork();
    this.#offset = offset;
    this.#flipAt = offset + this.#gap(faults.flipEveryBytes);
    this.#repeatAt = offset + this.#gap(faults.repeatEveryBytes);
    const within = faults.truncateWithinBytes ?? faults.halfCloseWithinBytes;
    this.#endAt = offset + (within === undefined ? Infinity : 1 + this.#prng.below(within));
    const slow = faults.bytesPerSecond === undefined ? Infinity : Math.max(SLOW_PIECE_BYTES_MIN, Math.floor(faults.bytesPerSecond / SLOW_PIECES_A_SECOND));
    this.#pieceBytesMax = slow;
    this.#splitAt = offset + this.#pieceBytes();
  }

  get isPlain(): boolean {
    return Object.keys(this.#faults).length === 0;
  }

  get offset(): number {
    return this.#offset;
  }

  /** Frames that end here or before it reached the other side as they were. */
  get goodThrough(): number {
    return this.#goodThrough;
  }

  /** What to hand on of the next bytes of the stream. */
  pieces(chunk: Uint8Array): Piece[] {
    if (this.isPlain) {
      this.#offset += chunk.length;
      return [{ bytes: chunk, through: this.#offset }];
    }
    const pieces: Piece[] = [];
    for (let at = 0; at < chunk.length && this.ended === undefined;) {
      const next = Math.min(this.#splitAt, this.#repeatAt, this.#endAt);
      const bytes = Math.min(chunk.length - at, next - this.#offset);
      pieces.push({ bytes: this.#flipped(chunk.subarray(at, at + bytes)), through: this.#offset + bytes });
      at += bytes;
      this.#offset += bytes;
      this.#atOffset(pieces);
    }
    if (this.ended !== undefined) this.#offset = Math.max(this.#offset, this.#endAt);
    return pieces;
  }

  /** When a piece that came now is handed on; never before the one that came before it. */
  dueMs(nowMs: number, bytes: number): number {
    const { delayMs = 0, jitterMs = 0, bytesPerSecond, joinMs } = this.#faults;
    let dueMs = nowMs + delayMs + (jitterMs > 0 ? this.#jitter.next() * jitterMs : 0);
    dueMs = Math.max(dueMs, this.#lastDueMs);
    if (bytesPerSecond !== undefined) dueMs += (bytes * 1000) / bytesPerSecond;
    this.#lastDueMs = dueMs;
    return joinMs === undefined ? dueMs : Math.ceil(dueMs / joinMs) * joinMs;
  }

  /** How much a sender may be ahead of such a line before it is not read any more. */
  heldBytesMax(usual: number): number {
    const { bytesPerSecond } = this.#faults;
    return bytesPerSecond === undefined ? usual : Math.min(usual, Math.max(64 * 1024, bytesPerSecond));
  }

  #atOffset(pieces: Piece[]): void {
    if (this.#offset === this.#splitAt) this.#splitAt += this.#pieceBytes();
    if (this.#offset === this.#repeatAt) {
      const last = pieces.at(-1);
      this.#note('repeat', this.#offset);
      if (last !== undefined) pieces.push({ bytes: last.bytes.slice(-REPEATED_BYTES_MAX), through: this.#offset });
      this.#repeatAt += this.#gap(this.#faults.repeatEveryBytes);
    }
    if (this.#offset === this.#endAt) {
      this.ended = this.#faults.truncateWithinBytes === undefined ? 'half-close' : 'truncate';
      this.#note(this.ended, this.#offset);
    }
  }

  #flipped(bytes: Uint8Array): Uint8Array {
    let copy: Uint8Array | undefined;
    while (this.#flipAt < this.#offset + bytes.length) {
      copy ??= bytes.slice();
      const at = this.#flipAt - this.#offset;
      copy[at] = (copy[at] ?? 0) ^ (1 << this.#prng.below(8));
      this.#note('flip', this.#flipAt);
      this.#flipAt += this.#gap(this.#faults.flipEveryBytes);
    }
    return copy ?? bytes;
  }

  #note(kind: DamageKind, offset: number): void {
    this.damage.push({ kind, offset });
    this.#goodThrough = Math.min(this.#goodThrough, offset);
  }

  #gap(everyBytes: number | undefined): number {
    return everyBytes === undefined ? Infinity : 1 + this.#prng.below(2 * everyBytes);
  }

  #pieceBytes(): number {
    const { splitBytesMax } = this.#faults;
    return Math.min(this.#pieceBytesMax, splitBytesMax === undefined ? Infinity : 1 + this.#prng.below(splitBytesMax));
  }
}
