/**
 * TLS over connections that were accepted in clear (server-socket.ts). Node's own server does the handshakes:
 * it never listens, sockets are given to it.
 *
 *   TLS 1.2 or newer. Renewal: the files are looked at once a second; a pair that can't be used never
 *   replaces a good one. Both are told once. Open connections keep what they began with.
 *
 * With a CA for clients a certificate is asked for, not demanded: whoever shows one of that CA is known by
 * its names. No session is resumed then, for a resumed one shows no certificate. Anybody may show a chain
 * that takes long to verify: octets come in turns (tls-wire.ts).
 */
import { constants } from 'node:crypto';
import tls from 'node:tls';
import type { PeerCertificate, SecureContextOptions, TLSSocket } from 'node:tls';
import type { TlsFacts } from '../transport.js';
import type { HandshakeResult } from '../transport.js';
import { certificateFacts, checkPair, readPem } from './certificates.js';
import type { CertificateFacts } from './certificates.js';
import { FollowedFile } from './changing-files.js';
import { CIPHERS, CURVES } from './key-exchange.js';
import { certificateNames } from './tls-transport.js';
import { wireOf } from './tls-wire.js';
import type { TlsWire } from './tls-wire.js';

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
/** Of a certificate by nobody who is known. */
const NAME_CHARACTERS_MAX = 255;

type ServerTlsMaterial = SecureContextOptions & { readonly cert: string; readonly key: string };

interface ServerTlsInForce {
  readonly material: ServerTlsMaterial;
  readonly facts: CertificateFacts;
}

/** Throws an Error that names the file. */
export function readServerTls(files: ServerTlsFiles): ServerTlsMaterial {
  const { certFile, keyFile, clientCaFile } = files;
  const material: ServerTlsMaterial = {
    cert: readPem('cert', certFile), key: readPem('key', keyFile),
    ...(clientCaFile === undefined ? {} : ofClients(clientCaFile)),
    minVersion: 'TLSv1.2',
    ciphers: `${CIPHERS}:${SECURITY_LEVEL}`, ecdhCurve: CURVES,
  };
  checkPair(material, certFile, keyFile);
  return material;
}

function ofClients(caFile: string): Pick<SecureContextOptions, 'ca' | 'secureOptions'> {
  const secureOptions = constants.SSL_OP_NO_TICKET | constants.SSL_OP_NO_RENEGOTIATION;
  return { ca: readPem('ca', caFile), secureOptions };
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
  readonly onFailed: (error: NodeJS.ErrnoException) => void;
  /** Why it fails, as far as that is known. */
  result: HandshakeResult;
}

export class ServerTls {
  readonly #events: ServerTlsEvents;
  readonly #server: tls.Server;
  readonly #asksForCertificate: boolean;
  readonly #handshakes = new Map<TlsWire, Handshake>();
  readonly #timer: NodeJS.Timeout;
  readonly #followed: FollowedFile<ServerTlsInForce>;
  #ticketKeys: Buffer | undefined;

  /** Throws when the files can't be used. */
  constructor(files: ServerTlsFiles, events: ServerTlsEvents) {
    this.#events = events;
    const { certFile, keyFile, clientCaFile } = files;
    this.#followed = new FollowedFile([certFile, keyFile, clientCaFile], () => {
      const material = readServerTls(files);
      return { material, facts: certificateFacts(material.cert) };
    });
    this.#asksForCertificate = clientCaFile !== undefined;
    this.#server = tls.createServer({
      ...this.#followed.current.material, requestCert: this.#asksForCertificate, rejectUnauthorized: false,
    });
    if (this.#asksForCertificate) {
      this.#server.on('keylog', (line, socket) => { wireOf(socket)?.onSecret(line); });
    }
    this.#server.on('secureConnection', (socket) => {
      const wire = wireOf(socket);
      const handshake = wire === undefined ? undefined : this.#handshakes.get(wire);
      if (wire === undefined || handshake === undefined) {
        socket.destroy();
        return;
      }
      this.#handshakes.delete(wire);
      events.onHandshake('ok');
      handshake.onSecure(socket);
    });
    this.#server.on('tlsClientError', (error: NodeJS.ErrnoException, socket) => {
      const result = handshakeResult(error.code ?? '');
      const wire = wireOf(socket);
      if (wire !== undefined) {
        if (result !== 'closed') this.#handshakes.get(wire)?.onFailed(error);
        this.#because(wire, result);
      }
      socket.destroy();
    });
    this.#timer = setInterval(() => { this.look(); }, LOOK_MS).unref();
  }

  /** Sessions begun elsewhere with the same keys are resumed here (RFC 5077, RFC 8446 2.2); 48 bytes. */
  setTicketKeys(keys: Buffer): void {
    this.#ticketKeys = keys;
    this.#server.setTicketKeys(keys);
  }

  /**
   * What comes over `wire` is TLS. When the handshake fails, its socket is closed; `onFailed`: first, why,
   * unless the peer has just gone.
   */
  begin(wire: TlsWire, onSecure: Handshake['onSecure'], onFailed: Handshake['onFailed']): void {
    const handshake: Handshake = { onSecure, onFailed, result: 'closed' };
    this.#handshakes.set(wire, handshake);
    if (this.#asksForCertificate) wire.expectCertificates('client');
    wire.socket.once('close', () => {
      if (!this.#handshakes.delete(wire)) return;
      this.#events.onHandshake(handshake.result);
    });
    this.#server.emit('connection', wire);
  }

  /** We end it. Of a handshake that is through nothing is said. */
  giveUp(wire: TlsWire): void {
    this.#because(wire, 'timeout');
  }

  /** Looks after the files no more. */
  close(): void {
    clearInterval(this.#timer);
  }

  /** The first reason is the true one. */
  #because(wire: TlsWire, result: HandshakeResult): void {
    const handshake = this.#handshakes.get(wire);
    if (handshake?.result === 'closed') handshake.result = result;
  }

  /** Whether the files have changed; by itself once a second. */
  look(): void {
    if (!this.#followed.look()) return;
    const { current: { material, facts }, why } = this.#followed;
    if (why !== '') {
      this.#events.onProblem(why);
      return;
    }
    this.#server.setSecureContext(material);
    if (this.#ticketKeys !== undefined) this.#server.setTicketKeys(this.#ticketKeys);
    this.#events.onRenewed(facts);
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
  const { standardName } = socket.getCipher();
  // OpenSSL says "(NONE)" of what it has no such name for.
  const cipher = /^\w+$/.test(standardName) ? standardName : '';
  const facts = { version: socket.getProtocol() ?? '', cipher };
  if (socket.authorized) return { ...facts, peerNames: certificateNames(socket.getPeerCertificate()) };
  // Null where none was asked for, whatever the type says.
  const why: unknown = socket.authorizationError;
  const shown: Partial<PeerCertificate> = why === null ? {} : socket.getPeerCertificate();
  if (shown.raw === undefined) return { ...facts, peerNames: [] };
  const [name = '(without a name)'] = certificateNames(shown);
  const unverified = { name: name.slice(0, NAME_CHARACTERS_MAX), why: String(why) };
  return { ...facts, peerNames: [], unverified };
}
