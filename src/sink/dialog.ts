/**
 * One SMTP (RFC 5321) or LMTP (RFC 2033) session of a sink: bytes in, replies and whole messages out. No
 * socket, timer or randomness here, so that it is tested as a function of bytes; sink/sink.ts owns those.
 *
 *     COMMAND --DATA 354--> CONTENT --final dot--> COMMAND, or WAITING if the reply is to be late
 *     WAITING --finish()--> COMMAND
 *
 * Lean: a message that arrives in one chunk is not copied, all replies to a chunk leave in one write.
 * Offers PIPELINING, SIZE, 8BITMIME, SMTPUTF8, DSN and ENHANCEDSTATUSCODES, and STARTTLS if it has a
 * certificate; parameters are checked for their names, and SIZE for its value, since a sink believes its
 * clients.
 */
import { ContentReader } from './content-reader.js';
import { CUT, DEFERRED, REJECTED, type ArrivalKind } from './verify.js';

/** What a dialog needs of its sink. */
export interface DialogHost {
  readonly lmtp: boolean;
  readonly messageBytesMax: number;
  /** What to do with the next message, or recipient in LMTP. */
  decide(): ArrivalKind;
  /** A mail transaction begins: its number. */
  begin(): number;
  /** A whole message, CRLF line ends, not dot-stuffed; `content` is valid during the call only. */
  keep(content: Buffer, from: string, to: readonly string[], kind: ArrivalKind, begun: number): void;
  /** A transaction has ended without a message to keep. `envid` is what its MAIL said, '' without. */
  leave(begun: number, envid: string, from: string, to: readonly string[]): void;
  /** True: the reply to a final dot must wait; call finish() later. */
  readonly late: boolean;
  /** STARTTLS is offered (RFC 3207). */
  readonly hasTls: boolean;
  onCommandError(): void;
}

/** What the caller must do after push() or finish(). */
export const GO_ON = 0;
export const WAIT = 1; // stop reading; call finish() after the latency
export const END = 2; // write what is in `replies`, then end the connection
export const CUT_OFF = 3; // destroy the connection without writing
export const SECURE = 4; // write what is in `replies`; TLS begins, and a new dialog in it
export type Next = typeof GO_ON | typeof WAIT | typeof END | typeof CUT_OFF | typeof SECURE;

const COMMAND = 0;
const CONTENT = 1;
const WAITING = 2;

/**
 * RFC 5321 4.5.3.1.4 has 512 octets, extensions add to it (RFC 3461 4 alone 500); a line longer than this
 * ends the session.
 */
const COMMAND_BYTES_MAX = 8192;
const RECIPIENTS_MAX = 10_000;
const LINE_FEED = 0x0a;
const CARRIAGE_RETURN = 0x0d;

const MAIL_PARAMETERS = /^(SIZE=\d{1,20}|BODY=(7BIT|8BITMIME)|SMTPUTF8|RET=(FULL|HDRS)|ENVID=\S+)$/i;
const RCPT_PARAMETERS = /^(NOTIFY=[A-Z,]+|ORCPT=\S+)$/i;

export class Dialog {
  /** Replies not yet written; the caller empties it. */
  replies: string;
  readonly #host: DialogHost;
  readonly #reader: ContentReader;
  readonly #offersTls: boolean;
  #state = COMMAND;
  #greeted = false;
  #from: string | undefined;
  #to: string[] = [];
  #begun = 0;
  #envid = '';
  /** An incomplete command line, or what arrived behind the final dot while the reply waits. */
  #held: Buffer | undefined;
  #answer = '';
  #finalNext: Next = GO_ON;

  /** `isSecured`: within TLS, where nobody greets again. */
  constructor(host: DialogHost, isSecured = false) {
    this.#host = host;
    this.#reader = new ContentReader(host.messageBytesMax);
    this.#offersTls = host.hasTls && !isSecured;
    this.replies = isSecured ? '' : `220 sink.example ${host.lmtp ? 'LMTP' : 'ESMTP'} Twinpost sink\r\n`;
  }

