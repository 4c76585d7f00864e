/**
 * One SMTP connection: the library's SMTPConnection with most of it replaced (lean-connection.ts). Kept: STARTTLS, all
 * about TLS, half-closing. Ours: how bytes come, which commands exist, what each does and says, the reply to a message,
 * deadlines, limits, and an enhanced status code on every reply that may carry one (RFC 2034).
 *
 *              MAIL, RCPT…            DATA / 354            final dot / submit
 *   COMMAND ◀──────────────▶ COMMAND ───────────▶ CONTENT ────────────────────▶ ANSWERING
 *      ▲  ▲                                          │ fault, too big, hops…        │
 *      │  └──────────────────────────────────────────┘ refusal                      │
 *      └──────────────────────────────────────────────── outcome / 250, 451, 452 ───┘
 *   any ── close, reset, deadline, NO_REPLY ──▶ GONE
 *
 * In ANSWERING nothing is obeyed: what the client pipelined waits. Overrides these library internals (exact
 * version pinned, test/dialog proves them): init, connectionReady, _setListeners, _createParser, _onError,
 * _onCommand, _resetSession.
 * Not here: what MAIL and RCPT mean (mail-commands.ts), listening (inbound.ts).
 */

import type { Socket } from 'node:net';
import type { SMTPServer } from 'smtp-server';
import { formatMessageId } from '../../base/text-id.js';
import { COMMITTED, NO_REPLY, type Reception, type SubmissionOutcome } from '../queue/types.js';
import { clientKey } from './client-counts.js';
import { commandText, verbOf } from './command-line.js';
import { ContentScan } from './content-scan.js';
import { ContentStream, type ContentSink } from './content-stream.js';
import type { Watched } from './deadlines.js';
import { helloName } from './hello-replies.js';
import type { InboundHub } from './hub.js';
import type { Reader } from './intake.js';
import { LeanConnection } from './lean-connection.js';
import { refuseMail, refuseRecipient } from './mail-commands.js';
import type { RejectStage } from './options.js';
import { answerPlain } from './plain-commands.js';
import * as replies from './reply-codes.js';
import { ReplyWriter } from './reply-writer.js';
import { sanitizeHelo, traceHeader, traceStart } from './trace-header.js';
import type { MailTransaction, OutcomeSink } from './transaction.js';
import { contentRefusal, lateContent, outcomeRefusal } from './verdict.js';

const Phase = { COMMAND: 0, CONTENT: 1, ANSWERING: 2, GONE: 3 } as const;

/** Verb, path of 256, ORCPT of 500 and the other parameters, with room for extensions (RFC 5321 4.5.3.1.4). */
const COMMAND_OCTETS_MAX = 2048;
/** A message this many times over the limit is not listened to any longer. */
const OVERSIZE_PATIENCE = 2;

export class InboundConnection extends LeanConnection implements ContentSink, OutcomeSink, Reader, Watched {
  readonly scan = new ContentScan();
  readonly trusted: boolean;
  /** From MAIL until its outcome. */
  transaction: MailTransaction | undefined;
  helo = '';

