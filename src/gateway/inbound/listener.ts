/**
 * SMTP reception: listens, and makes a session of each connection. The port opens when the gateway is ready
 * and closes when it is not, so that the load balancer moves on (G6); connections already open stay and get
 * 421 at their next MAIL.
 *
 *   startInbound ──▶ closed ──openPort──▶ open ──closePort──▶ closed …
 *                       └────────── close(bound) ──────────▶ gone: no port, each message in DATA answered or
 *                                                            cut off at the bound, promise kept
 *
 * Another configuration (prepare) is for connections that come: each session goes by the one it began with.
 *
 * The shell of the sessions (session/session.ts), which are pure: sockets, TLS, one timer for all deadlines.
 */
import { addressText } from '../../base/address-text.js';
import { toAscii } from '../../platform/node/idna.js';
import { latin1Text } from '../../platform/node/latin1.js';
import { StreamServer } from '../../platform/node/server-socket.js';
import { ServerTls } from '../../platform/node/server-tls.js';
import type { ServerTlsEvents, ServerTlsFiles } from '../../platform/node/server-tls.js';
import { ClientCounts } from './limits/client-counts.js';
import type { InboundOptions, InboundPorts } from './options.js';
import { Desk } from './session/desk.js';
import type { Crowd } from './session/desk.js';
import { ServerSession } from './session/session.js';

export interface ListenerOptions extends Omit<InboundOptions, 'offersTls'> {
  /** Without a certificate there is no TLS. */
  readonly tls: ServerTlsFiles | undefined;
}

export type ListenerPorts = Omit<InboundPorts, 'toAscii' | 'latin1Text' | 'nextTurn'>;

export interface RunningInbound {
  /** The port bound, or to be bound; known once openPort() has been kept, also when 0 was asked for. */
  readonly port: number;
  readonly isOpen: boolean;
  readonly connections: number;
  /** Rejects with a clear text when the address can't be bound. Open already: nothing happens. */
  openPort(): Promise<void>;
  /** Accepts no more connections. */
  closePort(): void;
  /** How many connections each client has, here and at other workers. */
  readonly clients: ClientCounts;
  /** Of TLS sessions, from now on (platform/node/server-tls.ts). */
  setTicketKeys(keys: Buffer): void;
  /**
   * Another configuration for connections from now on: its port and the sessions that are there stay. Throws
   * when it can't be used; nothing has changed before use(), nor after drop().
   */
  prepare(options: ListenerOptions, ports: ListenerPorts): Renewal;
  /** Until putInForce(), connections get 421: its configuration may still be refused. */
  hold(): void;
  /** Its configuration is in force, maybe again: the files of its certificate are looked at. */
  putInForce(): void;
  /** New sessions go by these, or there are some that do. */
  goesBy(ports: ListenerPorts): boolean;
  /** For good: answers what is in DATA, at most `boundMs` long, then cuts off. */
  close(boundMs: number): Promise<void>;
}

/** What is ready to be put in force: one of the two, once. */
export interface Renewal {
  use(): void;
  drop(): void;
}

/** Beyond the connections served, this many may wait for their 421; more are dropped by the kernel side. */
const REFUSED_CONNECTIONS_MAX = 256;

/**
 * Clients that may wait to be accepted (Linux allows 4,096 unless told otherwise): after a restart all come
 * back at once, and whom the system has no place for asks again only after a second, then two, four and so
 * on.
 */
const BACKLOG = 4096;

/** How often the sessions see time. */
const TICK_MS = 50;

export function startInbound(options: ListenerOptions, ports: ListenerPorts): RunningInbound {
  return new Inbound(options, ports);
}

class Inbound implements RunningInbound {
  readonly #crowd: Crowd = { connections: 0, clients: new ClientCounts() };
  readonly #server: StreamServer;
  #options: ListenerOptions;
  #ports: ListenerPorts;
  /** Of connections from now on. */
  #desk: Desk;
  #tls: ServerTls | undefined;
  /** Of earlier configurations, while sessions go by them. */
  readonly #before = new Map<Desk, ListenerPorts>();
  #ticketKeys: Buffer | undefined;
  #port: number;
  #ticker: NodeJS.Timeout | undefined;
  #closing: Promise<void> | undefined;
  #onDrained: (() => void) | undefined;

