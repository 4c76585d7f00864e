/**
 * A TCP proxy for tests, put between a gateway and a store: it records every frame in both directions with
 * the time at which its last byte came by, so that a test judges from outside what came first ("the 250
 * after both acknowledgements"), and it makes faults: delay, cut, stall, refuse.
 *
 *   gateway ──► proxy (records, delays) ──► store          up:   gateway to store
 *           ◄──                         ◄──                down: store to gateway
 *
 * Bytes pass unchanged and in order; a delay holds each chunk for the same time. Times are performance.now()
 * plus its origin, so that processes on one machine compare. Bounded: a side that is not read stops the
 * other side; only `recordsMax` frames are kept, the rest is counted.
 */
import net from 'node:net';
import { crc32 } from '../../src/platform/node/checksum.js';
import type { FrameSink } from '../../src/protocol/frame-reader.js';
import { FrameReader } from '../../src/protocol/frame-reader.js';
import { FRAME_BYTES_MAX } from '../../src/protocol/frame.js';
import { messageTypeName } from '../../src/protocol/message-types.js';

export type Direction = 'up' | 'down';

export interface FrameRecord {
  /** Which connection through this proxy, counted from 1. */
  readonly connection: number;
  readonly direction: Direction;
  readonly type: number;
  readonly name: string;
  readonly sequence: number;
  /** A copy of the control part. */
  readonly control: Uint8Array;
  readonly bodyBytes: number;
  /** When its last byte reached the proxy, and when it was handed on: milliseconds since the epoch, fractional. */
  readonly arrivedMs: number;
  /** Infinity while it is held back, and for ever when the connection was cut first. */
  passedMs: number;
}

export interface FaultProxyOptions {
  readonly targetHost: string;
  readonly targetPort: number;
  /** 0 picks a free one. */
  readonly listenPort?: number;
  readonly recordsMax?: number;
  /** Copies bodies of frames too, for checks of content; off, since they are large. */
  readonly onBodies?: (record: FrameRecord, bodies: Uint8Array) => void;
}

/** Milliseconds since the epoch on the monotonic clock: comparable between processes of one machine. */
export function proxyNowMs(): number {
  return performance.timeOrigin + performance.now();
}

export class FaultProxy {
  readonly records: FrameRecord[] = [];
  /** Frames beyond recordsMax. */
  recordsLost = 0;
  /** Rule broken by a stream; then it passes on unrecorded. */
  readonly malformed: string[] = [];
  readonly #options: FaultProxyOptions;
  readonly #recordsMax: number;
  #targetPort: number;
  readonly #server: net.Server;
  readonly #pairs = new Set<Pair>();
  #connections = 0;
  #delayMs: Record<Direction, number> = { up: 0, down: 0 };
  #stalled: Record<Direction, boolean> = { up: false, down: false };
  #refusing = false;

  private constructor(options: FaultProxyOptions) {
    this.#options = options;
    this.#targetPort = options.targetPort;
    this.#recordsMax = options.recordsMax ?? 1_000_000;
    this.#server = net.createServer({ noDelay: true, allowHalfOpen: true }, (socket) => { this.#accept(socket); });
  }

  static start(options: FaultProxyOptions): Promise<FaultProxy> {
    const proxy = new FaultProxy(options);
    return new Promise((resolve, reject) => {
      proxy.#server.once('error', reject);
      proxy.#server.listen({ host: '127.0.0.1', port: options.listenPort ?? 0 }, () => { resolve(proxy); });
    });
  }

  get port(): number {
    const address = this.#server.address();
    return address !== null && typeof address === 'object' ? address.port : 0;
  }

  get openConnections(): number {
    return this.#pairs.size;
  }

  /** Holds what comes from now on back for so long. */
  delay(direction: Direction, ms: number): void {
    this.#delayMs[direction] = ms;
  }

  /** Passes nothing on until resume(): the network is gone, no one is told. */
  stall(direction: Direction): void {
    this.#stalled[direction] = true;
  }

