/**
 * The write buffer that all client sessions of a process share: what is said to next hops goes through it.
 *
 * Commands and small contents are put together in one piece of SCRATCH_BYTES and handed to the connection
 * as one write. When the connection reports nothing buffered after that, the kernel has the bytes and the
 * piece is used again; else it is lent to the connection until that reports so. So a message costs no
 * allocation here, in TLS neither, where each write is buffered for a moment; and its content is copied once,
 * from the queue into the piece (contents with dot lines, rare, once more). This leans on one promise of the
 * transport: bufferedBytes is 0 only when no byte that was passed to write() is referred to any more.
 *
 * A large content leaves piece by piece, each read from the queue when the one before has left: so a next hop
 * that reads slowly holds one piece, not its content, and waits for nobody's but its own (G7: heldBytes).
 * Sessions use the buffer one after the other between start() and flush(), never across events. Pure.
 */
import { invariant } from '../base/invariant.js';
import type { Connection } from '../platform/transport.js';

/** Larger than SMALL_CONTENT_BYTES with every line stuffed (4/3) and the final dot. */
const SCRATCH_BYTES = 32 * 1024;

/**
 * Contents up to this leave in one write together with the final dot. 16 KiB is what the smallest common
 * send buffer of a kernel takes at once (Linux tcp_wmem default), and it is empty then: the peer's 354 shows
 * that it has read all we sent. So no dot waits in the process behind a check that has grown old (G5).
 */
export const SMALL_CONTENT_BYTES = 16 * 1024;

/** Larger contents leave in pieces of this size, each when the one before has left the process. */
export const PIECE_BYTES = 64 * 1024;

/** More of them side by side leave in pieces of SMALL_CONTENT_BYTES: next hops that read slowly are many. */
const WHOLE_PIECES_MAX = 256;

/** Pieces that are remembered while connections hold them, and kept for use; the collector has the others. */
const LENT_MAX = 16;

const CR = 13;
const LF = 10;
const DOT = 46;

const TEXT_ASCII = 0;
export const TEXT_UTF8 = 1;
/** Holds a control character or half a surrogate pair: can't stand in a command line. */
export const TEXT_UNSENDABLE = 2;

interface Loan {
  readonly piece: Uint8Array;
  readonly connection: Connection;
}

export class WriteBuffer {
  /** Large contents being sent. */
  #largeCount = 0;
  #piece: Uint8Array = new Uint8Array(SCRATCH_BYTES);
  #unstuffed = new Uint8Array(0);
  readonly #chunks: Uint8Array[] = [this.#piece];
  #connection: Connection | undefined;
  #length = 0;
  /** Pieces that connections hold, the oldest first. */
  readonly #lent: Loan[] = [];
  readonly #free: Uint8Array[] = [];

  /** What pieces of large contents hold, at most. */
  get heldBytes(): number {
    return this.#largeCount * this.pieceBytes;
  }

  /** Of the next piece of a large content. */
  get pieceBytes(): number {
    return this.#largeCount > WHOLE_PIECES_MAX ? SMALL_CONTENT_BYTES : PIECE_BYTES;
  }

  largeBegun(): void {
    this.#largeCount++;
  }

