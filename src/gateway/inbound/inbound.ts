/**
 * SMTP reception: listens, and makes an InboundConnection of each socket. The port opens when the gateway is
 * ready and closes when it is not, so that the load balancer moves on (G6); connections already open stay and
 * get 421 at their next MAIL.
 *
 *   startInbound ──▶ closed ──openPort──▶ open ──closePort──▶ closed …
 *                       └────────── close(bound) ──────────▶ gone: no port, each message in DATA answered or
 *                                                            cut off at the bound, promise kept
 *
 * The library's own close() is not used: it would refuse the commands of messages under way, and kept one
 * timer of half a minute. Nor are its PROXY, XCLIENT, AUTH and stream parts (content-stream.ts, connection.ts): an
 * accepted socket becomes a connection in the same turn, without waiting for a PROXY header that never comes.
 *
 * No error of a client reaches the process: the socket has an error handler from the moment it is accepted, connection
 * and server have theirs.
 */

import type { Socket } from 'node:net';
import { SMTPServer } from 'smtp-server';
import { InboundConnection } from './connection.js';
import { InboundHub } from './hub.js';
import type { InboundOptions, InboundPorts } from './options.js';

export interface RunningInbound {
  /** The port bound, or to be bound; known once openPort() has been kept, also when 0 was asked for. */
  readonly port: number;
  readonly isOpen: boolean;
  readonly connections: number;
  /** Rejects with a clear text when the address can't be bound. Open already: nothing happens. */
  openPort(): Promise<void>;
  /** Accepts no more connections. */
  closePort(): void;
  /** For good: answers what is in DATA, at most `boundMs` long, then cuts off. */
  close(boundMs: number): Promise<void>;
}

/** Beyond the connections served, this many may wait for their 421; more are dropped by the kernel side. */
const REFUSED_CONNECTIONS_MAX = 256;

/**
 * Clients that may wait to be accepted (Linux allows 4,096 unless told otherwise): after a restart all come back at
 * once, and whom the system has no place for asks again only after a second, then two, four and so on.
 */
const BACKLOG = 4096;

export function startInbound(options: InboundOptions, ports: InboundPorts): RunningInbound {
  return new Inbound(options, ports);
}

class InboundServer extends SMTPServer {
  readonly #hub: InboundHub;

  constructor(hub: InboundHub) {
    super({
      name: hub.options.hostName,
      // AUTH is not offered; STARTTLS only with a certificate of our own.
      disabledCommands: hub.options.tls === undefined ? ['AUTH', 'STARTTLS', 'XCLIENT', 'XFORWARD'] : ['AUTH', 'XCLIENT', 'XFORWARD'],
      hideENHANCEDSTATUSCODES: false,
      logger: false,
      onSecure: (socket, _session, done) => {
        socket.allowHalfOpen = true;
        done();
      },
      onClose: () => undefined,
      ...(hub.options.tls === undefined ? {} : { key: hub.options.tls.key, cert: hub.options.tls.cert }),
    });
    this.#hub = hub;
    this.server.maxConnections = hub.options.connectionsMax + REFUSED_CONNECTIONS_MAX;
    this.server.removeAllListeners('connection').on('connection', (socket: Socket) => { this.connect(socket); });
    this.on('error', (error) => hub.ports.log.debug('smtp-server', 'The SMTP server reported an error.', { why: error.message }));
  }

  override connect(socket: Socket): void {
    if (this.#hub.isClosing) {
      socket.destroy();
      return;
    }
    // A client may end its side behind its last command, as nc does: it still gets its replies, then the connection
    // is closed. Neither the wait for a commit nor that for a client that does not read lasts longer than for others.
    socket.allowHalfOpen = true;
    const connection = new InboundConnection(this.#hub, this, socket);
    this.connections.add(connection);
    connection.init();
    // Refused with 421: gone as soon as that is out. The five seconds that the library leaves a client to close its
    // side would let one client, with refused connections alone, keep every other one out.
    if (!socket.writable) socket.destroySoon();
  }
}

class Inbound implements RunningInbound {
  readonly #hub: InboundHub;
  readonly #server: InboundServer;
  #port: number;
  #closing: Promise<void> | undefined;

  constructor(options: InboundOptions, ports: InboundPorts) {
    this.#hub = new InboundHub(options, ports);
    this.#server = new InboundServer(this.#hub);
    this.#port = options.port;
  }

  get port(): number {
    return this.#port;
  }

  get isOpen(): boolean {
    return this.#server.server.listening;
  }

  get connections(): number {
    return this.#hub.live.size;
  }

  openPort(): Promise<void> {
    const listener = this.#server.server;
    if (listener.listening || this.#hub.isClosing) return Promise.resolve();
    const { host } = this.#hub.options;
    return new Promise((resolve, reject) => {
      const onError = (error: NodeJS.ErrnoException): void => {
        listener.off('listening', onListening);
        const why = error.code === 'EADDRINUSE' ? 'another program has it' : error.message;
        reject(new Error(`Opening the SMTP port ${host}:${this.#port}: ${why}. Stop the other program or choose another port.`));
      };
      const onListening = (): void => {
        listener.off('error', onError);
        const address = listener.address();
        if (address !== null && typeof address === 'object') this.#port = address.port;
        resolve();
      };
      listener.once('error', onError);
      listener.once('listening', onListening);
      listener.listen({ port: this.#port, host, backlog: BACKLOG });
    });
  }

  closePort(): void {
    if (this.#server.server.listening) this.#server.server.close();
  }

  close(boundMs: number): Promise<void> {
    this.#closing ??= this.#drain(boundMs);
    return this.#closing;
  }

  #drain(boundMs: number): Promise<void> {
    const hub = this.#hub;
    hub.isClosing = true;
    this.closePort();
    if (hub.live.size === 0) return Promise.resolve();
    return new Promise((resolve) => {
      const cutOff = setTimeout(() => {
        for (const connection of hub.live) connection.destroy();
      }, boundMs);
      hub.onEmpty = () => {
        clearTimeout(cutOff);
        resolve();
      };
      for (const connection of hub.live) connection.shutDown();
    });
  }
}
