/**
 * TLS over connections that were accepted in clear (server-socket.ts). Node's own server does the handshakes:
 * it never listens, sockets are given to it.
 *
 *   TLS 1.2 or newer. Renewal: the files are looked at once a second; a pair that can't be used never
 *   replaces a good one. Both are told once. Open connections keep what they began with.
 *
 * With a CA for clients a certificate is asked for, not demanded: whoever shows one of that CA is known by
 * its names. No session is resumed then, for a resumed one shows no certificate.
 */
import { constants } from 'node:crypto';
import type net from 'node:net';
import tls from 'node:tls';
import type { SecureContextOptions, TLSSocket } from 'node:tls';
import { errorText } from '../../base/error-text.js';
import type { TlsFacts } from '../transport.js';
import type { HandshakeResult } from '../transport.js';
import { certificateFacts, readPem, tlsErrorText } from './certificates.js';
import type { CertificateFacts } from './certificates.js';
import { stampOf } from './changing-files.js';
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

type ServerTlsMaterial = Omit<SecureContextOptions, 'cert'> & { readonly cert: string };

/** Throws an Error that names the file. */
export function readServerTls(files: ServerTlsFiles): ServerTlsMaterial {
  const { certFile, keyFile, clientCaFile } = files;
  const material: ServerTlsMaterial = {
    cert: readPem('cert', certFile), key: readPem('key', keyFile),
    ...(clientCaFile === undefined ? {} : ofClients(clientCaFile)),
    minVersion: 'TLSv1.2',
    ciphers: `${tls.DEFAULT_CIPHERS}:${SECURITY_LEVEL}`,
  };
  try {
    tls.createSecureContext(material);
  } catch (error) {
    const pair = `'${certFile}' and '${keyFile}'`;
    throw new Error(`${pair} are no certificate with its key in PEM: ${tlsErrorText(error)}`);
  }
  return material;
}

function ofClients(caFile: string): Pick<SecureContextOptions, 'ca' | 'secureOptions'> {
  return { ca: readPem('ca', caFile), secureOptions: constants.SSL_OP_NO_TICKET };
}

export interface ServerTlsEvents {
  /** Other files are in force from now on. */
  onRenewed(facts: CertificateFacts): void;
  /** The files have changed and can't be used: the old ones stay. */
  onProblem(why: string): void;
  /** Each handshake once. */
  onHandshake(result: HandshakeResult): void;
}

/** A handshake under way. */
interface Handshake {
  readonly onSecure: (socket: TLSSocket) => void;
  /** Why it fails, as far as that is known. */
  result: HandshakeResult;
}

export class ServerTls {
  readonly #files: ServerTlsFiles;
  readonly #events: ServerTlsEvents;
  readonly #server: tls.Server;
  /** By addresses and ports of both ends. */
  readonly #handshakes = new Map<string, Handshake>();
  readonly #timer: NodeJS.Timeout;
  #stamp: string;
  #ticketKeys: Buffer | undefined;

  /** Throws when the files can't be used. */
  constructor(files: ServerTlsFiles, events: ServerTlsEvents) {
    this.#files = files;
    this.#events = events;
    this.#stamp = this.#stampNow();
    const asksForCertificate = files.clientCaFile !== undefined;
    this.#server = tls.createServer({
      ...readServerTls(files), requestCert: asksForCertificate, rejectUnauthorized: false,
    });
    this.#server.on('secureConnection', (socket) => {
      const key = keyOf(socket);
      const handshake = this.#handshakes.get(key);
      this.#handshakes.delete(key);
      if (handshake === undefined) {
        socket.destroy();
        return;
      }
      events.onHandshake('ok');
      handshake.onSecure(socket);
    });
    this.#server.on('tlsClientError', (error: NodeJS.ErrnoException, socket) => {
      this.#because(socket, handshakeResult(error.code ?? ''));
      socket.destroy();
    });
    this.#timer = setInterval(() => { this.#renew(); }, LOOK_MS).unref();
  }

  /** Sessions begun elsewhere with the same keys are resumed here (RFC 5077, RFC 8446 2.2); 48 bytes. */
  setTicketKeys(keys: Buffer): void {
    this.#ticketKeys = keys;
    this.#server.setTicketKeys(keys);
  }

  /** The next bytes of `clear` are TLS. When the handshake fails, `clear` is closed. */
  begin(clear: net.Socket, onSecure: (socket: TLSSocket) => void): void {
    const key = keyOf(clear);
    const handshake: Handshake = { onSecure, result: 'closed' };
    this.#handshakes.set(key, handshake);
    clear.once('close', () => {
      if (this.#handshakes.get(key) !== handshake) return;
      this.#handshakes.delete(key);
      this.#events.onHandshake(handshake.result);
    });
    this.#server.emit('connection', clear);
  }

  /** We end it. Of a handshake that is through nothing is said. */
  giveUp(clear: net.Socket): void {
    if (this.#handshakes.size > 0) this.#because(clear, 'timeout');
  }

  /** Looks after the files no more. */
  close(): void {
    clearInterval(this.#timer);
  }

  /** The first reason is the true one. */
  #because(socket: net.Socket, result: HandshakeResult): void {
    const handshake = this.#handshakes.get(keyOf(socket));
    if (handshake?.result === 'closed') handshake.result = result;
  }

  #stampNow(): string {
    const { certFile, keyFile, clientCaFile } = this.#files;
    return stampOf(certFile, keyFile, clientCaFile);
  }

  #renew(): void {
    const stamp = this.#stampNow();
    if (stamp === this.#stamp) return;
    this.#stamp = stamp;
    try {
      const material = readServerTls(this.#files);
      this.#server.setSecureContext(material);
      if (this.#ticketKeys !== undefined) this.#server.setTicketKeys(this.#ticketKeys);
      this.#events.onRenewed(certificateFacts(material.cert));
    } catch (error) {
      this.#events.onProblem(errorText(error));
    }
  }
}

/** What OpenSSL calls it, in the words of metrics. */
const RESULTS: readonly (readonly [pattern: RegExp, result: HandshakeResult])[] = [
  [/WRONG_VERSION_NUMBER|HTTP_REQUEST|HTTPS_PROXY_REQUEST|PACKET_LENGTH|RECORD_/, 'not-tls'],
  [/PROTOCOL|VERSION/, 'version'],
  [/CERTIFICATE|UNKNOWN_CA/, 'certificate'],
  [/CIPHER|SIGNATURE|HANDSHAKE_FAILURE|GROUP|CURVE|INSUFFICIENT_SECURITY/, 'cipher'],
  [/^ECONNRESET$|^EPIPE$/, 'closed'],
];

function handshakeResult(code: string): HandshakeResult {
  return RESULTS.find(([pattern]) => pattern.test(code))?.[1] ?? 'other';
}

/** Of a handshake that is through. */
export function factsOf(socket: TLSSocket): TlsFacts {
  return {
    version: socket.getProtocol() ?? '',
    cipher: socket.getCipher().name,
    peerNames: socket.authorized ? certificateNames(socket.getPeerCertificate()) : [],
  };
}

/** All four: a peer may have one port of its own for connections to several of our addresses. */
function keyOf({ remoteAddress = '', remotePort = 0, localAddress = '', localPort = 0 }: net.Socket): string {
  return `${remoteAddress} ${String(remotePort)} ${localAddress} ${String(localPort)}`;
}
