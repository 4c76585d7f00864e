/**
 * One SMTP client connection of `send`, as lean as its job allows: it shares the machine with what it
 * measures. One write and one read a message on a kept connection with PIPELINING:
 *
 *     write  RSET? MAIL RCPT DATA                          read  250 250 354
 *     write  content CRLF.CRLF + MAIL RCPT DATA (next)     read  250 | 250 250 354
 *
 * (RFC 2920 3.1: the final dot may be followed by the next group.) Replies are matched to commands by a
 * small ring of what is expected. Which message goes next, and what an outcome means, is the run's
 * (load/run.ts); how a session begins and ends, and its bytes, are of load/session.ts.
 *
 *     opening ──► READY --take()--> BUSY --reply to dot--> READY        any --error, end, 421--> closed
 */
import { CAN_PIPELINE } from '../smtp/capabilities.js';
import { DATA, LONE_DOT, RSET } from '../smtp/commands.js';
import type { WriteBuffer } from '../smtp/write-buffer.js';
import { ClientSession } from './session.js';
import type { SessionOwner, Sessions } from './session.js';

/** A message for one try. The run reuses the object: one a connection. */
export interface Job {
  id: number;
  serial: number;
  queue: number;
  content: number;
  attempt: number;
  hash: number;
  dotMicros: number;
}

/** What a connection needs of its run. */
export interface ClientHost {
  readonly sessions: Sessions;
  readonly pipelining: boolean;
  /** The next envelope may follow the final dot at once. */
  readonly nextBehindDot: boolean;
  readonly messagesPerConnection: number;
  /** Fills `job` with the next message, or returns false: none is due. */
  take(job: Job): boolean;
  /** Append MAIL and RCPT of a message. */
  putMail(into: WriteBuffer, job: Job): void;
  putRcpt(into: WriteBuffer, job: Job): void;
  /** Appends the message with its final dot, with room for `more` bytes in the same write; sets job.hash. */
  putContent(into: WriteBuffer, job: Job, more: number): void;
  now(): number;
  /** The try ended: code 0 = the connection ended first. dotMicros 0 = the final dot was not sent. */
  settle(job: Job, code: number, replyMicros: number, text: string): void;
  onOpen(): void;
  /** Nothing was due; wake() when there is. */
  onIdle(client: Client): void;
  /** `isHopeless`: as a session says it (load/session.ts). */
  onClosed(client: Client, error: string, isHopeless: boolean): void;
}

const EXPECT_RSET = 1;
const EXPECT_MAIL = 2;
const EXPECT_RCPT = 3;
const EXPECT_DATA = 4;
const EXPECT_DOT = 5;
const EXPECT_EMPTY_DOT = 6;

/** RSET, MAIL, RCPT with the longest paths (RFC 5321 4.5.3.1.3), DATA. */
const ENVELOPE_BYTES_MAX = 1024;

export class Client implements SessionOwner {
  readonly #host: ClientHost;
  readonly #session: ClientSession;
  readonly #buffer: WriteBuffer;
  #pipelining = false;
  #idle = false;
  /** What the next replies answer, oldest first; at most 8. */
  readonly #expected = new Uint8Array(8);
  #expectedFirst = 0;
  #expectedCount = 0;
  /** The message whose replies are awaited, and the one whose envelope went out behind its final dot. */
  #job: Job = newJob();
  #next: Job = newJob();
  #hasJob = false;
  #hasNext = false;
  /** Of the current envelope: the first refusal, 0 if none. */
  #refusal = 0;
  #refusalText = '';
  #needsReset = false;
  #taken = 0;
  /** It was ready once. */
  isOpen = false;

  constructor(host: ClientHost) {
    this.#host = host;
    this.#buffer = host.sessions.buffer;
    this.#session = new ClientSession(host.sessions, this);
  }