  constructor(options: ListenerOptions, ports: ListenerPorts) {
    this.#options = options;
    this.#ports = ports;
    this.#port = options.port;
    this.#desk = this.#makeDesk(options, ports);
    this.#tls = makeTls(options, ports);
    const bound = { ...bounds(options), backlog: BACKLOG, tls: this.#tls };
    this.#server = new StreamServer(bound, (connection) => {
      if (this.#closing !== undefined) return undefined;
      // Node runs timers before it reads sockets: after a stall of the loop the bytes that would have met a
      // deadline may still lie in the kernel. Hence sessions see the time after one full poll.
      this.#ticker ??= setInterval(() => setImmediate(() => { this.#tick(); }), TICK_MS).unref();
      return new ServerSession(this.#desk, connection);
    });
  }

  get port(): number {
    return this.#port;
  }

  get clients(): ClientCounts {
    return this.#crowd.clients;
  }

  get isOpen(): boolean {
    return this.#server.isListening;
  }

  get connections(): number {
    return this.#crowd.connections;
  }

  async openPort(): Promise<void> {
    if (this.#server.isListening || this.#closing !== undefined) return;
    const { host } = this.#options;
    try {
      this.#port = await this.#server.listen(host, this.#port);
      this.#desk.listener = addressText(host, this.#port);
    } catch (error) {
      const { code, message } = error as NodeJS.ErrnoException;
      const why = code === 'EADDRINUSE' ? 'another program has it' : message;
      const name = addressText(host, this.#port);
      throw new Error(`Opening the SMTP port ${name}: ${why}. Stop the other program, or take another.`);
    }
  }

  closePort(): void {
    this.#server.close();
  }

  setTicketKeys(keys: Buffer): void {
    this.#ticketKeys = keys;
    this.#tls?.setTicketKeys(keys);
  }

  prepare(options: ListenerOptions, ports: ListenerPorts): Renewal {
    const desk = this.#makeDesk(options, ports);
    const isTlsKept = JSON.stringify(options.tls) === JSON.stringify(this.#options.tls);
    const tls = isTlsKept ? this.#tls : makeTls(options, ports);
    if (!isTlsKept && this.#ticketKeys !== undefined) tls?.setTicketKeys(this.#ticketKeys);
    return {
      use: () => {
        if (this.#desk.live.size > 0) this.#before.set(this.#desk, this.#ports);
        desk.listener = this.#desk.listener;
        this.#desk = desk;
        this.#options = options;
        this.#ports = ports;
        if (!isTlsKept) this.#tls?.close();
        this.#tls = tls;
        this.#server.renew({ ...bounds(options), tls });
      },
      drop: () => { if (!isTlsKept) tls?.close(); },
    };
  }

  hold(): void {
    this.#desk.isHeld = true;
  }

  putInForce(): void {
    this.#desk.isHeld = false;
    this.#tls?.look();
  }

  goesBy(ports: ListenerPorts): boolean {
    return this.#ports === ports || [...this.#before.values()].includes(ports);
  }

  close(boundMs: number): Promise<void> {
    this.#tls?.close();
    this.#closing ??= this.#drain(boundMs);
    return this.#closing;
  }

  #makeDesk(options: ListenerOptions, ports: ListenerPorts): Desk {
    const { tls, ...rest } = options;
    const desk = new Desk({ ...rest, offersTls: tls !== undefined }, {
      ...ports, toAscii, latin1Text, nextTurn: (run) => { setImmediate(run); },
    }, this.#crowd);
    desk.onEmpty = (): void => { this.#onEmpty(desk); };
    return desk;
  }

  #tick(): void {
    this.#desk.tick();
    for (const desk of this.#before.keys()) desk.tick();
  }

  /** The last session of the desk has gone. */
  #onEmpty(desk: Desk): void {
    this.#before.delete(desk);
    if (this.#crowd.connections > 0) return;
    clearInterval(this.#ticker);
    this.#ticker = undefined;
    this.#onDrained?.();
  }

  #drain(boundMs: number): Promise<void> {
    this.closePort();
    const desks = [...this.#before.keys(), this.#desk];
    for (const desk of desks) desk.isClosing = true;
    if (this.#crowd.connections === 0) return Promise.resolve();
    return new Promise((resolve) => {
      const cutOff = setTimeout(() => {
        for (const desk of desks) for (const session of desk.live) session.destroy();
      }, boundMs);
      this.#onDrained = () => {
        clearTimeout(cutOff);
        resolve();
      };
      for (const desk of desks) for (const session of desk.live) session.shutDown();
    });
  }
}

function bounds({ connectionsMax }: ListenerOptions): { readonly connectionsMax: number } {
  return { connectionsMax: connectionsMax + REFUSED_CONNECTIONS_MAX };
}

/** Throws when its files can't be used. */
function makeTls(options: ListenerOptions, ports: ListenerPorts): ServerTls | undefined {
  return options.tls === undefined ? undefined : new ServerTls(options.tls, tlsEvents(options, ports));
}

function tlsEvents({ host, port }: ListenerOptions, { log, metrics }: ListenerPorts): ServerTlsEvents {
  const listener = addressText(host, port);
  metrics.certificateStale(false);
  return {
    onRenewed: ({ subject, expires }) => {
      metrics.certificateStale(false);
      log.info('tls', 'the certificate was read anew', { listener, subject, expires });
    },
    onProblem: (why) => {
      metrics.certificateStale(true);
      log.error('tls', 'the new certificate can\'t be used, the old one stays', { listener, why });
    },
    onHandshake: (result) => { metrics.handshakeEnded(result); },
  };
}
