/**
 * One client connection to a next hop, by SMTP (RFC 5321) or LMTP (RFC 2033): bytes and ticks in, commands,
 * content and results out. States, timeouts and the diagram: session-states.ts.
 *
 * - With PIPELINING (RFC 2920) MAIL, all RCPT and DATA leave in one write, else step by step. Replies are
 *   taken in order; once nobody is accepted, a 354 is answered with a lone dot, then RSET.
 * - The step before the final dot: content up to SMALL_CONTENT_BYTES leaves together with its dot when the
 *   connection has nothing buffered and mayDot() agrees, and with the envelope that follows, if there is one
 *   (RFC 2920 3.1), which begins when the dot is answered; larger content leaves in pieces, and mayDot() is
 *   asked and the dot written only when the last piece has left the process (G5).
 * - Before the dot a lost connection defers whoever is still open, without risk of a duplicate. After the
 *   dot the result says dotUnanswered (RFC 1047). Recipients refused one by one keep their refusal.
 * - On a kept connection that ends (lost, or 421) before the first reply of a transaction, the peer has seen
 *   nothing of it: onStale() gives the delivery back to be tried elsewhere at once. One without the right to
 *   its dot is no attempt either, unless the peer refused a recipient: onNoRight().
 * - A fresh connection that ends so within its first envelope says that the peer takes no mail for now: its
 *   end tells why, as that of one that never got ready.
 *
 * - Each reply of an envelope, and by LMTP behind a dot, may take its timeout; all of them together have one
 *   too, so that nobody holds a delivery for days by an answer every few minutes.
 *
 * - TLS (RFC 3207, 8314) is over before any mail: what was said in clear is forgotten then, and EHLO said
 *   again. More than the reply to STARTTLS in clear ends the session: it would be taken for said in TLS.
 *   Whether it may go on in clear is for who asked: a session that lost TLS says so (hasTlsFailed). One that
 *   is in clear for that (lostTls) takes no refusal for final that a peer gives who insists on TLS.
 * - AUTH (RFC 4954), where there is a user, comes behind the last EHLO. What the peer says from then on until
 *   it is ready may repeat the password: of those replies nothing but codes is told.
 *
 * Owns the connection, the unfinished reply and the transaction under way. Entries never nest: the events it
 * calls may call begin() or quit(), nothing else. Not here: which delivery goes where (connection-pool.ts,
 * dispatcher.ts), what replies mean (classify.ts). Pure.
 */
import { invariant } from '../../../base/invariant.js';
import { utf8Text } from '../../../base/utf8.js';
import type { Connection, ConnectionHandlers, SecuredFacts } from '../../../platform/transport.js';
import type { Delivery, RecipientResult } from '../../mail-types.js';
import {
  CAN_AUTH, CAN_PIPELINE, CAN_REQUIRETLS, CAN_STARTTLS, HAS_AUTHENTICATED, NO_CAPABILITIES,
  parseCapabilities,
} from '../../../smtp/capabilities.js';
import type { Capabilities } from '../../../smtp/capabilities.js';
import type { Speaker } from '../../../smtp/session-tap.js';
import { DATA, LONE_DOT, QUIT, RSET, STARTTLS, authLines, hello } from '../../../smtp/commands.js';
import { Stage, Trouble, classifyReply, classifyTrouble, deferred, mayWantTls } from './classify.js';
import { ContentSender } from './content-sender.js';
import { putRcptOf } from './envelope-commands.js';
import { prepare, putEnvelope } from './envelope-writing.js';
import { ReplyReader, enhancedCode, isPositive } from '../../../smtp/reply-reader.js';
import { STATE_DOING, STATE_NAME, State, isValidTransition } from './session-states.js';
import type { SessionEvents, SessionOptions, SessionPorts } from './session-ports.js';
import { Transaction } from './transaction.js';

/**
 * An envelope behind a dot goes elsewhere when the dot has no answer for so long: others of its queue are
 * tried meanwhile. Only a peer that was quick last has one there.
 */
const FOLLOWED_DOT_MS_MAX = 1_000;
/** And when MAIL then has none. */
const FOLLOWER_MAIL_MS_MAX = 5_000;
/**
 * All replies of an envelope, or of LMTP behind its dot, have so long, and so long more for each recipient.
 * Who is wary of many answers RCPT after some seconds (tarpits of mail servers: 5 to 20), and gets its mail:
 * the next attempt begins with the same recipients, and where this is too short they never come to DATA.
 * Behind the dot each reply is one delivery: who gives up there sends what was taken again. Who drips holds a
 * connection for 6 h at most with 1,000 recipients, behind the dot for 17 h; a single reply has the time of
 * its state, however its bytes come.
 */