  get isWaiting(): boolean { return this.#expectedCount > 0; }

  /** There may be work again. */
  wake(): void {
    if (!this.#idle) return;
    this.#idle = false;
    this.#startNext();
  }

  /** Ends an idle connection politely. */
  quit(): void {
    this.#session.quit();
  }

  destroy(): void {
    this.#session.destroy();
  }

  tick(nowMs: number): void {
    this.#session.tick(nowMs);
  }

  onReady(): void {
    this.#pipelining = this.#host.pipelining && (this.#session.capabilities.bits & CAN_PIPELINE) !== 0;
    this.isOpen = true;
    this.#host.onOpen();
    this.#startNext();
  }

  onReply(code: number): void {
    if (this.#expectedCount === 0) {
      // A server may say 421 at any time (RFC 5321 3.8).
      return this.#session.destroy(code === 421 ? '421' : 'unexpected reply');
    }
    const kind = this.#expected[this.#expectedFirst & 7];
    this.#expectedFirst = (this.#expectedFirst + 1) & 7;
    this.#expectedCount--;
    switch (kind) {
      case EXPECT_MAIL:
      case EXPECT_RCPT:
        return this.#onEnvelopeReply(kind, code);
      case EXPECT_DATA:
        return this.#onDataReply(code);
      case EXPECT_DOT:
        return this.#onDotReply(code);
      case EXPECT_EMPTY_DOT:
        return this.#refused();
      default:
        return;
    }
  }

  onClosed(error: string, isHopeless: boolean): void {
    this.#idle = false;
    if (this.#hasJob) this.#host.settle(this.#job, 0, 0, error);
    if (this.#hasNext) this.#host.settle(this.#next, 0, 0, error);
    this.#hasJob = false;
    this.#hasNext = false;
    this.#host.onClosed(this, error, isHopeless);
  }

  #expect(kind: number): void {
    this.#expected[(this.#expectedFirst + this.#expectedCount++) & 7] = kind;
  }

  #onEnvelopeReply(kind: number, code: number): void {
    if (code >= 400) this.#refuse(code);
    if (this.#pipelining) return;
    if (this.#refusal !== 0) return this.#refused();
    if (kind === EXPECT_RCPT) return this.#command(EXPECT_DATA, DATA);
    this.#expect(EXPECT_RCPT);
    this.#buffer.start(this.#session.connection);
    this.#host.putRcpt(this.#buffer, this.#job);
    this.#buffer.flush();
  }

  #command(kind: number, line: string): void {
    this.#expect(kind);
    this.#session.send(line);
  }

  /** The first refusal counts. */
  #refuse(code: number): void {
    if (this.#refusal !== 0) return;
    this.#refusal = code;
    this.#refusalText = this.#session.reader.text();
  }

  #onDataReply(code: number): void {
    if (code !== 354) {
      this.#refuse(code);
      return this.#refused();
    }
    // Every recipient was refused, yet the server waits for content (RFC 2920 3.1): send none.
    if (this.#refusal !== 0) this.#command(EXPECT_EMPTY_DOT, LONE_DOT);
    else this.#sendContent();
  }

  /** The envelope was refused: the try is over, the next one starts with RSET. */
  #refused(): void {
    const code = this.#refusal;
    this.#hasJob = false;
    this.#needsReset = true;
    this.#host.settle(this.#job, code, this.#host.now(), this.#refusalText);
    if (code === 421) this.#session.destroy('421');
    else this.#startNext();
  }

  #onDotReply(code: number): void {
    const done = this.#job;
    this.#job = this.#next;
    this.#next = done;
    this.#hasJob = this.#hasNext;
    this.#hasNext = false;
    this.#host.settle(done, code, this.#host.now(), code >= 300 ? this.#session.reader.text() : '');
    if (code === 421) this.#session.destroy('421');
    else if (!this.#hasJob) this.#startNext();
  }

  /** Starts a mail transaction if a message is due; else the connection is idle. */
  #startNext(): void {
    if (!this.#session.isReady) return;
    if (this.#taken >= this.#host.messagesPerConnection) return this.quit();
    if (!this.#host.take(this.#job)) {
      this.#idle = true;
      this.#host.onIdle(this);
      return;
    }
    this.#hasJob = true;
    this.#taken++;
    this.#buffer.start(this.#session.connection);
    this.#putEnvelope(this.#job);
    this.#buffer.flush();
  }

  #putEnvelope(job: Job): void {
    const buffer = this.#buffer;
    this.#refusal = 0;
    if (this.#needsReset) {
      this.#needsReset = false;
      this.#expect(EXPECT_RSET);
      buffer.ascii(RSET);
    }
    this.#expect(EXPECT_MAIL);
    this.#host.putMail(buffer, job);
    if (!this.#pipelining) return;
    this.#expect(EXPECT_RCPT);
    this.#expect(EXPECT_DATA);
    this.#host.putRcpt(buffer, job);
    buffer.ascii(DATA);
  }

  /** Content, final dot and the next envelope in one write. */
  #sendContent(): void {
    const host = this.#host;
    const job = this.#job;
    const buffer = this.#buffer;
    this.#expect(EXPECT_DOT);
    const mayFollow = this.#pipelining && host.nextBehindDot && this.#taken < host.messagesPerConnection;
    this.#hasNext = mayFollow && host.take(this.#next);
    buffer.start(this.#session.connection);
    host.putContent(buffer, job, ENVELOPE_BYTES_MAX);
    if (this.#hasNext) {
      this.#taken++;
      this.#putEnvelope(this.#next);
    }
    job.dotMicros = host.now();
    buffer.flush();
  }
}

function newJob(): Job {
  return { id: 0, serial: 0, queue: 0, content: 0, attempt: 0, hash: 0, dotMicros: 0 };
}
