/**
 * TCP between the processes of the scenario world: byte streams that arrive late, in other pieces than they
 * were sent, not at all, or end in a reset (wire.ts). A store listens on two network paths; the port that is
 * connected to says which: 1 is path A, 2 is path B.
 *
 *   what a test may do to one path between two processes, or to both when none is named
 *     cut / heal          reset all connections, refuse new ones / accept again
 *     holdAnswers(true)   bytes from the store wait;  holdRequests(true)  bytes to it wait;  until false
 *     strand(true)        nothing passes, whatever else is done to it, until false
 *     rewriteAnswers      each chunk that the store writes goes through a function
 *     slow                so many bytes a millisecond, in small pieces; 0 ends it
 */
import type { Prng } from '../../src/base/prng.js';
import type { Connection, ConnectionHandlers, Transport } from '../../src/platform/transport.js';
import type { Scheduler } from './scheduler.js';
import type { Host } from './timeline.js';
import { DELAY_MS, End, Wire } from './wire.js';

export type Accept = (connection: Connection) => ConnectionHandlers;
export type Path = 'A' | 'B';

const PATHS: readonly Path[] = ['A', 'B'];
const PIECE_BYTES = 64 * 1024;

export class Network {
  private readonly scheduler: Scheduler;
  private readonly prng: Prng;
  private readonly listeners = new Map<string, Accept>();
  private readonly wires = new Map<string, Wire>();
  private readonly hosts = new Map<string, Host>();
  private readonly plainHost: Host;
  /** Ends by the process that owns them, so that its death is seen by the others. */
  private readonly owned = new Map<string, Set<End>>();

  constructor(scheduler: Scheduler, prng: Prng) {
    this.scheduler = scheduler;
    this.prng = prng;
    this.plainHost = { isFrozen: false, tell: (run) => { scheduler.soon(run); } };
  }

  /** The machine behind a name, where it can be frozen. */
  addHost(name: string, host: Host): void {
    this.hosts.set(name, host);
  }

  wire(client: string, server: string, path: Path): Wire {
    const key = `${client}>${server}/${path}`;
    const known = this.wires.get(key) ?? new Wire();
    this.wires.set(key, known);
    return known;
  }

  listen(host: string, accept: Accept): void {
    this.listeners.set(host, accept);
  }

  /**
   * The process behind `host` is gone: its connections end, it hears nothing any more. `lingers`: its kernel still
   * sends what was written, maybe long after a new process of the same name has connected.
   */
  dropProcess(host: string, lingers = false): void {
    this.listeners.delete(host);
    for (const end of this.owned.get(host) ?? []) {
      end.isSilent = true;
      if (lingers) end.end();
      else end.reset('reset by the peer');
    }
    this.owned.delete(host);
  }

  /** A frozen process goes on: what has arrived meanwhile is read. */
  thaw(host: string): void {
    for (const end of this.owned.get(host) ?? []) {
      if (end.isOver) this.owned.get(host)?.delete(end);
      else end.peer?.schedule();
    }
  }

  cut(client: string, server: string, path?: Path): void {
    this.each(client, server, path, (wire) => {
      wire.isCut = true;
      for (const end of [...wire.ends]) end.reset('connection reset');
    });
  }

  /** Resets the connections that are there; new ones are accepted. */
  reset(client: string, server: string, path?: Path): void {
    this.each(client, server, path, (wire) => {
      for (const end of [...wire.ends]) end.reset('connection reset');
    });
  }

  heal(client: string, server: string, path?: Path): void {
    this.each(client, server, path, (wire) => { wire.isCut = false; });
  }

  holdRequests(client: string, server: string, held: boolean, path?: Path): void {
    this.each(client, server, path, (wire) => {
      wire.requestsHeld = held;
      if (!held) wire.release();
    });
  }

  holdAnswers(client: string, server: string, held: boolean, path?: Path): void {
    this.each(client, server, path, (wire) => {
      wire.answersHeld = held;
      if (!held) wire.release();
    });
  }

  strand(client: string, server: string, stranded: boolean): void {
    this.each(client, server, undefined, (wire) => {
      wire.isStranded = stranded;
      if (!stranded) wire.release();
    });
  }

  rewriteAnswers(client: string, server: string, rewrite: (chunk: Uint8Array) => Uint8Array, path?: Path): void {
    this.each(client, server, path, (wire) => { wire.rewriteAnswer = rewrite; });
  }

  slow(client: string, server: string, bytesPerMs: number, path?: Path): void {
    this.each(client, server, path, (wire) => {
      wire.bytesPerMs = bytesPerMs;
      wire.pieceBytes = bytesPerMs === 0 ? PIECE_BYTES : Math.max(64, bytesPerMs * 4);
    });
  }

  /** Whether bytes pass slowly on one of the paths. */
  isSlow(client: string, server: string): boolean {
    return PATHS.some((path) => this.wire(client, server, path).bytesPerMs > 0);
  }

  /** Splits what is sent into pieces of at most so many bytes. */
  split(client: string, server: string, pieceBytes: number, path?: Path): void {
    this.each(client, server, path, (wire) => { wire.pieceBytes = pieceBytes; });
  }

  transportOf(client: string): Transport {
    return { connect: (host, port, handlers) => this.connect(client, host, port === 2 ? 'B' : 'A', handlers) };
  }

  private each(client: string, server: string, path: Path | undefined, run: (wire: Wire) => void): void {
    for (const name of PATHS) if (path === undefined || path === name) run(this.wire(client, server, name));
  }

  private hostOf(name: string): Host {
    return this.hosts.get(name) ?? this.plainHost;
  }

  private connect(client: string, server: string, path: Path, handlers: ConnectionHandlers): Connection {
    const wire = this.wire(client, server, path);
    const near = new End({ remote: server, wire, isClient: true, host: this.hostOf(client) }, this.scheduler, this.prng);
    near.handlers = handlers;
    wire.ends.add(near);
    this.own(client, near);
    this.scheduler.after(DELAY_MS, () => { this.arrive(near, client, server); });
    return near;
  }

  /** The request to connect reaches the other machine, once both directions let it through. */
  private arrive(near: End, client: string, server: string): void {
    if (near.isOver) return;
    const { wire } = near;
    if (wire.isStranded || wire.requestsHeld || wire.answersHeld) {
      wire.waiting.push(() => { this.arrive(near, client, server); });
      return;
    }
    const accept = this.listeners.get(server);
    if (wire.isCut || accept === undefined) {
      near.reset('connection refused');
      return;
    }
    const host = this.hostOf(server);
    const far = new End({ remote: client, wire, isClient: false, host }, this.scheduler, this.prng);
    near.peer = far;
    far.peer = near;
    wire.ends.add(far);
    this.own(server, far);
    const take = (): void => {
      if (far.isOver || far.isSilent) return;
      far.handlers = accept(far);
      far.handlers.onOpen();
      near.schedule();
    };
    if (host.isFrozen) host.tell(take);
    else take();
    near.host.tell(() => { if (!near.isOver && !near.isSilent) near.handlers?.onOpen(); });
  }

  private own(host: string, end: End): void {
    const ends = this.owned.get(host) ?? new Set<End>();
    ends.add(end);
    this.owned.set(host, ends);
  }
}
