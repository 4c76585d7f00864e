/**
 * One question to one resolver: by UDP from a socket and port of its own (RFC 5452 9.2), and by TCP when the
 * answer does not fit (RFC 7766).
 *
 *   UDP ─ answer ─► over        UDP ─ truncated ─► TCP ─ answer, error, end ─► over
 *    │ foreign: read on          │ refused, error, time ─► over
 *
 * The socket is connected: the system drops what comes from elsewhere, and tells when nobody listens there.
 * Answers that come together are read in shares of a turn; one whose question is over by then is not read.
 * While one waits for its share the time of the question stands still: it is ours, not the resolver's.
 */
import { createSocket } from 'node:dgram';
import type { Socket as UdpSocket } from 'node:dgram';
import { connect, isIPv6 } from 'node:net';
import type { Socket as TcpSocket } from 'node:net';
import { errorText } from '../../../base/error-text.js';
import type { TurnShare } from '../turn-share.js';
import { ANSWER_BYTES_MAX, questionBytes, readAnswer } from './dns-message.js';
import type { DnsQuestion, DnsReading } from './dns-message.js';

export interface DnsServer {
  readonly host: string;
  readonly port: number;
  /** What it says of DNSSEC is believed. */
  readonly isTrusted: boolean;
}

/** How it ended: an answer, or why there is none. */
export type DnsVerdict = Extract<DnsReading, { readonly kind: 'answer' }> | {
  readonly kind: 'refused';
  readonly why: string;
  /** Nothing came from there. */
  readonly isSilent?: true;
};

/** By UDP. If all of them answer other questions, they are somebody's guessing. */
const DATAGRAMS_MAX = 16;

export class DnsExchange {
  readonly #server: DnsServer;
  readonly #question: DnsQuestion;
  readonly #share: TurnShare;
  readonly #done: (verdict: DnsVerdict) => void;
  /** Runs while nothing waits to be read. */
  #timer: NodeJS.Timeout | undefined;
  /** When that began; how much was left then. */
  #sinceMs = 0;
  #leftMs: number;
  /** So much of what came waits to be read. */
  #unread = 0;
  #udp: UdpSocket | undefined;
  /** Until it has brought an answer. */
  #tcp: TcpSocket | undefined;
  #isOver = false;

  /** `done` is called once, never from inside this constructor. */
  constructor(
    server: DnsServer, question: DnsQuestion, withinMs: number, share: TurnShare,
    done: (verdict: DnsVerdict) => void,
  ) {
    this.#server = server;
    this.#question = question;
    this.#share = share;
    this.#done = done;
    this.#leftMs = withinMs;
    this.#startTimer();
    this.#askByUdp();
  }

  /** Without a verdict. */
  abandon(): void {
    this.#isOver = true;
    clearTimeout(this.#timer);
    this.#udp?.close();
    this.#udp = undefined;
    this.#tcp?.destroy();
  }

  #end(verdict: DnsVerdict): void {
    if (this.#isOver) return;
    this.abandon();
    this.#done(verdict);
  }

  #fail(error: unknown): void {
    this.#end({ kind: 'refused', why: errorText(error), isSilent: true });
  }

  #startTimer(): void {
    this.#sinceMs = performance.now();
    this.#timer = setTimeout(() => { this.#fail('no answer in time'); }, this.#leftMs);
  }

  #stopTimer(): void {
    clearTimeout(this.#timer);
    this.#leftMs = Math.max(0, this.#leftMs - (performance.now() - this.#sinceMs));
  }

  /** When there is a share of a turn for it. */
  #inTurn(read: () => void): void {
    if (this.#unread++ === 0) this.#stopTimer();
    this.#share.run(() => {
      if (this.#isOver) return;
      if (--this.#unread === 0) this.#startTimer();
      read();
    });
  }

  #askByUdp(): void {
    const { host, port } = this.#server;
    const type = isIPv6(host) ? 'udp6' : 'udp4';
    const socket = createSocket({ type, recvBufferSize: 2 * ANSWER_BYTES_MAX });
    this.#udp = socket;
    socket.on('error', (error) => { this.#fail(error); });
    let came = 0;
    socket.on('message', (bytes) => {
      // One of those before is the answer, or it is asked by TCP.
      if (came === DATAGRAMS_MAX) return;
      const isLast = ++came === DATAGRAMS_MAX;
      this.#inTurn(() => { if (this.#udp === socket) this.#onDatagram(bytes, isLast); });
    });
    // A callback of connect() would be given the error of a server without a route, in place of 'error'.
    socket.on('connect', () => { if (!this.#isOver) socket.send(questionBytes(this.#question)); });
    socket.connect(port, host);
  }

  #onDatagram(bytes: Uint8Array, isLast: boolean): void {
    const reading = readAnswer(bytes, this.#question, this.#server.isTrusted);
    if (reading.kind === 'truncated' || reading.kind === 'foreign' && isLast) this.#askByTcp();
    else if (reading.kind !== 'foreign') this.#end(reading);
  }

  #askByTcp(): void {
    this.#udp?.close();
    this.#udp = undefined;
    const { host, port } = this.#server;
    const question = questionBytes(this.#question);
    const socket = connect(port, host);
    this.#tcp = socket;
    const onGone = (why: unknown): void => { if (this.#tcp === socket) this.#fail(why); };
    socket.on('error', onGone);
    socket.on('close', () => { onGone('the connection was closed'); });
    socket.on('connect', () => { socket.write(withLength(question)); });
    let read = Buffer.alloc(0);
    socket.on('data', (bytes) => {
      read = Buffer.concat([read, bytes]);
      if (read.length < 2) return;
      const length = read.readUInt16BE(0);
      if (length > ANSWER_BYTES_MAX) this.#refuse(`an answer of ${String(length)} bytes`);
      else if (read.length >= 2 + length) {
        // What becomes of the connection is no matter any more.
        this.#tcp = undefined;
        socket.destroy();
        this.#inTurn(() => { this.#onTcpAnswer(read.subarray(2, 2 + length)); });
      }
    });
  }

  #onTcpAnswer(bytes: Uint8Array): void {
    const reading = readAnswer(bytes, this.#question, this.#server.isTrusted);
    const isVerdict = reading.kind === 'answer' || reading.kind === 'refused';
    if (isVerdict) this.#end(reading);
    else this.#refuse(`a ${reading.kind} answer by TCP`);
  }

  #refuse(why: string): void {
    this.#end({ kind: 'refused', why });
  }
}

/** RFC 1035 4.2.2. */
function withLength(message: Uint8Array): Uint8Array {
  const bytes = new Uint8Array(2 + message.length);
  new DataView(bytes.buffer).setUint16(0, message.length);
  bytes.set(message, 2);
  return bytes;
}
