/**
 * What a connection has to say in this turn, in order; leaves in one write.
 */

import type { Crc32 } from '../../platform/ports.js';
import type { Connection } from '../../platform/transport.js';
import { FrameEncoder } from '../../protocol/frame.js';

export class ConnectionWriter {
  readonly #encoder: FrameEncoder;
  readonly #chunks: Uint8Array[] = [];
  #bytes = 0;

  constructor(ports: { readonly crc32: Crc32 }) {
    this.#encoder = new FrameEncoder(ports);
  }

  /** Bytes that wait for flush(). */
  get bytes(): number {
    return this.#bytes;
  }

  frame(type: number, sequence: number, control: Uint8Array): void {
    const frame = this.#encoder.encode(type, sequence, control, 0);
    this.#chunks.push(frame);
    this.#bytes += frame.length;
  }

  /** With bodies that are the connection's own from here on. */
  frameWithBodies(type: number, sequence: number, control: Uint8Array, bodies: Uint8Array): void {
    const frame = this.#encoder.encode(type, sequence, control, bodies.length);
    this.#chunks.push(frame, bodies);
    this.#bytes += frame.length + bodies.length;
  }

  flush(connection: Connection): void {
    if (this.#chunks.length === 0) return;
    connection.write(this.#chunks);
    this.#chunks.length = 0;
    this.#bytes = 0;
    if (connection.bufferedBytes === 0) this.#encoder.reuse();
  }
}
