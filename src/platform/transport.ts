/**
 * Byte streams between processes, as the machines see them. The real ones are in platform/node/transport.ts;
 * the simulator and the unit tests pass networks of their own.
 *
 * What every implementation promises:
 * - Handlers are never called from inside a call of the connection's own methods, nor from inside connect():
 *   a machine is not entered twice.
 * - onOpen comes at most once and before any onData (to a server of a protocol in which the client must wait
 *   for it, what the client sent too early comes first); onClose comes exactly once, last, whatever happened
 *   (refused, reset, ended by either side, destroyed), with one short line that says why.
 * - After end() or destroy() no onData and no onDrain come any more; bytes that still arrive are dropped.
 * - Bytes given to onData are valid during the call only: who needs them longer copies them.
 * - The list given to write() is read before write() returns, so the caller may reuse the list. The bytes in
 *   it are not copied: they stay as they are until bufferedBytes is 0, or the peer has answered for them.
 *
 * What is not here: frames (protocol/frame-reader.ts) and any retry (gateway/mirror/link).
 */
import type { HostAddresses, LookupWait, TlsaData } from './resolver.js';

export interface Connection {
  /** "host:port" of the peer, for logs. */
  readonly remote: string;
  /** Our address, while it is open; undefined: not known. */
  readonly local?: string | undefined;
  /**
   * Names in the certificate that the peer has proved to own; undefined where no certificate was asked for.
   */
  readonly peerNames?: readonly string[] | undefined;
  /** What a client has of TLS with its server, from onOpen on; undefined in clear. */
  readonly security?: SecuredFacts | undefined;
  /** Not open yet, and nothing was sent to the peer: its name is being looked up. */
  readonly isResolving?: boolean;
  /** Sends the chunks in order with one system call where the kernel takes them all. Dropped once closed. */
  write(chunks: readonly Uint8Array[]): void;
  /** Bytes written but not yet taken by the kernel. */
  readonly bufferedBytes: number;
  /** Stops onData until resume(); the kernel's buffers then slow the peer down. */
  pause(): void;
  resume(): void;
  /** Sends what is buffered, then closes; cut off when the peer does not take it within a bound. */
  end(): void;
  /** Closes at once; what is buffered is lost. */
  destroy(): void;
}

export interface ConnectionHandlers {
  /** Bytes can be sent. Called for accepted connections too, right after they were accepted. */
  onOpen(): void;
  onData(bytes: Uint8Array): void;
  /**
   * All that was written has left, after more had been waiting than the transport finds good (Node: 16 KiB).
   */
  onDrain(): void;
  onClose(reason: string): void;
}

/** What TLS has come to on a connection. */
export interface TlsFacts {
  /** "TLSv1.3" */
  readonly version: string;
  /** As IANA has registered it: "TLS_AES_256_GCM_SHA384"; '': not known. */
  readonly cipher: string;
  /** Names in the client's certificate when it showed one that was verified. */
  readonly peerNames: readonly string[];
  /** When it showed one that was not: the first name in it, and why. */
  readonly unverified?: { readonly name: string; readonly why: string } | undefined;
}

/**
 * How a handshake has ended. `version`, `cipher`: nothing in common; `certificate`: the client does not take
 * ours; `not-tls`: it speaks something else; `closed`: it has gone; `timeout`: ended here, it took too long.
 */
export type HandshakeResult =
  'ok' | 'version' | 'cipher' | 'certificate' | 'not-tls' | 'closed' | 'timeout' | 'other';

/**
 * An accepted connection of a protocol whose clients may end their side and still read, and may change to
 * TLS.
 */
export interface ServerConnection extends Connection {
  /** Address of the peer, IPv4 in its own form. */
  readonly remoteAddress: string;
  readonly remotePort: number;
  /** More waits to be written than the transport finds good: onDrain will come. */
  readonly isFull: boolean;
  /** Sends text, one byte a character; with what else this call writes, one write. */
  writeText(text: string): void;
  /**
   * What comes from now on is TLS; `ahead` was read already and belongs to it. onSecure or onClose follows,
   * and nothing else before.
   */
  secure(ahead: Uint8Array): void;
  /** As end(), for a peer that has nothing more to say: its end is not waited for. */
  finish(): void;
}

