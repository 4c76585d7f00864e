/**
 * TLS over connections that were accepted in clear (server-socket.ts), with one certificate. Node's own
 * server does the handshakes: it never listens, sockets are given to it.
 */
import type net from 'node:net';
import tls from 'node:tls';
import type { TLSSocket } from 'node:tls';

export interface ServerTlsOptions {
  /** PEM. */
  readonly cert: string;
  readonly key: string;
}

/**
 * OpenSSL's level 2: keys of 112 bits of security. Said here because Node changed its default in 24.5, and
 * what a client can speak should not hang on that.
 */
const SECURITY_LEVEL = '@SECLEVEL=2';

export class ServerTls {
  readonly #server: tls.Server;
  /** Who is told when the handshake on a socket is through, by address and port of its peer. */
  readonly #handshakes = new Map<string, (socket: TLSSocket) => void>();

  /** Throws when certificate and key do not fit. */
  constructor(options: ServerTlsOptions) {
    this.#server = tls.createServer({
      ...options, minVersion: 'TLSv1.2', ciphers: `${tls.DEFAULT_CIPHERS}:${SECURITY_LEVEL}`,
    });
    this.#server.on('secureConnection', (socket) => {
      const key = keyOf(socket);
      const onSecure = this.#handshakes.get(key);
      this.#handshakes.delete(key);
      if (onSecure === undefined) socket.destroy();
      else onSecure(socket);
    });
    this.#server.on('tlsClientError', (_error, socket) => { socket.destroy(); });
  }

  /** The next bytes of `clear` are TLS. When the handshake fails, `clear` is closed. */
  begin(clear: net.Socket, onSecure: (socket: TLSSocket) => void): void {
    const key = keyOf(clear);
    this.#handshakes.set(key, onSecure);
    clear.once('close', () => { this.#handshakes.delete(key); });
    this.#server.emit('connection', clear);
  }
}

function keyOf(socket: net.Socket): string {
  return `${socket.remoteAddress ?? ''} ${String(socket.remotePort ?? 0)}`;
}
