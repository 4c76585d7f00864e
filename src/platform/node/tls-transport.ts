/**
 * Links over TLS, with certificates on both sides. The connecting side verifies that the listener's
 * certificate comes from the CA and bears the name of the peer that is meant; the listening side asks for a
 * certificate of the same CA and hands its names on (Connection.peerNames): whoever judges what the peer
 * calls itself compares. Names are those of the certificate, not of the network: ids of stores and gateways,
 * as DNS names in subjectAltName or as the common name. Addresses say nothing.
 *
 *   TLS 1.3, or 1.2 with an older peer. No session is resumed: each connection proves its certificate anew.
 *
 * Renewal: the connecting side reads its files for each attempt; the listening side looks at their times for
 * each connection that comes, and goes on with the old ones while the new ones can't be used. Open
 * connections stay.
 *
 * What is not here: the life of a connection (transport.ts).
 */
import { X509Certificate } from 'node:crypto';
import net from 'node:net';
import type { LookupFunction } from 'node:net';
import tls from 'node:tls';
import type { PeerCertificate, SecureContextOptions, TLSSocket } from 'node:tls';
import { errorText } from '../../base/error-text.js';
import type { Connection, ConnectionHandlers, Listener, Listening, Transport } from '../transport.js';
import { checkPair, readPem } from './certificates.js';
import { FollowedFile } from './changing-files.js';
import { CIPHERS, CURVES } from './key-exchange.js';
import { readIntoOwnBuffer } from './own-buffer.js';
import {
  BUFFERED_BYTES_MAX, END_GRACE_MS, NodeConnection, READ_BUFFER_BYTES, tlsReason,
} from './transport.js';

/**
 * A peer that connects and does not finish the handshake of TLS is closed after this, as after that of the
 * link.
 */
const HANDSHAKE_MS = 5_000;
const CONNECTIONS_MAX = 4_096;
/** Addresses whose last trouble is remembered, so that it is told once and not at each attempt. */
const TOLD_MAX = 256;

/** PEM files: who is trusted, who this process is, and the key that shows it. */
export interface TlsFiles {
  readonly caFile: string;
  readonly certFile: string;
  readonly keyFile: string;
}

/** Throws an Error that names the file. */
export function readTlsFiles({ caFile, certFile, keyFile }: TlsFiles): SecureContextOptions {
  const material = {
    ca: readPem('ca', caFile), cert: readPem('cert', certFile), key: readPem('key', keyFile),
    minVersion: 'TLSv1.2', ciphers: CIPHERS, ecdhCurve: CURVES,
  } as const;
  checkPair(material, certFile, keyFile);
  return material;
}

export interface TlsTransportOptions {
  readonly files: TlsFiles;
  /** Must stand in the certificate of whoever answers. */
  readonly peerName: string;
  readonly readBufferBytes?: number;
  /** As of NodeTransportOptions. */
  readonly lookup?: LookupFunction;
}

export class TlsTransport implements Transport {
  readonly #files: TlsFiles;
  readonly #lookup: LookupFunction | undefined;
  readonly #peerName: string;
  readonly #readBufferBytes: number;

  constructor(options: TlsTransportOptions) {
    this.#files = options.files;
    this.#lookup = options.lookup;
    this.#peerName = options.peerName;
    this.#readBufferBytes = options.readBufferBytes ?? READ_BUFFER_BYTES;
  }

