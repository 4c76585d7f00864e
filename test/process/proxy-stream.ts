/**
 * One direction of a connection through the fault proxy (fault-proxy.ts): reads the frames that come, holds
 * bytes back, and hands on what the faults leave of them (stream-faults.ts).
 *
 *   from ─data─► frames noted ─► pieces, held until due ─pump()─► to
 */
import type net from 'node:net';
import { crc32 } from '../../src/platform/node/checksum.js';
import type { FrameSink } from '../../src/protocol/frame-reader.js';
import { FrameReader } from '../../src/protocol/frame-reader.js';
import { FRAME_BYTES_MAX, HEADER_BYTES } from '../../src/protocol/frame.js';
import { messageTypeName } from '../../src/protocol/message-types.js';
import type { DamageRecord, Direction, FrameRecord } from './fault-proxy.js';
import type { DamagedStream } from './stream-faults.js';

/** What a stream asks of its proxy. */
export interface StreamHost {
  readonly malformed: string[];
  readonly damage: DamageRecord[];
  isStalled(direction: Direction): boolean;
  damaged(direction: Direction, connection: number, offset: number): DamagedStream;
  record(frame: FrameRecord, bodies: Uint8Array): void;
  nowMs(): number;
}

interface Held {
  /** undefined: the end of the stream. 'truncated': the end of the connection. */
  readonly bytes: Uint8Array | 'truncated' | undefined;
  readonly dueMs: number;
  readonly frames: readonly FrameRecord[];
}

/** A frame on its way, and the offset of the stream behind its last byte. */
interface FrameOnItsWay {
  readonly frame: FrameRecord;
  readonly through: number;
}

/** Held back at most, then the sender is not read: a stall must not grow this process. */
const HELD_BYTES_MAX = 16 * 1024 * 1024;

/** One direction of a connection. */
export class ProxyStream implements FrameSink {
  readonly #proxy: StreamHost;
  readonly #connection: number;
  readonly #direction: Direction;
  readonly #from: net.Socket;
  readonly #to: net.Socket;
  readonly #reader = new FrameReader({ frameBytesMax: FRAME_BYTES_MAX }, { crc32 });
  #damaged: DamagedStream;
  #damageSeen = 0;
  #held: Held[] = [];
  #heldBytes = 0;
  /** Frames whose last byte has come and not been handed on. */
  #ended: FrameOnItsWay[] = [];
  #framedBytes = 0;
  /** Behind damage nothing is sure to arrive. */
  #goodThrough = Infinity;
  #isClosed = false;
  #timer: NodeJS.Timeout | undefined;
  #isBlocked = false;
  #arrivedMs = 0;

