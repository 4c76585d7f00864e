/**
 * One SMTP session as its server (RFC 5321): bytes, ticks and outcomes in; replies and submissions out.
 * States and the diagram: session-states.ts.
 *
 * - Commands are in commands/: each returns an Effect, which #perform() carries out.
 * - What comes while nothing may be obeyed waits as a copy, in order; a client that sends still more is not
 *   read on (waiting-input.ts). So does the end of its side: it gets every reply to what it sent before.
 * - Replies made while one read is worked on leave in one write (RFC 2920 3.2). A client that does not read
 *   them is not listened to.
 * - Who pipelines more than COMMANDS_PER_TURN_MAX commands lets others have their turn in between.
 *
 * Owns the connection, the transaction under way, and what waits. Entries nest in one case only: a message
 * may be settled inside Reception.submit(). Pure. Not here: listening and TLS (listener.ts, platform/node).
 */
import { joined } from '../../../base/joined.js';
import { invariant } from '../../../base/invariant.js';
import { formatMessageId } from '../../../base/text-id.js';
import { latin1Bytes } from '../../../base/utf8.js';
import type { ServerConnection, ServerHandlers, TlsFacts } from '../../../platform/transport.js';
import { COMMITTED, NO_REPLY } from '../../mail-types.js';
import type { SubmissionOutcome } from '../../mail-types.js';
import { shownCommand } from '../../../smtp/session-tap.js';
import type { Speaker } from '../../../smtp/session-tap.js';
import type { Account } from '../auth/directory.js';
import type { GiveUp, Verdict } from '../auth/password-checks.js';
import type { Exchange } from '../auth/sasl.js';
import { maySendFrom, senderKeyOf } from '../auth/users.js';
import { renameOwnResults } from '../sender-checks/own-results.js';
import { resultWords, resultsField } from '../sender-checks/results-field.js';
import {
  RESPONSE_OCTETS_MAX, authAbandoned, authProven, authResponse, authVerdict, responseText,
} from '../commands/auth.js';
import { OVERSIZE_PATIENCE } from '../commands/bdat.js';
import { commandText } from '../commands/command-line.js';
import { admissionOfAll, lookedUp, mayRelay } from '../commands/recipient.js';
import { commandOf } from '../commands/verbs.js';
import { ContentScan, FIELD_MESSAGE_ID } from '../content/content-scan.js';
import { madeMessageId, tlsClause } from '../content/trace-header.js';
import { contentRefusal, lateContent, outcomeRefusal } from '../content/verdict.js';
import { clientKey } from '../limits/client-counts.js';
import type { Greeted } from '../limits/greeting.js';
import type { Reader } from '../limits/intake.js';
import type { RejectStage } from '../options.js';
import { readProxyHeader } from '../policy/proxy-header.js';
import type { Desk } from './desk.js';
import type { Chunk, InboundDialog, NamedClient, WantedRecipient } from './dialog.js';
import { HeldMessage } from './held-message.js';
import { LineReader, NEEDS_MORE, TOO_LONG } from './line-reader.js';
import * as replies from './replies.js';
import { Then } from './replies.js';
import type { Effect } from './replies.js';
import { ReplyWriter } from './reply-writer.js';
import {
  AT_REST, BEFORE_COMMANDS, ENDING, IN_COMMAND, LISTENING, STATE_NAME, State, isIn,
  isValidTransition,
} from './session-states.js';
import type { MailTransaction } from './transaction.js';
import { WaitingInput } from './waiting-input.js';

/**
 * Verb, path of 256, ORCPT of 500 and the other parameters, with room for extensions (RFC 5321 4.5.3.1.4).
 */
const COMMAND_OCTETS_MAX = 2048;
/** For all questions about one recipient: clients wait for five minutes (RFC 5321 4.5.3.2.3). */
const LOOK_UP_MS = 60_000;
/** For the check of a password to begin; clients that wait for an AUTH give up after minutes. */
const CHECK_LINE_MS = 60_000;
/** Commands of one client obeyed in one turn, so that a read full of them holds nobody up. */
const COMMANDS_PER_TURN_MAX = 100;

const NOTHING = new Uint8Array(0);

export class ServerSession implements ServerHandlers, InboundDialog, Greeted, Reader {
  remoteAddress: string;
  remotePort: number;
  peerAddress: string;
  named: NamedClient | undefined;
  isTrusted = false;
  proxy = '';
  tlsVersion = '';
  certificate = '';
  certificateWhy = '';
  helo = '';
  isExtended = false;
  traceStart: Uint8Array = NOTHING;
  transaction: MailTransaction | undefined;
  chunk: Chunk | undefined;
  lookup: WantedRecipient | undefined;
  blockedBy: InboundDialog['blockedBy'] = '';
  clientKey = '';
  user = '';
  account: InboundDialog['account'];
  exchange: Exchange | undefined;
  password: InboundDialog['password'];
  authFailures = 0;

