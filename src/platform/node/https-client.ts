/**
 * The real Https: asks strangers' servers for their policies (gateway/outbound/sts) and brings them reports.
 *
 *   ask ─► first address ─ answer ─► read to its end, up to the bound ─► done
 *             │ refused, no answer in tryMs                  │ too long, cut off
 *             ▼                                              ▼
 *          next address ─ none left, or out of time ─► done(failed)
 *
 * A certificate that is not taken ends it: another address of the same name would show the same one. Each
 * question has a connection of its own, which ends with it. Servers take turns (tls-wire.ts).
 */
import { constants } from 'node:crypto';
import https from 'node:https';
import net from 'node:net';
import type { TLSSocket } from 'node:tls';
import type { ClientRequest, IncomingMessage } from 'node:http';
import { markedCut } from '../../base/cut-text.js';
import { errorText } from '../../base/error-text.js';
import type { Https, HttpsAnswer, HttpsQuestion } from '../https.js';
import { checkDnsName } from './dns-name.js';
import { CIPHERS, CURVES } from './key-exchange.js';
import { TlsWire, WIRE_BUFFER_BYTES, connectOver } from './tls-wire.js';

export interface HttpsClientOptions {
  /** 443, but in tests. */
  readonly port: number;
  /** PEM of who is trusted; undefined: whom the platform trusts. */
  readonly ca?: string | undefined;
  /** Until an address answers, as long as there is another one; 10 s, but in tests. */
  readonly tryMs: number;
}

const HTTPS_PORT = 443;
/** Of all exchanges. */
const BUFFER = new Uint8Array(WIRE_BUFFER_BYTES);
const TRY_MS = 10_000;
const ADDRESSES_MAX = 4;
const HEADER_BYTES_MAX = 16 * 1024;
/** Chunks of an answer: of an octet each, 64 KiB of them would hold the loop for seconds (0035). */
const PIECES_MAX = 1_000;
const WHY_BYTES_MAX = 200;
/** Of OpenSSL about certificates, beside those that speak of one by name. */
const UNTRUSTED = /CERT|SELF_SIGNED|ISSUER|CRL|HOSTNAME_MISMATCH|INVALID_(CA|PURPOSE)/;

export class HttpsClient implements Https {
  readonly #options: HttpsClientOptions;
  readonly #underWay = new Set<HttpsExchange>();

  constructor(options: Partial<HttpsClientOptions> = {}) {
    this.#options = { port: HTTPS_PORT, tryMs: TRY_MS, ...options };
  }

  ask(question: HttpsQuestion, done: (answer: HttpsAnswer) => void): void {
    const exchange = new HttpsExchange(question, this.#options, (answer) => {
      this.#underWay.delete(exchange);
      done(answer);
    });
    this.#underWay.add(exchange);
    exchange.begin();
  }

  /** Ends what is under way; nobody is told. */
  close(): void {
    for (const exchange of this.#underWay) exchange.abandon();
    this.#underWay.clear();
  }
}

class HttpsExchange {
  readonly #question: HttpsQuestion;
  readonly #options: HttpsClientOptions;
  readonly #done: (answer: HttpsAnswer) => void;
  readonly #addresses: string[];
  #whole: NodeJS.Timeout | undefined;
  /** Of the address that is asked. */
  #silence: NodeJS.Timeout | undefined;
  #request: ClientRequest | undefined;
  #isOver = false;

  constructor(question: HttpsQuestion, options: HttpsClientOptions, done: (answer: HttpsAnswer) => void) {
    this.#question = question;
    this.#options = options;
    this.#done = done;
    this.#addresses = question.addresses.slice(0, ADDRESSES_MAX);
  }

