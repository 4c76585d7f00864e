/**
 * What TLS with strangers lies on: all that is read from the socket passes here in small pieces, for which
 * connections take turns (read-turns.ts). OpenSSL does much without calling anybody: it verifies chains in
 * a handshake, takes KeyUpdates (RFC 8446 4.6.3), and answers them. Where TLS reads the socket by itself,
 * nothing of that is seen before a record brings data, and 160 KB of KeyUpdates take a quarter of a second.
 *
 *   socket ─► piece ─ the turn has time ─► TLS ─► data
 *                   └ it has none, or TLS is paused ─► held, no more is read ─ its turn, resumed ─► TLS
 *
 * In a handshake the certificates that the peer shows are looked at in front of TLS (shown-certificates.ts).
 *
 * What TLS writes goes to the socket as it comes. A peer that does not take it is not read from for long:
 * OpenSSL keeps what it answers without a bound. The end of the peer, and of the socket, is handed on.
 *
 * Node's server of TLS does not tell which stream a handshake was over. The fields by which wireOf() finds it
 * are Node's own, not documented ones; a test looks whether this Node still has them.
 */
import type net from 'node:net';
import { Duplex } from 'node:stream';
import tls from 'node:tls';
import type { ConnectionOptions, TLSSocket } from 'node:tls';
import { readIntoOwnBuffer } from './own-buffer.js';
import { STRANGERS } from './read-turns.js';
import type { ReadingConnection } from './read-turns.js';
import { ShownCertificates } from './shown-certificates.js';
import type { Shower } from './shown-certificates.js';

/** At 40 µs for a KeyUpdate that asks for an answer, the shortest of records: 6 ms. */
const PIECE_BYTES = 4 * 1024;
/** Of one read; so much a connection may hold, and 80 KiB more until its certificates are looked at. */
export const WIRE_BUFFER_BYTES = 16 * 1024;
/** TLS is given so much while the socket does not take what it wrote. */
const UNTAKEN_BYTES_MAX = 256 * 1024;
const NOTHING = new Uint8Array(0);
/** Of what a peer shows. */
const REFUSED = 'ERR_CERTIFICATE_REFUSED';

type Done = (error?: Error | null) => void;

export class TlsWire extends Duplex implements ReadingConnection {
  readonly socket: net.Socket;
  /** Read, and not yet given to TLS. */
  #held: Uint8Array;
  #isPaused = false;
  /** Undefined: none are awaited any more. */
  #shown: ShownCertificates | undefined;
  readonly #give = (bytes: Uint8Array): void => { if (!this.destroyed) this.emit('data', bytes); };
  /** Given to TLS since the socket has taken all that TLS wrote. */
  #untakenBytes = 0;
  #untakenWrites = 0;
  /** Of all writes that are not taken: TLS waits for the last of them before it writes again. */
  #done: Done | undefined;
  readonly #written: Done = (error) => {
    this.#untakenWrites -= 1;
    if (this.#untakenWrites === 0) {
      if (this.#untakenBytes > UNTAKEN_BYTES_MAX) STRANGERS.rest(this);
      this.#untakenBytes = 0;
    }
    this.#done?.(error);
  };

  /**
   * `buffer`: any number of wires read into the same one, for nobody keeps it. `ahead`: read from the socket
   * before, and TLS already.
   */
  constructor(socket: net.Socket, buffer: Uint8Array, ahead: Uint8Array = NOTHING) {
    // Who ends his side within the handshake has gone.
    super({ allowHalfOpen: false });
    this.socket = socket;
    this.#held = ahead;
    // Whose end comes first is for TLS to see.
    socket.allowHalfOpen = true;
    const part = buffer.subarray(0, WIRE_BUFFER_BYTES);
    if (!readIntoOwnBuffer(socket, part, (bytes) => this.#received(part.subarray(0, bytes)))) {
      socket.on('data', (bytes) => { if (!this.#received(bytes)) socket.pause(); });
    }
    socket.once('end', () => { this.emit('end'); });
    socket.once('error', (error) => { this.destroy(error); });
    socket.once('close', () => { this.destroy(); });
  }

  /** Before TLS begins: whose certificates are looked at. Then onSecret() must hear of each 'keylog'. */
  expectCertificates(shower: Shower): void {
    this.#shown = new ShownCertificates(shower);
  }

  onSecret(line: Buffer): void {
    this.#shown?.onSecret(line);
  }

  override pause(): this {
    this.#isPaused = true;
    super.pause();
    this.socket.pause();
    return this;
  }

  override resume(): this {
    this.#isPaused = false;
    super.resume();
    if (this.#held.length > 0) STRANGERS.rest(this);
    else if (this.#mayTake) this.socket.resume();
    return this;
  }

  /** Its turn. */
  goOn(): void {
    const held = this.#held;
    this.#held = NOTHING;
    if (this.#received(held)) this.socket.resume();
    else this.socket.pause();
  }

  /** What TLS takes comes by 'data', as it is read. */
  override _read(): void {
    // Nothing is asked for.
  }

  /** As Node's TLS writes: the same `done` for all that it writes at once. Past the queue of this stream. */
  override write(chunk: Uint8Array, encodingOrDone?: BufferEncoding | Done, done?: Done): boolean {
    this.#done = typeof encodingOrDone === 'function' ? encodingOrDone : done;
    this.#untakenWrites += 1;
    return this.socket.write(chunk, this.#written);
  }

  override cork(): void {
    this.socket.cork();
  }

  override uncork(): void {
    this.socket.uncork();
  }

  override _final(done: Done): void {
    this.socket.end(done);
  }

  override _destroy(error: Error | null, done: Done): void {
    this.socket.destroy();
    done(error);
  }

  get #mayTake(): boolean {
    return !this.#isPaused && !this.destroyed && this.#untakenBytes <= UNTAKEN_BYTES_MAX;
  }

  /** False: nothing more is to be read, what is left is held. */
  #received(bytes: Uint8Array): boolean {
    let at = 0;
    while (at < bytes.length && this.#mayTake && STRANGERS.mayRead(this)) {
      const end = Math.min(bytes.length, at + PIECE_BYTES);
      this.#hand(bytes.subarray(at, end));
      if (this.#untakenWrites > 0) this.#untakenBytes += end - at;
      at = end;
    }
    if (at === bytes.length && this.#mayTake) return true;
    this.#held = Buffer.from(bytes.subarray(at));
    return false;
  }

  #hand(bytes: Uint8Array): void {
    const shown = this.#shown;
    if (shown === undefined) return this.#give(bytes);
    const why = shown.take(bytes, this.#give);
    if (shown.isOver) this.#shown = undefined;
    if (why !== '') this.destroy(Object.assign(new Error(why), { code: REFUSED }));
  }
}

/** TLS of a client, over what nothing was read from. */
export function connectOver(wire: TlsWire, options: ConnectionOptions): TLSSocket {
  wire.expectCertificates('server');
  const socket = tls.connect({ ...options, socket: wire });
  return socket.on('keylog', (line) => { wire.onSecret(line); });
}

/** What TLS was begun over, also while it tells why it failed. */
export function wireOf(socket: TLSSocket): TlsWire | undefined {
  const wire = fieldOf(fieldOf(fieldOf(socket, '_handle'), '_parentWrap'), 'stream');
  return wire instanceof TlsWire ? wire : undefined;
}

function fieldOf(object: unknown, name: string): unknown {
  return typeof object === 'object' && object !== null ? Reflect.get(object, name) : undefined;
}
