/**
 * A hook that speaks rspamd's HTTP protocol: each whole message goes to POST /checkv2, with its envelope in
 * header fields; what the answer means is in hooks/rspamd-answer.ts.
 *
 *   POST /checkv2    IP, Helo, From, Rcpt (one a recipient), User, Queue-Id, MTA-Name, TLS-Version, Password
 *
 * Not by http-service.ts, which asks short questions with fetch(): a whole message goes out in the pieces it
 * came in, and only by http.request() is it known whether a kept connection had ended.
 *
 * Connections are kept. One that rspamd has closed meanwhile is noticed only by its use: the message goes out
 * again by another one.
 */
import http from 'node:http';
import https from 'node:https';
import { HookLine } from './hook-line.js';
import type { HookAsk } from './hook-line.js';
import { toAscii } from '../../../../platform/node/idna.js';
import type { Reception } from '../../../mail-types.js';
import type { HookAnswer, JudgedEnvelope, JudgedMessage, MessageHook } from '../message-hook.js';
import { isAscii, normalizeDomain } from '../../../../smtp/address.js';
import { rspamdVerdict } from '../rspamd-answer.js';

export interface RspamdHookOptions {
  readonly name: string;
  /** Of the worker: "http://127.0.0.1:11333". */
  readonly url: string;
  readonly timeoutMs: number;
  /** '': none. */
  readonly password: string;
  /** Our own name, for MTA-Name. */
  readonly hostName: string;
}

export interface RspamdHookPorts {
  readonly memory: Pick<Reception, 'reserve' | 'release'>;
}

/** rspamd works on one message a process at a time; some wait for DNS. */
const IN_FLIGHT_MAX = 32;
const IDLE_CONNECTIONS_MAX = 8;
/**
 * Far above what rspamd says of a message: its symbols and their options, which hold what senders write. An
 * octet of it costs so many until it is understood: as a piece, in one buffer, and as text and values.
 */
const ANSWER_BYTES_MAX = 16 * 1024 * 1024;
const COST_OF_OCTET = 4;
/** rspamd takes 80 KiB of header; who has more recipients is judged by the first of them. */
const RCPT_OCTETS_MAX = 32 * 1024;

export class RspamdHook implements MessageHook {
  readonly name: string;
  readonly #options: RspamdHookOptions;
  readonly #url: URL;
  readonly #agent: http.Agent;
  readonly #line: HookLine;
  readonly #memory: RspamdHookPorts['memory'];
  #inFlight = 0;

  constructor(options: RspamdHookOptions, { memory }: RspamdHookPorts) {
    this.#memory = memory;
    this.name = options.name;
    this.#options = options;
    this.#url = new URL('/checkv2', options.url);
    const agent = { keepAlive: true, maxSockets: IN_FLIGHT_MAX, maxFreeSockets: IDLE_CONNECTIONS_MAX };
    this.#agent = this.#url.protocol === 'https:' ? new https.Agent(agent) : new http.Agent(agent);
    this.#line = new HookLine(options.timeoutMs, {
      hasPlace: () => this.#inFlight < IN_FLIGHT_MAX,
      start: (ask, message) => { this.#start(ask, message); },
    });
  }

  ask(message: JudgedMessage, done: (answer: HookAnswer) => void): void {
    this.#line.ask(message, done);
  }

  close(): void {
    this.#line.failAll('the gateway stops');
    this.#agent.destroy();
  }

  #start(ask: HookAsk, message: JudgedMessage): void {
    this.#inFlight++;
    this.#send(ask, message, () => {
      this.#inFlight--;
      this.#line.goOn();
    });
  }

  /** `onOver` is called once, when nothing of it is under way any more. */
  #send(ask: HookAsk, message: JudgedMessage, onOver: () => void): void {
    const request = this.#requestOf(message);
    if (typeof request === 'string') {
      ask.settle({ action: 'failed', why: request });
      return onOver();
    }
    let isAnswered = false;
    let isStale = false;
    request.on('response', (response) => {
      isAnswered = true;
      readAnswer(response, this.#memory, (answer) => {
        // What it has not read of the message may never be read, and would be held as long.
        if (!request.writableFinished || !request.shouldKeepAlive) request.destroy();
        ask.settle(answer);
      });
    });
    request.on('error', (error: NodeJS.ErrnoException) => {
      const isReset = /^(ECONNRESET|EPIPE)$/.test(error.code ?? '');
      isStale = request.reusedSocket && !isAnswered && isReset;
      // The end of an answer that came whole may be read behind this.
      if (!isStale && !isAnswered) ask.settle({ action: 'failed', why: error.code ?? error.message });
    });
    request.on('close', () => {
      if (isStale && !ask.isSettled) return this.#send(ask, message, onOver);
      if (!isAnswered) ask.settle({ action: 'failed', why: 'the connection was closed' });
      onOver();
    });
    ask.onLate = () => { request.destroy(); };
    for (const piece of message.content) request.write(piece);
    request.end();
  }

  /** Or why there is none: what it throws must not reach the session of the client. */
  #requestOf(message: JudgedMessage): http.ClientRequest | string {
    const { request: begin } = this.#url.protocol === 'https:' ? https : http;
    try {
      return begin(this.#url, { method: 'POST', agent: this.#agent, headers: this.#headersOf(message) });
    } catch (error) {
      return (error as NodeJS.ErrnoException).code ?? String(error);
    }
  }

  #headersOf({ envelope, contentBytes }: JudgedMessage): http.OutgoingHttpHeaders {
    const { hostName, password } = this.#options;
    const headers: http.OutgoingHttpHeaders = {
      'Content-Length': contentBytes,
      'Helo': headerText(envelope.helo),
      'From': envelope.reversePath === '' ? '<>' : addressText(envelope.reversePath),
      'Rcpt': recipientsOf(envelope),
      'Queue-Id': envelope.queueId,
      'MTA-Name': hostName,
    };
    if (envelope.client !== '') headers['IP'] = envelope.client;
    if (envelope.user !== '') headers['User'] = headerText(envelope.user);
    if (envelope.tlsVersion !== '') headers['TLS-Version'] = envelope.tlsVersion;
    if (password !== '') headers['Password'] = password;
    return headers;
  }
}