  readonly #desk: Desk;
  readonly #connection: ServerConnection;
  readonly #lines = new LineReader();
  readonly #scan: ContentScan;
  readonly #waiting: WaitingInput;
  readonly #replies: ReplyWriter;
  #state: State = State.PROXY;
  /** What came along with the connection has been read. */
  #isOpen = false;
  /** It is due, but for what blocklists say. */
  #isGreetingOwed = false;
  /** XCLIENT has named the client. */
  #isProxied = false;
  /** TLS has begun, and does not stand yet. */
  #isHandshaking = false;
  /** Why that ended, where the connection does not know it. */
  #handshakeWhy = '';
  /** For the Received fields of this session. */
  #tlsClause = '';
  /** The beginning of a PROXY header. */
  #proxyBytes: Uint8Array = NOTHING;
  /** Bytes are being worked on: what is settled meanwhile goes on by itself. */
  #isWorking = false;
  /** It has had its share of this turn. */
  #isYielding = false;
  /** Not read: more came than may be worked on. */
  #isPaused = false;
  /** Not read: it stands in the line of the intake. */
  #isHeld = false;
  /** The client has ended its side. */
  #isInputOver = false;
  /** What is to be done with the connection when the read is worked off. */
  #owed: typeof Then.STAY | typeof Then.SECURE | typeof Then.LEAVE | typeof Then.FAREWELL = Then.STAY;
  /** Commands that were refused. */
  #refusals = 0;
  /** Commands since the last message that brought none nearer. */
  #idleCommands = 0;
  /** Coarse time of the last complete command or reply: the client owes us something since then. */
  #waitingSinceMs: number;
  #contentSinceMs = 0;
  /** Octets of the content that have come since then. */
  #contentOctets = 0;
  /** Of content, and not counted by limits of data yet. */
  #uncountedOctets = 0;
  /** Of the chunk, those that are still to come. */
  #chunkLeft = 0;
  /** A password is checked: what its client's end does to that. It holds the password, and goes with it. */
  #giveUpCheck: GiveUp | undefined;
  /** Whose it is said to be. */
  #checkedUser = '';
  /** What hooks are asked about, or is signed; its memory is theirs until they answer. */
  #held: HeldMessage | undefined;

  constructor(desk: Desk, connection: ServerConnection) {
    this.#desk = desk;
    this.#scan = new ContentScan(desk.views);
    this.#connection = connection;
    this.remoteAddress = connection.remoteAddress;
    this.remotePort = connection.remotePort;
    this.peerAddress = connection.remoteAddress;
    this.#waiting = new WaitingInput(desk.ports.reception);
    this.#replies = new ReplyWriter(connection);
    const refusal = desk.connectionOpened(this);
    this.#waitingSinceMs = desk.nowMs;
    if (refusal !== undefined) this.#refuseConnection(refusal);
    else if (desk.balancers.isEmpty) this.#onClientKnown(this.remoteAddress, true);
    else if (!desk.balancers.has(this.remoteAddress)) this.#refuseConnection(replies.NOT_A_BALANCER);
  }