  begin(): void {
    const { withinMs } = this.#question;
    this.#whole = setTimeout(() => {
      this.#fail(`no answer within ${String(withinMs / 1000)} s`);
    }, withinMs);
    setImmediate(() => { this.#try('no address'); });
  }

  abandon(): void {
    this.#isOver = true;
    clearTimeout(this.#whole);
    clearTimeout(this.#silence);
    this.#request?.destroy();
  }

  #try(why: string): void {
    if (this.#isOver) return;
    const address = this.#addresses.shift();
    if (address === undefined) return this.#fail(why);
    const { host, path, body } = this.#question;
    const request = https.request({
      createConnection: () => this.#connect(address), path, method: body === undefined ? 'GET' : 'POST',
      maxHeaderSize: HEADER_BYTES_MAX,
      headers: {
        'host': host, 'user-agent': 'twinpost', 'accept-encoding': 'identity',
        ...(body === undefined ? {} : { 'content-type': body.type, 'content-length': body.bytes.length }),
      },
    });
    this.#request = request;
    const isLast = this.#addresses.length === 0;
    // Not the timeout of its socket, which begins anew when something of the question has left.
    if (!isLast) {
      this.#silence = setTimeout(() => { request.destroy(new Error('silent')); }, this.#options.tryMs);
    }
    request.once('response', (response) => { this.#read(response); });
    request.on('error', (error: NodeJS.ErrnoException) => {
      if (this.#isOver || request !== this.#request) return;
      clearTimeout(this.#silence);
      const code = error.code ?? '';
      const said = `${address}: ${errorText(error)}${code === '' ? '' : ` (${code})`}`;
      if (UNTRUSTED.test(code)) this.#fail(said, true);
      else this.#try(said);
    });
    request.end(body?.bytes);
  }

  #connect(address: string): TLSSocket {
    const { host } = this.#question;
    const { port, ca } = this.#options;
    return connectOver(new TlsWire(net.connect({ host: address, port, noDelay: true }), BUFFER), {
      servername: host, ALPNProtocols: ['http/1.1'],
      minVersion: 'TLSv1.2', ciphers: CIPHERS, ecdhCurve: CURVES,
      ...(ca === undefined ? {} : { ca }),
      secureOptions: constants.SSL_OP_NO_RENEGOTIATION,
      checkServerIdentity: (_name, certificate) => checkDnsName(host, certificate),
    });
  }

  #read(response: IncomingMessage): void {
    // From here on only the whole time counts, and this address.
    this.#addresses.length = 0;
    clearTimeout(this.#silence);
    const { statusCode: status = 0, headers } = response;
    const type = (headers['content-type'] ?? '').split(';', 1)[0]?.trim().toLowerCase() ?? '';
    // What a server says to a report is of no use.
    const isOfUse = status === 200 && this.#question.body === undefined;
    if (!isOfUse) return this.#end({ kind: 'answer', status, type, text: '' });
    const encoding = headers['content-encoding'] ?? 'identity';
    if (encoding !== 'identity') return this.#fail('its answer is encoded');
    // The end of the connection ends it then, and anybody on the way can make one.
    const isChunked = /(?:^|,)\s*chunked\s*$/i.test(headers['transfer-encoding'] ?? '');
    const isMeasured = isChunked || headers['content-length'] !== undefined;
    if (!isMeasured) return this.#fail('its answer does not say how long it is, and may be cut short');
    const pieces: Uint8Array[] = [];
    let bytes = 0;
    response.on('data', (piece: Uint8Array) => {
      bytes += piece.length;
      if (bytes > this.#question.answerBytesMax) return this.#fail('its answer is too long');
      pieces.push(piece);
      if (pieces.length > PIECES_MAX) return this.#fail('its answer comes in too many pieces');
    });
    response.once('end', () => {
      this.#end({ kind: 'answer', status, type, text: Buffer.concat(pieces).toString('utf8') });
    });
    response.on('error', (error) => { this.#fail(errorText(error)); });
  }

  #fail(why: string, isUntrusted = false): void {
    this.#end({ kind: 'failed', why: markedCut(why, WHY_BYTES_MAX), isUntrusted });
  }

  #end(answer: HttpsAnswer): void {
    if (this.#isOver) return;
    this.abandon();
    this.#done(answer);
  }
}
