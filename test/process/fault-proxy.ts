/**
 * A TCP proxy for tests, put between a gateway and a store: it records every frame in both directions with
 * the time at which its last byte came by, so that a test judges from outside what came first ("the 250
 * after both acknowledgements"), and it makes faults: whole connections are cut, refused, stalled or closed
 * on one side; bytes are delayed, split, joined, damaged or dropped by a seed (stream-faults.ts), each
 * direction by itself.
 *
 *   gateway ──► proxy (records, delays) ──► store          up:   gateway to store
 *           ◄──                         ◄──                down: store to gateway
 *
 * Without faults bytes pass unchanged and in order. Frames are recorded as they were sent; one that lies
 * behind damage in its stream is never noted as passed. Times are performance.now() plus its origin, so
 * that processes on one machine compare. Bounded: a side that is not read stops the other side; only
 * `recordsMax` frames are kept, the rest is counted.
 */
import net from 'node:net';
import { ProxyStream, type StreamHost } from './proxy-stream.js';
import { DamagedStream, type Damage, type StreamFaults } from './stream-faults.js';

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
  /** Infinity while it is held back, and for ever when the connection was cut or damaged first. */
  passedMs: number;
}

/** Something that was done to a stream. */
export interface DamageRecord extends Damage {
  readonly connection: number;
  readonly direction: Direction;
  readonly atMs: number;
}

export interface FaultProxyOptions {
  readonly targetHost: string;
  readonly targetPort: number;
  /** 0 picks a free one. */
  readonly listenPort?: number;
  readonly recordsMax?: number;
  /** Decides what faults() leaves to chance. Default 1. */
  readonly seed?: number;
  /** Copies bodies of frames too, for checks of content; off, since they are large. */
  readonly onBodies?: (record: FrameRecord, bodies: Uint8Array) => void;
}

/** Milliseconds since the epoch on the monotonic clock: comparable between processes of one machine. */
export function proxyNowMs(): number {
  return performance.timeOrigin + performance.now();
}

export class FaultProxy implements StreamHost {
  readonly records: FrameRecord[] = [];
  /** Frames beyond recordsMax. */
  recordsLost = 0;
  /** Rule broken by a stream; then it passes on unrecorded. */
  readonly malformed: string[] = [];
  readonly damage: DamageRecord[] = [];
  readonly #options: FaultProxyOptions;
  readonly #recordsMax: number;
  #targetPort: number;
  readonly #server: net.Server;
  readonly #pairs = new Set<Pair>();
  #connections = 0;
  #faults: Record<Direction, StreamFaults> = { up: {}, down: {} };
  #timesSet = 0;
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

  /** Connections that were ever taken. */
  get connectionsSeen(): number {
    return this.#connections;
  }

  get openConnections(): number {
    return this.#pairs.size;
  }

  /** Holds what comes from now on back for so long. */
  delay(direction: Direction, ms: number): void {
    this.faults(direction, { delayMs: ms });
  }

  /** From now on, on connections open now and later ones; {} ends them. */
  faults(direction: Direction, faults: StreamFaults): void {
    this.#faults[direction] = faults;
    this.#timesSet++;
    for (const pair of this.#pairs) pair.faults(direction);
  }

  /** Ends one direction of all connections open now: what comes that way later is dropped. */
  halfClose(direction: Direction): void {
    for (const pair of this.#pairs) pair.halfClose(direction);
  }

  /** Passes nothing on until resume(): the network is gone, no one is told. */
  stall(direction: Direction): void {
    this.#stalled[direction] = true;
  }

  /** One direction, or both. */
  resume(direction?: Direction): void {
    if (direction === undefined) this.#stalled = { up: false, down: false };
    else this.#stalled[direction] = false;
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

  /** A stream's share of the faults: its own seed, so that one does not change what happens to another. */
  damaged(direction: Direction, connection: number, offset: number): DamagedStream {
    const seed = (this.#options.seed ?? 1) * 1_000_003 + this.#timesSet * 4099 + connection * 2 + (direction === 'up' ? 0 : 1);
    return new DamagedStream(this.#faults[direction], seed, offset);
  }

  nowMs(): number {
    return proxyNowMs();
  }

  isStalled(direction: Direction): boolean {
    return this.#stalled[direction];
  }

  /** Records a frame, and counts it when the record is full. */
  record(frame: FrameRecord, bodies: Uint8Array): void {
    this.#options.onBodies?.(frame, bodies);
    if (this.records.length >= this.#recordsMax) {
      this.recordsLost++;
      return;
    }
    this.records.push(frame);
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
  readonly #up: ProxyStream;
  readonly #down: ProxyStream;
  #over = false;

  constructor(proxy: FaultProxy, number: number, client: net.Socket, server: net.Socket) {
    this.#proxy = proxy;
    this.#up = new ProxyStream(proxy, number, 'up', client, server);
    this.#down = new ProxyStream(proxy, number, 'down', server, client);
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

  faults(direction: Direction): void {
    this.#of(direction).faults();
  }

  halfClose(direction: Direction): void {
    this.#of(direction).halfClose();
  }

  #of(direction: Direction): ProxyStream {
    return direction === 'up' ? this.#up : this.#down;
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
