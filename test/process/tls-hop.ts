/**
 * A next hop on 127.0.0.1 that speaks SMTP or LMTP by STARTTLS or with TLS first, and asks who the client is, as a test
 * says, and keeps what it heard, in clear and in TLS; and the certificates for it, made by openssl in a folder that goes with the process.
 */
import { execFileSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import net from 'node:net';
import type { AddressInfo, Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import tls from 'node:tls';
import type { SecureContextOptions } from 'node:tls';

const KEYS = {
  ec: ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes'],
  rsa: ['-newkey', 'rsa:2048', '-nodes'],
} as const;

export interface CertificateFiles {
  readonly certFile: string;
  readonly keyFile: string;
}

export interface Certificates {
  readonly caFile: string;
  /** By an authority of which only `caFile` knows, or by `issuer`; `extension` is one more line of openssl's. */
  issue(name: string, days?: number, extension?: string, issuer?: CertificateFiles): CertificateFiles;
  /** By the same authority; subjectAltName has `names` alone, or is missing where that is ''. */
  issueFor(commonName: string, names: string): CertificateFiles;
  selfSigned(name: string): CertificateFiles;
}

/** Undefined where openssl is missing. */
export function makeCertificates(kind: keyof typeof KEYS = 'ec'): Certificates | undefined {
  const newKey = KEYS[kind];
  const folder = mkdtempSync(join(tmpdir(), 'twinpost-hop-tls-'));
  process.once('exit', () => { rmSync(folder, { recursive: true, force: true }); });
  let count = 0;
  const openssl = (...args: readonly string[]): void => { execFileSync('openssl', args, { stdio: 'ignore' }); };
  const pair = (): CertificateFiles => {
    const at = join(folder, String(++count));
    return { certFile: `${at}.crt`, keyFile: `${at}.key` };
  };
  const selfSigned = (name: string): CertificateFiles => {
    const own = pair();
    openssl('req', '-x509', ...newKey, '-days', '30', '-subj', `/CN=${name}`, '-addext', `subjectAltName=DNS:${name}`, '-keyout', own.keyFile, '-out', own.certFile);
    return own;
  };
  const signed = (name: string, days: number, extensions: string, issuer: CertificateFiles): CertificateFiles => {
    const own = pair();
    const [request, file] = [`${own.keyFile}.csr`, `${own.keyFile}.ext`];
    writeFileSync(file, extensions);
    openssl('req', ...newKey, '-subj', `/CN=${name}`, '-keyout', own.keyFile, '-out', request);
    openssl('x509', '-req', '-in', request, '-CA', issuer.certFile, '-CAkey', issuer.keyFile, '-CAcreateserial', '-days', String(days), '-extfile', file, '-out', own.certFile);
    return own;
  };
  let ca: CertificateFiles;
  try {
    ca = selfSigned('ca.test');
  } catch {
    return undefined;
  }
  return {
    caFile: ca.certFile,
    selfSigned,
    issue: (name, days = 30, extension = '', issuer = ca) => signed(name, days, `subjectAltName=DNS:${name},IP:127.0.0.2\n${extension}`, issuer),
    issueFor: (commonName, names) => signed(commonName, 30, names === '' ? '' : `subjectAltName=${names}`, ca),
  };
}

export interface TlsHopOptions {
  readonly certificate?: CertificateFiles | undefined;
  /** For a client that names a server (RFC 6066 3); else `certificate`. */
  readonly certificateOf?: Readonly<Record<string, CertificateFiles>>;
  readonly isTlsFirst?: boolean;
  /** Besides STARTTLS, in clear and in TLS. */
  readonly offers?: readonly string[];
  readonly offersInTls?: readonly string[];
  readonly offersStartTls?: boolean;
  /** The answer to STARTTLS, with what may stand behind it. TLS begins only behind a plain 220. */
  readonly toStartTls?: string;
  /** Takes mail in TLS alone (RFC 3207 4). */
  readonly insists?: boolean;
  /** Takes mail from this one alone; `refusal`: the answer to others, by what they said last. AUTH is in `offers`. */
  readonly auth?: { readonly user: string; readonly password: string; readonly refusal?: (response: string) => string };
  /** Resets the connection when the client has begun the handshake; or says nothing to it. */
  readonly handshake?: 'reset' | 'silent';
  /** More for Node: versions, ciphers, certificates of clients. */
  readonly tls?: SecureContextOptions & { readonly requestCert?: boolean; readonly rejectUnauthorized?: boolean };
}

export interface Taken {
  readonly isSecure: boolean;
  /** Who has authenticated, or ''. */
  readonly user: string;
  readonly to: readonly string[];
  readonly content: string;
}

const GO = '220 2.0.0 go';

export class TlsHop {
  readonly taken: Taken[] = [];
  /** Commands, one behind the other, those in TLS with a "*" in front; "|" begins a connection. */
  readonly heard: string[] = [];
  /** The same lines whole, without marks. */
  readonly said: string[] = [];
  /** Server names that clients said. */
  readonly named: string[] = [];
  connections = 0;
  /** Handshakes in which a client showed a session of before. */
  resumed = 0;
  options: TlsHopOptions;
  readonly #server: net.Server;
  readonly #sockets = new Set<Socket>();

  constructor(options: TlsHopOptions) {
    this.options = options;
    this.#server = net.createServer({ noDelay: true }, (socket) => {
      this.connections++;
      this.heard.push('|');
      this.#keep(socket);
      if (this.options.isTlsFirst === true) this.#handshake(socket, true);
      else this.#talk(socket, false, true);
    });
  }

  async listen(host = '127.0.0.1'): Promise<number> {
    await new Promise<void>((resolve) => { this.#server.listen(0, host, resolve); });
    return (this.#server.address() as AddressInfo).port;
  }

  close(): void {
    for (const socket of this.#sockets) socket.destroy();
    this.#server.close();
  }

  #keep(socket: Socket): void {
    this.#sockets.add(socket);
    socket.on('error', () => undefined);
    socket.once('close', () => { this.#sockets.delete(socket); });
  }

  #handshake(socket: Socket, greets: boolean): void {
    const { handshake, certificate, tls: more } = this.options;
    if (handshake === 'silent') return;
    if (handshake === 'reset') {
      socket.once('data', () => { socket.resetAndDestroy(); });
      return;
    }
    const own = certificate === undefined ? {} : { cert: readFileSync(certificate.certFile), key: readFileSync(certificate.keyFile) };
    const secured = new tls.TLSSocket(socket, {
      isServer: true, ...own, ...more,
      SNICallback: (name, done) => {
        this.named.push(name);
        const other = this.options.certificateOf?.[name];
        done(null, other === undefined ? undefined : tls.createSecureContext({ cert: readFileSync(other.certFile), key: readFileSync(other.keyFile) }));
      },
    });
    secured.once('secure', () => { if (secured.isSessionReused()) this.resumed++; });
    this.#keep(secured);
    this.#talk(secured, true, greets);
  }

  #talk(socket: Socket, isSecure: boolean, greets: boolean): void {
    let held = '';
    let to: string[] = [];
    let inData = false;
    let user = '';
    /** So many responses AUTH takes, and those that came. */
    let needed = 0;
    let responses: string[] = [];
    const say = (text: string): void => { socket.write(`${text}\r\n`, 'latin1'); };
    if (greets) say('220 hop.test');
    const onData = (bytes: Buffer): void => {
      held += bytes.toString('latin1');
      for (;;) {
        const end = inData ? held.indexOf('\r\n.\r\n') : held.indexOf('\r\n');
        if (end < 0) return;
        const text = held.slice(0, end);
        held = held.slice(end + (inData ? 5 : 2));
        if (inData) {
          this.taken.push({ isSecure, user, to, content: `${text}\r\n` });
          inData = false;
          // LMTP answers for each (RFC 2033 4.2).
          say(this.heard.some((line) => line.includes('LHLO')) ? to.map(() => '250 2.0.0 taken').join('\r\n') : '250 2.0.0 taken');
          to = [];
          continue;
        }
        const verb = text.slice(0, 4).toUpperCase();
        if (needed > 0) {
          responses.push(text);
        } else {
          const [word = '', mechanism = '', ...more] = text.split(' ');
          this.said.push(verb === 'AUTH' ? word : text);
          this.heard.push(`${isSecure ? '*' : ''}${word}${verb === 'AUTH' ? ` ${mechanism}` : ''}`);
          if (verb === 'AUTH') [needed, responses] = [mechanism === 'LOGIN' ? 2 : 1, more];
        }
        if (needed > 0) {
          if (responses.length < needed) {
            say('334 VXNlcm5hbWU6');
            continue;
          }
          needed = 0;
          user = this.#userOf(responses);
          say(user === '' ? this.options.auth?.refusal?.(responses.at(-1) ?? '') ?? '535 5.7.8 who are you?' : '235 2.7.0 welcome');
          continue;
        }
        if (verb === 'EHLO' || verb === 'LHLO') say(this.#offers(isSecure));
        else if (verb === 'STAR') {
          const answer = this.options.toStartTls ?? GO;
          if (answer === GO) {
            socket.off('data', onData);
            say(GO);
            this.#handshake(socket, false);
            return;
          }
          say(answer);
        } else if (verb === 'MAIL' && !isSecure && this.options.insists === true) say('530 5.7.0 Must issue a STARTTLS command first');
        else if (verb === 'MAIL' && this.options.auth !== undefined && user === '') say('530 5.7.0 who are you?');
        else if (verb === 'RCPT') { to.push(text.slice(9, text.indexOf('>'))); say('250 2.1.5 ok'); }
        else if (verb === 'DATA') { inData = true; say('354 go'); }
        else if (verb === 'QUIT') { say('221 bye'); socket.end(); }
        else say('250 2.0.0 ok');
      }
    };
    socket.on('data', onData);
  }

  /** '' for a stranger. */
  #userOf(responses: readonly string[]): string {
    const said = responses.flatMap((each) => Buffer.from(each, 'base64').toString().split('\0')).filter((each) => each !== '');
    const { auth } = this.options;
    return auth !== undefined && said.length === 2 && said[0] === auth.user && said[1] === auth.password ? auth.user : '';
  }

  #offers(isSecure: boolean): string {
    const { offers = ['PIPELINING', '8BITMIME'], offersInTls = offers, offersStartTls = true } = this.options;
    const all = ['hop.test', ...(isSecure ? offersInTls : offers), ...(isSecure || !offersStartTls ? [] : ['STARTTLS'])];
    return all.map((offer, i) => `250${i < all.length - 1 ? '-' : ' '}${offer}`).join('\r\n');
  }
}
