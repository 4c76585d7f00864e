/**
 * Connections of a mail client: in clear, in TLS from the first byte (RFC 8314 3.3), or changed to TLS in the
 * middle (RFC 3207).
 *
 *   connect() ─ clear ─► OPEN ─ secure(), another Connection ─► handshake ─ onOpen ─► OPEN
 *   connect() ─ implicit ─► handshake ─ onOpen ─► OPEN
 *
 * TLS 1.2 or newer. The server's certificate is verified, against the CAs of a file or those that Node knows,
 * and must bear the name or address that was connected to, or another one that is said. What is not here:
 * certificates of clients (tls-transport.ts), and the life of a connection (transport.ts).
 */
import net from 'node:net';
import tls from 'node:tls';
import type { ConnectionOptions, SecureContext, TLSSocket } from 'node:tls';
import { errorText } from '../../base/error-text.js';
import type { Connection, ConnectionHandlers, Transport } from '../transport.js';
import { readText } from './changing-files.js';
import { clientConnection } from './tls-transport.js';
import { NodeConnection, NodeTransport } from './transport.js';

/** Replies are short, and there may be ten thousand connections. */
const READ_BUFFER_BYTES = 4 * 1024;

export type ClientTls = 'none' | 'starttls' | 'implicit';

export interface ClientTransportOptions {
  readonly tls: ClientTls;
  /** PEM file of who signs the server's certificate; undefined: whom Node trusts. */
  readonly caFile: string | undefined;
  /** By which the server chooses its certificate, which must bear it; undefined: what is connected to. */
  readonly serverName: string | undefined;
}

export class ClientTransport implements Transport {
  readonly #clear = new NodeTransport({ readBufferBytes: READ_BUFFER_BYTES });
  readonly #isImplicit: boolean;
  readonly #context: SecureContext | undefined;
  readonly #serverName: string | undefined;
  readonly #untrusted = new WeakSet<Connection>();

  /** Throws an Error that names the file. */
  constructor({ tls: mode, caFile, serverName }: ClientTransportOptions) {
    this.#serverName = serverName;
    this.#isImplicit = mode === 'implicit';
    this.#context = mode === 'none' ? undefined : contextOf(caFile);
  }

  connect(host: string, port: number, handlers: ConnectionHandlers): Connection {
    if (!this.#isImplicit) return this.#clear.connect(host, port, handlers);
    const socket = tls.connect({ ...this.#options(host), port });
    return this.#watched(socket, clientConnection(socket, `${host}:${port}`, READ_BUFFER_BYTES, handlers));
  }

  /** What comes from now on is TLS, on the connection returned; `clear` is of no use any more. */
  secure(clear: Connection, host: string, handlers: ConnectionHandlers): Connection {
    if (!(clear instanceof NodeConnection)) throw new Error('only a connection made here can change to TLS');
    const socket = tls.connect({ ...this.#options(host), socket: clear.giveAway() });
    return this.#watched(socket, clientConnection(socket, clear.remote, READ_BUFFER_BYTES, handlers));
  }

  /** A connection that is closed: its server's certificate was not taken, as it won't be the next time. */
  isUntrusted(connection: Connection): boolean {
    return this.#untrusted.has(connection);
  }

  #watched(socket: TLSSocket, connection: Connection): Connection {
    socket.once('error', () => {
      // Null, undefined or a code, whatever the type says.
      const why = socket.authorizationError as unknown;
      if (typeof why === 'string') this.#untrusted.add(connection);
    });
    return connection;
  }

  #options(host: string): ConnectionOptions {
    // An address is no name that a server could choose its certificate by (RFC 6066 3).
    const wanted = this.#serverName ?? host;
    const name = net.isIP(wanted) === 0 ? { servername: wanted } : {};
    return { ...name, host, ...(this.#context === undefined ? {} : { secureContext: this.#context }) };
  }
}

function contextOf(caFile: string | undefined): SecureContext {
  if (caFile === undefined) return tls.createSecureContext({ minVersion: 'TLSv1.2' });
  const ca = readText(caFile);
  try {
    return tls.createSecureContext({ ca, minVersion: 'TLSv1.2' });
  } catch (error) {
    const why = errorText(error);
    throw new Error(`'${caFile}' is no certificate in PEM: ${why}`);
  }
}