function recipientsOf({ recipients }: JudgedEnvelope): string[] {
  const texts: string[] = [];
  let octets = 0;
  for (const recipient of recipients) {
    const text = addressText(recipient);
    octets += text.length;
    if (octets > RCPT_OCTETS_MAX) break;
    texts.push(text);
  }
  return texts;
}

/**
 * rspamd takes an address beyond ASCII for broken headers: domains go as A-labels, and what else there is of
 * it goes an octet by %XX.
 */
function addressText(address: string): string {
  if (isAscii(address)) return headerText(address);
  const behindAt = address.lastIndexOf('@') + 1;
  const domain = address.slice(behindAt);
  const ascii = address.slice(0, behindAt) + (normalizeDomain(domain, toAscii) || domain);
  return headerText(ascii).replace(/[\x80-\xff]/g, (octet) =>
    `%${octet.charCodeAt(0).toString(16).toUpperCase()}`);
}

/** One character an octet, as Node writes header fields. */
function headerText(text: string): string {
  return Buffer.from(text, 'utf8').toString('latin1').replace(/[\0-\x1f\x7f]/g, '?');
}

/** `done` is called once. What is read of it is counted until then. */
function readAnswer(
  response: http.IncomingMessage, memory: RspamdHookPorts['memory'], done: (answer: HookAnswer) => void,
): void {
  const chunks: Buffer[] = [];
  let bytes = 0;
  let isDone = false;
  const end = (answer: HookAnswer): void => {
    if (isDone) return;
    isDone = true;
    memory.release(bytes * COST_OF_OCTET);
    done(answer);
  };
  const stop = (answer: HookAnswer): void => {
    end(answer);
    response.destroy();
  };
  if (response.statusCode !== 200) {
    return stop({ action: 'failed', why: `it answered ${String(response.statusCode)}` });
  }
  response.on('data', (chunk: Buffer) => {
    if (isDone) return;
    if (bytes + chunk.length > ANSWER_BYTES_MAX) {
      return stop({ action: 'failed', why: 'its answer is too long', isTooMuch: true });
    }
    if (!memory.reserve(chunk.length * COST_OF_OCTET)) return stop({ action: 'busy' });
    bytes += chunk.length;
    chunks.push(chunk);
  });
  response.on('error', (error) => { end({ action: 'failed', why: error.message }); });
  response.on('end', () => { end(parsed(Buffer.concat(chunks).toString('utf8'))); });
  response.on('close', () => { end({ action: 'failed', why: 'its answer was cut off' }); });
}

function parsed(text: string): HookAnswer {
  let answer: unknown;
  try {
    answer = JSON.parse(text);
  } catch {
    return { action: 'failed', why: 'its answer is no JSON' };
  }
  return rspamdVerdict(answer);
}
