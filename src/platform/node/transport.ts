/**
 * Transport and Listener over node:net: one socket each, Nagle off, one writev for each write() call.
 * Owns the socket and the bounds on it: bytes waiting to be written, and how long an ended connection may
 * linger. Meaning of the port: platform/transport.ts.
 *
 *            connect / accept
 *                  │
 *              ┌───▼───┐  end()   ┌────────┐  flushed + FIN of the peer, or END_GRACE_MS
 *              │ OPEN  ├─────────►│ ENDING ├───────────────────────────┐
 *              └───┬───┘          └────────┘                           │
 *                  │ destroy(), reset, refused, too much buffered      │
 *                  │ FIN of the peer (what is buffered is still sent)  │
 *                  └──────────────────────► CLOSED ◄───────────────────┘   onClose(reason), once
 *
 * What is not here: TLS (tls-transport.ts, which wraps its sockets in the same class) and timeouts of silent
 * peers: they are the machines' business, which see time by ticks.
 */
import net from 'node:net';
import type { LookupFunction } from 'node:net';
import { TLSSocket } from 'node:tls';
import type {
  Connection, ConnectionHandlers, Listener, Listening, SecuredFacts, Transport,
} from '../transport.js';
import { sourceReason } from '../transport.js';
import { summedBuffer } from './checksum.js';
import { readIntoOwnBuffer } from './own-buffer.js';

/** A connection that was ended gets this long to take the rest and to close its side. */
export const END_GRACE_MS = 2_000;
export const READ_BUFFER_BYTES = 64 * 1024;
/** What accepted connections are read into: what a busy gateway writes in one turn fits. */
const ACCEPTED_READ_BYTES = 256 * 1024;

/**
 * Bytes that may wait in one connection before it is cut. A link sends at most a byte window (8 MiB) and one
 * frame (64 MiB) past it before it waits for acknowledgements, so only a broken or hostile peer gets there.
 */
export const BUFFERED_BYTES_MAX = 96 * 1024 * 1024;

/**
 * Full reads of a connection in a row, then it rests until the next turn of the loop: libuv would go on up to
 * 32 times, which is 8 MiB of a recovery and all the work that they bring, while deliveries that have begun
 * wait.
 */
export const FULL_READS_MAX = 4;

export interface NodeTransportOptions {
  /** Cut a connection when more than this waits to be written. */
  readonly bufferedBytesMax?: number;
  /** Cut an ended connection after this long. */
  readonly endGraceMs?: number;
  /** Accepted connections at most, per listener; more are closed at once. */
  readonly connectionsMax?: number;
  /** Size of the one buffer that an outgoing connection reads into. Default 64 KiB. */
  readonly readBufferBytes?: number;
  /** How names are looked up; undefined: the system is asked each time. */
  readonly lookup?: LookupFunction;
}

export class NodeTransport implements Transport, Listener {
  readonly #bufferedBytesMax: number;
  readonly #endGraceMs: number;
  readonly #connectionsMax: number;
  readonly #readBufferBytes: number;
  readonly #lookup: LookupFunction | undefined;

  constructor(options: NodeTransportOptions = {}) {
    this.#lookup = options.lookup;
    this.#bufferedBytesMax = options.bufferedBytesMax ?? BUFFERED_BYTES_MAX;
    this.#endGraceMs = options.endGraceMs ?? END_GRACE_MS;
    this.#connectionsMax = options.connectionsMax ?? 4_096;
    this.#readBufferBytes = options.readBufferBytes ?? READ_BUFFER_BYTES;
  }

