/**
 * Writes one content to a connection: small ones whole with their final dot, larger ones in pieces, the dot
 * apart (RFC 5321 4.1.1.4, 4.5.2). Dot-stuffing only where the envelope says that a line starts with a dot.
 *
 *   small  source ──copy──► shared piece ──► one write: content CRLF? "." CRLF, next envelope?
 *   large  source ──copy──► shared piece ──► one write of PIECE_BYTES, the next when it has left … "." CRLF
 *
 * A content stays where it is until its delivery is settled: nothing but the piece under way is copied. A
 * next hop that takes less of a large one than it must is too slow: so nobody is kept for hours by pieces
 * that leave one by one, each within the timeout of CONTENT (session-states.ts).
 *
 * Content that does not end with CRLF gets one, as SMTP can't carry it otherwise. When the dot may go is
 * decided by smtp-session.ts. Pure.
 */
import type { Connection } from '../../../platform/transport.js';
import { ENVELOPE_DOT_LINES } from '../../mail-types.js';
import type { Delivery } from '../../mail-types.js';
import { SMALL_CONTENT_BYTES } from '../../../smtp/write-buffer.js';
import type { WriteBuffer } from '../../../smtp/write-buffer.js';

/** CRLF, dot, CRLF. */
const END_BYTES = 5;
const CR = 13;
const LF = 10;
/** A dot starts a line behind these. */
const LINE_END_BYTES = 2;
/**
 * The rate is that of so long a while at least: a piece of PIECE_BYTES that leaves whole is all that is seen,
 * and one and a half of them are 500 B/s.
 */
const RATE_WINDOW_MS = 180_000;

export interface ContentPorts {
  readonly buffer: WriteBuffer;
  /** As DeliverySource.copyContent. */
  copyContent(delivery: Delivery, target: Uint8Array, at: number, from: number, bytes: number): void;
}

export class ContentSender {
  readonly #ports: ContentPorts;
  readonly #bytesPerSecondMin: number;
  #delivery: Delivery | undefined;
  /** Bytes of the large content written so far. */
  #written = 0;
  /** Of those, what has left the process, and when the last of that did. */
  #left = 0;
  #leftMs = 0;
  /** When the while began that the rate is measured in, and what had left then. */
  #windowMs = 0;
  #leftBefore = 0;

  constructor(bytesPerSecondMin: number, ports: ContentPorts) {
    this.#bytesPerSecondMin = bytesPerSecondMin;
    this.#ports = ports;
  }

  begin(delivery: Delivery, nowMs: number): void {
    this.#delivery = delivery;
    this.#written = 0;
    this.#left = 0;
    this.#leftMs = nowMs;
    this.#windowMs = nowMs;
    this.#leftBefore = 0;
    if (!this.isSmall) this.#ports.buffer.largeBegun();
  }

  /** It leaves in one write with its dot. */
  get isSmall(): boolean {
    return this.#delivery !== undefined && this.#delivery.contentBytes <= SMALL_CONTENT_BYTES;
  }

  /** The dot is next: all that comes before it has left the process. */
  isAtDot(connection: Connection): boolean {
    if (connection.bufferedBytes !== 0) return false;
    return this.isSmall || this.#written === this.#delivery?.contentBytes;
  }

  /**
   * Less of it has left than must, even if the piece under way left now. A while begins and ends with a piece
   * that leaves: else one more or one less of them in it would be a third of the rate.
   */
  isTooSlow(nowMs: number): boolean {
    const forMs = nowMs - this.#windowMs;
    if (this.isSmall || forMs < RATE_WINDOW_MS) return false;
    const wanted = this.#bytesPerSecondMin * forMs / 1000;
    if (this.#left - this.#leftBefore < wanted) return this.#written - this.#leftBefore < wanted;
    this.#windowMs = this.#leftMs;
    this.#leftBefore = this.#left;
    return false;
  }

  /** A small content and its dot into a write that the caller ends. */
  putWhole(connection: Connection): void {
    const delivery = this.#delivery;
    if (delivery === undefined) return;
    const buffer = this.#ports.buffer;
    const bytes = delivery.contentBytes;
    buffer.start(connection);
    let needsLineEnd = false;
    if ((delivery.envelope.flags & ENVELOPE_DOT_LINES) !== 0) {
      const room = buffer.unstuffedRoom(bytes);
      this.#ports.copyContent(delivery, room, 0, 0, bytes);
      buffer.stuffed(room, 0, bytes);
      needsLineEnd = lacksLineEnd(room, 0, bytes);
    } else {
      const room = buffer.contentRoom(bytes + END_BYTES);
      this.#ports.copyContent(delivery, room, buffer.length, 0, bytes);
      needsLineEnd = lacksLineEnd(room, buffer.length, bytes);
      buffer.took(bytes);
    }
    buffer.ascii(needsLineEnd ? '\r\n.\r\n' : '.\r\n');
  }

  /** Writes pieces of a large content until one stays in the process; true when something was written. */
  writePieces(connection: Connection, nowMs: number): boolean {
    const delivery = this.#delivery;
    if (delivery === undefined || this.isSmall) return false;
    this.#noteLeft(connection, nowMs);
    const { buffer } = this.#ports;
    const isStuffed = (delivery.envelope.flags & ENVELOPE_DOT_LINES) !== 0;
    const before = this.#written;
    while (this.#written < delivery.contentBytes && connection.bufferedBytes === 0) {
      const bytes = Math.min(buffer.pieceBytes, delivery.contentBytes - this.#written);
      buffer.start(connection);
      if (isStuffed) this.#putStuffed(delivery, bytes);
      else {
        const room = buffer.contentRoom(bytes);
        this.#ports.copyContent(delivery, room, buffer.length, this.#written, bytes);
        buffer.took(bytes);
      }
      buffer.flush();
      this.#written += bytes;
      this.#noteLeft(connection, nowMs);
    }
    return this.#written > before;
  }

  #noteLeft({ bufferedBytes }: Connection, nowMs: number): void {
    if (bufferedBytes !== 0 || this.#left === this.#written) return;
    this.#left = this.#written;
    this.#leftMs = nowMs;
  }

  /** The final dot of a large content. */
  writeDot(connection: Connection): void {
    const delivery = this.#delivery;
    if (delivery === undefined) return;
    const end = new Uint8Array(LINE_END_BYTES);
    this.#ports.copyContent(delivery, end, 0, delivery.contentBytes - end.length, end.length);
    const buffer = this.#ports.buffer;
    buffer.start(connection);
    buffer.ascii(lacksLineEnd(end, 0, end.length) ? '\r\n.\r\n' : '.\r\n');
    buffer.flush();
  }

  /** Also when it was never begun. */
  end(): void {
    if (this.#delivery !== undefined && !this.isSmall) this.#ports.buffer.largeEnded();
    this.#delivery = undefined;
  }

  /** The next `bytes`: whether their first starts a line is told by those before it. */
  #putStuffed(delivery: Delivery, bytes: number): void {
    const { buffer } = this.#ports;
    const before = Math.min(this.#written, LINE_END_BYTES);
    const room = buffer.unstuffedRoom(before + bytes);
    this.#ports.copyContent(delivery, room, 0, this.#written - before, before + bytes);
    buffer.stuffed(room, before, before + bytes);
  }
}

/** An empty content needs none: the dot stands right after the line of DATA. */
function lacksLineEnd(bytes: Uint8Array, from: number, length: number): boolean {
  if (length === 0) return false;
  const last = from + length;
  return length < 2 || bytes[last - 2] !== CR || bytes[last - 1] !== LF;
}