  readonly #hub: InboundHub;
  readonly #clientKey: string;
  #phase: (typeof Phase)[keyof typeof Phase] = Phase.COMMAND;
  readonly #replies = new ReplyWriter((text) => {
    // Clear text in the middle of a TLS handshake would be an injection, see SMTPConnection.send.
    if (!this._upgrading && !this._socket.destroyed && this._socket.writable) this._socket.write(text, 'latin1');
  });
  #idleCommands = 0;
  /** Coarse time of the last complete command or reply: the client owes us something since then. */
  #waitingSinceMs: number;
  #contentSinceMs = 0;
  /** Not read: it stands in the line of Intake. */
  #isHeld = false;
  #traceStart = '';

  constructor(hub: InboundHub, server: SMTPServer, socket: Socket) {
    super(server, socket, hub.nextSession());
    this.#hub = hub;
    this.trusted = hub.policy.isTrusted(this.remoteAddress);
    this.#clientKey = clientKey(this.remoteAddress);
    this.#waitingSinceMs = hub.deadlines.nowMs;
  }

  override init(): void {
    const refusal = this.#hub.connectionOpened(this, this.#clientKey);
    this.#hub.deadlines.watch(this);
    this._setListeners(() => {
      if (refusal !== undefined) this.refuse('connect', refusal);
      else this.#hub.greeting.prepare(this, this.#clientKey, this.trusted);
    });
  }

  /** Greets. */
  override connectionReady(): void {
    if (this._closing || this._closed) return;
    this._ready = true;
    this.reply(this.#hub.hello.greeting);
  }

  /** Bytes of the accepted socket come without its stream, to its own parser: not to the one of a TLS session. */
  override _setListeners(callback: () => void): void {
    const [socket, parser] = [this._socket, this._parser];
    if (!(parser instanceof ContentStream) || !this.#hub.readInto(parser, socket)) {
      super._setListeners(callback);
      return;
    }
    socket.on('close', () => {
      parser.letGo();
      this._onClose();
    });
    socket.on('error', (error) => this._onError(error));
    callback();
  }

  get memory(): Reception { return this.#hub.ports.reception; }
  get isExtended(): boolean { return this.openingCommand === 'EHLO'; }
  get tlsVersion(): string { return 'getProtocol' in this._socket ? (this._socket.getProtocol() ?? '') : ''; }

  /** Unless a message is in our hands: its answer comes first. */
  shutDown(): void {
    if (this.#phase === Phase.COMMAND) this.#sayGoodbye(replies.SHUTTING_DOWN.reply);
  }

  destroy(): void { this._socket.destroy(); }

  // Replies

  /** One whole reply line without its end. */
  reply(line: string): void {
    this.#replies.line(line);
  }

  /** 421 closes the connection, as RFC 5321 4.2.2 defines it. */
  refuse(stage: RejectStage, refusal: replies.Refusal, to = ''): void {
    this.#hub.rejected(stage, refusal, this.remoteAddress, this.helo, this.transaction?.reversePath ?? '', to);
    if (refusal.reply.startsWith('421')) this.#sayGoodbye(refusal.reply);
    else this.reply(refusal.reply);
  }

  /** Closes after one more line. */
  #sayGoodbye(line: string): void {
    this.reply(line);
    this.#leave();
  }

  #leave(): void {
    this.#replies.flush();
    this.#abandon();
    this.close();
  }

  /** The client has nothing more to say. */
  #leaveAfterLast(): void {
    this.#replies.flush();
    this.#abandon();
    this.closeAfterLast(this._parser instanceof ContentStream && this._parser.isReadOff);
  }

  beginChunk(): void { this.#replies.begin(); }
  endChunk(): void { this.#replies.end(); }
  onInputEnd(): void { this.#leaveAfterLast(); }
  onOverfull(): void { this.refuse('command', replies.NO_MEMORY_TO_WAIT); }

  // Commands

  override _createParser(): ContentStream {
    const parser = new ContentStream(this, COMMAND_OCTETS_MAX);
    parser.oncommand = (line, done) => this._onCommand(line, done);
    // The parser fails only on a line that is too long; it can't be used any more then.
    parser.on('error', () => {
      this.refuse('command', replies.LINE_TOO_LONG);
      this.#leave();
    });
    return parser;
  }

  override _onCommand(line: Buffer, done: () => void = () => undefined): void {
    // What came in clear behind STARTTLS must not be obeyed (RFC 3207 4.2).
    if (this._upgrading) return done();
    this.#waitingSinceMs = this.#hub.deadlines.nowMs;
    if (!this._ready) {
      this.#hub.greeting.onEarlyTalk(this.#clientKey);
      return this.refuse('command', replies.TALKED_TOO_SOON);
    }
    if (++this.#idleCommands > this.#hub.options.idleCommandsMax) return this.refuse('command', replies.TOO_MANY_COMMANDS);
    const text = commandText(line);
    const verb = text === undefined ? '' : verbOf(text);
    if (verb === 'STARTTLS') return this.#onStartTls(line, done);
    if (text === undefined) this.refuse('command', replies.CONTROL_CHARACTER);
    else this.#obey(verb, text);
    this.#goOn(done);
  }

  /** A client that sends without reading replies is not listened to until it reads. */
  #goOn(done: () => void): void {
    if (this._socket.writableNeedDrain && !this._socket.destroyed) this._socket.once('drain', done);
    else done();
  }

  #obey(verb: string, text: string): void {
    switch (verb) {
      case 'MAIL': return this.#onMail(text);
      case 'RCPT': return this.#onRecipient(text);
      case 'DATA': return this.#onData(text);
      case 'EHLO':
      case 'HELO': return this.#onHello(verb, text);
      case 'RSET': return this.#onReset(text);
      case 'QUIT': return this.#onQuit(text);
      default: {
        const answer = answerPlain(verb, text);
        if (typeof answer === 'string') this.reply(answer);
        else this.refuse('command', answer);
      }
    }
  }

  #onReset(text: string): void {
    if (text.length > 4) return this.refuse('command', replies.ARGUMENT_UNEXPECTED);
    this.#abandon();
    this.reply(replies.FLUSHED);
  }

  #onQuit(text: string): void {
    if (text.length > 4) return this.refuse('command', replies.ARGUMENT_UNEXPECTED);
    this.reply(replies.BYE);
    this.#leaveAfterLast();
  }

  #onHello(verb: string, text: string): void {
    const said = helloName(text);
    if (typeof said === 'string') return this.reply(said);
    this.openingCommand = verb;
    this.hostNameAppearsAs = said.name.toLowerCase();
    // Ends the transaction (RFC 5321 4.1.4).
    this._resetSession();
    this.helo = sanitizeHelo(this.hostNameAppearsAs);
    this.#traceStart = traceStart(this.helo, this.remoteAddress, this.#hub.options.hostName);
    this.reply(verb === 'EHLO' ? this.#hub.hello.ehlo(this.remoteAddress, this.secure) : this.#hub.hello.helo(this.remoteAddress));
  }

  #onStartTls(line: Buffer, done: () => void): void {
    if (this.#hub.options.tls === undefined) {
      this.refuse('command', replies.COMMAND_ABSENT);
      return this.#goOn(done);
    }
    this.#replies.flush();
    this._socket.allowHalfOpen = false; // Until TLS stands (inbound.ts): who ends his side within its handshake has gone.
    this.handler_STARTTLS(line, done);
    if (!this._upgrading) this._socket.allowHalfOpen = true; // It was refused.
  }

  #onMail(text: string): void {
    if (this.helo === '') return this.refuse('mail', replies.GREET_FIRST);
    if (this.transaction !== undefined) return this.refuse('mail', replies.NESTED_MAIL);
    if (!this.#hub.ports.reception.accepting) return this.refuse('mail', replies.NOT_ACCEPTING);
    const refusal = refuseMail(this, this.#hub, text);
    if (refusal !== undefined) return this.refuse('mail', refusal);
    this.reply(replies.SENDER_OK);
  }

  #onRecipient(text: string): void {
    const transaction = this.transaction;
    if (transaction === undefined) return this.refuse('rcpt', this.helo === '' ? replies.GREET_FIRST : replies.MAIL_FIRST);
    const refusal = refuseRecipient(this, this.#hub, transaction, text);
    if (refusal === undefined) {
      this.#idleCommands--;
      return this.reply(replies.RECIPIENT_OK);
    }
    // A list longer than the limit is no sign of a bored client.
    if (refusal === replies.TOO_MANY_RECIPIENTS) this.#idleCommands--;
    this.refuse('rcpt', refusal, text.slice(text.indexOf(':') + 1));
  }

  #onData(text: string): void {
    if (text.length > 4) return this.refuse('data', replies.ARGUMENT_UNEXPECTED);
    if (this.transaction === undefined) return this.refuse('data', this.helo === '' ? replies.GREET_FIRST : replies.MAIL_FIRST);
    if (this.transaction.recipientCount === 0) return this.refuse('data', replies.NO_RECIPIENTS);
    if (!(this._parser instanceof ContentStream)) return;
    this.#phase = Phase.CONTENT;
    this.#contentSinceMs = this.#hub.deadlines.nowMs;
    this._parser.startContent();
    this.reply(replies.START_CONTENT);
  }

  // Content

  onContent(bytes: Uint8Array, from: number, to: number): void {
    const transaction = this.transaction;
    if (this.#phase !== Phase.CONTENT || transaction === undefined) return;
    const content = transaction.content;
    content.append(bytes, from, to, this.scan.ended);
    // A message refused anyhow must not hold memory for its rest.
    if (this.scan.faults !== 0) content.release();
    if (content.bytes > this.#hub.options.messageBytesMax * OVERSIZE_PATIENCE + COMMAND_OCTETS_MAX) {
      this.refuse('data', replies.TOO_BIG);
      this.#leave();
    }
  }

  onContentEnd(): void {
    const transaction = this.transaction;
    if (this.#phase !== Phase.CONTENT || transaction === undefined) return;
    const refusal = contentRefusal(this.scan, transaction.content, this.#hub.options.hopsMax);
    if (refusal !== undefined) {
      this.#phase = Phase.COMMAND;
      this.refuse('data', refusal);
      this.#endTransaction();
      this.#afterMessage();
      return;
    }
    const { reception } = this.#hub.ports;
    const id = reception.nextMessageId();
    const only = transaction.recipientCount === 1 ? transaction.firstRecipient : '';
    const header = traceHeader(this.#traceStart, transaction.protocol, formatMessageId(id), only, this.#hub.date.now());
    transaction.complete(id, header, this.scan.dotLines, this.#hub.ports.mailLog.wantsMessageId);
    transaction.receivedMs = this.#hub.ports.clock.nowMs();
    this.#phase = Phase.ANSWERING;
    this.#hub.submit(transaction);
    transaction.forgetContent();
  }

  onOutcome(transaction: MailTransaction, outcome: SubmissionOutcome): void {
    this.#hub.settled(transaction, outcome);
    // The client may have gone since; what it was never told is not undone (RFC 5321 4.2.5, RFC 1047).
    if (this.#phase !== Phase.ANSWERING || this.transaction !== transaction) return;
    this.#phase = Phase.COMMAND;
    if (outcome === NO_REPLY) {
      this.#hub.rejected('data', replies.NO_REPLY_GIVEN, this.remoteAddress, this.helo, transaction.reversePath, '');
      return this.destroy();
    }
    // One write with the replies to what was pipelined behind the message.
    this.#replies.begin();
    if (outcome === COMMITTED) {
      this.#idleCommands = 0;
      this.reply(replies.queuedAs(formatMessageId(transaction.messageId)));
    } else this.refuse('data', outcomeRefusal(outcome));
    this.transaction = undefined;
    this.#afterMessage();
    this.#replies.end();
    if (!this._closing && this._parser instanceof ContentStream && this._parser.isIdle) this.#hub.intake.next(this);
  }

  stopReading(): void {
    this.#isHeld = true;
    this._socket.pause();
  }

  startReading(): boolean {
    if (!this.#isHeld || this._socket.destroyed) return false;
    this.#isHeld = false;
    // It was our turn, not the client's.
    this.#waitingSinceMs = this.#hub.deadlines.nowMs;
    this.#contentSinceMs = this.#waitingSinceMs;
    this._socket.resume();
    return true;
  }

  #afterMessage(): void {
    this.#waitingSinceMs = this.#hub.deadlines.nowMs;
    if (this.#hub.isClosing) return this.shutDown();
    if (this._parser instanceof ContentStream) this._parser.resumeCommands();
  }

  // The end of things

  /** Called by the library at EHLO, HELO, STARTTLS and when the session starts. */
  override _resetSession(): void {
    if (!this.hostNameAppearsAs) this.helo = '';
    this.#abandon();
  }

  /** Forgets a transaction that has not been submitted; one that has is the gateway's. */
  #abandon(): void {
    if (this.#phase === Phase.ANSWERING) return;
    if (this.#phase === Phase.CONTENT) this.#phase = Phase.COMMAND;
    this.#endTransaction();
  }

  #endTransaction(): void {
    this.transaction?.release();
    this.transaction = undefined;
  }

  checkDeadlines(nowMs: number): void {
    if (this._closing || this._closed || this.#isHeld) return;
    const { options } = this.#hub;
    if (this.#phase === Phase.COMMAND) {
      if (nowMs - this.#waitingSinceMs > options.idleMs) this.#sayGoodbye(replies.IDLE.reply);
    } else if (this.#phase === Phase.CONTENT) {
      const late = lateContent(nowMs - this.#contentSinceMs, this.transaction?.content.bytes ?? 0, options);
      if (late !== undefined) this.refuse('data', late);
    }
  }

  override _onError(error: Error): void {
    this.#hub.ports.log.debug('smtp-connection', 'An SMTP connection broke.', { client: this.remoteAddress, why: error.message });
    this._socket.destroy();
  }

  protected override onGone(): void {
    this.#abandon();
    this.#phase = Phase.GONE;
    this.#hub.deadlines.unwatch(this);
    this.#hub.connectionClosed(this, this.#clientKey);
  }
}
