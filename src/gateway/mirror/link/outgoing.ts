/**
 * What goes out on one connection of a path: frames with their sequence numbers, gathered for one write, and
 * the tokens of its heartbeats. A path resets it with each connection.
 *
 * What is not here: when anything is sent (path-connection.ts).
 */
import type { Crc32, Packer } from '../../../platform/ports.js';
import type { Connection } from '../../../platform/transport.js';
import { encodeFrame } from '../../../protocol/frame.js';
import * as types from '../../../protocol/message-types.js';
import { encodeHeartbeat } from '../../../protocol/messages/heartbeat.js';

const NO_BODIES: readonly Uint8Array[] = [];

export interface OutgoingPorts {
  readonly crc32: Crc32;
  readonly packer: Packer;
  readonly frameWallMs: () => number;

}

export class Outgoing {
  readonly #ports: OutgoingPorts;
  /** Frames and bodies for the next write; the same array each time. */
  readonly #chunks: Uint8Array[] = [];
  #connection: Connection | undefined;
  #lastSequence = 0;
  #sentToken = 0;
  #answeredToken = 0;
  #fencesProcessed = 0;
  /** The last heartbeat went out a second time. */
  #isRepeated = false;

  constructor(ports: OutgoingPorts) {
    this.#ports = ports;
  }

  /** Sequence of the last frame queued on this connection. */
  get lastSequence(): number {
    return this.#lastSequence;
  }

  /** Frames go to this connection from now on, to none without one. */
  reset(connection?: Connection): void {
    this.#connection = connection;
    this.#chunks.length = 0;
    this.#lastSequence = 0;
    this.#sentToken = 0;
    this.#answeredToken = 0;
  }

  /** Queues one frame; returns its sequence number. */
  queue(type: number, control: Uint8Array, bodies: readonly Uint8Array[], bodyBytes: number): number {
    const sequence = this.#lastSequence + 1;
    this.#lastSequence = sequence;
    this.#chunks.push(encodeFrame(type, sequence, control, this.#ports.crc32, bodyBytes));
    for (let i = 0; i < bodies.length; i++) {
      const body = bodies[i];
      if (body !== undefined) this.#chunks.push(body);
    }
    return sequence;
  }

  /** A frame without bodies. */
  queueControl(type: number, control: Uint8Array): void {
    this.queue(type, control, NO_BODIES, 0);
  }

  /**
   * The token is a time before the write: the answer tells what the lease counts from. `fencesProcessed`: of
   * this process at that boot of the store.
   */
  queueHeartbeat(nowMs: number, fencesProcessed: number): void {
    this.#fencesProcessed = fencesProcessed;
    // One that is not meant as a repetition must not look like one.
    this.#sentToken = Math.max(Math.floor(nowMs), this.#sentToken + 1);
    this.#isRepeated = false;
    this.#queueToken();
  }

  /**
   * The same token again asks for credit (docs/PROTOCOL.md). Once between two heartbeats, however often it is
   * called; it goes with the next write, at the latest with the heartbeat that follows.
   */
  repeatHeartbeat(): void {
    if (this.#sentToken === 0 || this.#isRepeated) return;
    this.#isRepeated = true;
    this.#queueToken();
  }

  /** True when a heartbeat of this connection had this token, and none answered since had a later one. */
  takeAnswer(token: number): boolean {
    if (token > this.#sentToken || token < this.#answeredToken) return false;
    this.#answeredToken = token;
    return true;
  }

  #queueToken(): void {
    const { packer, frameWallMs } = this.#ports;
    this.queueControl(types.HEARTBEAT, encodeHeartbeat(packer, {
      token: this.#sentToken, wallMs: frameWallMs(), fencesProcessed: this.#fencesProcessed,
    }));
  }

  /** Hands all that is queued to the transport as one write. */
  flush(): void {
    if (this.#chunks.length === 0) return;
    this.#connection?.write(this.#chunks);
    this.#chunks.length = 0;
  }
}
