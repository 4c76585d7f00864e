/**
 * One SMTP client connection of `send`, as lean as its job allows: it shares the machine with what it
 * measures. One write and one read a message on a kept connection with PIPELINING:
 *
 *     write  RSET? MAIL RCPT DATA                          read  250 250 354
 *     write  content CRLF.CRLF + MAIL RCPT DATA (next)     read  250 | 250 250 354
 *
 * (RFC 2920 3.1: the final dot may be followed by the next group.) Replies are matched to commands by a
 * small ring of what is expected. Owns the socket and its write buffer; which message goes next, and what
 * an outcome means, is the run's (load/run.ts).
 *
 *     CONNECTING --220--> GREETED --EHLO 250--> READY --take()--> BUSY --reply to dot--> READY
 *     any --error, end, 421--> CLOSED
 */
import { connect, type Socket } from 'node:net';

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
  readonly host: string;
  readonly port: number;
  readonly pipelining: boolean;
  /** The next envelope may follow the final dot at once. */
  readonly nextBehindDot: boolean;
  readonly messagesPerConnection: number;
  /** Fills `job` with the next message, or returns false: none is due. */
  take(job: Job): boolean;
  /** MAIL and RCPT lines of a message, with CRLF. */
  mailLine(job: Job): string;
  rcptLine(queue: number): string;
  /** Bytes of the message with its final dot. */
  wireBytes(job: Job): number;
  /** Writes the message at `at`, sets job.hash. Returns the offset behind it. */
  compose(job: Job, target: Buffer, at: number): number;
  now(): number;
  /** The try ended: code 0 = the connection ended first. dotMicros 0 = the final dot was not sent. */
  settle(job: Job, code: number, replyMicros: number, text: string): void;
  onOpen(): void;
  /** Nothing was due; wake() when there is. */
  onIdle(client: Client): void;
  onClosed(client: Client, error: string): void;
}

const EXPECT_GREETING = 1;
const EXPECT_EHLO = 2;
const EXPECT_RSET = 3;
const EXPECT_MAIL = 4;
const EXPECT_RCPT = 5;
const EXPECT_DATA = 6;
const EXPECT_DOT = 7;
const EXPECT_EMPTY_DOT = 8;
const EXPECT_QUIT = 9;

const READ_BYTES = 16 * 1024;
/** Longest reply line kept across reads (RFC 5321 4.5.3.1.5 has 512). */
const LINE_BYTES_MAX = 4096;
const LINE_FEED = 0x0a;
const DASH = 0x2d;
/** No reply for this long ends the connection: shorter than RFC 5321 4.5.3.2, for a tool. */
const SILENCE_MS = 60_000;

export class Client {
  readonly #host: ClientHost;
  readonly #socket: Socket;
  #pipelining = false;
  #ready = false;
  #closed = false;
  #idle = false;
  #error = '';
  /** What the next replies answer, oldest first; at most 8. */
  readonly #expected = new Uint8Array(8);
  #expectedFirst = 0;
  #expectedCount = 0;
  #carry: Buffer | undefined;
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
  #buffer = Buffer.allocUnsafeSlow(4096);