  push(chunk: Buffer): Next {
    if (this.#held === undefined) return this.#run(chunk);
    const joined = Buffer.concat([this.#held, chunk]);
    if (this.#state === WAITING) {
      this.#held = joined;
      return WAIT;
    }
    this.#held = undefined;
    return this.#run(joined);
  }

  /** The connection has ended. */
  close(): void {
    this.#reset();
  }

  /** The latency of a final dot is over. */
  finish(): Next {
    this.#state = COMMAND;
    if (this.#finalNext !== GO_ON) return this.#finalNext;
    this.replies += this.#answer;
    const held = this.#held;
    this.#held = undefined;
    return held === undefined ? GO_ON : this.#run(held);
  }

  #run(data: Buffer): Next {
    let at = 0;
    while (at < data.length) {
      if (this.#state === CONTENT) {
        at = this.#reader.read(data, at);
        if (!this.#reader.done) return GO_ON;
        const next = this.#onContent();
        if (next === WAIT && at < data.length) this.#held = Buffer.from(data.subarray(at));
        if (next !== GO_ON) return next;
        continue;
      }
      const end = data.indexOf(LINE_FEED, at);
      if (end < 0) {
        if (data.length - at > COMMAND_BYTES_MAX) return this.#end('500 5.5.2 Line too long\r\n');
        this.#held = Buffer.from(data.subarray(at));
        return GO_ON;
      }
      const lineEnd = end > at && data[end - 1] === CARRIAGE_RETURN ? end - 1 : end;
      const next = this.#onCommand(data.toString('latin1', at, lineEnd));
      if (next !== GO_ON) return next;
      at = end + 1;
    }
    return GO_ON;
  }

  #end(reply: string): Next {
    this.replies += reply;
    return END;
  }

  #onCommand(line: string): Next {
    switch (line.slice(0, 4).toUpperCase()) {
      case 'MAIL':
        return this.#onMail(line);
      case 'RCPT':
        return this.#onRcpt(line);
      case 'DATA':
        return this.#onData();
      case 'EHLO':
      case 'HELO':
      case 'LHLO':
        return this.#onHello(line);
      case 'RSET':
        this.#reset();
        return this.#say('250 2.0.0 Ok\r\n');
      case 'NOOP':
        return this.#say('250 2.0.0 Ok\r\n');
      case 'VRFY':
        return this.#say('252 2.5.0 Send some mail, it will be taken\r\n');
      case 'STAR':
        return this.#onStartTls(line);
      case 'QUIT':
        return this.#end('221 2.0.0 Bye\r\n');
      default:
        return this.#wrong('500 5.5.2 Unknown command\r\n');
    }
  }

  #say(reply: string): Next {
    this.replies += reply;
    return GO_ON;
  }

  #wrong(reply: string): Next {
    this.#host.onCommandError();
    return this.#say(reply);
  }

  /** Ends the transaction under way, if there is one. */
  #reset(): void {
    if (this.#from !== undefined) this.#host.leave(this.#begun, this.#envid, this.#from, this.#to);
    this.#clear();
  }