  connect(host: string, port: number, handlers: ConnectionHandlers): Connection {
    const remote = `${host}:${port}`;
    let material: SecureContextOptions;
    try {
      material = readTlsFiles(this.#files);
    } catch (error) {
      return failed(remote, `TLS: ${errorText(error)}`, handlers);
    }
    const options = {
      ...material,
      host,
      port,
      ...(this.#lookup === undefined ? {} : { lookup: this.#lookup }),
      checkServerIdentity: (_host: string, certificate: PeerCertificate) => this.#check(certificate),
    };
    const connection = clientConnection(tls.connect(options), remote, this.#readBufferBytes, handlers);
    connection.showsCertificate = true;
    return connection;
  }

  #check(certificate: PeerCertificate): Error | undefined {
    const names = certificateNames(certificate);
    if (names.includes(this.#peerName)) return undefined;
    return new Error(`the certificate is for ${quoted(names)}, not for '${this.#peerName}': check addresses `
      + `and certificates`);
  }
}

/** By what else than CAs, and for whom, the server is known. */
export interface Judgement {
  readonly by: 'dane' | 'sts' | undefined;
  /**
   * Looks at the server before anybody hears that the connection stands, and says what is wrong with it, or
   * ''; undefined: TLS itself has judged it.
   */
  readonly judge?: () => string;
}

/**
 * Over a socket from which nothing was read. One buffer for its life, as in transport.ts. `under`: what TLS
 * lies on, where it is no socket of its own.
 */
export function clientConnection(
  socket: TLSSocket, remote: string, readBufferBytes: number, handlers: ConnectionHandlers,
  { by, judge }: Judgement = { by: undefined }, under: net.Socket = socket,
): NodeConnection {
  under.setNoDelay(true);
  const connection = new NodeConnection(socket, remote, BUFFERED_BYTES_MAX, END_GRACE_MS, under);
  const buffer = new Uint8Array(readBufferBytes);
  readIntoOwnBuffer(socket, buffer, (bytes) => {
    connection.received(buffer.subarray(0, bytes));
    return true;
  });
  connection.attach(handlers);
  socket.once('secureConnect', () => {
    const why = judge?.() ?? '';
    if (why !== '') {
      socket.destroy(new Error(why));
      return;
    }
    const isVerified = judge !== undefined || socket.authorized;
    // A code of OpenSSL or an error of Node's, whatever the type says.
    const whyNot = isVerified ? undefined : codeOf(socket.authorizationError);
    connection.security = {
      version: socket.getProtocol() ?? '', cipher: socket.getCipher().name, isVerified, by, whyNot,
    };
    connection.opened();
  });
  return connection;
}

export class TlsListener implements Listener {
  readonly #followed: FollowedFile<SecureContextOptions>;
  readonly #onProblem: (text: string, remote: string) => void;
  readonly #told = new Map<string, string>();
  /** One a path; a renewal is for all. */
  readonly #servers = new Set<tls.Server>();

  /**
   * Throws when the files can't be used. `onProblem` hears why a peer was not let in, once per address and
   * cause.
   */
  constructor(files: TlsFiles, onProblem: (text: string, remote: string) => void) {
    this.#onProblem = onProblem;
    const { caFile, certFile, keyFile } = files;
    this.#followed = new FollowedFile([caFile, certFile, keyFile], () => readTlsFiles(files));
  }

  listen(
    host: string, port: number, accept: (connection: Connection) => ConnectionHandlers,
  ): Promise<Listening> {
    const server = tls.createServer({
      ...this.#followed.current, requestCert: true, rejectUnauthorized: true, handshakeTimeout: HANDSHAKE_MS,
      noDelay: true,
    });
    server.maxConnections = CONNECTIONS_MAX;
    // Before the handshake of this very connection begins.
    server.prependListener('connection', () => { this.#renew(); });
    this.#servers.add(server);
    server.on('secureConnection', (socket) => { this.#accepted(socket, accept); });
    server.on('tlsClientError', (error, socket) => {
      // Set when the certificate is what was wrong; the error is then that of the socket which was closed for
      // it.
      const cause = socket.authorizationError as unknown;
      const remote = remoteOf(socket);
      const refused = `TLS: the certificate of the peer is not taken: ${String(cause)}`;
      this.#tell(typeof cause === 'string' ? refused : tlsReason(error), remote);
    });
    return new Promise((resolve, reject) => {
      server.once('error', reject);
      server.listen({ host, port }, () => {
        server.off('error', reject);
        server.on('error', () => undefined);
        const address = server.address();
        resolve({
          port: address !== null && typeof address === 'object' ? address.port : port,
          close: () => {
            this.#servers.delete(server);
            server.close();
          },
        });
      });
    });
  }

  #accepted(socket: TLSSocket, accept: (connection: Connection) => ConnectionHandlers): void {
    this.#told.delete(remoteOf(socket));
    const connection = new NodeConnection(
      socket, `${remoteOf(socket)}:${socket.remotePort ?? 0}`, BUFFERED_BYTES_MAX, END_GRACE_MS,
    );
    connection.peerNames = certificateNames(socket.getPeerCertificate());
    connection.showsCertificate = true;
    connection.attach(accept(connection));
    setImmediate(() => { connection.opened(); });
  }

  #renew(): void {
    if (!this.#followed.look()) return;
    const { current: material, why } = this.#followed;
    if (why !== '') this.#tell(`the new files can't be used, the old certificate stays: ${why}`, 'here');
    else for (const server of this.#servers) server.setSecureContext(material);
  }

  #tell(text: string, remote: string): void {
    if (this.#told.get(remote) === text) return;
    if (this.#told.size >= TOLD_MAX) this.#told.clear();
    this.#told.set(remote, text);
    this.#onProblem(text, remote);
  }
}

/** DNS names and common name. Names that Node had to quote are none that an id could equal. */
export function certificateNames(certificate: Partial<PeerCertificate>): readonly string[] {
  // Empty when the peer has shown none.
  const { subject, subjectaltname } = certificate;
  const entries = (subjectaltname ?? '').split(', ').filter((entry) => entry.startsWith('DNS:'));
  const names = entries.map((entry) => entry.slice('DNS:'.length));
  const common: unknown = subject?.CN;
  if (typeof common === 'string' && !names.includes(common)) names.push(common);
  return names;
}

/** The same, of a certificate in PEM. */
export function namesInPem(pem: string): readonly string[] {
  return certificateNames(new X509Certificate(pem).toLegacyObject());
}

function codeOf(error: unknown): string {
  return typeof error === 'string' ? error : (error as { readonly code?: string } | null)?.code ?? 'unknown';
}

/** One that tells this and closes. */
export function failed(remote: string, text: string, handlers: ConnectionHandlers): Connection {
  const socket = new net.Socket();
  const connection = new NodeConnection(socket, remote, BUFFERED_BYTES_MAX, END_GRACE_MS);
  connection.attach(handlers);
  socket.destroy(new Error(text));
  return connection;
}

/** A closed socket has no address any more: those are told together. */
function remoteOf(socket: TLSSocket): string {
  return socket.remoteAddress ?? 'unknown';
}

function quoted(names: readonly string[]): string {
  return names.length === 0 ? 'nobody' : names.map((name) => `'${name}'`).join(', ');
}
