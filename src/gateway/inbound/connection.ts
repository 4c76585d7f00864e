/**
 * One SMTP connection: the library's SMTPConnection with the mail half replaced. Kept from the library: greeting,
 * EHLO and HELO, STARTTLS and everything about TLS, splitting lines, half-closing. Ours: which commands exist,
 * MAIL, RCPT, DATA, the reply to a message, deadlines, limits, and an enhanced status code on every reply that
 * may carry one (RFC 2034).
 *
 *              MAIL, RCPT…            DATA / 354            final dot / submit
 *   COMMAND ◀──────────────▶ COMMAND ───────────▶ CONTENT ────────────────────▶ ANSWERING
 *      ▲  ▲                                          │ fault, too big, hops…        │
 *      │  └──────────────────────────────────────────┘ refusal                      │
 *      └──────────────────────────────────────────────── outcome / 250, 451, 452 ───┘
 *   any ── close, reset, deadline, NO_REPLY ──▶ GONE
 *
 * Replies made in one turn leave in one write. In ANSWERING nothing is read: what the client pipelined waits.
 *
 * Overrides these library internals (exact version pinned, test/dialog proves them): init, _createParser,
 * _armTimeout, _onError, _onClose, _onCommand, _resetSession.
 *
 * Not here: what MAIL and RCPT mean (mail-commands.ts), listening (inbound.ts).
 */

import type { Socket } from 'node:net';
import type { TLSSocket } from 'node:tls';
import type { SMTPServer } from 'smtp-server';
import { SMTPConnection } from 'smtp-server/lib/smtp-connection.js';
import type { SMTPConnectionOptions } from 'smtp-server/lib/smtp-connection.js';
import { formatMessageId } from '../../base/text-id.js';
import { COMMITTED, NO_MEMORY, NO_REPLY, NOT_READY } from '../queue/types.js';
import type { SubmissionOutcome } from '../queue/types.js';
import { clientKey } from './client-counts.js';
import { commandText, isHttpRequest, verbOf } from './command-line.js';
import { LOST_NO_MEMORY, LOST_TOO_BIG } from './content-buffer.js';
import { ContentScan, FAULT_BARE_CR, FAULT_NUL } from './content-scan.js';
import { ContentStream } from './content-stream.js';
import type { ContentSink } from './content-stream.js';
import type { Watched } from './deadlines.js';
import type { InboundHub } from './hub.js';
import { refuseMail, refuseRecipient } from './mail-commands.js';
import type { RejectStage } from './options.js';
import * as replies from './reply-codes.js';
import type { Refusal } from './reply-codes.js';
import { protocolName, sanitizeHelo, traceHeader, traceStart } from './trace-header.js';
import type { MailTransaction, OutcomeSink } from './transaction.js';

const PHASE_COMMAND = 0;
const PHASE_CONTENT = 1;
const PHASE_ANSWERING = 2;
const PHASE_GONE = 3;

/** Verb, path of 256, ORCPT of 500 and the other parameters, with room for extensions (RFC 5321 4.5.3.1.4). */
export const COMMAND_OCTETS_MAX = 2048;
/** A message this many times over the limit is not listened to any longer. */
const OVERSIZE_PATIENCE = 2;

export class InboundConnection extends SMTPConnection implements ContentSink, OutcomeSink, Watched {
  readonly scan = new ContentScan();
  readonly trusted: boolean;
  /** From MAIL until its outcome. */
  transaction: MailTransaction | undefined;
  helo = '';

  readonly #hub: InboundHub;
  readonly #clientKey: string;
  #phase: typeof PHASE_COMMAND | typeof PHASE_CONTENT | typeof PHASE_ANSWERING | typeof PHASE_GONE = PHASE_COMMAND;
  #gathering = false;
  #gathered = '';
  #idleCommands = 0;
  /** Coarse time of the last complete command or reply: the client owes us something since then. */
  #waitingSinceMs: number;
  #contentSinceMs = 0;
  #traceStart = '';

  constructor(hub: InboundHub, server: SMTPServer, socket: Socket | TLSSocket, options?: SMTPConnectionOptions | null) {
    super(server, socket, options);
    this.#hub = hub;
    this.trusted = hub.policy.isTrusted(this.remoteAddress);
    this.#clientKey = clientKey(this.remoteAddress);
    this.#waitingSinceMs = hub.deadlines.nowMs;
  }

