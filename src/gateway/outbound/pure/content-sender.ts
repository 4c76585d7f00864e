/**
 * Writes one content to a connection: small ones whole with their final dot, larger ones in pieces, the dot
 * apart (RFC 5321 4.1.1.4, 4.5.2). Dot-stuffing only where the envelope says that a line starts with a dot.
 *
 *   small  source ──copy──► shared piece ──► one write: content CRLF? "." CRLF, next envelope?
 *   large  source ──copy──► own buffer ──► PIECE_BYTES a write, each when the one before has left … "." CRLF
 *
 * Content that does not end with CRLF gets one, as SMTP can't carry it otherwise. When the dot may go is
 * decided by smtp-session.ts. Pure.
 */
import type { Connection } from '../../../platform/transport.js';
import { ENVELOPE_DOT_LINES } from '../../queue/types.js';
import type { Delivery } from '../../queue/types.js';
import { PIECE_BYTES, SMALL_CONTENT_BYTES } from '../../../smtp/write-buffer.js';
import type { WriteBuffer } from '../../../smtp/write-buffer.js';

/** CRLF, dot, CRLF. */
const END_BYTES = 5;
const CR = 13;
const LF = 10;

export interface ContentPorts {
  readonly buffer: WriteBuffer;
  copyContent(delivery: Delivery, target: Uint8Array, at: number): void;
}

export class ContentSender {
  readonly #ports: ContentPorts;
  readonly #chunks: Uint8Array[] = [];
  #delivery: Delivery | undefined;
  #large: Uint8Array | undefined;
  /** Bytes of the large content written so far. */
  #written = 0;
  #needsLineEnd = false;

  constructor(ports: ContentPorts) {
    this.#ports = ports;
  }

  begin(delivery: Delivery): void {
    this.#delivery = delivery;
    this.#written = 0;
  }

  /** It leaves in one write with its dot. */
  get isSmall(): boolean {
    return this.#delivery !== undefined && this.#delivery.contentBytes <= SMALL_CONTENT_BYTES;
  }

  /** The dot is next: all that comes before it has left the process. */
  isAtDot(connection: Connection): boolean {
    if (connection.bufferedBytes !== 0) return false;
    return this.isSmall || (this.#large !== undefined && this.#written === this.#large.length);
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
      const room = buffer.unstuffedRoom();
      this.#ports.copyContent(delivery, room, 0);
      buffer.stuffed(room, 0, bytes);
      needsLineEnd = lacksLineEnd(room, 0, bytes);
    } else {
      const room = buffer.contentRoom(bytes + END_BYTES);
      this.#ports.copyContent(delivery, room, buffer.length);
      needsLineEnd = lacksLineEnd(room, buffer.length, bytes);
      buffer.took(bytes);
    }
    buffer.ascii(needsLineEnd ? '\r\n.\r\n' : '.\r\n');
  }

  /** Writes pieces of a large content until one stays in the process; true when something was written. */
  writePieces(connection: Connection): boolean {
    const delivery = this.#delivery;
    if (delivery === undefined || this.isSmall || connection.bufferedBytes > 0) return false;
    if (this.#large === undefined) {
      this.#large = this.#ports.buffer.takeLarge(delivery.contentBytes);
      if (this.#large === undefined) return false;
      this.#ports.copyContent(delivery, this.#large, 0);
      this.#needsLineEnd = lacksLineEnd(this.#large, 0, this.#large.length);
    }
    const large = this.#large;
    const isStuffed = (delivery.envelope.flags & ENVELOPE_DOT_LINES) !== 0;
    const from = this.#written;
    while (this.#written < large.length && connection.bufferedBytes === 0) {
      const to = Math.min(this.#written + PIECE_BYTES, large.length);
      if (isStuffed) {
        this.#ports.buffer.start(connection);
        this.#ports.buffer.stuffed(large, this.#written, to);
        this.#ports.buffer.flush();
      } else {
        this.#chunks[0] = large.subarray(this.#written, to);
        connection.write(this.#chunks);
        this.#chunks.length = 0;
      }
      this.#written = to;
    }
    return this.#written > from;
  }

  /** The final dot of a large content. */
  writeDot(connection: Connection): void {
    const buffer = this.#ports.buffer;
    buffer.start(connection);
    buffer.ascii(this.#needsLineEnd ? '\r\n.\r\n' : '.\r\n');
    buffer.flush();
  }

  /** Gives the buffer back; also when the content was never begun. */
  end(): void {
    if (this.#large !== undefined) this.#ports.buffer.giveLarge(this.#large);
    this.#large = undefined;
    this.#delivery = undefined;
  }
}

/** An empty content needs none: the dot stands right after the line of DATA. */
function lacksLineEnd(bytes: Uint8Array, from: number, length: number): boolean {
  if (length === 0) return false;
  const last = from + length;
  return length < 2 || bytes[last - 2] !== CR || bytes[last - 1] !== LF;
}
