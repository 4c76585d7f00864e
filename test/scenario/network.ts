/**
 * TCP between the processes of the scenario world: byte streams that arrive late, in other pieces than they
 * were sent, not at all, or end in a reset. Keeps the promises of platform/transport.ts; bytes are copied when
 * they arrive, not when they are written, so that a buffer written again too early shows.
 *
 *   Wire of each (gateway, store): what a test may do to all connections between the two
 *     cut / heal          reset all, refuse new ones / accept again
 *     holdAnswers(true)   bytes from the store wait;  holdRequests(true)  bytes to it wait;  until false
 *     bytesPerMs          slow link
 */
import type { Prng } from '../../src/base/prng.js';
import type { Connection, ConnectionHandlers, Transport } from '../../src/platform/transport.js';
import type { Scheduler } from './scheduler.js';

export type Accept = (connection: Connection) => ConnectionHandlers;

const DELAY_MS = 0.2;
const JITTER_MS = 0.3;
const PIECE_BYTES_MAX = 64 * 1024;
/** What a socket's buffer takes before onDrain is owed. */
const DRAIN_BYTES = 16 * 1024;

/** State of the network between one gateway and one store. */
export class Wire {
  isCut = false;
  requestsHeld = false;
  answersHeld = false;
  /** 0: as fast as pieces go. */
  bytesPerMs = 0;
  /** Pieces are at most so long. */
  pieceBytes = PIECE_BYTES_MAX;
  readonly ends = new Set<End>();
}

/** One side of a connection; its outgoing bytes are a queue towards the peer. */
class End implements Connection {
  readonly remote: string;
  readonly wire: Wire;
  readonly isClient: boolean;
  peer: End | undefined;
  handlers: ConnectionHandlers | undefined;
  /** The process behind this end is gone, or the machine gave the connection up: no callbacks. */
  isSilent = false;
  isOver = false;
  private ending = false;
  private paused = false;
  private owesDrain = false;
  private scheduled = false;
  private outgoing: { bytes: Uint8Array; at: number }[] = [];
  private waiting = 0;
  private readonly scheduler: Scheduler;
  private readonly prng: Prng;

  constructor(remote: string, wire: Wire, isClient: boolean, scheduler: Scheduler, prng: Prng) {
    this.remote = remote;
    this.wire = wire;
    this.isClient = isClient;
    this.scheduler = scheduler;
    this.prng = prng;
  }

  get bufferedBytes(): number {
    return this.waiting;
  }

  write(chunks: readonly Uint8Array[]): void {
    if (this.isOver || this.ending || this.isSilent) return;
    for (const bytes of chunks) {
      if (bytes.length === 0) continue;
      this.outgoing.push({ bytes, at: 0 });
      this.waiting += bytes.length;
    }
    if (this.waiting > DRAIN_BYTES) this.owesDrain = true;
    this.schedule();
  }

  pause(): void {
    this.paused = true;
  }

  resume(): void {
    this.paused = false;
    this.peer?.schedule();
  }

  end(): void {
    if (this.isOver || this.ending) return;
    this.ending = true;
    this.isSilent = true;
    if (this.waiting === 0) this.reset('ended by the peer');
  }

  destroy(): void {
    if (this.isOver) return;
    this.isSilent = true;
    this.reset('reset by the peer');
  }

  /** Both sides are told; what was on its way is lost. */
  reset(reason: string): void {
    if (this.isOver) return;
    this.isOver = true;
    this.outgoing = [];
    this.waiting = 0;
    this.wire.ends.delete(this);
    this.scheduler.soon(() => { if (!this.isSilent) this.handlers?.onClose(reason); });
    const peer = this.peer;
    if (peer === undefined || peer.isOver) return;
    this.scheduler.after(DELAY_MS, () => { peer.reset(reason); });
  }

  schedule(): void {
    if (this.scheduled || this.isOver || this.waiting === 0) return;
    this.scheduled = true;
    this.scheduler.after(DELAY_MS + this.prng.next() * JITTER_MS, () => { this.deliver(); });
  }

  private get isHeld(): boolean {
    return this.isClient ? this.wire.requestsHeld : this.wire.answersHeld;
  }