  override init(): void {
    const refusal = this.#hub.connectionOpened(this, this.#clientKey);
    this.#hub.deadlines.watch(this);
    this._setListeners(() => {
      if (refusal !== undefined) {
        this.#refuseAndClose('connect', refusal);
      } else if (this.#hub.options.greetingDelayMs === 0) {
        this.connectionReady();
      } else {
        setTimeout(() => this.connectionReady(), this.#hub.options.greetingDelayMs).unref();
      }
    });
  }

  /** Unless a message is in our hands: its answer comes first. */
  shutDown(): void {
    if (this.#phase === PHASE_COMMAND) this.#sayGoodbye(replies.SHUTTING_DOWN);
  }

  destroy(): void {
    this._socket.destroy();
  }

  // Replies

  /** One whole reply line without its end. */
  reply(line: string): void {
    if (this.#gathering) this.#gathered += line + '\r\n';
    else this.#send(line + '\r\n');
  }

  refuse(stage: RejectStage, refusal: Refusal, to = ''): void {
    this.#hub.rejected(stage, refusal, this.remoteAddress, this.helo, this.transaction?.reversePath ?? '', to);
    this.reply(refusal.reply);
  }

  #refuseAndClose(stage: RejectStage, refusal: Refusal): void {
    this.#hub.rejected(stage, refusal, this.remoteAddress, this.helo, this.transaction?.reversePath ?? '', '');
    this.#sayGoodbye(refusal);
  }

  /** Closes after one more line; what was not asked for is no rejection. */
  #sayGoodbye(refusal: Refusal): void {
    this.reply(refusal.reply);
    this.#flush();
    this.#abandon();
    this.close();
  }

  #flush(): void {
    if (this.#gathered === '') return;
    const text = this.#gathered;
    this.#gathered = '';
    this.#send(text);
  }

  #send(text: string): void {
    // Clear text in the middle of a TLS handshake would be an injection, see SMTPConnection.send.
    if (!this._upgrading && !this._socket.destroyed && this._socket.writable) this._socket.write(text, 'latin1');
  }

  beginChunk(): void {
    this.#gathering = true;
  }

  endChunk(): void {
    this.#gathering = false;
    this.#flush();
  }

  // Commands

  override _createParser(): ContentStream {
    const parser = new ContentStream(this, COMMAND_OCTETS_MAX);
    parser.oncommand = (line, done) => this._onCommand(line, done);
    // The parser fails only on a line that is too long; it can't be used any more then.
    parser.on('error', () => this.#refuseAndClose('command', replies.LINE_TOO_LONG));
    return parser;
  }

  override _onCommand(line: Buffer, done: () => void = nothing): void {
    // What came in clear behind STARTTLS must not be obeyed (RFC 3207 4.2).
    if (this._upgrading) {
      done();
      return;
    }
    this.#waitingSinceMs = this.#hub.deadlines.nowMs;
    if (!this._ready) {
      this.#refuseAndClose('command', replies.TALKED_TOO_SOON);
      return;
    }
    if (++this.#idleCommands > this.#hub.options.idleCommandsMax) {
      this.#refuseAndClose('command', replies.TOO_MANY_COMMANDS);
      return;
    }
    const text = commandText(line);
    if (text === undefined) this.refuse('command', replies.CONTROL_CHARACTER);
    else this.#obey(text, line, done);
    if (text !== undefined && verbOf(text) === 'STARTTLS') return;
    this.#goOn(done);
  }

  /** A client that sends without reading replies is not listened to until it reads. */
  #goOn(done: () => void): void {
    if (this._socket.writableNeedDrain && !this._socket.destroyed) this._socket.once('drain', done);
    else done();
  }