  constructor(host: ClientHost) {
    this.#host = host;
    const onRead = (bytes: number, buffer: Uint8Array): boolean => {
      this.#onData(buffer as Buffer, bytes);
      return true;
    };
    this.#socket = connect({
      host: host.host,
      port: host.port,
      noDelay: true,
      onread: { buffer: Buffer.allocUnsafeSlow(READ_BYTES), callback: onRead },
    });
    this.#socket.setTimeout(SILENCE_MS, () => this.#fail('silent'));
    this.#socket.on('error', (error: NodeJS.ErrnoException) => this.#fail(error.code ?? error.message));
    this.#socket.on('close', () => this.#onClose());
    this.#expect(EXPECT_GREETING);
  }

  get isOpen(): boolean { return this.#ready; }

  /** There may be work again. */
  wake(): void {
    if (!this.#idle || this.#closed) return;
    this.#idle = false;
    this.#startNext();
  }

  /** Ends an idle connection politely. */
  quit(): void {
    if (this.#closed) return;
    this.#expect(EXPECT_QUIT);
    this.#socket.end('QUIT\r\n');
  }

  destroy(): void {
    this.#socket.destroy();
  }

  #expect(kind: number): void {
    this.#expected[(this.#expectedFirst + this.#expectedCount++) & 7] = kind;
  }

  #onData(chunk: Buffer, bytes: number): void {
    let data = chunk.subarray(0, bytes);
    if (this.#carry !== undefined) {
      data = Buffer.concat([this.#carry, data]);
      this.#carry = undefined;
    }
    let from = 0;
    for (;;) {
      const end = data.indexOf(LINE_FEED, from);
      if (end < 0 || this.#closed) break;
      if (data[from + 3] !== DASH) this.#onReply(codeAt(data, from), data, from, end);
      else if (this.#expected[this.#expectedFirst & 7] === EXPECT_EHLO) this.#onExtension(data, from, end);
      from = end + 1;
    }
    if (from < data.length) {
      if (data.length - from > LINE_BYTES_MAX) this.#fail('reply line too long');
      else this.#carry = Buffer.from(data.subarray(from));
    }
  }

  #onExtension(data: Buffer, from: number, end: number): void {
    if (data.toString('latin1', from + 4, end).trim().toUpperCase() === 'PIPELINING') this.#pipelining = this.#host.pipelining;
  }

  #onReply(code: number, data: Buffer, from: number, end: number): void {
    if (this.#expectedCount === 0) {
      // A server may say 421 at any time (RFC 5321 3.8).
      this.#fail(code === 421 ? '421' : 'unexpected reply');
      return;
    }
    const kind = this.#expected[this.#expectedFirst & 7];
    this.#expectedFirst = (this.#expectedFirst + 1) & 7;
    this.#expectedCount--;
    switch (kind) {
      case EXPECT_GREETING:
        if (code !== 220) return this.#fail(String(code));
        this.#expect(EXPECT_EHLO);
        this.#socket.write('EHLO client.example\r\n', 'latin1');
        return;
      case EXPECT_EHLO:
        if (code !== 250) return this.#fail(String(code));
        this.#onExtension(data, from, end);
        this.#ready = true;
        this.#host.onOpen();
        this.#startNext();
        return;
      case EXPECT_MAIL:
      case EXPECT_RCPT:
        this.#onEnvelopeReply(kind, code, data, from, end);
        return;
      case EXPECT_DATA:
        this.#onDataReply(code, data, from, end);
        return;
      case EXPECT_DOT:
        this.#onDotReply(code, data, from, end);
        return;
      case EXPECT_EMPTY_DOT:
        this.#refused();
        return;
      case EXPECT_QUIT:
        this.#socket.destroy();
        return;
      default:
        return;
    }
  }

  #onEnvelopeReply(kind: number, code: number, data: Buffer, from: number, end: number): void {
    if (code >= 400 && this.#refusal === 0) {
      this.#refusal = code;
      this.#refusalText = data.toString('latin1', from, end).trim();
    }
    if (this.#pipelining) return;
    if (this.#refusal !== 0) this.#refused();
    else if (kind === EXPECT_MAIL) this.#command(EXPECT_RCPT, this.#host.rcptLine(this.#job.queue));
    else this.#command(EXPECT_DATA, 'DATA\r\n');
  }

  #command(kind: number, line: string): void {
    this.#expect(kind);
    this.#socket.write(line, 'latin1');
  }

  #onDataReply(code: number, data: Buffer, from: number, end: number): void {
    if (code === 354 && this.#refusal === 0) {
      this.#sendContent();
    } else if (code === 354) {
      // Every recipient was refused, yet the server waits for content (RFC 2920 3.1): send none.
      this.#command(EXPECT_EMPTY_DOT, '.\r\n');
    } else {
      if (this.#refusal === 0) {
        this.#refusal = code;
        this.#refusalText = data.toString('latin1', from, end).trim();
      }
      this.#refused();
    }
  }

  /** The envelope was refused: the try is over, the next one starts with RSET. */
  #refused(): void {
    const code = this.#refusal;
    this.#hasJob = false;
    this.#needsReset = true;
    this.#host.settle(this.#job, code, this.#host.now(), this.#refusalText);
    if (code === 421) this.#fail('421');
    else this.#startNext();
  }

  #onDotReply(code: number, data: Buffer, from: number, end: number): void {
    const done = this.#job;
    this.#job = this.#next;
    this.#next = done;
    this.#hasJob = this.#hasNext;
    this.#hasNext = false;
    this.#host.settle(done, code, this.#host.now(), code >= 300 ? data.toString('latin1', from, end).trim() : '');
    if (code === 421) this.#fail('421');
    else if (!this.#hasJob) this.#startNext();
  }

  /** Starts a mail transaction if a message is due; else the connection is idle. */
  #startNext(): void {
    if (this.#closed || !this.#ready) return;
    if (this.#taken >= this.#host.messagesPerConnection) return this.quit();
    if (!this.#host.take(this.#job)) {
      this.#idle = true;
      this.#host.onIdle(this);
      return;
    }
    this.#hasJob = true;
    this.#taken++;
    this.#socket.write(this.#envelope(this.#job), 'latin1');
  }

  #envelope(job: Job): string {
    this.#refusal = 0;
    let text = '';
    if (this.#needsReset) {
      this.#needsReset = false;
      this.#expect(EXPECT_RSET);
      text = 'RSET\r\n';
    }
    this.#expect(EXPECT_MAIL);
    if (!this.#pipelining) return text + this.#host.mailLine(job);
    this.#expect(EXPECT_RCPT);
    this.#expect(EXPECT_DATA);
    return text + this.#host.mailLine(job) + this.#host.rcptLine(job.queue) + 'DATA\r\n';
  }

  /**
   * Content, final dot and the next envelope in one write. The buffer is free again: the 354 that led here
   * answers a command that stood behind everything written before.
   */
  #sendContent(): void {
    const job = this.#job;
    const needed = this.#host.wireBytes(job) + ENVELOPE_BYTES_MAX;
    if (this.#buffer.length < needed) this.#buffer = Buffer.allocUnsafeSlow(needed);
    let end = this.#host.compose(job, this.#buffer, 0);
    this.#expect(EXPECT_DOT);
    if (this.#pipelining && this.#host.nextBehindDot && this.#taken < this.#host.messagesPerConnection && this.#host.take(this.#next)) {
      this.#hasNext = true;
      this.#taken++;
      end += this.#buffer.write(this.#envelope(this.#next), end, 'latin1');
    }
    job.dotMicros = this.#host.now();
    this.#socket.write(this.#buffer.subarray(0, end));
  }

  #fail(error: string): void {
    if (this.#error === '') this.#error = error;
    this.#socket.destroy();
  }

  #onClose(): void {
    if (this.#closed) return;
    this.#closed = true;
    if (this.#hasJob) this.#host.settle(this.#job, 0, 0, this.#error);
    if (this.#hasNext) this.#host.settle(this.#next, 0, 0, this.#error);
    this.#hasJob = false;
    this.#hasNext = false;
    this.#host.onClosed(this, this.#error);
  }
}

/** RSET, MAIL, RCPT with the longest paths (RFC 5321 4.5.3.1.3), DATA. */
const ENVELOPE_BYTES_MAX = 1024;

function newJob(): Job {
  return { id: 0, serial: 0, queue: 0, content: 0, attempt: 0, hash: 0, dotMicros: 0 };
}

function codeAt(data: Buffer, at: number): number {
  return ((data[at] ?? 0) - 48) * 100 + ((data[at + 1] ?? 0) - 48) * 10 + ((data[at + 2] ?? 0) - 48);
}
