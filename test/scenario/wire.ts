/**
 * One TCP connection of the scenario world, as its two ends, and the wire between two processes that all their
 * connections on one network path share. Keeps the promises of platform/transport.ts; bytes are copied when they
 * arrive, not when they are written, so that a buffer written again too early shows.
 *
 *   Wire        what a test may do to all connections of one (client, server, path); network.ts sets it
 *   End         outgoing bytes ─ delay, pieces ─► peer's onData       waits while held, paused or the peer is frozen
 */
import type { Prng } from '../../src/base/prng.js';
import type { Connection, ConnectionHandlers } from '../../src/platform/transport.js';
import type { Scheduler } from './scheduler.js';
import type { Host } from './timeline.js';

export const DELAY_MS = 0.2;
const JITTER_MS = 0.3;
const PIECE_BYTES_MAX = 64 * 1024;
/** What a socket's buffer takes before onDrain is owed. */
const DRAIN_BYTES = 16 * 1024;

/** State of one network path between one gateway and one store. */
export class Wire {
  isCut = false;
  requestsHeld = false;
  answersHeld = false;
  /** Nothing passes, as if both were held, whoever else holds it or lets go. */
  isStranded = false;
  /** 0: as fast as pieces go. */
  bytesPerMs = 0;
  /** Pieces are at most so long. */
  pieceBytes = PIECE_BYTES_MAX;
  /** What a store writes goes through this: a store that breaks the protocol. */
  rewriteAnswer: ((chunk: Uint8Array) => Uint8Array) | undefined;
  readonly ends = new Set<End>();
  /** Connections and resets that are on their way while a direction is held. */
  waiting: (() => void)[] = [];

  /** A direction is free again: what waits goes on. */
  release(): void {
    if (this.isStranded) return;
    const waiting = this.waiting;
    this.waiting = [];
    for (const run of waiting) run();
    for (const end of this.ends) end.schedule();
  }
}

/** One side of a connection; its outgoing bytes are a queue towards the peer. */
export class End implements Connection {
  readonly remote: string;
  readonly wire: Wire;
  readonly isClient: boolean;
  readonly host: Host;
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

  constructor(options: { remote: string; wire: Wire; isClient: boolean; host: Host }, scheduler: Scheduler, prng: Prng) {
    this.remote = options.remote;
    this.wire = options.wire;
    this.isClient = options.isClient;
    this.host = options.host;
    this.scheduler = scheduler;
    this.prng = prng;
  }

  get bufferedBytes(): number {
    return this.waiting;
  }

  write(chunks: readonly Uint8Array[]): void {
    if (this.isOver || this.ending || this.isSilent) return;
    const rewrite = this.isClient ? undefined : this.wire.rewriteAnswer;
    for (const chunk of chunks) {
      const bytes = rewrite === undefined ? chunk : rewrite(chunk);
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

  /** Both sides are told, the other one when the news reaches it; what was on its way is lost. */
  reset(reason: string): void {
    if (this.isOver) return;
    this.isOver = true;
    this.outgoing = [];
    this.waiting = 0;
    this.wire.ends.delete(this);
    this.host.tell(() => { if (!this.isSilent) this.handlers?.onClose(reason); });
    const peer = this.peer;
    if (peer === undefined || peer.isOver) return;
    const tell = (): void => { this.scheduler.after(DELAY_MS, () => { peer.reset(reason); }); };
    if (this.isHeld) this.wire.waiting.push(tell);
    else tell();
  }

  schedule(): void {
    if (this.scheduled || this.isOver || this.waiting === 0) return;
    this.scheduled = true;
    this.scheduler.after(DELAY_MS + this.prng.next() * JITTER_MS, () => { this.deliver(); });
  }

  private get isHeld(): boolean {
    return this.wire.isStranded || (this.isClient ? this.wire.requestsHeld : this.wire.answersHeld);
  }

  private deliver(): void {
    this.scheduled = false;
    const peer = this.peer;
    if (this.isOver || peer === undefined || this.isHeld || peer.paused || this.waiting === 0) return;
    // A frozen process reads nothing, nor one that has not accepted yet; both are woken when that ends.
    if (peer.host.isFrozen || (peer.handlers === undefined && !peer.isSilent)) return;
    const bytes = this.take(1 + this.prng.below(this.wire.pieceBytes));
    if (!peer.isSilent) peer.handlers?.onData(bytes);
    if (this.waiting > 0) {
      this.scheduled = true;
      const rate = this.wire.bytesPerMs;
      this.scheduler.after(rate === 0 ? 0 : bytes.length / rate, () => { this.deliver(); });
    } else if (this.ending) this.reset('ended by the peer');
    else if (this.owesDrain) {
      this.owesDrain = false;
      this.host.tell(() => { if (!this.isSilent && !this.isOver) this.handlers?.onDrain(); });
    }
  }

  /** Up to `most` bytes, as they are now: a copy of the buffers that were written. */
  private take(most: number): Uint8Array {
    const first = this.outgoing[0];
    if (first !== undefined && first.at === 0 && this.waiting === first.bytes.length && this.waiting <= most) {
      this.outgoing.length = 0;
      this.waiting = 0;
      return Uint8Array.prototype.slice.call(first.bytes);
    }
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