  /** `from`: the address of this machine that it leaves from. */
  connect(host: string, port: number, handlers: ConnectionHandlers, from?: string): Connection {
    // One buffer for the life of the connection: otherwise Node allocates 64 KiB for each read, which the
    // collector then has to follow. (Node has this for outgoing connections only.)
    const onread = {
      buffer: new Uint8Array(this.#readBufferBytes),
      callback: (bytes: number, buffer: Uint8Array): boolean => {
        connection.received(buffer.subarray(0, bytes));
        return !connection.rests(bytes === buffer.length);
      },
    };
    const socket = net.connect({
      host, port, noDelay: true, onread, ...(from === undefined ? {} : { localAddress: from }),
      ...(this.#lookup === undefined ? {} : { lookup: this.#lookup }),
    });
    const connection =
      new NodeConnection(socket, `${host}:${port}`, this.#bufferedBytesMax, this.#endGraceMs);
    connection.attach(handlers);
    socket.once('connect', () => { connection.opened(); });
    return connection;
  }

  listen(
    host: string, port: number, accept: (connection: Connection) => ConnectionHandlers,
  ): Promise<Listening> {
    // One for all: nobody keeps what was read longer than the call (platform/transport.ts). A store sums what
    // it reads.
    const buffer = summedBuffer(ACCEPTED_READ_BYTES);
    const server = net.createServer({ noDelay: true }, (socket) => {
      const remote = `${socket.remoteAddress ?? 'unknown'}:${socket.remotePort ?? 0}`;
      readIntoOwnBuffer(socket, buffer, (bytes) => {
        connection.received(buffer.subarray(0, bytes));
        return true;
      });
      const connection = new NodeConnection(socket, remote, this.#bufferedBytesMax, this.#endGraceMs);
      connection.attach(accept(connection));
      // In a turn of its own: accept() may have closed the connection, and the port promises no re-entry.
      setImmediate(() => { connection.opened(); });
    });
    server.maxConnections = this.#connectionsMax;
    return new Promise((resolve, reject) => {
      server.once('error', reject);
      server.listen({ host, port }, () => {
        server.off('error', reject);
        // Out of descriptors for a moment: the peer sees a reset and comes back, the process lives on.
        server.on('error', () => undefined);
        const address = server.address();
        resolve({
          port: address !== null && typeof address === 'object' ? address.port : port,
          close: () => { server.close(); },
        });
      });
    });
  }
}

export class NodeConnection implements Connection {
  readonly remote: string;
  /** Set when the peer has shown a certificate that was verified. */
  peerNames: readonly string[] | undefined;
  security: SecuredFacts | undefined;
  readonly #socket: net.Socket;
  /** It, or what lies under it. */
  readonly #under: net.Socket;
  readonly #bufferedBytesMax: number;
  readonly #endGraceMs: number;
  #handlers: ConnectionHandlers | undefined;
  /** Why the connection ends, as soon as that is known: the first reason is the true one. */
  #reason = '';
  #opened = false;
  /** We show a certificate that the peer may not take. */
  showsCertificate = false;
  /** Something was read: the peer has taken us. */
  #heard = false;
  /** end() or destroy() was called: the owner hears nothing more but onClose. */
  #deaf = false;
  #grace: NodeJS.Timeout | undefined;
  #fullReads = 0;
  #resting = false;
  #paused = false;
  /** Called when a chunk has left. */
  #onLeft: (() => void) | undefined;
  /** A turn of it is over. */
  readonly goOn = (): void => {
    this.#resting = false;
    if (!this.#paused && !this.#socket.destroyed) this.#socket.resume();
  };

  constructor(
    socket: net.Socket, remote: string, bufferedBytesMax: number, endGraceMs: number, under = socket,
  ) {
    this.#socket = socket;
    this.#under = under;
    this.remote = remote;
    this.#bufferedBytesMax = bufferedBytesMax;
    this.#endGraceMs = endGraceMs;
  }

  get local(): string | undefined { return this.#under.localAddress; }

  attach(handlers: ConnectionHandlers): void {
    this.#handlers = handlers;
    const socket = this.#socket;
    socket.on('data', (bytes: Buffer) => { this.received(bytes); });
    socket.on('drain', () => { if (!this.#deaf) handlers.onDrain(); });
    socket.on('end', () => { this.#onPeerEnded(); });
    socket.on('error', (error: NodeJS.ErrnoException) => {
      this.#because(this.#socket instanceof TLSSocket ? tlsReason(error) : reasonOf(error));
    });
    socket.once('close', () => {
      clearTimeout(this.#grace);
      this.#deaf = true;
      this.#handlers?.onClose(this.#reason === '' ? 'closed' : this.#reason);
    });
  }

  /**
   * onDrain comes each time that nothing is left to be written. In TLS what is written always leaves a little
   * later, also less than the stream tells of by itself.
   */
  tellWhenEmpty(): void {
    this.#onLeft = () => { if (!this.#deaf && this.#socket.writableLength === 0) this.#handlers?.onDrain(); };
  }

  /** The socket, for whoever goes on with it: no handler hears of this connection any more. */
  giveAway(): net.Socket {
    this.#deaf = true;
    this.#handlers = undefined;
    // A turn of it that begins later is not ours.
    this.#paused = true;
    return this.#socket;
  }

  opened(): void {
    if (this.#deaf || this.#opened || this.#socket.destroyed) return;
    this.#opened = true;
    this.#handlers?.onOpen();
  }

  get bufferedBytes(): number {
    return this.#socket.writableLength;
  }

  write(chunks: readonly Uint8Array[]): void {
    const socket = this.#socket;
    if (this.#deaf || socket.destroyed || socket.writableEnded) return;
    // Corked, so that uncork() hands the whole list to one writev; a chunk alone, as an acknowledgement is,
    // needs none.
    if (chunks.length > 1) socket.cork();
    for (let i = 0; i < chunks.length; i++) {
      const chunk = chunks[i];
      if (chunk === undefined || chunk.length === 0) continue;
      if (this.#onLeft === undefined) socket.write(chunk);
      else socket.write(chunk, this.#onLeft);
    }
    if (chunks.length > 1) socket.uncork();
    if (socket.writableLength > this.#bufferedBytesMax) {
      this.#because('too many bytes wait to be written');
      this.destroy();
    }
  }

  pause(): void {
    this.#paused = true;
    this.#socket.pause();
  }

  resume(): void {
    this.#paused = false;
    if (!this.#resting) this.#socket.resume();
  }

  end(): void {
    if (this.#deaf || this.#socket.destroyed) return;
    this.#because('ended here');
    this.#deaf = true;
    this.#socket.end();
    // A paused socket would never see the FIN of the peer.
    this.#socket.resume();
    this.#startGrace();
  }

  destroy(): void {
    this.#because('destroyed here');
    this.#deaf = true;
    this.#socket.destroy();
  }

  received(bytes: Uint8Array): void {
    if (this.#deaf) return;
    // Data may arrive in the turn of the accept, before the setImmediate that announces it.
    this.opened();
    this.#heard = true;
    this.#handlers?.onData(bytes);
  }

  /** Asked after each read into an own buffer; true: nothing more is read in this turn. */
  rests(isFull: boolean): boolean {
    this.#fullReads = isFull ? this.#fullReads + 1 : 0;
    if (this.#fullReads < FULL_READS_MAX) return false;
    this.#fullReads = 0;
    this.#resting = true;
    setImmediate(this.goOn);
    return true;
  }

  /** The peer sends no more. Nobody here talks to a half-closed peer: the rest is sent, then it is over. */
  #onPeerEnded(): void {
    // With TLS 1.3 a certificate that is not taken shows only now, and Node's listener does not say so.
    const isUntold = this.showsCertificate && !this.#heard;
    this.#because(isUntold
      ? 'closed by the peer at once: if it does not take the certificate of this process, its log says why'
      : 'closed by the peer');
    this.#startGrace();
  }

  #startGrace(): void {
    if (this.#grace !== undefined) return;
    this.#grace = setTimeout(() => { this.#socket.destroy(); }, this.#endGraceMs);
    this.#grace.unref();
  }

  #because(reason: string): void {
    if (this.#reason === '') this.#reason = reason;
  }
}

function reasonOf({ code, syscall, message }: NodeJS.ErrnoException): string {
  if (code === undefined) return message;
  return syscall === 'bind' ? sourceReason(code) : code;
}

/** Of a text that a stranger's certificate may be part of. */
const REASON_CHARACTERS_MAX = 300;

/** OpenSSL's own words where there are any: its code alone tells an operator little. */
export function tlsReason(error: NodeJS.ErrnoException & { readonly reason?: string }): string {
  if (error.syscall !== undefined && error.code !== undefined) return error.code;
  const words = error.reason ?? error.message;
  const text = words.slice(0, REASON_CHARACTERS_MAX).replace(/[^ -~]/g, '?');
  return error.code === undefined ? `TLS: ${text}` : `TLS: ${text} (${error.code})`;
}