const REPLIES_MS_MAX = 1_800_000;
const REPLY_MS_MAX = 20_000;
const LMTP_REPLY_MS_MAX = 60_000;
/** 500 to 503 say that a command was not understood, or came where it may not (RFC 5321 4.2.2). */
const [NOT_UNDERSTOOD, OUT_OF_SEQUENCE] = [500, 503];
/** Said to EHLO: it is not known, or not so (RFC 5321 4.2.4, 4.3.2). Other refusals are not about EHLO. */
const EHLO_UNKNOWN = new Set([500, 501, 502, 504]);
/** What is said of recipients (RFC 5321 4.3.2), wherever their RCPT stands. */
const OF_RECIPIENTS = new Set([450, 451, 452, 550, 551, 552, 553]);
const NO_LINES: readonly string[] = [];

export class SmtpSession implements ConnectionHandlers {
  readonly #options: SessionOptions;
  readonly #ports: SessionPorts;
  readonly #events: SessionEvents;
  readonly #reader: ReplyReader;
  #transaction = new Transaction();
  /** The one whose envelope stands behind the dot under way; without a delivery if nothing follows. */
  #following = new Transaction();
  readonly #content: ContentSender;
  #connection: Connection | undefined;
  #state: State = State.CONNECTING;
  #peer: Capabilities = NO_CAPABILITIES;
  /** The reply to EHLO that HELO was said for. */
  #ehloReply = '';
  /** Session time of the last progress, and of the last tick. */
  #sinceMs: number;
  #nowMs: number;
  /** When MAIL left; from then on when the dot did. */
  #repliesSinceMs = 0;
  #isPipelined = false;
  /** The connection had been idle, or used before, when the current transaction began. */
  #wasKept = false;
  /** The envelope of the current transaction stood behind a dot. */
  #isFollower = false;
  /** Its commands stand behind the dot, though nobody waits for what comes of them. */
  #hadTrialBehind = false;
  /** The current transaction has had a reply. */
  #isAnswered = false;
  /** IDLE was reached inside onData(): told when all bytes have been looked at. */
  #owesIdle = false;
  /** So was the 220 to STARTTLS. */
  #owesTls = false;
  #tls: SecuredFacts | undefined;
  /** Lines of AUTH, each said when it is asked for. */
  #unsaid = NO_LINES;
  #hasTlsFailed = false;
  /** The peer said 421: close after this transaction. */
  #isLast = false;
  /** onIdle() was told once. A session that ends before failed to connect: else nobody would back off. */
  #wasReady = false;
  #transactions = 0;
  /** The peer may insist on TLS, as it said last. */
  #tlsWanted: RecipientResult | undefined;
  #whyClosed: RecipientResult | undefined;

  constructor(options: SessionOptions, ports: SessionPorts, events: SessionEvents, nowMs: number) {
    this.#options = options;
    this.#ports = ports;
    this.#events = events;
    this.#reader = new ReplyReader(this);
    this.#content = new ContentSender(options.contentBytesPerSecondMin, ports);
    this.#sinceMs = nowMs;
    this.#nowMs = nowMs;
  }

