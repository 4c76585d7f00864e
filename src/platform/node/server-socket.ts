/**
 * Accepted connections of a protocol whose clients may end their side and still read, and may change to TLS
 * in the middle (platform/transport.ts, ServerConnection): SMTP.
 *
 *   accepted ─ what came with it is read ─▶ OPEN ─ secure() ─▶ TLS handshake ─ onSecure ─▶ OPEN …
 *      OPEN ─ end() ─▶ ENDING ─ flushed and the peer's end, or END_GRACE_MS ─▶ CLOSED, onClose(reason) once
 *      OPEN ─ finish() ─▶ CLOSED as soon as all is written
 *      any ─ destroy(), reset ─▶ CLOSED
 *
 * All connections of a server are read into one buffer (own-buffer.ts): nobody keeps what was read longer
 * than the call. Who sends what costs much takes turns with the others (read-turns.ts), from the start of a
 * handshake on by what TLS makes of it (tls-wire.ts). onOpen comes after one full poll of the sockets, so
 * that a client that sent before its greeting shows. What is not here: certificates (server-tls.ts), timeouts
 * of silent clients (the machines see time by ticks).
 */
import net from 'node:net';
import type { TLSSocket } from 'node:tls';
import type { ServerConnection, ServerHandlers } from '../transport.js';
import { readIntoOwnBuffer } from './own-buffer.js';
import { STRANGERS } from './read-turns.js';
import type { ReadingConnection } from './read-turns.js';
import { factsOf } from './server-tls.js';
import type { ServerTls } from './server-tls.js';
import { TlsWire, WIRE_BUFFER_BYTES } from './tls-wire.js';
import { tlsReason } from './transport.js';

const READ_BUFFER_BYTES = 64 * 1024;
/** Of all servers: what TLS makes of it lies in another one. */
const WIRE_BUFFER = Buffer.allocUnsafeSlow(WIRE_BUFFER_BYTES);
/** A connection that was ended gets this long to take the rest and to close its side. */
const END_GRACE_MS = 5_000;
const BY_PEER = 'closed by the peer';
/** IPv4 addresses as a socket of both families shows them. */
const MAPPED_PREFIX = '::ffff:';

export interface StreamServerOptions {
  /** Accepted connections at most; more are closed at once. */
  readonly connectionsMax: number;
  /** Clients that may wait to be accepted. */
  readonly backlog: number;
  /** What secure() needs; undefined: it must not be called. */
  readonly tls: ServerTls | undefined;
}

type Accept = (connection: ServerConnection) => ServerHandlers | undefined;

export class StreamServer {
  readonly #server: net.Server;
  readonly #backlog: number;
  #tls: ServerTls | undefined;
  readonly #accept: Accept;
  readonly #buffer = Buffer.allocUnsafeSlow(READ_BUFFER_BYTES);
  /** Accepted since the last turn. */
  #fresh: NodeServerConnection[] = [];

  /** `accept` may already write to the connection, and end it; undefined: the connection is dropped. */
  constructor(options: StreamServerOptions, accept: Accept) {
    this.#backlog = options.backlog;
    this.#tls = options.tls;
    this.#accept = accept;
    this.#server = net.createServer({ allowHalfOpen: true }, (socket) => { this.#onSocket(socket); });
    this.#server.maxConnections = options.connectionsMax;
    // Out of descriptors for a moment: the peer sees a reset and comes back, the process lives on.
    this.#server.on('error', () => undefined);
  }

  get isListening(): boolean {
    return this.#server.listening;
  }

  /** For connections from now on; the port stays open. */
  renew({ connectionsMax, tls }: Pick<StreamServerOptions, 'connectionsMax' | 'tls'>): void {
    this.#server.maxConnections = connectionsMax;
    this.#tls = tls;
  }