  resume(): void {
    this.#stalled = { up: false, down: false };
    for (const pair of this.#pairs) pair.pump();
  }

  /** Resets all connections now; what is held back is lost. */
  cut(): void {
    for (const pair of [...this.#pairs]) pair.cut();
  }

  /** New connections go to another port from now on: the store behind was started anew. */
  retarget(port: number): void {
    this.#targetPort = port;
  }

  /** New connections are reset at once until allowed again. */
  refuse(refusing: boolean): void {
    this.#refusing = refusing;
  }

  /** Ends the proxy and every connection through it. */
  close(): Promise<void> {
    this.cut();
    return new Promise((resolve) => { this.#server.close(() => { resolve(); }); });
  }

  delayOf(direction: Direction): number {
    return this.#delayMs[direction];
  }

  isStalled(direction: Direction): boolean {
    return this.#stalled[direction];
  }

  /** Records a frame; undefined when the record is full. */
  record(frame: FrameRecord, bodies: Uint8Array): FrameRecord | undefined {
    this.#options.onBodies?.(frame, bodies);
    if (this.records.length >= this.#recordsMax) {
      this.recordsLost++;
      return undefined;
    }
    this.records.push(frame);
    return frame;
  }

  forget(pair: Pair): void {
    this.#pairs.delete(pair);
  }

  #accept(client: net.Socket): void {
    if (this.#refusing) {
      client.on('error', () => undefined);
      client.resetAndDestroy();
      return;
    }
    this.#connections++;
    const server = net.connect({ host: this.#options.targetHost, port: this.#targetPort, noDelay: true, allowHalfOpen: true });
    this.#pairs.add(new Pair(this, this.#connections, client, server));
  }
}

/** One connection through the proxy: two sockets, two streams. */
class Pair {
  readonly #proxy: FaultProxy;
  readonly #up: Stream;
  readonly #down: Stream;
  #over = false;

  constructor(proxy: FaultProxy, number: number, client: net.Socket, server: net.Socket) {
    this.#proxy = proxy;
    this.#up = new Stream(proxy, number, 'up', client, server);
    this.#down = new Stream(proxy, number, 'down', server, client);
    for (const socket of [client, server]) {
      // A reset or refusal on one side is passed on as a reset on the other.
      socket.on('error', () => { this.cut(); });
      socket.on('close', () => { this.#onClosed(client, server); });
    }
  }

  pump(): void {
    this.#up.pump();
    this.#down.pump();
  }

  cut(): void {
    if (this.#over) return;
    this.#over = true;
    this.#up.stop();
    this.#down.stop();
    this.#proxy.forget(this);
  }

  #onClosed(client: net.Socket, server: net.Socket): void {
    if (client.destroyed && server.destroyed) this.cut();
  }
}

interface Held {
  readonly bytes: Uint8Array | undefined; // undefined: the end of the stream
  readonly dueMs: number;
  readonly frames: readonly FrameRecord[];
}

/** Held back at most, then the sender is not read: a stall must not grow this process. */
const HELD_BYTES_MAX = 16 * 1024 * 1024;

/** One direction of a connection. */
class Stream implements FrameSink {
  readonly #proxy: FaultProxy;
  readonly #connection: number;
  readonly #direction: Direction;
  readonly #from: net.Socket;
  readonly #to: net.Socket;
  readonly #reader = new FrameReader({ frameBytesMax: FRAME_BYTES_MAX }, { crc32 });
  #held: Held[] = [];
  #heldBytes = 0;
  /** Frames that ended in the chunk in work. */
  #ended: FrameRecord[] = [];
  #timer: NodeJS.Timeout | undefined;
  #isBlocked = false;
  #arrivedMs = 0;

  constructor(proxy: FaultProxy, connection: number, direction: Direction, from: net.Socket, to: net.Socket) {
    this.#proxy = proxy;
    this.#connection = connection;
    this.#direction = direction;
    this.#from = from;
    this.#to = to;
    from.on('data', (bytes: Buffer) => { this.#onData(bytes); });
    from.on('end', () => { this.#hold(undefined, []); });
    to.on('drain', () => {
      this.#isBlocked = false;
      this.pump();
    });
  }

  onFrame(type: number, sequence: number, control: Uint8Array, bodies: Uint8Array): void {
    const frame = this.#proxy.record(
      {
        connection: this.#connection,
        direction: this.#direction,
        type,
        name: messageTypeName(type),
        sequence,
        control: control.slice(),
        bodyBytes: bodies.length,
        arrivedMs: this.#arrivedMs,
        passedMs: Infinity,
      },
      bodies,
    );
    if (frame !== undefined) this.#ended.push(frame);
  }

  onInvalid(rule: string): void {
    this.#proxy.malformed.push(`${this.#direction} ${String(this.#connection)}: ${rule}`);
  }

  /** Hands on what is due; comes back by a timer for the rest. */
  pump(): void {
    clearTimeout(this.#timer);
    while (this.#held.length > 0 && !this.#isBlocked && !this.#proxy.isStalled(this.#direction)) {
      const next = this.#held[0];
      if (next === undefined) return;
      const nowMs = proxyNowMs();
      if (next.dueMs > nowMs) {
        this.#timer = setTimeout(() => { this.pump(); }, Math.max(1, next.dueMs - nowMs));
        return;
      }
      this.#held.shift();
      this.#pass(next, nowMs);
    }
  }

  stop(): void {
    clearTimeout(this.#timer);
    this.#held = [];
    this.#reader.stop();
    this.#from.resetAndDestroy();
  }

  #onData(bytes: Uint8Array): void {
    this.#arrivedMs = proxyNowMs();
    this.#reader.push(bytes, this);
    const frames = this.#ended;
    this.#ended = [];
    this.#hold(bytes, frames);
  }

  #hold(bytes: Uint8Array | undefined, frames: readonly FrameRecord[]): void {
    this.#held.push({ bytes, dueMs: proxyNowMs() + this.#proxy.delayOf(this.#direction), frames });
    this.#heldBytes += bytes?.length ?? 0;
    if (this.#heldBytes > HELD_BYTES_MAX) this.#from.pause();
    this.pump();
  }

  #pass(held: Held, nowMs: number): void {
    for (const frame of held.frames) frame.passedMs = nowMs;
    if (held.bytes === undefined) {
      this.#to.end();
      return;
    }
    this.#heldBytes -= held.bytes.length;
    if (this.#heldBytes <= HELD_BYTES_MAX && this.#from.isPaused()) this.#from.resume();
    if (!this.#to.write(held.bytes)) this.#isBlocked = true;
  }
}