  constructor(proxy: StreamHost, connection: number, direction: Direction, from: net.Socket, to: net.Socket) {
    this.#proxy = proxy;
    this.#connection = connection;
    this.#direction = direction;
    this.#from = from;
    this.#to = to;
    this.#damaged = proxy.damaged(direction, connection, 0);
    from.on('data', (bytes: Buffer) => { this.#onData(bytes); });
    from.on('end', () => { this.#end(undefined); });
    to.on('drain', () => {
      this.#isBlocked = false;
      this.pump();
    });
  }

  onFrame(type: number, sequence: number, control: Uint8Array, bodies: Uint8Array): void {
    this.#framedBytes += HEADER_BYTES + control.length + bodies.length;
    const frame: FrameRecord = {
      connection: this.#connection,
      direction: this.#direction,
      type,
      name: messageTypeName(type),
      sequence,
      control: control.slice(),
      bodyBytes: bodies.length,
      arrivedMs: this.#arrivedMs,
      passedMs: Infinity,
    };
    this.#ended.push({ frame, through: this.#framedBytes });
    this.#proxy.record(frame, bodies);
  }

  onInvalid(rule: string): void {
    this.#proxy.malformed.push(`${this.#direction} ${String(this.#connection)}: ${rule}`);
  }

  /** Takes on what the proxy is to do from now on. */
  faults(): void {
    this.#damaged = this.#proxy.damaged(this.#direction, this.#connection, this.#damaged.offset);
    this.#damageSeen = 0;
  }

  halfClose(): void {
    this.#goodThrough = Math.min(this.#goodThrough, this.#damaged.offset);
    this.#end(undefined);
  }

  /** Hands on what is due; comes back by a timer for the rest. */
  pump(): void {
    clearTimeout(this.#timer);
    this.#to.cork();
    while (this.#held.length > 0 && !this.#isBlocked && !this.#proxy.isStalled(this.#direction)) {
      const next = this.#held[0];
      if (next === undefined) break;
      const nowMs = this.#proxy.nowMs();
      if (next.dueMs > nowMs) {
        this.#timer = setTimeout(() => { this.pump(); }, Math.max(1, next.dueMs - nowMs));
        break;
      }
      this.#held.shift();
      this.#pass(next, nowMs);
    }
    this.#to.uncork();
  }

  stop(): void {
    clearTimeout(this.#timer);
    this.#held = [];
    this.#reader.stop();
    this.#from.resetAndDestroy();
  }

  #onData(bytes: Uint8Array): void {
    this.#arrivedMs = this.#proxy.nowMs();
    this.#reader.push(bytes, this);
    if (this.#isClosed) return;
    const pieces = this.#damaged.pieces(bytes);
    this.#noteDamage();
    for (const piece of pieces) this.#hold(piece.bytes, this.#framesThrough(Math.min(piece.through, this.#goodThrough)));
    if (this.#damaged.ended !== undefined) this.#end(this.#damaged.ended === 'truncate' ? 'truncated' : undefined);
    this.pump();
  }

  #noteDamage(): void {
    for (const each of this.#damaged.damage.slice(this.#damageSeen)) {
      this.#proxy.damage.push({ ...each, connection: this.#connection, direction: this.#direction, atMs: this.#arrivedMs });
    }
    this.#damageSeen = this.#damaged.damage.length;
    this.#goodThrough = Math.min(this.#goodThrough, this.#damaged.goodThrough);
  }

  #framesThrough(offset: number): FrameRecord[] {
    const frames: FrameRecord[] = [];
    for (let next = this.#ended[0]; next !== undefined && next.through <= offset; next = this.#ended[0]) {
      frames.push(next.frame);
      this.#ended.shift();
    }
    return frames;
  }

  #end(how: 'truncated' | undefined): void {
    if (this.#isClosed) return;
    this.#isClosed = true;
    this.#hold(how, []);
    this.pump();
  }

  #hold(bytes: Held['bytes'], frames: readonly FrameRecord[]): void {
    this.#held.push({ bytes, dueMs: this.#damaged.dueMs(this.#proxy.nowMs(), lengthOf(bytes)), frames });
    this.#heldBytes += lengthOf(bytes);
    if (this.#heldBytes > this.#damaged.heldBytesMax(HELD_BYTES_MAX)) this.#from.pause();
  }

  #pass(held: Held, nowMs: number): void {
    for (const frame of held.frames) frame.passedMs = nowMs;
    if (held.bytes === undefined) {
      this.#to.end();
      return;
    }
    if (held.bytes === 'truncated') {
      // Both sides see the end of the connection, no reset: what was sent before arrives.
      this.#to.end();
      this.#from.end();
      return;
    }
    this.#heldBytes -= held.bytes.length;
    if (this.#heldBytes <= this.#damaged.heldBytesMax(HELD_BYTES_MAX) && this.#from.isPaused()) this.#from.resume();
    if (!this.#to.write(held.bytes)) this.#isBlocked = true;
  }
}

function lengthOf(bytes: Held['bytes']): number {
  return bytes instanceof Uint8Array ? bytes.length : 0;
}