  /** The port bound, also when 0 was asked for. Rejects when the address can't be bound. */
  listen(host: string, port: number): Promise<number> {
    const server = this.#server;
    return new Promise((resolve, reject) => {
      const onError = (error: Error): void => {
        server.off('listening', onListening);
        reject(error);
      };
      const onListening = (): void => {
        server.off('error', onError);
        const address = server.address();
        resolve(address !== null && typeof address === 'object' ? address.port : port);
      };
      server.once('error', onError);
      server.once('listening', onListening);
      server.listen({ port, host, backlog: this.#backlog });
    });
  }

  /** Accepts no more; connections already open live on. */
  close(): void {
    if (this.#server.listening) this.#server.close();
  }

  #onSocket(socket: net.Socket): void {
    // Reset before it was accepted, as by a balancer that only asks whether somebody listens: nobody's.
    if (socket.remoteAddress === undefined) {
      dropped(socket);
      return;
    }
    const connection = new NodeServerConnection(socket, this.#buffer, this.#tls);
    const handlers = this.#accept(connection);
    if (handlers === undefined) {
      dropped(socket);
      return;
    }
    connection.attach(handlers);
    if (this.#fresh.length === 0) {
      // The poll between two immediates reads what came with the connection.
      setImmediate(() => {
        const polled = this.#fresh;
        this.#fresh = [];
        setImmediate(() => { for (const each of polled) each.opened(); });
      });
    }
    this.#fresh.push(connection);
  }
}

function dropped(socket: net.Socket): void {
  socket.on('error', () => undefined);
  socket.destroy();
}

class NodeServerConnection implements ServerConnection, ReadingConnection {
  readonly remote: string;
  readonly remoteAddress: string;
  readonly remotePort: number;
  readonly #clear: net.Socket;
  readonly #buffer: Buffer;
  readonly #tls: ServerTls | undefined;
  /** The one that is written to: #clear, or what lies over it. */
  #socket: net.Socket;
  /** Between the two, from the start of the handshake on. */
  #wire: TlsWire | undefined;
  #handlers: ServerHandlers | undefined;
  #isPaused = false;
  #isResting = false;
  /** end(), finish() or destroy() was called: the owner hears nothing more but onClose. */
  #isDeaf = false;
  /** Why the connection ends, as soon as that is known: the first reason is the true one. */
  #reason = '';
  #grace: NodeJS.Timeout | undefined;

  constructor(socket: net.Socket, buffer: Buffer, tls: ServerTls | undefined) {
    this.#clear = socket;
    this.#socket = socket;
    this.#buffer = buffer;
    this.#tls = tls;
    const address = socket.remoteAddress ?? 'unknown';
    const isMapped = address.startsWith(MAPPED_PREFIX) && address.includes('.');
    this.remoteAddress = isMapped ? address.slice(MAPPED_PREFIX.length) : address;
    this.remotePort = socket.remotePort ?? 0;
    this.remote = `${this.remoteAddress}:${String(this.remotePort)}`;
  }

  attach(handlers: ServerHandlers): void {
    this.#handlers = handlers;
    this.#listen(this.#clear);
    this.#clear.on('error', (error: NodeJS.ErrnoException) => {
      this.#because(error.code ?? error.message);
    });
    this.#clear.once('close', () => {
      clearTimeout(this.#grace);
      STRANGERS.forget(this);
      this.#isDeaf = true;
      handlers.onClose(this.#reason === '' ? BY_PEER : this.#reason);
    });
  }

  opened(): void {
    if (!this.#isDeaf && !this.#socket.destroyed) this.#handlers?.onOpen();
  }

  get bufferedBytes(): number {
    return this.#socket.writableLength;
  }

  get isFull(): boolean {
    return this.#socket.writableNeedDrain && !this.#socket.destroyed;
  }

  write(chunks: readonly Uint8Array[]): void {
    const socket = this.#socket;
    if (this.#isDeaf || !socket.writable) return;
    if (chunks.length > 1) socket.cork();
    for (const chunk of chunks) socket.write(chunk);
    if (chunks.length > 1) socket.uncork();
  }

  writeText(text: string): void {
    if (!this.#isDeaf && this.#socket.writable) this.#socket.write(text, 'latin1');
  }

  pause(): void {
    this.#isPaused = true;
    if (!this.#isInHandshake) this.#socket.pause();
  }

  resume(): void {
    this.#isPaused = false;
    if (!this.#isResting && !this.#isInHandshake) this.#socket.resume();
  }

  goOn(): void {
    this.#isResting = false;
    if (!this.#isPaused && !this.#socket.destroyed) this.#socket.resume();
  }

  /** What lies below TLS is read as that asks for. */
  get #isInHandshake(): boolean {
    return this.#wire !== undefined && this.#socket === this.#clear;
  }

  secure(ahead: Uint8Array): void {
    const clear = this.#clear;
    if (this.#isDeaf || clear.destroyed) return;
    STRANGERS.forget(this);
    this.#isResting = false;
    clear.removeAllListeners('data');
    clear.removeListener('drain', this.#onDrain);
    clear.removeListener('end', this.#onEnd);
    if (clear.readableEnded || this.#tls === undefined) return this.destroy();
    // A copy: the read buffer is used again.
    const wire = new TlsWire(clear, WIRE_BUFFER, Buffer.from(ahead));
    this.#wire = wire;
    this.#tls.begin(wire, (socket) => { this.#onSecure(socket); }, (error) => {
      this.#because(tlsReason(error));
    });
  }

  end(): void {
    if (this.#isDeaf || this.#clear.destroyed) return;
    this.#because(this.#socket.readableEnded ? BY_PEER : 'ended here');
    this.#isDeaf = true;
    this.#socket.end();
    // A paused socket would never see the FIN of the peer.
    this.#socket.resume();
    this.#grace = setTimeout(() => { this.#clear.destroy(); }, END_GRACE_MS);
    this.#grace.unref();
  }

  /** The end of a TLS session is a message of its own, for which the peer must still be there. */
  finish(): void {
    if (this.#socket !== this.#clear || this.#socket.writableLength > 0) this.end();
    else this.destroy();
  }

  destroy(): void {
    this.#because(this.#socket.readableEnded ? BY_PEER : 'ended here');
    this.#isDeaf = true;
    if (this.#wire !== undefined) this.#tls?.giveUp(this.#wire);
    this.#socket.destroy();
    this.#clear.destroy();
  }

  readonly #onDrain = (): void => {
    if (!this.#isDeaf) this.#handlers?.onDrain();
  };

  readonly #onEnd = (): void => {
    if (!this.#isDeaf) this.#handlers?.onEnd();
  };

  readonly #onBytes = (bytes: Uint8Array): void => {
    if (!this.#isDeaf) this.#handlers?.onData(bytes);
  };

  /**
   * False: nothing more is read for now. Who ends is read until the peer has ended, too; of TLS the turn is
   * that of its octets.
   */
  #read(bytes: Uint8Array): boolean {
    this.#onBytes(bytes);
    if (this.#isDeaf || this.#wire !== undefined) return true;
    this.#isResting = STRANGERS.onRead(this);
    return !this.#isResting;
  }

  #listen(socket: net.Socket): void {
    const buffer = this.#buffer;
    if (!readIntoOwnBuffer(socket, buffer, (bytes) => this.#read(buffer.subarray(0, bytes)))) {
      socket.on('data', this.#onBytes);
    }
    socket.on('drain', this.#onDrain);
    socket.on('end', this.#onEnd);
  }

  #onSecure(socket: TLSSocket): void {
    socket.on('error', (error: NodeJS.ErrnoException) => { this.#because(tlsReason(error)); });
    if (this.#isDeaf) return;
    this.#socket = socket;
    // As in clear: who has nothing more to send may still read.
    socket.allowHalfOpen = true;
    socket.once('close', () => { this.#clear.destroy(); });
    this.#listen(socket);
    if (this.#isPaused) socket.pause();
    this.#handlers?.onSecure(factsOf(socket));
  }

  #because(reason: string): void {
    if (this.#reason === '') this.#reason = reason;
  }
}