  get state(): State { return this.#state; }
  get #isAwaitingCommand(): boolean { return this.#state === State.COMMAND; }
  get isGreetable(): boolean { return this.#state === State.GREETING; }

  // ---- the connection

  onOpen(): void {
    this.#isOpen = true;
    if (this.isGreetable) this.#desk.greeting.prepare(this, this.clientKey, this.isTrusted);
  }

  greet(): void {
    if (!this.isGreetable) return;
    this.#isGreetingOwed = this.blockedBy === undefined;
    if (this.#isGreetingOwed) return;
    this.#transition(State.COMMAND);
    this.#waitingSinceMs = this.#desk.nowMs;
    this.#reply(this.#desk.hello.greeting);
  }

  onData(bytes: Uint8Array): void {
    if (this.#state === State.PROXY) return this.#onProxyBytes(bytes);
    // TLS comes first: the client begins it.
    if (this.#state === State.SECURING) return this.#beginTls(bytes);
    if (this.#state === State.GREETING && !this.#isProxied) this.#onEarlyTalk();
    if (isIn(ENDING, this.#state)) return;
    if (!this.#waiting.isEmpty || this.#waiting.isOverfull || !this.#mayWork) {
      this.#waiting.keep(bytes, 0);
      if (!this.#isPaused) this.#connection.pause();
      this.#isPaused = true;
      return;
    }
    const at = this.#work(bytes, 0);
    this.#waiting.keep(bytes, at);
    this.#afterWork();
  }

  onDrain(): void {
    this.#goOn();
  }

  onEnd(): void {
    this.#isInputOver = true;
    // Nothing that it could do behind an AUTH is to come.
    const isInVain = this.#waiting.isEmpty && this.#hasGivenUpCheck();
    if (isInVain) this.#perform(authAbandoned(this, this.#desk, this.#checkedUser), 'auth', '');
    if (!this.#isWorking) this.#goOn();
  }

  onSecure(facts: TlsFacts): void {
    if (this.#state !== State.SECURING) return;
    this.#isHandshaking = false;
    this.tlsVersion = facts.version;
    this.#tlsClause = tlsClause(facts.cipher);
    if (this.#desk.tap.isOn) this.#tell('note', `TLS stands: ${facts.version}`);
    // A proxy's certificate says nothing of the client that it has named.
    if (!this.#isProxied) this.#onCertificate(facts);
    this.#waitingSinceMs = this.#desk.nowMs;
    if (!this.#desk.options.isTlsFirst) return this.#transition(State.COMMAND);
    this.#transition(State.GREETING);
    // Who can do TLS waits for its greeting.
    this.greet();
  }

  #onCertificate({ peerNames, unverified }: TlsFacts): void {
    const { relayCertificates } = this.#desk.options;
    const relay = peerNames.find((name) => relayCertificates.includes(name));
    if (relay !== undefined) this.isTrusted = true;
    this.certificate = relay ?? peerNames[0] ?? unverified?.name ?? '';
    if (relay !== undefined || this.certificate === '') return;
    this.certificateWhy = unverified === undefined ? 'its certificate is not in relay_certificates'
      : `its certificate does not count: ${unverified.why}`;
  }

  onClose(reason: string): void {
    const { log } = this.#desk.ports;
    log.debug('smtp', 'an SMTP connection has ended', { client: this.remoteAddress, why: reason });
    if (this.#desk.tap.isOn) this.#tell('note', `closed: ${reason}`);
    if (!this.#isHandshaking) this.#tellLost(reason);
    else if (!this.#desk.isClosing) {
      const failed = replies.tlsFailed(this.#handshakeWhy === '' ? reason : this.#handshakeWhy);
      this.#desk.rejected('connect', failed, this, '');
    }
    // A message that was submitted is the gateway's: what its client was never told is not undone (RFC 5321
    // 4.2.5).
    if (this.#held !== undefined) this.#held.isAbandoned = true;
    else if (this.#state !== State.ANSWERING) this.endTransaction();
    if (this.#hasGivenUpCheck()) this.#countUnheard(authAbandoned(this, this.#desk, this.#checkedUser));
    this.#transition(State.CLOSED);
    this.#waiting.clear();
    this.#lines.reset();
    this.#desk.connectionClosed(this, this.clientKey);
  }

  /** 421 and close, unless a message is on its way: its answer comes first. */
  shutDown(): void {
    if (this.#state === State.SECURING || this.#state === State.PROXY) this.destroy();
    else if (isIn(AT_REST, this.#state)) this.#perform(replies.SHUTTING_DOWN, 'command', '');
  }

  destroy(): void {
    this.#connection.destroy();
  }

  /** Once a second: whether the client has let a time go by. */
  tick(nowMs: number): void {
    if (this.#isHeld) return;
    const { options } = this.#desk;
    const sinceMs = nowMs - this.#waitingSinceMs;
    if (this.#isInContent) {
      const late = lateContent(nowMs - this.#contentSinceMs, this.#contentOctets, options);
      if (late !== undefined) this.#perform(late, 'data', '');
    } else if (this.#state === State.COMMAND || this.#state === State.RESPONSE) {
      if (sinceMs > options.idleMs) this.#perform(replies.IDLE, 'command', '');
    } else if (this.#state === State.LOOKING_UP) {
      if (sinceMs > LOOK_UP_MS) this.#giveUpLookUp();
    } else if (this.#state === State.CHECKING) {
      if (sinceMs > CHECK_LINE_MS && this.#hasGivenUpCheck()) this.#onChecked(this.#checkedUser, 'later');
    } else if (this.#state === State.SECURING) {
      if (sinceMs <= options.handshakeMs) return;
      this.#handshakeWhy = 'it took too long';
      this.destroy();
    } else if (this.#state === State.PROXY && sinceMs > options.proxyMs) {
      const hasBegun = this.#proxyBytes.length > 0;
      const why = hasBegun ? 'the PROXY header never ended' : 'no PROXY header came in time';
      this.#refuseConnection(replies.badProxyHeader(why));
    }
  }

  /** Also between two chunks: else a client could take a day for each. */
  get #isInContent(): boolean {
    if (this.#state === State.CONTENT || this.#state === State.CHUNK) return true;
    const { transaction } = this;
    return this.#state === State.COMMAND && transaction?.isChunked === true && !transaction.hasFailed;
  }

  // ---- whose connection it is

  /**
   * Gone as soon as that is out: a wait for the client's end would let one client, with refused connections
   * alone, keep every other one out. Where TLS comes first there are no words before it stands (RFC 8314
   * 3.3): the client would take them for TLS. The log has the reason.
   */
  #refuseConnection(refusal: Effect): void {
    const reply = this.#desk.options.isTlsFirst ? '' : refusal.reply;
    this.#perform({ ...refusal, reply, then: Then.FAREWELL }, 'connect', '');
  }

  #onProxyBytes(bytes: Uint8Array): void {
    const all = joined([this.#proxyBytes, bytes]);
    const header = readProxyHeader(all);
    if (header === undefined) {
      this.#proxyBytes = all;
      return;
    }
    this.#proxyBytes = NOTHING;
    if (typeof header === 'string') return this.#refuseConnection(replies.badProxyHeader(header));
    const isNamed = header.own === '';
    this.proxy = header.own;
    this.remotePort = header.port;
    this.#onClientKnown(isNamed ? header.address : this.remoteAddress, isNamed, all.subarray(header.octets));
  }

  /**
   * `isClient`: else it is a balancer's own connection. That is granted nothing, and limits of clients do not
   * count it: health checks that ran into one would have the balancer give us up. `behind`: what came behind
   * the header that said so.
   */
  #onClientKnown(address: string, isClient: boolean, behind: Uint8Array = NOTHING): void {
    const desk = this.#desk;
    this.remoteAddress = address;
    this.peerAddress = isClient ? address : '';
    this.isTrusted = isClient && desk.policy.isTrusted(address);
    this.#askBlocklists();
    // A proxy's connections are those of the clients that it will name.
    if (isClient && !desk.xclientPeers.has(address)) {
      this.clientKey = clientKey(address);
      const refusal = desk.clientKnown(this.clientKey, this);
      if (refusal !== undefined) return this.#refuseConnection(refusal);
    }
    this.#waitingSinceMs = desk.nowMs;
    this.#transition(desk.options.isTlsFirst ? State.SECURING : State.GREETING);
    if (behind.length > 0) this.onData(behind);
    else if (this.#isOpen) this.onOpen();
  }

  /** Who may relay here is on none. The greeting waits for the answer, which is there before RCPT then. */
  #askBlocklists(): void {
    const { options, ports } = this.#desk;
    this.blockedBy = '';
    if (options.blocklists.length === 0 || ports.blocklists === undefined) return;
    // The address of a proxy says nothing of whom it brings.
    if (this.isTrusted || this.proxy !== '') return;
    this.blockedBy = undefined;
    const address = this.remoteAddress;
    ports.blocklists.look(address, options.blocklists, (blocked) => {
      // XCLIENT has named another client meanwhile.
      if (this.remoteAddress !== address || this.proxy !== '') return;
      this.blockedBy = blocked;
      if (!this.#isGreetingOwed) return;
      this.greet();
      this.#goOn();
    });
  }

  becomeClient(named: NamedClient, isAnother: boolean): Effect | undefined {
    const desk = this.#desk;
    const { address, port } = named;
    this.#isProxied = true;
    this.named = named;
    this.helo = '';
    this.isExtended = false;
    this.user = '';
    this.account = undefined;
    this.certificate = '';
    this.certificateWhy = '';
    this.proxy = address === '' ? 'unavailable' : '';
    this.isTrusted = address !== '' && desk.policy.isTrusted(address);
    this.remoteAddress = address === '' ? this.peerAddress : address;
    this.remotePort = port;
    this.#askBlocklists();
    if (!isAnother) return undefined;
    const before = this.clientKey;
    this.clientKey = address === '' || address === this.peerAddress ? '' : clientKey(address);
    return desk.clientChanged(before, this.clientKey, this);
  }

  // ---- input

  get #mayWork(): boolean {
    return isIn(LISTENING, this.#state) && !this.#isYielding && !this.#isHeld && !this.#connection.isFull;
  }

  #onEarlyTalk(): void {
    if (this.#desk.options.greetingDelayMs === 0) return this.greet();
    this.#desk.greeting.onEarlyTalk(this.clientKey);
    this.#perform(replies.TALKED_TOO_SOON, 'command', '');
  }

  /** Works on chunk[at ..); returns how far it came. */
  #work(chunk: Uint8Array, from: number): number {
    this.#isWorking = true;
    this.#replies.begin();
    let at = from;
    let commands = 0;
    while (at < chunk.length) {
      if (this.#state === State.COMMAND || this.#state === State.RESPONSE) {
        if (commands++ === COMMANDS_PER_TURN_MAX || this.#desk.isTurnSpent) {
          this.#isYielding = true;
          this.#desk.goOnLater(this);
          break;
        }
        const next = this.#lines.next(chunk, at, this.#lineOctetsMax);
        if (next === TOO_LONG) this.#perform(replies.LINE_TOO_LONG, 'command', '');
        if (next === TOO_LONG || next === NEEDS_MORE) at = chunk.length;
        else {
          at = next;
          if (this.#state === State.COMMAND) this.#onCommand();
          else this.#onResponse();
        }
      } else if (this.#state === State.CONTENT) {
        at = this.#onContent(chunk, at);
      } else if (this.#state === State.CHUNK) {
        at = this.#onChunk(chunk, at);
      } else {
        break;
      }
    }
    this.#replies.end();
    this.#isWorking = false;
    return at;
  }

  /** What the commands of a read have brought about and could not be done among them. */
  #afterWork(): void {
    const owed = this.#owed;
    this.#owed = Then.STAY;
    if (owed === Then.SECURE) this.#secure();
    else if (owed !== Then.STAY) this.#close(owed === Then.FAREWELL);
    else if (this.#isInputOver && this.#waiting.isEmpty && this.#mayWork) this.#leaveAsClientDid();
  }

  /** Works on what waits, as far as it may. */
  #goOn(): void {
    if (this.#isWorking) return;
    for (let first = this.#waiting.first; first !== undefined && this.#mayWork; first = this.#waiting.first) {
      this.#waiting.advance(this.#work(first, this.#waiting.at));
    }
    if (this.#waiting.isEmpty && this.#mayWork) {
      if (this.#waiting.isOverfull) this.#perform(replies.NO_MEMORY_TO_WAIT, 'command', '');
      else this.#resume();
    }
    if (this.#isInputOver && isIn(BEFORE_COMMANDS, this.#state)) this.#leaveAsClientDid();
    else this.#afterWork();
  }

  /** Its turn has come again. */
  takeTurn(): void {
    this.#isYielding = false;
    this.#goOn();
  }

  #resume(): void {
    if (!this.#isPaused) return;
    this.#isPaused = false;
    if (!this.#isHeld) this.#connection.resume();
  }

  // ---- the intake

  stopReading(): void {
    this.#isHeld = true;
    this.#connection.pause();
  }

  startReading(): boolean {
    if (!this.#isHeld || isIn(ENDING, this.#state)) return false;
    this.#isHeld = false;
    // It was our turn, not the client's.
    this.#waitingSinceMs = this.#desk.nowMs;
    if (!this.#isPaused) this.#connection.resume();
    this.#goOn();
    return true;
  }

  // ---- commands

  #reply(text: string): void {
    if (this.#desk.tap.isOn) this.#tell('server', replies.shownReply(text));
    this.#replies.line(text);
  }

  /** Whoever follows this session. */
  #tell(who: Speaker, text: string): void {
    this.#desk.tap.said(this.remoteAddress, this.remotePort, who, text);
  }

  #onCommand(): void {
    this.#waitingSinceMs = this.#desk.nowMs;
    const { bytes, from, to } = this.#lines;
    if (++this.#idleCommands > this.#desk.options.idleCommandsMax) {
      this.#perform(replies.TOO_MANY_COMMANDS, 'command', '');
      return;
    }
    const text = commandText(bytes, from, to, this.#desk.ports.latin1Text);
    if (this.#desk.tap.isOn) {
      this.#tell('client', text === undefined ? '(control characters)' : shownCommand(text));
    }
    if (text === undefined) {
      this.#perform(replies.CONTROL_CHARACTER, 'command', '');
      return;
    }
    const { stage, run } = commandOf(text);
    this.#perform(run(this, this.#desk, text), stage, text);
  }

  /** `text`: the command, or ''. */
  #perform(effect: Effect, stage: RejectStage, text: string): void {
    if (isIn(IN_COMMAND, this.#state) && effect.then === Then.STAY) this.#transition(State.COMMAND);
    // A list with dead addresses is still a list: refusalsMax bounds it.
    const isOfList = stage === 'rcpt' && this.transaction !== undefined;
    if (effect.isProgress || (isOfList && effect.then === Then.STAY)) this.#idleCommands--;
    if (effect.reason !== '') this.#desk.rejected(stage, effect, this, text);
    if (effect.reply !== '') this.#reply(effect.reply);
    // We close by 421 only (RFC 5321 3.8).
    const isAbrupt = effect.then === Then.LEAVE && effect.reply !== '' && !effect.reply.startsWith('421');
    if (isAbrupt) this.#reply(replies.CLOSED_HERE);
    const isRefused = effect.reason !== '' && effect.then === Then.STAY;
    const isOneTooMany = effect.reason !== '' && stage !== 'connect' && this.#isOneTooMany(effect);
    if (isRefused && isOneTooMany) {
      return this.#perform(replies.TOO_MANY_ERRORS, 'command', '');
    }
    if (isRefused && ++this.#refusals > this.#desk.options.refusalsMax) {
      return this.#perform(replies.TOO_MANY_REFUSALS, 'command', '');
    }
    switch (effect.then) {
      case Then.STAY:
        return;
      case Then.CONTENT:
        this.#beginContent();
        return this.#transition(State.CONTENT);
      case Then.CHUNK:
        return this.#beginChunk();
      case Then.RESPONSE:
        if (this.#state !== State.RESPONSE) this.#transition(State.RESPONSE);
        return;
      case Then.CHECK:
        return this.#check();
      case Then.LOOK_UP:
        return this.#lookUp();
      case Then.GREET:
        this.#transition(State.GREETING);
        return this.greet();
      case Then.SECURE:
        // All that was said in clear is forgotten (RFC 3207 4.2).
        this.endTransaction();
        this.helo = '';
        this.user = '';
        this.account = undefined;
        if (this.named !== undefined) this.named = { ...this.named, login: '' };
        this.#owed = effect.then;
        return this.#transition(State.SECURING);
      case Then.FAREWELL:
      case Then.LEAVE:
        return this.#leave(effect.then);
    }
  }

  get #lineOctetsMax(): number {
    const mayAuthenticate = this.#desk.options.isSubmission && this.user === '' && this.tlsVersion !== '';
    return mayAuthenticate ? RESPONSE_OCTETS_MAX : COMMAND_OCTETS_MAX;
  }

  #onResponse(): void {
    this.#waitingSinceMs = this.#desk.nowMs;
    const { bytes, from, to } = this.#lines;
    if (this.#desk.tap.isOn) this.#tell('client', '***');
    this.#perform(authResponse(this, this.#desk, responseText(bytes, from, to)), 'auth', '');
  }

  #check(): void {
    const { password } = this;
    const { authenticator } = this.#desk.ports;
    invariant(password !== undefined && authenticator !== undefined, 'an AUTH has come to a password');
    this.password = undefined;
    this.#checkedUser = password.user;
    this.#giveUpCheck = undefined;
    this.#transition(State.CHECKING);
    const { user } = password;
    const giveUp = authenticator.check(user, password.password, this.clientKey, (verdict, account) => {
      this.#giveUpCheck = undefined;
      if (this.#state === State.CHECKING) this.#onChecked(user, verdict, account);
      else this.#onUnheard(user, verdict);
    });
    // A verdict at once may have led to the next check.
    if (this.#state === State.CHECKING) this.#giveUpCheck ??= giveUp;
  }

  #onChecked(user: string, verdict: Verdict, account?: Account): void {
    this.#waitingSinceMs = this.#desk.nowMs;
    this.#perform(this.#verdictOf(user, verdict, account), 'auth', '');
    if (this.#desk.isClosing) this.shutDown();
    this.#goOn();
  }

  #verdictOf(user: string, verdict: Verdict, account: Account | undefined): Effect {
    if (verdict !== 'yes') return authVerdict(this, this.#desk, user, verdict);
    invariant(account !== undefined, 'a right password is somebody\'s');
    return authProven(this, this.#desk, account);
  }

  /** False: none is waited for, or it has begun. */
  #hasGivenUpCheck(): boolean {
    const giveUp = this.#giveUpCheck;
    this.#giveUpCheck = undefined;
    return this.#state === State.CHECKING && giveUp?.() === true;
  }

  /** The client has gone. */
  #onUnheard(user: string, verdict: Verdict): void {
    if (verdict !== 'yes') this.#countUnheard(authVerdict(this, this.#desk, user, verdict));
  }

  /** What a client that has gone would have been told: a guess counts all the same. */
  #countUnheard(effect: Effect): void {
    this.#desk.rejected('auth', effect, this, '');
    this.#isOneTooMany(effect);
  }

  #isOneTooMany(effect: Effect): boolean {
    return this.#desk.isOneTooMany(effect, this, this.transaction?.senderKey ?? '');
  }

  #lookUp(): void {
    const { lookup } = this;
    const { recipients } = this.#desk.ports;
    invariant(lookup !== undefined && recipients?.learn !== undefined, 'a RCPT waits for its table');
    if (this.#state !== State.LOOKING_UP) this.#transition(State.LOOKING_UP);
    recipients.learn(lookup.keys, (isFull = false) => {
      // Its time may have been over, and another RCPT waits.
      if (this.#state !== State.LOOKING_UP || this.lookup !== lookup) return;
      this.#perform(lookedUp(this, this.#desk, isFull), 'rcpt', lookup.text);
      if (this.#isAwaitingCommand) this.#waitingSinceMs = this.#desk.nowMs;
      if (this.#desk.isClosing) this.shutDown();
      this.#goOn();
    });
  }

  #giveUpLookUp(): void {
    const text = this.lookup?.text ?? '';
    this.lookup = undefined;
    this.#waitingSinceMs = this.#desk.nowMs;
    this.#perform(replies.TABLE_UNREADABLE, 'rcpt', text);
    this.#goOn();
  }

  endTransaction(): void {
    this.#countData();
    this.transaction?.release();
    this.transaction = undefined;
    this.lookup = undefined;
  }

  // ---- content

  #beginContent(): void {
    this.#scan.reset();
    this.#contentSinceMs = this.#desk.nowMs;
    this.#contentOctets = 0;
  }

  #beginChunk(): void {
    const { chunk, transaction } = this;
    invariant(chunk !== undefined, 'a chunk was told');
    if (transaction?.isChunked !== true) this.#beginContent();
    if (transaction !== undefined) transaction.isChunked = true;
    this.#chunkLeft = chunk.octets;
    this.#transition(State.CHUNK);
    if (chunk.octets === 0) this.#onChunkEnd();
  }

  /** Takes octets of the chunk from read[at ..); returns the index behind them. */
  #onChunk(read: Uint8Array, at: number): number {
    const to = Math.min(read.length, at + this.#chunkLeft);
    this.#chunkLeft -= to - at;
    this.#contentOctets += to - at;
    this.#uncountedOctets += to - at;
    const { chunk, transaction } = this;
    if (chunk?.refusal === undefined && transaction !== undefined) {
      this.#scan.scanCounted(read, at, to);
      const isLast = chunk?.isLast === true && this.#chunkLeft === 0;
      transaction.content.append(read, at, to, isLast && !this.#isHeldWhole);
      if (this.#scan.faults !== 0) transaction.content.release();
    }
    if (this.#chunkLeft === 0) this.#onChunkEnd();
    return to;
  }

  #onChunkEnd(): void {
    const { chunk, transaction } = this;
    this.chunk = undefined;
    const isWhole = chunk?.isLast === true && chunk.refusal === undefined;
    if (isWhole && !this.#scan.endCounted()) transaction?.content.endLine();
    const refusal = chunk?.refusal ?? this.#refusalOfContent(transaction, isWhole);
    // As DATA: a message that has not ended does not stand in its own way.
    if (isWhole || refusal !== undefined) this.#countData();
    if (refusal !== undefined) {
      this.#transition(State.COMMAND);
      this.#perform(refusal, 'data', '');
      transaction?.content.release();
      if (transaction !== undefined) transaction.hasFailed = true;
      if (chunk?.isLast === true) this.endTransaction();
      return this.#afterContent();
    }
    if (isWhole && transaction !== undefined) return this.#submit(transaction);
    this.#transition(State.COMMAND);
    this.#reply(replies.chunkTaken(chunk?.octets ?? 0));
    this.#afterContent();
  }

  #refusalOfContent(transaction: MailTransaction | undefined, isWhole: boolean): Effect | undefined {
    if (transaction === undefined) return undefined;
    const refusal = contentRefusal(this.#scan, transaction.content, isWhole, this.#desk.options);
    if (refusal !== undefined || !isWhole) return refusal;
    const { rates } = this.#desk.ports;
    // Other connections may have brought all that may come in this minute.
    const isTooMuch = rates?.hasDoneAll('data', this, transaction.senderKey, this.#desk.nowMs) === true;
    if (isTooMuch) return replies.TOO_MUCH_DATA;
    const isTlsUnasked = transaction.leaveTlsUnasked(this.#scan, this.#desk.ports.router);
    return isTlsUnasked ? admissionOfAll(transaction, this.#desk) : undefined;
  }

  /** Also what was cut off before its end. */
  #countData(): void {
    const octets = this.#uncountedOctets;
    this.#uncountedOctets = 0;
    if (octets === 0) return;
    if (this.#desk.tap.isOn) this.#tell('note', `${String(octets)} octets of content`);
    this.#desk.ports.rates?.did('data', octets, this, this.transaction?.senderKey ?? '', this.#desk.nowMs);
  }

  /** Takes content from chunk[at ..); returns the index behind what belongs to it. */
  #onContent(chunk: Uint8Array, at: number): number {
    const { transaction } = this;
    invariant(transaction !== undefined, 'content belongs to a transaction');
    const scan = this.#scan;
    const { content } = transaction;
    const next = scan.scan(chunk, at);
    this.#contentOctets += next - at;
    this.#uncountedOctets += next - at;
    content.append(chunk, at, scan.contentEnd, scan.ended && !this.#isHeldWhole);
    // A message refused anyhow must not hold memory for its rest.
    if (scan.faults !== 0) content.release();
    if (scan.ended) this.#onContentEnd(transaction);
    else if (content.bytes > this.#desk.options.messageBytesMax * OVERSIZE_PATIENCE + COMMAND_OCTETS_MAX) {
      this.#perform(replies.FAR_TOO_BIG, 'data', '');
    }
    return next;
  }

  #onContentEnd(transaction: MailTransaction): void {
    const refusal = this.#refusalOfContent(transaction, true);
    this.#countData();
    if (refusal === undefined) this.#submit(transaction);
    else this.#refuseMessage(refusal);
  }

  #submit(transaction: MailTransaction): void {
    const { ports, options, date, trace } = this.#desk;
    const id = ports.reception.nextMessageId();
    const only = transaction.namedCount === 1 ? transaction.namedRecipient : '';
    const [idText, now] = [formatMessageId(id), date.now()];
    let header = trace.field(this.traceStart, transaction.protocol, idText, only, this.#tlsClause, now);
    if (options.isSubmission) {
      header = trace.addMissing(this.#scan.fields, idText, options.hostName, now);
      const isMade = (this.#scan.fields & FIELD_MESSAGE_ID) === 0;
      if (isMade) transaction.messageIdField = madeMessageId(idText, options.hostName);
    }
    transaction.receivedMs = ports.clock.nowMs();
    if (this.#isHeldWhole) this.#judge(new HeldMessage(transaction, id, header, this, options.hostName));
    else this.#handOver(transaction, id, header);
  }

  /** One that checks, hooks or the signer make wait needs its own copy of the last piece too. */
  get #isHeldWhole(): boolean {
    const { hooks, signer } = this.#desk.ports;
    const isJudged = hooks !== undefined || this.#desk.options.authservId !== '';
    return isJudged || (signer?.isOn === true && mayRelay(this));
  }

  #handOver(transaction: MailTransaction, id: number, prefix: Uint8Array): void {
    transaction.complete(id, prefix, this.#scan, this.#desk.ports);
    this.#transition(State.ANSWERING);
    this.#desk.submit(transaction);
    transaction.forgetContent();
  }

  #judge(held: HeldMessage): void {
    this.#transition(State.JUDGING);
    if (!held.transaction.content.reservePrefix(held.prefix.length)) {
      return this.#refuseMessage(replies.NO_MEMORY_NOW);
    }
    this.#held = held;
    const { options: { authservId }, ports: { senderChecks } } = this.#desk;
    if (authservId === '') return this.#askHooks(held);
    // Mail of our own comes from anywhere, and is not signed yet.
    if (senderChecks === undefined || mayRelay(this)) return this.#takeOwnName(held, NOTHING);
    senderChecks.check(held, held.pieces, (verdicts) => {
      held.transaction.authentication = resultWords(verdicts);
      this.#takeOwnName(held, latin1Bytes(resultsField(authservId, verdicts)));
    });
  }

  /** Signatures were judged by the bytes as they came: now nothing of a stranger's may bear our name. */
  #takeOwnName(held: HeldMessage, results: Uint8Array): void {
    if (!this.#mayGoOn(held, undefined, results)) return;
    if (results.length > 0) held.addAbove(results);
    const { options: { authservId }, ports } = this.#desk;
    const renamed = renameOwnResults(held.pieces, authservId, ports);
    if (renamed === 'too-long') return void this.#mayGoOn(held, replies.HEADER_TOO_LONG, NOTHING);
    if (renamed !== undefined) {
      const { octets, piece, at, count } = renamed;
      ports.metrics.resultsRenamed(count);
      if (!held.transaction.content.replaceStart(octets, piece, at)) {
        return void this.#mayGoOn(held, replies.NO_MEMORY_NOW, NOTHING);
      }
    }
    this.#askHooks(held);
  }

  #askHooks(held: HeldMessage): void {
    const { hooks } = this.#desk.ports;
    if (hooks === undefined) this.#sign(held);
    else hooks.judge(held, (refusal, fields) => { this.#onVerdict(held, refusal, fields); });
  }

  #onVerdict(held: HeldMessage, refusal: Effect | undefined, fields: Uint8Array): void {
    if (!this.#mayGoOn(held, refusal, fields)) return;
    held.addFields(fields);
    this.#sign(held);
  }

  /** Last of all: a signature covers what others put in front. It stands above them. */
  #sign(held: HeldMessage): void {
    const { signer, toAscii } = this.#desk.ports;
    if (signer?.isOn !== true || !mayRelay(this)) return this.#release(held, NOTHING);
    // Also on a trusted network: who has shown to be one user is no other.
    const { user, addresses } = held.transaction;
    const mayUse = (address: string): boolean => (user === '' ? this.isTrusted
      : addresses === undefined || maySendFrom(addresses, senderKeyOf(address, toAscii)));
    signer.sign(held, mayUse, (refusal, fields) => {
      if (this.#mayGoOn(held, refusal, fields)) this.#release(held, fields);
    });
  }

  #release({ transaction, messageId, prefix }: HeldMessage, above: Uint8Array): void {
    this.#held = undefined;
    this.#handOver(transaction, messageId, above.length === 0 ? prefix : joined([above, prefix]));
  }

  /** Else its client has gone or is told why, and all of it is over. `fields` come to the prefix. */
  #mayGoOn({ transaction }: HeldMessage, refusal: Effect | undefined, fields: Uint8Array): boolean {
    if (this.#state !== State.JUDGING) {
      this.#held = undefined;
      transaction.release();
      return false;
    }
    const hasRoom = refusal !== undefined || transaction.content.reservePrefix(fields.length);
    const why = refusal ?? (hasRoom ? undefined : replies.NO_MEMORY_NOW);
    if (why === undefined) return true;
    this.#held = undefined;
    this.#replies.begin();
    this.#refuseMessage(why);
    this.#goOn();
    this.#replies.end();
    return false;
  }

  #refuseMessage(refusal: Effect): void {
    this.#transition(State.COMMAND);
    this.#perform(refusal, 'data', '');
    this.endTransaction();
    this.#afterContent();
  }

  onOutcome(transaction: MailTransaction, outcome: SubmissionOutcome): void {
    this.#desk.settled(transaction, outcome);
    // The client may have gone since.
    if (this.#state !== State.ANSWERING) return;
    this.transaction = undefined;
    if (outcome === NO_REPLY) {
      this.#desk.rejected('data', replies.NO_REPLY_GIVEN, this, '', transaction);
      return this.destroy();
    }
    this.#transition(State.COMMAND);
    // One write with the replies to what was pipelined behind the message.
    const isNested = this.#isWorking;
    if (!isNested) this.#replies.begin();
    if (outcome === COMMITTED) {
      this.#idleCommands = 0;
      this.#reply(replies.queuedAs(formatMessageId(transaction.messageId)));
    } else {
      this.#desk.rejected('data', outcomeRefusal(outcome), this, '', transaction);
      this.#reply(outcomeRefusal(outcome).reply);
    }
    this.#afterContent();
    if (isNested) return;
    const isIdle = this.#waiting.isEmpty && !this.#isInputOver;
    this.#goOn();
    this.#replies.end();
    if (isIdle && this.#isAwaitingCommand) this.#desk.intake.next(this);
  }

  #afterContent(): void {
    this.#waitingSinceMs = this.#desk.nowMs;
    if (this.#desk.isClosing) this.shutDown();
  }

  // ---- the end

  #leaveAsClientDid(): void {
    this.#tellLost('closed by the peer');
    this.#leave(Then.FAREWELL);
  }

  /** A message that is in the gateway's hands is not lost, and who is closed here has not gone. */
  #tellLost(why: string): void {
    const { transaction } = this;
    const state = this.#state;
    if (transaction === undefined || transaction.namedCount === 0 || state === State.ANSWERING) return;
    if (this.#desk.isClosing) return;
    const octets = state === State.JUDGING || this.#isInContent ? this.#contentOctets : 0;
    const lost = replies.clientLost(STATE_NAME[state] ?? '', octets, why);
    this.#desk.rejected('data', lost, this, '');
  }

  #leave(how: typeof Then.FAREWELL | typeof Then.LEAVE): void {
    this.endTransaction();
    this.#transition(State.CLOSING);
    this.#owed = how;
    if (!this.#isWorking) this.#afterWork();
  }

  /**
   * Bytes that wait unread would make the system reset the connection and take replies with it that the
   * client has not read yet: then the client's end is waited for.
   */
  #close(isFarewell: boolean): void {
    this.#replies.flush();
    const isReadOff = this.#waiting.isEmpty && !this.#waiting.isOverfull;
    this.#waiting.clear();
    if (isFarewell && isReadOff) this.#connection.finish();
    else this.#connection.end();
  }

  #secure(): void {
    this.#replies.flush();
    // What came in clear behind STARTTLS must not be obeyed (RFC 3207 4.2).
    this.#waiting.clear();
    this.#lines.reset();
    this.#resume();
    this.#waitingSinceMs = this.#desk.nowMs;
    this.#beginTls(NOTHING);
  }

  #beginTls(ahead: Uint8Array): void {
    this.#isHandshaking = true;
    this.#connection.secure(ahead);
  }

  #transition(to: State): void {
    const from = this.#state;
    if (!isValidTransition(from, to)) {
      invariant(false, `session goes from ${STATE_NAME[from] ?? ''} to ${STATE_NAME[to] ?? ''}`);
    }
    this.#state = to;
  }
}