  #obey(text: string, line: Buffer, done: () => void): void {
    const verb = verbOf(text);
    switch (verb) {
      case 'MAIL':
        this.#onMail(text);
        return;
      case 'RCPT':
        this.#onRecipient(text);
        return;
      case 'DATA':
        this.#onData(text);
        return;
      case 'EHLO':
      case 'HELO':
        this.#onHello(verb, line);
        return;
      case 'STARTTLS':
        this.#onStartTls(line, done);
        return;
      default:
        this.#obeyPlain(verb, text);
    }
  }

  /** Commands that touch no message. */
  #obeyPlain(verb: string, text: string): void {
    const hasArgument = text.length > verb.length;
    switch (verb) {
      case 'RSET':
        if (hasArgument) return this.refuse('command', replies.ARGUMENT_UNEXPECTED);
        this.#abandon();
        return this.reply(replies.FLUSHED);
      case 'NOOP':
        return this.reply(replies.OK);
      case 'QUIT':
        if (hasArgument) return this.refuse('command', replies.ARGUMENT_UNEXPECTED);
        this.reply(replies.BYE);
        this.#flush();
        this.#abandon();
        return this.close();
      case 'VRFY':
        if (!hasArgument) return this.refuse('command', replies.ARGUMENT_MISSING);
        return this.reply(replies.CANNOT_VERIFY);
      case 'HELP':
        return this.reply(replies.HELP_TEXT);
      case 'EXPN':
      case 'AUTH':
      case 'TURN':
      case 'ETRN':
      case 'BDAT':
        return this.refuse('command', replies.COMMAND_ABSENT);
      default:
        if (isHttpRequest(text)) return this.#refuseAndClose('command', replies.HTTP_REQUEST);
        return this.refuse('command', replies.COMMAND_UNKNOWN);
    }
  }

  #onHello(verb: string, line: Buffer): void {
    this.#flush();
    this.openingCommand = verb;
    // The library answers and calls _resetSession, which ends the transaction (RFC 5321 4.1.4).
    if (verb === 'EHLO') this.handler_EHLO(line, nothing);
    else this.handler_HELO(line, nothing);
    this.helo = typeof this.hostNameAppearsAs === 'string' ? sanitizeHelo(this.hostNameAppearsAs) : '';
    this.#traceStart = traceStart(this.helo, this.remoteAddress, this.#hub.options.hostName);
  }

  #onStartTls(line: Buffer, done: () => void): void {
    if (this.#hub.options.tls === undefined) {
      this.refuse('command', replies.COMMAND_ABSENT);
      this.#goOn(done);
      return;
    }
    this.#flush();
    this.handler_STARTTLS(line, done);
  }

  #onMail(text: string): void {
    if (this.helo === '') return this.refuse('mail', replies.GREET_FIRST);
    if (this.transaction !== undefined) return this.refuse('mail', replies.NESTED_MAIL);
    if (!this.#hub.ports.reception.accepting) return this.#refuseAndClose('mail', replies.NOT_ACCEPTING);
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
    if (refusal === replies.SHUTTING_DOWN) return this.#refuseAndClose('rcpt', refusal);
    // A list longer than the limit is no sign of a bored client.
    if (refusal === replies.TOO_MANY_RECIPIENTS) this.#idleCommands--;
    this.refuse('rcpt', refusal, text.slice(text.indexOf(':') + 1));
  }

  #onData(text: string): void {
    if (text.length > 4) return this.refuse('data', replies.ARGUMENT_UNEXPECTED);
    if (this.transaction === undefined) return this.refuse('data', this.helo === '' ? replies.GREET_FIRST : replies.MAIL_FIRST);
    if (this.transaction.recipientCount === 0) return this.refuse('data', replies.NO_RECIPIENTS);
    if (!(this._parser instanceof ContentStream)) return;
    this.#phase = PHASE_CONTENT;
    this.#contentSinceMs = this.#hub.deadlines.nowMs;
    this._parser.startContent();
    this.reply(replies.START_CONTENT);
  }

  // Content

  onContent(bytes: Uint8Array, from: number, to: number): void {
    const transaction = this.transaction;
    if (this.#phase !== PHASE_CONTENT || transaction === undefined) return;
    const content = transaction.content;
    content.append(bytes, from, to);
    // A message refused anyhow must not hold memory for its rest.
    if (this.scan.faults !== 0) content.release();
    if (content.bytes > this.#hub.options.messageBytesMax * OVERSIZE_PATIENCE + COMMAND_OCTETS_MAX) {
      this.#refuseAndClose('data', replies.TOO_BIG);
    }
  }

  onContentEnd(): void {
    const transaction = this.transaction;
    if (this.#phase !== PHASE_CONTENT || transaction === undefined) return;
    const refusal = this.#contentRefusal(transaction);
    if (refusal !== undefined) {
      this.#phase = PHASE_COMMAND;
      this.refuse('data', refusal);
      this.#endTransaction();
      this.#afterMessage();
      return;
    }
    const { reception } = this.#hub.ports;
    const id = reception.nextMessageId();
    const only = transaction.recipientCount === 1 ? transaction.firstRecipient : '';
    const header = traceHeader(this.#traceStart, transaction.protocol, formatMessageId(id), only, this.#hub.date.now());
    transaction.complete(id, header, this.scan.dotLines);
    transaction.receivedMs = this.#hub.ports.clock.nowMs();
    this.#phase = PHASE_ANSWERING;
    reception.submit(transaction);
  }

  #contentRefusal(transaction: MailTransaction): Refusal | undefined {
    const { faults, receivedLines } = this.scan;
    if (faults !== 0) return (faults & FAULT_NUL) !== 0 ? replies.NUL_BYTE : (faults & FAULT_BARE_CR) !== 0 ? replies.BARE_CR : replies.BARE_LF;
    if (transaction.content.fate === LOST_TOO_BIG) return replies.TOO_BIG;
    if (receivedLines > this.#hub.options.hopsMax) return replies.TOO_MANY_HOPS;
    if (transaction.content.fate === LOST_NO_MEMORY) return replies.NO_MEMORY_NOW;
    return undefined;
  }

  onOutcome(transaction: MailTransaction, outcome: SubmissionOutcome): void {
    // Until now the bytes in transit stood beside the gateway's copy, and were counted as such.
    transaction.content.release();
    if (outcome === COMMITTED) this.#hub.received(transaction);
    // The client may have gone since; what it was never told is not undone (RFC 5321 4.2.5, RFC 1047).
    if (this.#phase !== PHASE_ANSWERING || this.transaction !== transaction) return;
    this.#phase = PHASE_COMMAND;
    if (outcome === NO_REPLY) {
      this.#hub.rejected('data', NO_REPLY_GIVEN, this.remoteAddress, this.helo, transaction.reversePath, '');
      this.destroy();
      return;
    }
    if (outcome === COMMITTED) {
      this.#idleCommands = 0;
      this.reply(replies.queuedAs(formatMessageId(transaction.messageId)));
    } else {
      this.refuse('data', outcome === NO_MEMORY ? replies.NO_MEMORY_NOW : outcome === NOT_READY ? replies.NOT_READY_NOW : replies.NOT_KEPT);
    }
    this.transaction = undefined;
    this.#afterMessage();
  }

  #afterMessage(): void {
    this.#waitingSinceMs = this.#hub.deadlines.nowMs;
    if (this.#hub.isClosing) {
      this.shutDown();
      return;
    }
    if (this._parser instanceof ContentStream) this._parser.resumeCommands();
  }

  protocolFor(utf8: boolean): string {
    return protocolName(this.openingCommand === 'EHLO', this.secure, utf8);
  }

  // The end of things

  /** Called by the library at EHLO, HELO, STARTTLS and when the session starts. */
  override _resetSession(): void {
    super._resetSession();
    if (!this.hostNameAppearsAs) this.helo = '';
    this.#abandon();
  }

  /** Forgets a transaction that has not been submitted; one that has is the gateway's. */
  #abandon(): void {
    if (this.#phase === PHASE_ANSWERING) return;
    if (this.#phase === PHASE_CONTENT) this.#phase = PHASE_COMMAND;
    this.#endTransaction();
  }

  #endTransaction(): void {
    this.transaction?.content.release();
    this.transaction = undefined;
  }

  checkDeadlines(nowMs: number): void {
    if (this._closing || this._closed) return;
    const { options } = this.#hub;
    if (this.#phase === PHASE_COMMAND) {
      if (nowMs - this.#waitingSinceMs > options.idleMs) this.#sayGoodbye(replies.IDLE);
    } else if (this.#phase === PHASE_CONTENT) {
      const elapsedMs = nowMs - this.#contentSinceMs - options.deadlineTickMs;
      const wanted = ((elapsedMs - options.contentGraceMs) / 1000) * options.contentBytesPerSecondMin;
      if (elapsedMs > options.contentMs) this.#refuseAndClose('data', replies.CONTENT_TOO_LATE);
      else if ((this.transaction?.content.bytes ?? 0) < wanted) this.#refuseAndClose('data', replies.CONTENT_TOO_SLOW);
    }
  }

  /** The library's own idle timer starts anew at every byte; ours are in checkDeadlines. */
  override _armTimeout(): void {
    // Nothing to arm.
  }

  override _onError(error: Error): void {
    this.#hub.ports.log.debug('smtp-connection', 'An SMTP connection broke.', { client: this.remoteAddress, why: error.message });
    this._socket.destroy();
  }

  override _onClose(): void {
    const first = this.#phase !== PHASE_GONE;
    super._onClose();
    if (!first) return;
    this.#abandon();
    this.#phase = PHASE_GONE;
    this.#gathered = '';
    this.#hub.deadlines.unwatch(this);
    this.#hub.connectionClosed(this, this.#clientKey);
  }
}

const NO_REPLY_GIVEN: Refusal = { reply: '', reason: 'no-reply' };

function nothing(): void {
  // A callback of the library that has nothing left to do.
}