  #clear(): void {
    this.#from = undefined;
    this.#to = [];
  }

  #onHello(line: string): Next {
    const verb = line.slice(0, 4).toUpperCase();
    // RFC 2033 4.1: an LMTP server refuses HELO and EHLO, an SMTP server does not know LHLO.
    if ((verb === 'LHLO') !== this.#host.lmtp) return this.#wrong('500 5.5.1 Wrong protocol\r\n');
    this.#greeted = true;
    this.#reset();
    if (verb === 'HELO') return this.#say('250 sink.example\r\n');
    return this.#say(
      `250-sink.example\r\n250-PIPELINING\r\n250-SIZE ${this.#host.messageBytesMax}\r\n` +
        '250-8BITMIME\r\n250-SMTPUTF8\r\n250-DSN\r\n' +
        `${this.#offersTls ? '250-STARTTLS\r\n' : ''}250 ENHANCEDSTATUSCODES\r\n`,
    );
  }

  /** What came behind the command in clear is not read: push() is not called again. */
  #onStartTls(line: string): Next {
    const isOffered = line.toUpperCase() === 'STARTTLS' && this.#offersTls;
    if (!isOffered) return this.#wrong('500 5.5.2 Unknown command\r\n');
    this.#reset();
    this.replies += '220 2.0.0 Go on with TLS\r\n';
    return SECURE;
  }

  #onMail(line: string): Next {
    if (!this.#greeted) return this.#wrong('503 5.5.1 Say hello first\r\n');
    if (this.#from !== undefined) return this.#wrong('503 5.5.1 Nested MAIL\r\n');
    const end = pathEnd(line, 'MAIL FROM:');
    if (end < 0) return this.#wrong('501 5.5.4 Syntax: MAIL FROM:<address>\r\n');
    if (end < line.length && !parametersKnown(line, end, MAIL_PARAMETERS)) {
      return this.#wrong('555 5.5.4 Unknown parameter\r\n');
    }
    const size = end < line.length ? /\sSIZE=(\d+)/i.exec(line.slice(end)) : null;
    if (size !== null && Number(size[1]) > this.#host.messageBytesMax) {
      return this.#wrong('552 5.3.4 Too large\r\n');
    }
    this.#from = line.slice(line.indexOf('<') + 1, end - 1);
    this.#begun = this.#host.begin();
    this.#envid = end < line.length ? (/\sENVID=(\S+)/i.exec(line.slice(end))?.[1] ?? '') : '';
    return this.#say('250 2.1.0 Ok\r\n');
  }

  #onRcpt(line: string): Next {
    if (this.#from === undefined) return this.#wrong('503 5.5.1 Need MAIL first\r\n');
    if (this.#to.length >= RECIPIENTS_MAX) return this.#say('452 4.5.3 Too many recipients\r\n');
    const end = pathEnd(line, 'RCPT TO:');
    if (end < 0) return this.#wrong('501 5.5.4 Syntax: RCPT TO:<address>\r\n');
    if (end < line.length && !parametersKnown(line, end, RCPT_PARAMETERS)) {
      return this.#wrong('555 5.5.4 Unknown parameter\r\n');
    }
    this.#to.push(line.slice(line.indexOf('<') + 1, end - 1));
    return this.#say('250 2.1.5 Ok\r\n');
  }

  #onData(): Next {
    if (this.#from === undefined) return this.#wrong('503 5.5.1 Need MAIL first\r\n');
    if (this.#to.length === 0) return this.#wrong('503 5.5.1 Need RCPT first\r\n');
    this.#state = CONTENT;
    this.#reader.start();
    return this.#say('354 End data with <CR><LF>.<CR><LF>\r\n');
  }

  #onContent(): Next {
    this.#state = COMMAND;
    const content = this.#reader.content();
    const from = this.#from ?? '';
    const to = this.#to;
    if (content === undefined) {
      this.#reset();
      this.#answer = this.#repeated('552 5.3.4 Too large\r\n', to);
      this.#finalNext = GO_ON;
    } else {
      this.#clear();
      this.#answerMessage(content, from, to);
    }
    this.#reader.release();
    if (this.#host.late) {
      this.#state = WAITING;
      return WAIT;
    }
    if (this.#finalNext === GO_ON) this.replies += this.#answer;
    return this.#finalNext;
  }

  #answerMessage(content: Buffer, from: string, to: readonly string[]): void {
    let kind = this.#host.decide();
    this.#answer = replyOf(kind);
    if (this.#host.lmtp) {
      // RFC 2033 4.2: one reply for each recipient that was taken, in their order.
      for (let next = 1; next < to.length; next++) {
        const own = this.#host.decide();
        this.#answer += replyOf(own);
        if (own < kind || own === CUT) kind = kind === CUT ? kind : own;
      }
    }
    this.#finalNext = kind === CUT ? CUT_OFF : GO_ON;
    this.#host.keep(content, from, to, kind, this.#begun);
  }

  #repeated(reply: string, to: readonly string[]): string {
    return this.#host.lmtp ? reply.repeat(to.length) : reply;
  }
}

function replyOf(kind: ArrivalKind): string {
  if (kind === DEFERRED) return '451 4.3.0 Deferred on purpose\r\n';
  if (kind === REJECTED) return '550 5.7.1 Refused on purpose\r\n';
  return '250 2.0.0 Ok\r\n';
}

/** The offset behind the '>' of "VERB:<path>", -1 for none. Quoted strings may hold '>' (RFC 5321 4.1.2). */
function pathEnd(line: string, verb: string): number {
  if (line.slice(0, verb.length).toUpperCase() !== verb) return -1;
  const open = line.indexOf('<', verb.length);
  if (open < 0 || line.slice(verb.length, open).trim() !== '') return -1;
  let quoted = false;
  for (let at = open + 1; at < line.length; at++) {
    const character = line.charCodeAt(at);
    if (character === 0x5c && quoted) at++;
    else if (character === 0x22) quoted = !quoted;
    else if (character === 0x3e && !quoted) return at + 1;
  }
  return -1;
}

function parametersKnown(line: string, from: number, known: RegExp): boolean {
  for (const parameter of line.slice(from).trim().split(/ +/)) {
    if (parameter !== '' && !known.test(parameter)) return false;
  }
  return true;
}
