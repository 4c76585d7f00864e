/**
 * SMTP reception: listens, and makes a session of each connection. The port opens when the gateway is ready
 * and closes when it is not, so that the load balancer moves on (G6); connections already open stay and get
 * 421 at their next MAIL.
 *
 *   startInbound ──▶ closed ──openPort──▶ open ──closePort──▶ closed …
 *                       └────────── close(bound) ──────────▶ gone: no port, each message in DATA answered or
 *                                                            cut off at the bound, promise kept
 *
 * The shell of the sessions (session/session.ts), which are pure: sockets, TLS, one timer for all deadlines.
 */
import { addressText } from '../../base/address-text.js';
import { toAscii } from '../../platform/node/idna.js';
import { latin1Text } from '../../platform/node/latin1.js';
import { StreamServer } from '../../platform/node/server-socket.js';
import { ServerTls } from '../../platform/node/server-tls.js';
import type { ServerTlsEvents, ServerTlsFiles } from '../../platform/node/server-tls.js';
import type { ClientCounts } from './limits/client-counts.js';
import type { InboundOptions, InboundPorts } from './options.js';
import { Desk } from './session/desk.js';
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
  /** For good: answers what is in DATA, at most `boundMs` long, then cuts off. */
  close(boundMs: number): Promise<void>;
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
  readonly #desk: Desk;
  readonly #server: StreamServer;
  readonly #tls: ServerTls | undefined;
  #port: number;
  #ticker: NodeJS.Timeout | undefined;
  #closing: Promise<void> | undefined;

  constructor(options: ListenerOptions, ports: ListenerPorts) {
    const { tls, ...rest } = options;
    this.#port = options.port;
    this.#desk = new Desk({ ...rest, offersTls: tls !== undefined }, {
      ...ports, toAscii, latin1Text, nextTurn: (run) => { setImmediate(run); },
    });
    this.#desk.onEmpty = (): void => { this.#onEmpty(); };
    this.#tls = tls === undefined ? undefined : new ServerTls(tls, tlsEvents(options, ports));
    this.#server = new StreamServer({
      connectionsMax: options.connectionsMax + REFUSED_CONNECTIONS_MAX,
      backlog: BACKLOG,
      tls: this.#tls,
    }, (connection) => {
      if (this.#desk.isClosing) return undefined;
      // Node runs timers before it reads sockets: after a stall of the loop the bytes that would have met a
      // deadline may still lie in the kernel. Hence sessions see the time after one full poll.
      this.#ticker ??= setInterval(() => setImmediate(() => { this.#desk.tick(); }), TICK_MS).unref();
      return new ServerSession(this.#desk, connection);
    });
  }

  get port(): number {
    return this.#port;
  }

  get clients(): ClientCounts {
    return this.#desk.clients;
  }

  get isOpen(): boolean {
    return this.#server.isListening;
  }

  get connections(): number {
    return this.#desk.live.size;
  }

  async openPort(): Promise<void> {
    if (this.#server.isListening || this.#desk.isClosing) return;
    const { host } = this.#desk.options;
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
    this.#tls?.setTicketKeys(keys);
  }

  close(boundMs: number): Promise<void> {
    this.#tls?.close();
    this.#closing ??= this.#drain(boundMs);
    return this.#closing;
  }

  #onEmpty(): void {
    clearInterval(this.#ticker);
    this.#ticker = undefined;
  }

  #drain(boundMs: number): Promise<void> {
    const desk = this.#desk;
    desk.isClosing = true;
    this.closePort();
    if (desk.live.size === 0) return Promise.resolve();
    return new Promise((resolve) => {
      const cutOff = setTimeout(() => {
        for (const session of desk.live) session.destroy();
      }, boundMs);
      desk.onEmpty = () => {
        clearTimeout(cutOff);
        this.#onEmpty();
        resolve();
      };
      for (const session of desk.live) session.shutDown();
    });
  }
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