  /** Sent, or given up. */
  largeEnded(): void {
    this.#largeCount--;
    invariant(this.#largeCount >= 0, 'a large content ends once');
  }

  /** Begins a write to `connection`. */
  start(connection: Connection): void {
    invariant(this.#connection === undefined, 'one session at a time puts a write together');
    this.#connection = connection;
    this.#length = 0;
    if (this.#lent.length > 0) this.#takeBack();
  }

  /** Appends ASCII text of ours. */
  ascii(text: string): void {
    this.#room(text.length);
    const piece = this.#piece;
    let at = this.#length;
    for (let i = 0; i < text.length; i++) piece[at++] = text.charCodeAt(i);
    this.#length = at;
  }

  /** Appends text of others as UTF-8; appends nothing when it is TEXT_UNSENDABLE. */
  text(text: string): typeof TEXT_ASCII | typeof TEXT_UTF8 | typeof TEXT_UNSENDABLE {
    const kind = kindOfText(text);
    if (kind === TEXT_UNSENDABLE) return kind;
    if (kind === TEXT_ASCII) {
      this.ascii(text);
      return kind;
    }
    this.#room(text.length * 3);
    for (let i = 0; i < text.length; i++) {
      const point = text.codePointAt(i) ?? 0;
      if (point > 0xffff) i++;
      this.#length = putUtf8(this.#piece, this.#length, point);
    }
    return kind;
  }

  /** Where up to `bytes` of a content go, from `length` on; call took() with their number. Not stuffed. */
  contentRoom(bytes: number): Uint8Array {
    this.#room(bytes);
    return this.#piece;
  }

  get length(): number {
    return this.#length;
  }

  /** What was put into this piece from there on, until the next call. */
  putSince(length: number): Uint8Array {
    return this.#piece.subarray(length <= this.#length ? length : 0, this.#length);
  }

  took(bytes: number): void {
    this.#length += bytes;
  }

  /** A side room for what must be stuffed. */
  unstuffedRoom(bytes: number): Uint8Array {
    if (this.#unstuffed.length < bytes) {
      this.#unstuffed = new Uint8Array(Math.max(bytes, SMALL_CONTENT_BYTES));
    }
    return this.#unstuffed;
  }

  /** Appends content[from, to) dot-stuffed (RFC 5321 4.5.2); a dot at index 0 starts a line. */
  stuffed(content: Uint8Array, from: number, to: number): void {
    this.#room(Math.ceil(((to - from) * 4) / 3) + 2);
    const piece = this.#piece;
    let at = this.#length;
    for (let i = from; i < to; i++) {
      const byte = content[i] ?? 0;
      if (byte === DOT && (i === 0 || (content[i - 1] === LF && content[i - 2] === CR))) piece[at++] = DOT;
      piece[at++] = byte;
    }
    this.#length = at;
  }

  /** Hands what was put together to the connection as one write and ends it. */
  flush(): void {
    this.#writeOut();
    this.#connection = undefined;
  }

  /** Ends without writing. */
  discard(): void {
    this.#connection = undefined;
    this.#length = 0;
  }

  #writeOut(): void {
    const connection = this.#connection;
    invariant(connection !== undefined, 'a write is put together between start() and flush()');
    if (this.#length === 0) return;
    const isFull = this.#length === this.#piece.length;
    this.#chunks[0] = isFull ? this.#piece : this.#piece.subarray(0, this.#length);
    connection.write(this.#chunks);
    this.#length = 0;
    if (connection.bufferedBytes > 0) this.#lend(connection);
  }

  /** The connection keeps the piece for a while. */
  #lend(connection: Connection): void {
    const lent = this.#lent;
    if (lent.length === LENT_MAX) lent.shift();
    // One that was made for many bytes is not kept for few.
    if (this.#piece.length === SCRATCH_BYTES) lent.push({ piece: this.#piece, connection });
    this.#piece = this.#free.pop() ?? new Uint8Array(SCRATCH_BYTES);
  }

  #takeBack(): void {
    const lent = this.#lent;
    for (let loan = lent[0]; loan?.connection.bufferedBytes === 0; loan = lent[0]) {
      lent.shift();
      if (this.#free.length < LENT_MAX) this.#free.push(loan.piece);
    }
  }

  /** Many recipients fill more than a piece: what is there goes out first. */
  #room(bytes: number): void {
    if (this.#length + bytes <= this.#piece.length) return;
    this.#writeOut();
    if (bytes > this.#piece.length) this.#piece = new Uint8Array(bytes);
  }
}

/** Whether text can stand in a command line, and whether it needs SMTPUTF8. */
export function kindOfText(text: string): typeof TEXT_ASCII | typeof TEXT_UTF8 | typeof TEXT_UNSENDABLE {
  let any = 0;
  for (let i = 0; i < text.length; i++) {
    const unit = text.charCodeAt(i);
    any |= unit;
    if (unit < 32 || unit === 127) return TEXT_UNSENDABLE;
  }
  if (any < 128) return TEXT_ASCII;
  return isWellFormed(text) ? TEXT_UTF8 : TEXT_UNSENDABLE;
}

/** No half surrogate pairs, which have no UTF-8. */
function isWellFormed(text: string): boolean {
  for (let i = 0; i < text.length; i++) {
    const point = text.codePointAt(i) ?? 0;
    if (point >= 0xd800 && point <= 0xdfff) return false;
    if (point > 0xffff) i++;
  }
  return true;
}

function putUtf8(target: Uint8Array, at: number, point: number): number {
  if (point < 0x80) {
    target[at++] = point;
  } else if (point < 0x800) {
    target[at++] = 0xc0 | (point >> 6);
    target[at++] = 0x80 | (point & 63);
  } else if (point < 0x10000) {
    target[at++] = 0xe0 | (point >> 12);
    target[at++] = 0x80 | ((point >> 6) & 63);
    target[at++] = 0x80 | (point & 63);
  } else {
    target[at++] = 0xf0 | (point >> 18);
    target[at++] = 0x80 | ((point >> 12) & 63);
    target[at++] = 0x80 | ((point >> 6) & 63);
    target[at++] = 0x80 | (point & 63);
  }
  return at;
}
