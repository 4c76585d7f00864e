/**
 * TLS over connections that were accepted in clear (server-socket.ts). Node's own server does the handshakes:
 * it never listens, sockets are given to it.
 *
 *   TLS 1.2 or newer. Renewal: the files are looked at once a second while clients begin TLS; a pair that
 *   can't be used never replaces a good one, and is told once. Open connections keep what they began with.
 *
 * With a CA for clients a certificate is asked for, not demanded: whoever shows one of that CA is known by
 * its names. No session is resumed then, for a resumed one shows no certificate.
 */
import { constants } from 'node:crypto';
import type net from 'node:net';
import { performance } from 'node:perf_hooks';
import tls from 'node:tls';
import type { SecureContextOptions, TLSSocket } from 'node:tls';
import { errorText } from '../../base/error-text.js';
import type { TlsFacts } from '../transport.js';
import { readText, stampOf } from './changing-files.js';
import { certificateNames } from './tls-transport.js';

/** PEM files. */
export interface ServerTlsFiles {
  readonly certFile: string;
  readonly keyFile: string;
  /** Who signs certificates of clients; undefined: none is asked for. */
  readonly clientCaFile: string | undefined;
}

/**
 * OpenSSL's level 2: keys of 112 bits of security. Said here because Node changed its default in 24.5, and
 * what a client can speak should not hang on that.
 */
const SECURITY_LEVEL = '@SECLEVEL=2';
const LOOK_MS = 1000;

/** Throws an Error that names the file. */
export function readServerTls(files: ServerTlsFiles): SecureContextOptions {
  const { certFile, keyFile, clientCaFile } = files;
  const material: SecureContextOptions = {
    cert: readText(certFile), key: readText(keyFile),
    ...(clientCaFile === undefined ? {} : ofClients(clientCaFile)),
    minVersion: 'TLSv1.2',
    ciphers: `${tls.DEFAULT_CIPHERS}:${SECURITY_LEVEL}`,
  };
  try {
    tls.createSecureContext(material);
  } catch (error) {
    const ca = clientCaFile === undefined ? '' : `, or '${clientCaFile}' is no certificate`;
    const pair = `'${certFile}' and '${keyFile}'`;
    throw new Error(`${pair} are no certificate with its key in PEM${ca}: ${errorText(error)}`);
  }
  return material;
}

function ofClients(caFile: string): SecureContextOptions {
  return { ca: readText(caFile), secureOptions: constants.SSL_OP_NO_TICKET };
}

export class ServerTls {
  readonly #files: ServerTlsFiles;
  readonly #onProblem: (text: string) => void;
  readonly #server: tls.Server;
  /** Who is told when the handshake on a socket is through, by address and port of its peer. */
  readonly #handshakes = new Map<string, (socket: TLSSocket) => void>();
  #stamp: string;
  #lookedMs = -Infinity;
  #ticketKeys: Buffer | undefined;

  /** Throws when the files can't be used. `onProblem`: later ones can't, and the old ones stay. */
  constructor(files: ServerTlsFiles, onProblem: (text: string) => void) {
    this.#files = files;
    this.#onProblem = onProblem;
    this.#stamp = stampOf(files.certFile, files.keyFile, files.clientCaFile);
    const asksForCertificate = files.clientCaFile !== undefined;
    this.#server = tls.createServer({
      ...readServerTls(files), requestCert: asksForCertificate, rejectUnauthorized: false,
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

  /** Sessions begun elsewhere with the same keys are resumed here (RFC 5077, RFC 8446 2.2); 48 bytes. */
  setTicketKeys(keys: Buffer): void {
    this.#ticketKeys = keys;
    this.#server.setTicketKeys(keys);
  }

  /** The next bytes of `clear` are TLS. When the handshake fails, `clear` is closed. */
  begin(clear: net.Socket, onSecure: (socket: TLSSocket) => void): void {
    this.#renew();
    const key = keyOf(clear);
    this.#handshakes.set(key, onSecure);
    clear.once('close', () => { this.#handshakes.delete(key); });
    this.#server.emit('connection', clear);
  }

  #renew(): void {
    const nowMs = performance.now();
    if (nowMs - this.#lookedMs < LOOK_MS) return;
    this.#lookedMs = nowMs;
    const { certFile, keyFile, clientCaFile } = this.#files;
    const stamp = stampOf(certFile, keyFile, clientCaFile);
    if (stamp === this.#stamp) return;
    this.#stamp = stamp;
    try {
      this.#server.setSecureContext(readServerTls(this.#files));
      if (this.#ticketKeys !== undefined) this.#server.setTicketKeys(this.#ticketKeys);
    } catch (error) {
      this.#onProblem(errorText(error));
    }
  }
}

/** Of a handshake that is through. */
export function factsOf(socket: TLSSocket): TlsFacts {
  return {
    version: socket.getProtocol() ?? '',
    cipher: socket.getCipher().name,
    peerNames: socket.authorized ? certificateNames(socket.getPeerCertificate()) : [],
  };
}

function keyOf(socket: net.Socket): string {
  return `${socket.remoteAddress ?? ''} ${String(socket.remotePort ?? 0)}`;
}