export interface ServerHandlers extends ConnectionHandlers {
  /** TLS stands; bytes are in clear again. */
  onSecure(facts: TlsFacts): void;
  /** The peer sends no more. It may still read. */
  onEnd(): void;
}

export interface Transport {
  connect(host: string, port: number, handlers: ConnectionHandlers): Connection;
}

/** In front of the code, in the reason of a connection that could not leave from the address it was to. */
const NO_SOURCE = 'source address: ';

export function sourceReason(code: string): string {
  return `${NO_SOURCE}${code}`;
}

/** The code; undefined of any other reason. */
export function codeOfSource(reason: string): string | undefined {
  return reason.startsWith(NO_SOURCE) ? reason.slice(NO_SOURCE.length) : undefined;
}

/** What the DNS has proved of a server's certificate (RFC 7672). */
export interface DaneTerms {
  /** Under the first of `names`; at least one. */
  readonly records: readonly TlsaData[];
  /** The server's own name first: any of them may stand in a certificate by one who is trusted (3.2.2). */
  readonly names: readonly string[];
}

/** What a client asks of TLS with a server. */
export interface TlsTerms {
  /** By which the server chooses its certificate (RFC 6066 3), and whom that is to be for. */
  readonly serverName: string;
  /** A certificate that is not for `serverName`, or from nobody who is trusted, ends the connection. */
  readonly mustVerify: boolean;
  /** PEM file of who is trusted; undefined: whom the platform trusts. */
  readonly caFile: string | undefined;
  /** If one of these records can be used, they judge the certificate, and what is above does not count. */
  readonly dane?: DaneTerms | undefined;
  /** The policy of a domain asks for it: `serverName` must stand among the DNS names (RFC 8461 4.2). */
  readonly isBySts?: boolean;
}

export interface SecuredFacts {
  /** "TLSv1.3" */
  readonly version: string;
  readonly cipher: string;
  /** The server's certificate is right by the terms, whether that was asked for or not. */
  readonly isVerified: boolean;
  /** By TLSA records, and by nothing else; by CAs, as the policy of the domain asks; or as the route does. */
  readonly by?: 'dane' | 'sts' | undefined;
  /** OpenSSL's or Node's word for what is wrong with the certificate; undefined: nothing. */
  readonly whyNot?: string | undefined;
}

/** As people read it. */
export function verifiedText({ isVerified, by }: SecuredFacts): 'dane' | 'sts' | 'yes' | 'no' {
  if (!isVerified) return 'no';
  return by ?? 'yes';
}

/** Connections of a mail client, which may change to TLS. */
export interface MailTransport extends Transport {
  /** `from`: an address of this machine; undefined: the system chooses one. Needs an address for a host. */
  connect(host: string, port: number, handlers: ConnectionHandlers, from?: string): Connection;
  /**
   * Of a host, as connect() would find them. Never called back from inside. What is returned is called by who
   * does not want them any more; false: the system was not asked yet, or just now, as others were before.
   */
  addresses(host: string, done: (found: HostAddresses) => void): () => boolean;
  /** What keeps them; undefined: nobody wants them, or nobody can tell. */
  waitOf?(host: string): LookupWait | undefined;
  /**
   * What comes from now on is TLS, on the connection returned: onOpen says that it stands, onClose why it
   * does not. `clear` is of no use any more, and its handlers hear nothing of it.
   */
  secure(clear: Connection, terms: TlsTerms, handlers: ConnectionHandlers): Connection;
}

export interface Listening {
  /** The port bound, also when 0 was asked for. */
  readonly port: number;
  /** Accepts no more; connections already open live on. */
  close(): void;
}

/** The accepting side; only composition roots and tests use it. */
export interface Listener {
  /** Rejects when the address can't be bound. `accept` may already write to the connection. */
  listen(
    host: string, port: number, accept: (connection: Connection) => ConnectionHandlers,
  ): Promise<Listening>;
}
