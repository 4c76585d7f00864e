/**
 * Connections of a mail client, for deliveries and for `send`: in clear, and changed to TLS as soon as they
 * are open (RFC 8314 3.3) or in the middle (RFC 3207).
 *
 *   connect() ─► OPEN ─ secure(), another Connection ─► handshake ─ onOpen ─► OPEN
 *
 * TLS 1.2 or newer. Where the terms ask for it, the server's certificate must come from a CA of their file,
 * or of those that Node knows, and bear the name of the terms; else it is looked at for the log only. TLSA
 * records that can be used judge it instead, after the handshake and before onOpen. No session is resumed:
 * connections are kept instead, and Node takes a session that was begun unjudged for a judged one. Only a
 * transport with one server, which is always judged, may be told to.
 * A file of CAs is read anew when it changes; a bad one never replaces a good one. Nobody shows a second
 * chain later (renegotiation).
 *
 * What is not here: what TLSA records mean (dane.ts), certificates of clients (tls-transport.ts), the life of
 * a connection (transport.ts), and who must have TLS (gateway/outbound, load).
 */
import { constants } from 'node:crypto';
import net from 'node:net';
import tls from 'node:tls';
import type { SecureContext, TLSSocket } from 'node:tls';
import { errorText } from '../../base/error-text.js';
import type {
  Connection, ConnectionHandlers, DaneTerms, MailTransport, TlsTerms,
} from '../transport.js';
import type { HostAddresses, LookupWait } from '../resolver.js';
import { readPem } from './certificates.js';
import { FollowedFile } from './changing-files.js';
import { SystemClock } from './clock.js';
import { chainOf, usableTerms, whyNotByDane } from './dane.js';
import { checkDnsName } from './dns-name.js';
import { HostLookups, lookUpHost } from './host-lookup.js';
import { CIPHERS, CURVES } from './key-exchange.js';
import { clientConnection, failed } from './tls-transport.js';
import { TlsWire, WIRE_BUFFER_BYTES, connectOver } from './tls-wire.js';
import { NodeConnection, NodeTransport } from './transport.js';

/**
 * OpenSSL's level 2: keys of 112 bits, of servers that are to be known. Others may have weaker ones, which
 * are better than none. Said here because Node changed its default in 24.5.
 */
const EVERY_CONTEXT = {
  minVersion: 'TLSv1.2', ciphers: `${CIPHERS}:@SECLEVEL=2`, ecdhCurve: CURVES,
  secureOptions: constants.SSL_OP_NO_RENEGOTIATION,
} as const;

export interface ClientTransportOptions {
  /** Replies are short, and there may be ten thousand connections. */
  readonly readBufferBytes: number;
  /** Goes on with the session of the last handshake: all terms have the same server, and it is judged. */
  readonly resumes?: boolean;
  /** CAs of terms without a file; undefined: those that Node knows. */
  readonly ca?: string;
  /** Who share them; undefined: nobody else. */
  readonly lookups?: HostLookups;
  /** A file of CAs has changed; `why` it can't be used, or ''; `isStale`: one or another can't. */
  readonly onCaFile?: (file: string, why: string, isStale: boolean) => void;
}

export class ClientTransport implements MailTransport {
  readonly #clear: NodeTransport;
  readonly #options: ClientTransportOptions;
  readonly #lookups: HostLookups;
  #dane: SecureContext | undefined;
  /** By the file of CAs. */
  readonly #contexts = new Map<string, FollowedFile<SecureContext>>();
  readonly #untrusted = new WeakSet<Connection>();
  /** Of all connections. */
  readonly #buffer = new Uint8Array(WIRE_BUFFER_BYTES);
  /** The last that was given, where sessions are resumed. */
  #session: Buffer | undefined;

  constructor(options: ClientTransportOptions) {
    this.#options = options;
    this.#clear = new NodeTransport(options);
    this.#lookups = options.lookups ?? new HostLookups(lookUpHost, new SystemClock());
  }

  connect(host: string, port: number, handlers: ConnectionHandlers, from?: string): Connection {
    return this.#clear.connect(host, port, handlers, from);
  }

  addresses(host: string, done: (found: HostAddresses) => void): () => boolean {
    return this.#lookups.ask(host, done);
  }

  waitOf(host: string): LookupWait | undefined {
    return this.#lookups.waitOf(host);
  }

  secure(clear: Connection, terms: TlsTerms, handlers: ConnectionHandlers): Connection {
    if (!(clear instanceof NodeConnection)) throw new Error('only a connection made here can change to TLS');
    const dane = usableTerms(terms.dane);
    const [serverName = terms.serverName] = dane?.names ?? [];
    const mustVerify = terms.mustVerify && dane === undefined;
    let secureContext: SecureContext;
    try {
      secureContext = dane === undefined ? this.#contextOf(terms) : this.#daneContext;
    } catch (error) {
      clear.giveAway().destroy();
      return failed(clear.remote, `TLS: ${errorText(error)}`, handlers);
    }
    const under = clear.giveAway();
    const socket = connectOver(new TlsWire(under, this.#buffer), {
      secureContext, rejectUnauthorized: mustVerify,
      ...(this.#session === undefined ? {} : { session: this.#session }),
      // An address is no name that a server could choose its certificate by (RFC 6066 3).
      ...(net.isIP(serverName) === 0 ? { servername: serverName } : {}),
      checkServerIdentity: (_name, certificate) => (terms.isBySts === true
        ? checkDnsName(serverName, certificate) : tls.checkServerIdentity(serverName, certificate)),
    });
    const by = dane !== undefined ? 'dane' : terms.isBySts === true ? 'sts' : undefined;
    const connection = clientConnection(socket, clear.remote, this.#options.readBufferBytes, handlers, {
      by, ...(dane === undefined ? {} : { judge: () => whyNotShown(socket, dane) }),
    }, under);
    connection.tellWhenEmpty();
    if (this.#options.resumes === true) socket.on('session', (session) => { this.#session = session; });
    socket.once('error', () => {
      // Null, undefined or a code, whatever the type says.
      const why = socket.authorizationError as unknown;
      if (typeof why === 'string') this.#untrusted.add(connection);
    });
    return connection;
  }

  /** A connection that is closed: its server's certificate was not taken, as it won't be the next time. */
  isUntrusted(connection: Connection): boolean {
    return this.#untrusted.has(connection);
  }

  /** Without any CA: TLSA records alone say who is trusted. */
  get #daneContext(): SecureContext {
    return this.#dane ??= tls.createSecureContext({ ...EVERY_CONTEXT, ca: [] });
  }

  /** Throws an Error that names the file, where that has never been good. */
  #contextOf({ caFile }: TlsTerms): SecureContext {
    const key = caFile ?? '';
    let known = this.#contexts.get(key);
    if (known === undefined) {
      known = new FollowedFile([caFile], () => tls.createSecureContext({
        ...EVERY_CONTEXT,
        ca: caFile === undefined ? this.#options.ca : readPem('ca', caFile),
      }));
      this.#contexts.set(key, known);
    } else if (caFile !== undefined && known.look()) {
      const isStale = [...this.#contexts.values()].some(({ why }) => why !== '');
      this.#options.onCaFile?.(caFile, known.why, isStale);
    }
    return known.current;
  }
}

function whyNotShown(socket: TLSSocket, dane: DaneTerms): string {
  return whyNotByDane(chainOf(socket.getPeerCertificate(true)), dane, Date.now());
}