  get state(): State { return this.#state; }
  get capabilities(): Capabilities { return this.#peer; }
  get tls(): SecuredFacts | undefined { return this.#tls; }
  /** It ended for TLS, and might not have in clear. */
  get hasTlsFailed(): boolean { return this.#hasTlsFailed; }
  /** Transactions begun on this connection. */
  get transactions(): number { return this.#transactions; }

  /** The connection that reports to this session; right after Transport.connect(). */
  attach(connection: Connection): void {
    this.#connection = connection;
  }

  /** Starts a mail transaction; only when IDLE. May settle before it returns, when nothing need be sent. */
  begin(delivery: Delivery): void {
    invariant(this.#state === State.IDLE && !this.#owesIdle, 'a transaction begins on an idle session');
    prepare(this.#transaction, delivery, this.#peer, this.#options.relay);
    if (this.#transaction.openCount === 0) return this.#settle(false);
    this.#wasKept = this.#transactions > 0 || this.#nowMs > this.#sinceMs;
    this.#isFollower = false;
    this.#isPipelined = (this.#peer.bits & CAN_PIPELINE) !== 0;
    const { buffer } = this.#ports;
    buffer.start(this.#live());
    putEnvelope(buffer, this.#transaction, this.#peer, this.#isPipelined);
    if (this.#ports.tap.isOn) this.#tellPut(0);
    this.#onBegun();
    buffer.flush();
  }

  /** Ends an idle session politely. */
  quit(): void {
    if (this.#state !== State.IDLE) return this.abandon('not needed any more');
    this.#owesIdle = false;
    this.#send(State.QUITTING, QUIT);
  }

  /** Ends the session at once, whatever it is doing; after the dot the result is dotUnanswered. */
  abandon(reason: string): void {
    if (this.#state !== State.CLOSED) this.#fail(Trouble.ABANDONED, `${reason} while ${this.#doing()}`);
  }

  /** Its connection must not be made, or can't: its TLS is not known, or it has no address to come from. */
  forbid(trouble: Trouble, why: string): void {
    if (this.#state !== State.CLOSED) this.#fail(trouble, `no connection to ${this.#options.relay}: ${why}`);
  }

  /**
   * Session time, which does not count stalls of the process. Decides timeouts, and goes on where a drain
   * event does not come.
   */
  tick(nowMs: number): void {
    this.#nowMs = nowMs;
    if (this.#state === State.CONTENT) this.#sendContent();
    if (this.#state === State.CONTENT && this.#content.isTooSlow(nowMs)) return this.#failSlow();
    if (this.#following.delivery !== undefined && nowMs - this.#sinceMs >= FOLLOWED_DOT_MS_MAX) {
      // Its commands can't be taken back, so the connection ends with the answer to the dot.
      this.#isLast = true;
      this.#hadTrialBehind = !this.#events.bearsFollowers;
      this.#giveBackFollowing(this.#hadTrialBehind);
    }
    const { relay, timeouts } = this.#options;
    const isFollowing = this.#isFollower && this.#state === State.MAIL;
    const timeoutMs = isFollowing ? FOLLOWER_MAIL_MS_MAX : (timeouts[this.#state] ?? 0);
    if (timeoutMs === 0) return;
    if (nowMs - this.#sinceMs < timeoutMs) return this.#endDripping(timeoutMs);
    const silentS = Math.round(timeoutMs / 1000);
    if (this.#connection?.isResolving === true) {
      const text = `no connection to ${relay}: its name was not looked up within ${silentS} s`;
      return this.#fail(Trouble.UNRESOLVED, text);
    }
    this.#fail(Trouble.TIMEOUT, `${relay} silent for ${silentS} s while ${this.#doing()}`);
  }

  onOpen(): void {
    const isTlsFirst = this.#options.tls?.isFirst === true;
    if (this.#state === State.CONNECTING) {
      this.#transition(isTlsFirst ? State.SECURING : State.GREETING);
      if (isTlsFirst) this.#secure();
    } else if (this.#state === State.SECURING) {
      this.#tls = this.#live().security;
      if (isTlsFirst) this.#transition(State.GREETING);
      else this.#hello(State.HELLO);
    }
  }

  onData(bytes: Uint8Array): void {
    this.#reader.push(bytes);
    if (this.#owesTls) return this.#onGoAhead();
    if (!this.#owesIdle) return;
    this.#owesIdle = false;
    // Half a reply that nobody asked for would be taken for the answer to the next command.
    if (this.#reader.isMidReply) return this.onBadReply('more than was asked for');
    this.#wasReady = true;
    this.#events.onIdle(this);
  }

  onDrain(): void { if (this.#state === State.CONTENT) this.#sendContent(); }

  onClose(reason: string): void {
    if (this.#state === State.CLOSED) return;
    if (this.#ports.tap.isOn) this.#tell('note', `closed: ${reason}`);
    const { relay } = this.#options;
    if (this.#state === State.CONNECTING) this.#fail(Trouble.CONNECT, `no connection to ${relay}: ${reason}`);
    else if (this.#state === State.SECURING) {
      this.#fail(Trouble.LOST, `no TLS with ${relay}: ${reason.replace(/^TLS: /, '')}`);
    } else this.#fail(Trouble.LOST, `connection with ${relay} lost while ${this.#doing()}: ${reason}`);
  }

  /** ReplySink: not for others. */
  onBadReply(why: string): void {
    this.#fail(Trouble.PROTOCOL, `${this.#options.relay} broke the protocol while ${this.#doing()}: ${why}`);
  }

  /** ReplySink: not for others. */
  onReply(code: number): void {
    if (this.#ports.tap.isOn) this.#tellReply(code);
    switch (this.#state) {
      case State.GREETING:
        return code === 220 ? this.#hello(State.HELLO) : this.#refuse(Stage.GREETING, code);
      case State.HELLO: return this.#onHelloReplies(code);
      case State.HELO_ONLY: return isPositive(code) ? this.#onHello() : this.#refuse(Stage.HELLO, code);
      case State.STARTTLS: return this.#onStartTlsReply(code);
      case State.SECURING: return this.#onInjected();
      case State.AUTH: return this.#onAuthReply(code);
      case State.MAIL: case State.RCPT: case State.DATA: return this.#onEnvelopeReply(code);
      case State.FINAL: return this.#onFinalReply(code);
      case State.LONE_DOT: return code === 421 ? this.#failBy(Trouble.LOST) : this.#send(State.RESET, RSET);
      case State.RESET: return isPositive(code) ? this.#idle() : this.#failBy(Trouble.PROTOCOL);
      case State.QUITTING: return this.#close();
      case State.CONNECTING: case State.IDLE: case State.CLOSED:
        if (code === 421) return this.#failBy(Trouble.LOST);
        return this.onBadReply(`reply ${code} that nobody asked for`);
      case State.CONTENT: return this.#onEarlyReply(code);
    }
  }

  #hello(state: typeof State.HELLO | typeof State.HELO_ONLY): void {
    const verb = state === State.HELO_ONLY ? 'HELO' : this.#options.protocol === 'lmtp' ? 'LHLO' : 'EHLO';
    this.#send(state, hello(verb, this.#options.heloName));
  }

  #onHelloReplies(code: number): void {
    // LMTP has no HELO (RFC 2033 4.1).
    if (EHLO_UNKNOWN.has(code) && this.#options.protocol === 'smtp') {
      this.#ehloReply = this.#reader.text();
      return this.#hello(State.HELO_ONLY);
    }
    if (!isPositive(code)) return this.#refuse(Stage.HELLO, code);
    this.#peer = parseCapabilities(this.#reader.lines());
    this.#onHello();
  }

  #onHello(): void {
    const { tls, relay } = this.#options;
    if (tls === undefined || this.#tls !== undefined) return this.#onSecured();
    if ((this.#peer.bits & CAN_STARTTLS) !== 0) return this.#send(State.STARTTLS, STARTTLS);
    if (tls.level === 'may') return this.#authenticate();
    const why = tls.why ?? `so says tls: ${tls.level} of the route`;
    const trouble = tls.isRequired === true ? Trouble.TLS_NEEDED : Trouble.TLS_ABSENT;
    this.#fail(trouble, `${relay} offers no STARTTLS, and mail must not go there in clear: ${why}`);
  }

  /** Or it is not asked for. */
  #onSecured(): void {
    const { tls, relay } = this.#options;
    const isPromised = (this.#peer.bits & CAN_REQUIRETLS) !== 0;
    if (tls?.isRequired !== true || isPromised) return this.#authenticate();
    const text = `${relay} offers no REQUIRETLS, and mail must have TLS all the way`;
    this.#fail(Trouble.REQUIRETLS_ABSENT, text);
  }

  #onStartTlsReply(code: number): void {
    if (code === 220) {
      this.#peer = NO_CAPABILITIES;
      this.#owesTls = true;
      return this.#transition(State.SECURING);
    }
    this.#hasTlsFailed = true;
    this.#fail(Trouble.TLS_ABSENT, `${this.#options.relay} refused STARTTLS: ${this.#reader.text()}`);
  }

  /** All that came with the 220 has been looked at. */
  #onGoAhead(): void {
    this.#owesTls = false;
    if (this.#reader.isMidReply) this.#onInjected();
    else this.#secure();
  }

  #onInjected(): void {
    const text = 'said more in clear behind its reply to STARTTLS, which somebody else may have put there';
    this.#fail(Trouble.TLS_FAILED, `${this.#options.relay} ${text} (RFC 3207 5)`);
  }

  #secure(): void {
    const { tls } = this.#options;
    invariant(tls !== undefined, 'TLS begins where the next hop is to have it');
    this.#connection = this.#ports.secure(this.#live(), tls.terms, this);
  }

  #authenticate(): void {
    const { auth, relay } = this.#options;
    if (auth === undefined) return this.#idle();
    const found = this.#ports.password(auth.passwordFile);
    if (!found.isFound) return this.#fail(Trouble.NO_PASSWORD, `no password for ${relay}: ${found.why}`);
    const [first, ...others] = authLines(this.#peer, auth.user, found.password);
    if (first !== undefined) {
      this.#unsaid = others;
      return this.#send(State.AUTH, first);
    }
    const lacks = (this.#peer.bits & CAN_AUTH) === 0 ? 'no AUTH' : 'neither AUTH PLAIN nor LOGIN';
    this.#fail(Trouble.AUTH_ABSENT, `${relay} offers ${lacks}, and takes no user and password so`);
  }

  #onAuthReply(code: number): void {
    if (isPositive(code)) {
      this.#unsaid = NO_LINES;
      this.#peer = { ...this.#peer, bits: this.#peer.bits | HAS_AUTHENTICATED };
      return this.#idle();
    }
    if (code >= 400) {
      const text = `${this.#options.relay} refused our user and password: ${this.#said()}`;
      return this.#fail(code < 500 ? Trouble.AUTH_LATER : Trouble.AUTH_REFUSED, text);
    }
    const [next, ...others] = this.#unsaid;
    if (code !== 334 || next === undefined) return this.onBadReply(`reply ${code} to AUTH`);
    this.#unsaid = others;
    this.#send(State.AUTH, next);
  }

  #onEnvelopeReply(code: number): void {
    const isFirst = !this.#isAnswered;
    this.#isAnswered = true;
    if (code === 421) {
      if (this.#isTrial || (isFirst && this.#wasKept)) return this.#giveBack(undefined, this.#isTrial);
      const said = classifyReply(this.#stage(), code, this.#reader.text());
      this.#transaction.resolveOpen(this.#transaction.mailRefusal ?? said);
      if (this.#transactions === 1) this.#whyClosed = said;
      return this.#close();
    }
    if (code >= 300 && code < 400 && this.#state !== State.DATA) return this.onBadReply(`reply ${code}`);
    if (this.#state === State.MAIL) this.#onMailReply(code);
    else if (this.#state === State.RCPT) this.#onRcptReply(code);
    else this.#onDataReply(code);
  }

  #onMailReply(code: number): void {
    if (!isPositive(code)) {
      if (this.#isForWhereItStood(code)) return this.#giveBack(undefined, true);
      this.#transaction.mailRefusal = this.#refusalOf(Stage.MAIL, code);
      // What was pipelined behind MAIL is still answered, reply by reply.
      if (!this.#isPipelined) return this.#endRefused();
    }
    this.#transition(State.RCPT);
    if (!this.#isPipelined) this.#sendRcpt();
  }

  #onRcptReply(code: number): void {
    const transaction = this.#transaction;
    if (isPositive(code)) transaction.accept();
    else if (!OF_RECIPIENTS.has(code) && this.#isForWhereItStood(code)) {
      return this.#giveBack(undefined, true);
    } else transaction.refuse(this.#refusalOf(Stage.RCPT, code));
    if (transaction.awaited >= 0) {
      this.#transition(State.RCPT);
      if (!this.#isPipelined) this.#sendRcpt();
      return;
    }
    if (this.#isPipelined) this.#transition(State.DATA);
    else if (transaction.acceptedCount > 0) this.#send(State.DATA, DATA);
    else this.#endRefused();
  }

  #onDataReply(code: number): void {
    const transaction = this.#transaction;
    const isGo = code === 354;
    if (!isGo && code < 400) return this.onBadReply(`reply ${code} to DATA`);
    if (isGo && transaction.acceptedCount > 0) {
      this.#transition(State.CONTENT);
      this.#content.begin(transaction.current(), this.#nowMs);
      this.#sendContent();
      return;
    }
    if (!isGo && transaction.acceptedCount > 0) {
      if (this.#isForWhereItStood(code)) return this.#giveBack(undefined, true);
      transaction.resolveOpen(this.#refusalOf(Stage.DATA, code));
    }
    if (!isGo || this.#tlsWanted !== undefined) return this.#endRefused();
    this.#send(State.LONE_DOT, LONE_DOT);
    this.#settle(false);
  }

  /** Of the envelope. */
  #refusalOf(stage: Stage, code: number): RecipientResult {
    const result = classifyReply(stage, code, this.#reader.text());
    const isFinal = this.#options.lostTls === undefined || this.#tls !== undefined || !mayWantTls(result);
    if (isFinal) return result;
    this.#tlsWanted = deferred(result);
    this.#events.onTlsWanted(this);
    return this.#tlsWanted;
  }

  #sendContent(): void {
    const connection = this.#live();
    const content = this.#content;
    if (content.writePieces(connection, this.#nowMs)) this.#sinceMs = this.#nowMs;
    // What is still buffered goes first; the rest follows on the drain event or on a tick.
    if (!content.isAtDot(connection)) return;
    if (!this.#ports.mayDot(this.#transaction.current())) return this.#failWithoutRight();
    if (this.#ports.tap.isOn) {
      const { contentBytes } = this.#transaction.current();
      this.#tell('note', `content of ${String(contentBytes)} octets, and its dot`);
    }
    // First the state: once a byte of the dot may be out, a lost connection means dotUnanswered.
    this.#transition(State.FINAL);
    if (content.isSmall) this.#sendWhole(connection);
    else content.writeDot(connection);
    content.end();
  }

  /** Its envelope was the first behind a dot of this peer. */
  get #isTrial(): boolean { return this.#isFollower && !this.#events.bearsFollowers; }

  #failSlow(): void {
    const { relay, contentBytesPerSecondMin: least } = this.#options;
    this.#events.onSlow();
    this.#fail(Trouble.TIMEOUT, `${relay} takes less than ${least} bytes a second of the content`);
  }

  /** Progress, each within its timeout, that comes to nothing in sensible time. */
  #endDripping(timeoutMs: number): void {
    if (!this.#isInEnvelope && this.#state !== State.FINAL) return;
    const { length } = this.#transaction.current().pending;
    const isFinal = this.#state === State.FINAL;
    const replyMs = isFinal ? LMTP_REPLY_MS_MAX : REPLY_MS_MAX;
    const mostMs = Math.max(timeoutMs, REPLIES_MS_MAX + length * replyMs);
    if (this.#nowMs - this.#repliesSinceMs < mostMs) return;
    const behind = isFinal ? 'the final dot' : 'the envelope';
    const tooLong = `takes longer than ${Math.round(mostMs / 1000)} s to answer ${behind}`;
    this.#fail(Trouble.TIMEOUT, `${this.#options.relay} ${tooLong}, while ${this.#doing()}`);
  }

  #failWithoutRight(): void {
    const text = `no right to deliver from this queue any more; nothing was handed to ${this.#options.relay}`;
    this.#fail(Trouble.NO_RIGHT, text);
  }

  /**
   * The refusal may be for an envelope that stood behind a dot, or for a dot with an envelope behind it: no
   * server that misreads that may fail a message.
   */
  #isForWhereItStood(code: number): boolean {
    if (this.#transaction.mailRefusal !== undefined) return false;
    return this.#isTrial || (this.#isFollower && code >= NOT_UNDERSTOOD && code <= OUT_OF_SEQUENCE);
  }

  #sendWhole(connection: Connection): void {
    const mayFollow = this.#isPipelined && this.#options.protocol === 'smtp';
    const next = mayFollow ? this.#events.onDot(this) : undefined;
    if (next !== undefined) prepare(this.#following, next, this.#peer, this.#options.relay);
    this.#content.putWhole(connection);
    const { buffer, tap } = this.#ports;
    const { length } = buffer;
    if (this.#following.openCount > 0) putEnvelope(buffer, this.#following, this.#peer, true);
    if (tap.isOn && buffer.length !== length) this.#tellPut(length);
    buffer.flush();
    // Nobody of it can be sent to this peer: it gets its results where nothing stands in front of it.
    if (next !== undefined && this.#following.openCount === 0) this.#giveBackFollowing(false);
  }

  #onFinalReply(code: number): void {
    const transaction = this.#transaction;
    if (code >= 300 && code < 400) return this.onBadReply(`reply ${code} to the final dot`);
    const isTrialBehind = this.#following.delivery !== undefined && !this.#events.bearsFollowers;
    if ((isTrialBehind || this.#hadTrialBehind) && !isPositive(code)) return this.#giveBack(undefined, true);
    const result = classifyReply(Stage.FINAL, code, this.#reader.text());
    if (code === 421) this.#isLast = true;
    // LMTP answers once for each accepted recipient, in order (RFC 2033 4.2).
    if (this.#options.protocol === 'lmtp') transaction.resolveNext(result);
    else transaction.resolveOpen(result);
    if (transaction.openCount > 0) return this.#transition(State.FINAL);
    if (this.#isLast) return this.#close();
    if (this.#following.delivery !== undefined) return this.#follow();
    this.#idle();
    this.#settle(false);
  }

  /** The dot is answered, the replies to the envelope behind it come next. */
  #follow(): void {
    const ended = this.#transaction;
    this.#transaction = this.#following;
    this.#following = ended;
    this.#wasKept = true;
    this.#isFollower = true;
    this.#onBegun();
    this.#events.onSettled(this, ended.current(), ended.end(), false);
  }

  #onBegun(): void {
    this.#transactions++;
    this.#hadTrialBehind = false;
    this.#isAnswered = false;
    this.#tlsWanted = undefined;
    this.#transition(State.MAIL);
  }

  #giveBackFollowing(isOdd: boolean): void {
    const { delivery } = this.#following;
    if (delivery === undefined) return;
    this.#following.end();
    this.#events.onStale(this, delivery, isOdd);
  }

  /** Nobody is accepted and no reply is owed: the transaction is over, the peer is told to forget it. */
  #endRefused(): void {
    const { mailRefusal } = this.#transaction;
    if (mailRefusal !== undefined) this.#transaction.resolveOpen(mailRefusal);
    this.#whyClosed = this.#tlsWanted;
    if (this.#tlsWanted !== undefined) return this.#close();
    this.#send(State.RESET, RSET);
    this.#settle(false);
  }

  /**
   * Some servers refuse a content half-way ("552 too large"). The dot was not sent: the refusal stands, the
   * rest can't be taken back.
   */
  #onEarlyReply(code: number): void {
    if (code < 400) return this.onBadReply(`reply ${code} before the final dot`);
    this.#transaction.resolveOpen(classifyReply(Stage.FINAL, code, this.#reader.text()));
    this.#close();
  }

  /** The peer does not want to talk, for whatever is to be sent. */
  #refuse(stage: Stage, code: number): void {
    if (code >= 200 && code < 400) return this.onBadReply(`reply ${code}`);
    this.#whyClosed = classifyReply(stage, code, this.#reader.text());
    this.#close();
  }

  /** Fails with the words of the last reply. */
  #failBy(trouble: Trouble): void { this.#fail(trouble, this.#said()); }

  /** The last reply; its codes alone while it may repeat a password. */
  #said(): string {
    const text = this.#reader.text();
    return this.#mayRepeatPassword ? `${text.slice(0, 3)} ${enhancedCode(text)}`.trimEnd() : text;
  }

  /** Also what comes right behind the reply to AUTH. */
  get #mayRepeatPassword(): boolean {
    if (this.#options.auth === undefined) return false;
    return this.#state === State.AUTH || (this.#state === State.IDLE && !this.#wasReady);
  }

  #fail(trouble: Trouble, text: string): void {
    const isAfterDot = this.#state === State.FINAL;
    const isUnanswered = this.#state === State.MAIL && this.#wasKept && !this.#isAnswered;
    const isGone = trouble === Trouble.LOST || (trouble === Trouble.TIMEOUT && this.#isFollower);
    const isOddEnd = trouble === Trouble.LOST || trouble === Trouble.TIMEOUT || trouble === Trouble.PROTOCOL;
    const isInTrial = this.#isTrial && isOddEnd && this.#isInEnvelope;
    if (isInTrial || (isUnanswered && isGone)) return this.#giveBack(undefined, this.#isTrial);
    const isOfTls = this.#isOfTls(trouble);
    if (isOfTls) this.#hasTlsFailed = true;
    const more = this.#state === State.HELO_ONLY ? `, behind this one to EHLO: ${this.#ehloReply}` : '';
    const result = classifyTrouble(isOfTls ? Trouble.TLS_FAILED : trouble, `${text}${more}`);
    if (trouble === Trouble.NO_RIGHT && this.#transaction.isWhole) return this.#giveBack(result);
    const isTurnedAway = trouble === Trouble.LOST && this.#transactions === 1 && this.#isInEnvelope;
    if (!this.#wasReady || isTurnedAway) this.#whyClosed = result;
    if (this.#transaction.delivery === undefined) return this.#close();
    this.#transaction.resolveOpen(this.#transaction.mailRefusal ?? result);
    this.#close(isAfterDot);
  }

  /** Lost while TLS came up. With TLS 1.3 a server may refuse it after the client has done its part. */
  #isOfTls(trouble: Trouble): boolean {
    const isLost = trouble === Trouble.LOST;
    switch (this.#state) {
      case State.STARTTLS: return isLost || trouble === Trouble.TIMEOUT || trouble === Trouble.PROTOCOL;
      case State.SECURING: return isLost || trouble === Trouble.TIMEOUT;
      case State.HELLO: return isLost && this.#tls !== undefined && this.#options.tls?.isFirst === false;
      default: return false;
    }
  }

  /** No attempt of the message. Without `why` the peer has seen nothing of it, or is `isOdd`. */
  #giveBack(why: RecipientResult | undefined, isOdd = false): void {
    const delivery = this.#transaction.current();
    this.#transaction.end();
    this.#shut();
    if (why === undefined) this.#events.onStale(this, delivery, isOdd);
    else this.#events.onNoRight(this, delivery, why);
    this.#giveBackFollowing(isOdd);
    this.#events.onClosed(this, undefined);
  }

  #close(dotUnanswered = false): void {
    this.#shut();
    if (this.#transaction.delivery !== undefined) this.#settle(dotUnanswered);
    this.#giveBackFollowing(!this.#events.bearsFollowers);
    this.#events.onClosed(this, this.#whyClosed);
  }

  #shut(): void {
    this.#transition(State.CLOSED);
    this.#owesIdle = false;
    this.#owesTls = false;
    this.#unsaid = NO_LINES;
    this.#reader.stop();
    this.#content.end();
    this.#connection?.destroy();
  }

  #settle(dotUnanswered: boolean): void {
    const delivery = this.#transaction.current();
    this.#events.onSettled(this, delivery, this.#transaction.end(), dotUnanswered);
  }

  #idle(): void {
    this.#transition(State.IDLE);
    this.#owesIdle = true;
  }

  #sendRcpt(): void {
    const { buffer } = this.#ports;
    const transaction = this.#transaction;
    buffer.start(this.#live());
    putRcptOf(buffer, transaction.recipient(transaction.awaited), this.#peer, transaction.isUtf8);
    if (this.#ports.tap.isOn) this.#tellPut(0);
    buffer.flush();
  }

  #send(state: State, command: string): void {
    this.#transition(state);
    if (this.#ports.tap.isOn) this.#tell('client', state === State.AUTH ? 'AUTH ***' : command);
    const buffer = this.#ports.buffer;
    buffer.start(this.#live());
    buffer.ascii(command);
    buffer.flush();
  }

  /** Whoever follows this session. */
  #tell(who: Speaker, text: string): void {
    this.#ports.tap.said(this.#options.relay, 0, who, text);
  }

  #tellPut(length: number): void {
    const bytes = this.#ports.buffer.putSince(length);
    this.#tell('client', utf8Text(bytes, 0, bytes.length) ?? '(no UTF-8)');
  }

  #tellReply(code: number): void {
    if (this.#mayRepeatPassword) return this.#tell('server', `${String(code)} ***`);
    const lines = this.#reader.lines();
    const last = lines.length - 1;
    const whole = lines.map((line, i) => `${String(code)}${i < last ? '-' : ' '}${line}`);
    this.#tell('server', whole.join('\r\n'));
  }

  #live(): Connection {
    invariant(this.#connection !== undefined, 'a session has its connection before anything happens to it');
    return this.#connection;
  }

  get #isInEnvelope(): boolean {
    return this.#state === State.MAIL || this.#state === State.RCPT || this.#state === State.DATA;
  }

  /** Of a transaction before its content. */
  #stage(): Stage {
    if (this.#state === State.MAIL) return Stage.MAIL;
    return this.#state === State.RCPT ? Stage.RCPT : Stage.DATA;
  }

  #doing(): string { return STATE_DOING[this.#state] ?? ''; }
  #transition(to: State): void {
    const from = this.#state;
    const isNextReply = from === to && (to === State.RCPT || to === State.FINAL);
    if (!isNextReply && !isValidTransition(from, to)) {
      invariant(false, `session goes from ${STATE_NAME[from] ?? ''} to ${STATE_NAME[to] ?? ''}`);
    }
    this.#state = to;
    this.#sinceMs = this.#nowMs;
    if (!isNextReply && (to === State.MAIL || to === State.FINAL)) this.#repliesSinceMs = this.#nowMs;
  }
}
