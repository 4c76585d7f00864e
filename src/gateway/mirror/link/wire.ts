/**
 * One TCP connection of a path, from connect to its end: cuts what arrives into frames and hands them on
 * until it is dropped. A path makes a new Wire for each attempt, so a late event of an earlier connection
 * is known by its Wire and changes nothing (docs/PROTOCOL.md: what belongs to a lower generation is ignored).
 *
 * What is not here: states and meaning (path-connection.ts).
 */
import type { Crc32 } from '../../../platform/ports.js';
import type { Connection, ConnectionHandlers } from '../../../platform/transport.js';
import type { FrameSink } from '../../../protocol/frame-reader.js';
import { FrameReader } from '../../../protocol/frame-reader.js';

export interface WireOwner {
  onWireOpen(wire: Wire): void;
  /** Bytes came; called before the frames in them. */
  onWireData(wire: Wire): void;
  onWireFrame(wire: Wire, type: number, sequence: number, control: Uint8Array, bodies: Uint8Array): void;
  onWireInvalid(wire: Wire, rule: string): void;
  onWireClosed(wire: Wire, reason: string): void;
}

export class Wire implements ConnectionHandlers, FrameSink {
  /** Set by the owner right after connect(). */
  connection: Connection | undefined;
  readonly #owner: WireOwner;
  readonly #reader: FrameReader;
  #dropped = false;

  constructor(
    owner: WireOwner, options: { readonly frameBytesMax: number }, ports: { readonly crc32: Crc32 },
  ) {
    this.#owner = owner;
    this.#reader = new FrameReader(options, ports);
  }

  /** Nothing is handed on any more. `gently`: what was written, a CLOSE at its end, still goes out. */
  drop(gently: boolean): void {
    this.#dropped = true;
    this.#reader.stop();
    if (gently) this.connection?.end();
    else this.connection?.destroy();
  }

  onOpen(): void {
    if (!this.#dropped) this.#owner.onWireOpen(this);
  }

  onData(bytes: Uint8Array): void {
    if (this.#dropped) return;
    this.#owner.onWireData(this);
    this.#reader.push(bytes, this);
  }

  /** The byte window bounds what waits in the socket: there is nothing to resume here. */
  onDrain(): void {}

  onClose(reason: string): void {
    if (!this.#dropped) this.#owner.onWireClosed(this, reason);
  }

  onFrame(type: number, sequence: number, control: Uint8Array, bodies: Uint8Array): void {
    if (!this.#dropped) this.#owner.onWireFrame(this, type, sequence, control, bodies);
  }

  onInvalid(rule: string): void {
    if (!this.#dropped) this.#owner.onWireInvalid(this, rule);
  }
}
