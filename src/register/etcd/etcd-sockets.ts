/**
 * The sockets of one connection to etcd, so that its end ends them: grpc-js closes its HTTP/2 sessions
 * politely and waits for the other side, for ever if that stands still, and a connect to a host that
 * is gone keeps the process for two minutes. So a socket of ours knocks first, and those of grpc-js
 * pass through credentials of ours, which do TLS by node:tls: that also checks a certificate by address
 * where the endpoint is one (grpc-js would send the address as a server name, which RFC 6066 section 3
 * forbids and Node warns of). They lead to the address that took the knock: grpc-js would look the name up
 * by itself.
 */
import net from 'node:net';
import type { LookupFunction } from 'node:net';
import tls from 'node:tls';
import { CallCredentials, ChannelCredentials } from '@grpc/grpc-js';
import { addressText } from '../../base/address-text.js';

type SecureConnector = ReturnType<ChannelCredentials['_createSecureConnector']>;

/** PEM texts. */
export interface EtcdTls {
  /** Undefined: the authorities that Node trusts. */
  readonly ca: string | undefined;
  readonly key: string | undefined;
  readonly cert: string | undefined;
}

export class EtcdSockets extends ChannelCredentials {
  readonly #host: string;
  readonly #port: number;
  /** Undefined: in clear. */
  readonly #tls: tls.ConnectionOptions | undefined;
  readonly #lookup: LookupFunction;
  readonly #sockets = new Set<net.Socket>();
  /** That took the knock. */
  #address: string | undefined;
  #isEnded = false;

  /** `url` is http:// or https://, with host and port. */
  constructor(url: URL, keys: EtcdTls | undefined, lookup: LookupFunction) {
    super();
    this.#lookup = lookup;
    const { protocol, hostname, port } = url;
    this.#host = hostname.replace(/^\[|\]$/g, '');
    this.#port = Number(port === '' ? DEFAULT_PORTS[protocol] : port);
    if (protocol !== 'https:') return;
    const servername = net.isIP(this.#host) === 0 ? this.#host : '';
    const { ca, key, cert } = keys ?? {};
    this.#tls = { host: this.#host, servername, ca, key, cert, ALPNProtocols: ['h2'], minVersion: 'TLSv1.2' };
  }

  /** As grpc-js takes it: never by DNS records of its own choosing. Once somebody listens. */
  get target(): string {
    return `dns:///${addressText(this.#address ?? this.#host, this.#port)}`;
  }

  /** What etcd is called, whatever its address. */
  get authority(): string {
    return addressText(this.#host, this.#port);
  }

  /** Whether anybody listens: '' or the system's reason. Not called after end(). */
  knock(done: (why: string) => void): void {
    const socket = net.connect({ host: this.#host, port: this.#port, lookup: this.#lookup });
    let why = '';
    this.#sockets.add(socket);
    socket.on('connect', () => {
      this.#address = socket.remoteAddress;
      socket.destroy();
    });
    socket.on('error', (error) => {
      why = error.message;
    });
    socket.on('close', () => {
      this.#sockets.delete(socket);
      if (!this.#isEnded) done(why);
    });
  }

  end(): void {
    this.#isEnded = true;
    for (const socket of this.#sockets) socket.destroy();
    this.#sockets.clear();
  }

  override _isSecure(): boolean {
    return this.#tls !== undefined;
  }

  override _equals(other: ChannelCredentials): boolean {
    return this === other;
  }

  override _createSecureConnector(
    _target: unknown,
    _options: unknown,
    call = CallCredentials.createEmpty(),
  ): SecureConnector {
    return {
      connect: async (socket) => {
        this.#keep(socket);
        if (this.#tls === undefined) return { socket, secure: false };
        return { socket: await this.#secure(socket, this.#tls), secure: true };
      },
      waitForReady: () => Promise.resolve(),
      getCallCredentials: () => call,
      destroy: () => {},
    };
  }

  #secure(plain: net.Socket, options: tls.ConnectionOptions): Promise<tls.TLSSocket> {
    return new Promise((resolve, reject) => {
      const socket = tls.connect({ ...options, socket: plain });
      this.#keep(socket);
      socket.once('secureConnect', () => {
        resolve(socket);
      });
      // Stays: an error after the handshake is told by 'close' to who has it then.
      socket.on('error', reject);
      socket.once('close', () => {
        reject(new Error('connection closed in the TLS handshake'));
      });
    });
  }

  #keep(socket: net.Socket): void {
    this.#sockets.add(socket);
    socket.once('close', () => {
      this.#sockets.delete(socket);
    });
    if (this.#isEnded) socket.destroy();
  }
}

const DEFAULT_PORTS: Readonly<Record<string, string>> = { 'http:': '80', 'https:': '443' };