  private deliver(): void {
    this.scheduled = false;
    const peer = this.peer;
    if (this.isOver || peer === undefined || this.isHeld || peer.paused || this.waiting === 0) return;
    const bytes = this.take(1 + this.prng.below(this.wire.pieceBytes));
    if (!peer.isSilent) peer.handlers?.onData(bytes);
    if (this.waiting > 0) {
      this.scheduled = true;
      const rate = this.wire.bytesPerMs;
      this.scheduler.after(rate === 0 ? 0 : bytes.length / rate, () => { this.deliver(); });
    } else if (this.ending) this.reset('ended by the peer');
    else if (this.owesDrain) {
      this.owesDrain = false;
      if (!this.isSilent) this.handlers?.onDrain();
    }
  }

  /** Up to `most` bytes, as they are now: a copy of the buffers that were written. */
  private take(most: number): Uint8Array {
    const piece = new Uint8Array(Math.min(most, this.waiting));
    let filled = 0;
    while (filled < piece.length) {
      const next = this.outgoing[0];
      if (next === undefined) break;
      const part = next.bytes.subarray(next.at, next.at + piece.length - filled);
      piece.set(part, filled);
      filled += part.length;
      next.at += part.length;
      if (next.at === next.bytes.length) this.outgoing.shift();
    }
    this.waiting -= piece.length;
    return piece;
  }
}

export class Network {
  private readonly scheduler: Scheduler;
  private readonly prng: Prng;
  private readonly listeners = new Map<string, Accept>();
  private readonly wires = new Map<string, Wire>();
  /** Ends by the process that owns them, so that its death is seen by the others. */
  private readonly owned = new Map<string, Set<End>>();

  constructor(scheduler: Scheduler, prng: Prng) {
    this.scheduler = scheduler;
    this.prng = prng;
  }

  wire(client: string, server: string): Wire {
    const key = `${client}>${server}`;
    const known = this.wires.get(key) ?? new Wire();
    this.wires.set(key, known);
    return known;
  }

  listen(host: string, accept: Accept): void {
    this.listeners.set(host, accept);
  }

  /** The process behind `host` is gone: its connections are reset, it hears nothing any more. */
  dropProcess(host: string): void {
    this.listeners.delete(host);
    for (const end of this.owned.get(host) ?? []) {
      end.isSilent = true;
      end.reset('reset by the peer');
    }
    this.owned.delete(host);
  }

  cut(client: string, server: string): void {
    const wire = this.wire(client, server);
    wire.isCut = true;
    for (const end of [...wire.ends]) end.reset('connection reset');
  }

  heal(client: string, server: string): void {
    this.wire(client, server).isCut = false;
  }

  holdRequests(client: string, server: string, held: boolean): void {
    const wire = this.wire(client, server);
    wire.requestsHeld = held;
    if (!held) for (const end of wire.ends) end.schedule();
  }

  holdAnswers(client: string, server: string, held: boolean): void {
    const wire = this.wire(client, server);
    wire.answersHeld = held;
    if (!held) for (const end of wire.ends) end.schedule();
  }

  transportOf(client: string): Transport {
    return { connect: (host, _port, handlers) => this.connect(client, host, handlers) };
  }

  private connect(client: string, server: string, handlers: ConnectionHandlers): Connection {
    const wire = this.wire(client, server);
    const near = new End(server, wire, true, this.scheduler, this.prng);
    near.handlers = handlers;
    wire.ends.add(near);
    this.own(client, near);
    this.scheduler.after(DELAY_MS, () => {
      if (near.isOver) return;
      const accept = this.listeners.get(server);
      if (wire.isCut || accept === undefined) {
        near.reset('connection refused');
        return;
      }
      const far = new End(client, wire, false, this.scheduler, this.prng);
      near.peer = far;
      far.peer = near;
      wire.ends.add(far);
      this.own(server, far);
      far.handlers = accept(far);
      far.handlers.onOpen();
      this.scheduler.soon(() => { if (!near.isOver && !near.isSilent) handlers.onOpen(); });
    });
    return near;
  }

  private own(host: string, end: End): void {
    const ends = this.owned.get(host) ?? new Set<End>();
    ends.add(end);
    this.owned.set(host, ends);
  }
}
