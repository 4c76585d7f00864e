/**
 * The clients of a simulated world: each message is sent by SMTP, through the production server session, in pieces cut
 * anywhere. What the client hears must be what became of its message; a process that dies takes its connections along.
 *
 *   client ─ bytes in pieces ─▶ ServerSession ─ Submission ─▶ ledger, then GatewayCore
 *                                   ◀─ outcome ─ the reply is compared with it
 *
 * With hooks, messages wait before they are submitted: for a while in which anything may happen to their gateway, and
 * some for a hook that never says anything.
 */
import assert from 'node:assert/strict';
import type { Prng } from '../../src/base/prng.js';
import { formatMessageId } from '../../src/base/text-id.js';
import type { GatewayCore } from '../../src/gateway/daemon/core.js';
import type { JudgedMessage } from '../../src/gateway/inbound/hooks/message-hook.js';
import { NONE_MADE } from '../../src/gateway/inbound/options.js';
import { INBOUND_DEFAULTS } from '../default-options.js';
import { Desk } from '../../src/gateway/inbound/session/desk.js';
import { HOOK_FAILED } from '../../src/gateway/inbound/session/replies.js';
import type { Refusal } from '../../src/gateway/inbound/session/replies.js';
import { State } from '../../src/gateway/inbound/session/session-states.js';
import { ServerSession } from '../../src/gateway/inbound/session/session.js';
import { COMMITTED, NO_REPLY, NOTIFY_NEVER, NOTIFY_SUCCESS, NOTIFY_FAILURE } from '../../src/gateway/mail-types.js';
import type { AdmissionVerdict, Reception, Route, Router, Submission, SubmissionOutcome } from '../../src/gateway/mail-types.js';
import { toAscii } from '../../src/platform/node/idna.js';
import { latin1Text } from '../../src/platform/node/latin1.js';
import { NO_METRICS, quiet } from '../inbound/desk.js';
import { MemoryConnection } from '../scenario/memory-connection.js';
import { asciiBytes, contentOf } from '../scenario/letters.js';
import type { KeptLog } from '../scenario/ports.js';
import type { Timeline } from '../scenario/timeline.js';
import type { Letter } from './ledger.js';

/** Connections that a client keeps for its next message, of all connections whose message is answered. */
const KEPT_SHARE = 0.7;
/** Of clients whose message is not answered yet, those that go away without waiting for it. */
const GONE_SHARE = 0.03;
/** Of a hundred messages, bytes come in pieces of a few octets, or of a whole read. */
const SMALL_PIECES_PERCENT = 20;
const LARGE_PIECE_BYTES = 2000;
/** Of a hundred messages, those that come by BDAT. */
const CHUNKED_PERCENT = 15;
/** Of a hundred messages with hooks: verdicts at once, and hooks that say nothing until their time is over. */
const AT_ONCE_PERCENT = 40;
const NEVER_PERCENT = 10;
const HOOK_MS_MAX = 2000;
const HOOK_FIELDS = asciiBytes('X-Seen: yes\r\n');
const NOTIFY_WORDS: readonly (readonly [bit: number, word: string])[] = [
  [NOTIFY_NEVER, 'NEVER'], [NOTIFY_SUCCESS, 'SUCCESS'], [NOTIFY_FAILURE, 'FAILURE'],
];

export interface ClientMail {
  readonly names: readonly string[];
  readonly bytes: number;
  readonly reversePath: string;
  readonly recipients: number;
  readonly notify: number;
  /** Which content it is (scenario/letters.ts). */
  readonly contentKey: number;
}

export interface ClientWatch {
  /** The gateway has the whole message: what is known of it from now on. */
  onSubmitted(submission: Submission, mail: ClientMail): Letter;
  /** It stands in its queues, unless it was settled at once. */
  onPlaced(letter: Letter, submission: Submission): void;
  onSettled(letter: Letter, outcome: SubmissionOutcome): void;
  /** A limit of the gateway was met. */
  onFull(): void;
  /** A message that had waited is submitted, or refused. */
  onLateVerdict(): void;
}

interface ClientsOptions {
  readonly router: Router;
  readonly prng: Prng;
  readonly log: KeptLog;
  /** What hooks draw from; undefined: there are none. */
  readonly hooks: Prng | undefined;
}

/** The clients of one process of a gateway. */
export class Clients {
  readonly core: GatewayCore;
  readonly #prng: Prng;
  readonly #hooks: Prng | undefined;
  readonly #desk: Desk;
  readonly #timeline: Timeline;
  readonly #idle: Client[] = [];
  readonly #all = new Set<Client>();
  readonly #watch: ClientWatch;
  /** What is being sent. */
  #mail: ClientMail | undefined;
  /** The one that was submitted during this call of send(). */
  #submitted: Letter | undefined;
  #settledAtOnce: (() => void) | undefined;

  constructor(core: GatewayCore, timeline: Timeline, options: ClientsOptions, watch: ClientWatch) {
    this.core = core;
    this.#watch = watch;
    this.#prng = options.prng;
    this.#hooks = options.hooks;
    this.#timeline = timeline;
    const clock = { nowMs: () => timeline.nowMs, wallMs: () => Math.floor(timeline.nowMs) };
    this.#desk = new Desk({
      ...INBOUND_DEFAULTS, hostName: 'mx.test', offersTls: true, messagesInHandMax: 100_000, connectionsPerClientMax: 100_000,
      connectionsMax: 100_000,
    }, {
      reception: this.#reception(),
      router: options.router,
      clock,
      authenticator: undefined,
      made: NONE_MADE,
      toAscii, latin1Text,
      recipients: undefined,
      rates: undefined, blocklists: undefined,
      hooks: this.#hooks === undefined ? undefined : { judge: (message, done) => { this.#judge(message, done); } },
      nextTurn: (run) => { timeline.soon(run); },
      log: options.log,
      mailLog: { wantsMessageId: false, received: quiet, rejected: quiet },
      metrics: NO_METRICS,
    });
  }

  /** Sends one message; undefined when the gateway did not take it. */
  send(mail: ClientMail): Letter | undefined {
    this.#desk.tick();
    this.#mail = mail;
    this.#submitted = undefined;
    const client = this.#idle.pop() ?? this.#connect();
    client.send(mail, this.#prng);
    this.#mail = undefined;
    this.#settledAtOnce?.();
    this.#settledAtOnce = undefined;
    const submitted = this.#submitted as Letter | undefined;
    if (client.connection.isOver) this.#all.delete(client);
    else if (client.session.state === State.JUDGING) {
      if (this.#prng.next() < GONE_SHARE) this.#leave(client);
    } else if (submitted === undefined) this.#idle.push(client);
    else if (client.session.transaction !== undefined && this.#prng.next() < GONE_SHARE) {
      this.#leave(client);
    }
    return submitted;
  }

  #leave(client: Client): void {
    client.session.onClose('reset by the peer');
    this.#all.delete(client);
  }

  #judge(message: JudgedMessage, done: (refusal: Refusal | undefined, fields: Uint8Array) => void): void {
    const draw = this.#hooks?.below(100) ?? 0;
    if (draw < AT_ONCE_PERCENT) return done(undefined, HOOK_FIELDS);
    const [mail, hasNone] = [this.#mail, draw >= 100 - NEVER_PERCENT];
    const waitMs = hasNone ? HOOK_MS_MAX : HOOK_MS_MAX * (this.#hooks?.next() ?? 0);
    this.#timeline.after(waitMs, () => {
      this.#watch.onLateVerdict();
      const client = [...this.#all].find(({ session }) => session.transaction?.content.chunks === message.content);
      assert.equal(client === undefined, message.isAbandoned, 'a client waits exactly as long as its message is not abandoned');
      this.#mail = mail;
      done(hasNone ? HOOK_FAILED : undefined, HOOK_FIELDS);
      this.#mail = undefined;
      this.#settledAtOnce?.();
      this.#settledAtOnce = undefined;
      if (!hasNone || client === undefined) return;
      assert.match(client.lastReply(), /^451 4\.7\.1 /);
      this.#idle.push(client);
    });
  }

  /** Its process is gone. */
  lost(): void {
    for (const client of this.#all) client.session.onClose('reset by the peer');
    this.#all.clear();
    this.#idle.length = 0;
  }

  #connect(): Client {
    const client = new Client(this.#desk, this.#timeline);
    this.#all.add(client);
    return client;
  }

  #reception(): Reception {
    const core = this.core;
    return {
      get accepting() { return core.accepting; },
      nextMessageId: () => core.nextMessageId(),
      refusesFrom: (sender, client, key) => core.refusesFrom(sender, client, key),
      refusesTo: (address, domain) => core.refusesTo(address, domain),
      admit: (route: Route): AdmissionVerdict => {
        const verdict = core.admit(route);
        if (verdict === 'memory' || verdict === 'share') this.#watch.onFull();
        return verdict;
      },
      reserve: (bytes) => {
        const isTaken = core.reserve(bytes);
        if (!isTaken) this.#watch.onFull();
        return isTaken;
      },
      release: (bytes) => { core.release(bytes); },
      submit: (submission) => { this.#submit(submission); },
    };
  }

  #submit(submission: Submission): void {
    const watch = this.#watch;
    const mail = this.#mail;
    assert.ok(mail !== undefined, 'a message is submitted while it is sent');
    const letter = watch.onSubmitted(submission, mail);
    this.#submitted = letter;
    const client = [...this.#all].find((each) => each.session.transaction === submission);
    const { messageId, reversePath, groups, chunks, contentBytes, flags, ret, envid, helo } = submission;
    this.core.submit({
      messageId, reversePath, groups, chunks, contentBytes, flags, ret, envid, client: submission.client, helo,
      settle: (outcome) => {
        watch.onSettled(letter, outcome);
        submission.settle(outcome);
        if (client === undefined) return;
        // Within the call its reply still stands with those of the other commands.
        if (this.#mail !== undefined) this.#settledAtOnce = () => { this.#heard(client, letter, outcome); };
        else this.#heard(client, letter, outcome);
      },
    });
    watch.onPlaced(letter, submission);
  }

  /** What the client was told is what became of its message. */
  #heard(client: Client, letter: Letter, outcome: SubmissionOutcome): void {
    if (!this.#all.has(client)) return;
    const id = formatMessageId(letter.id);
    const said = client.lastReply();
    if (outcome === NO_REPLY) {
      assert.equal(client.connection.calls.at(-1), 'destroy', `message ${id} is not answered`);
      this.#all.delete(client);
      return;
    }
    const wanted = outcome === COMMITTED ? `250 2.0.0 Ok: queued as ${id}` : '45';
    assert.ok(said.startsWith(wanted), `message ${id} came to ${String(outcome)}, and its client was told ${said}`);
    if (this.#prng.next() < KEPT_SHARE) this.#idle.push(client);
    else {
      client.quit();
      this.#all.delete(client);
    }
  }
}

class Client {
  readonly connection: MemoryConnection;
  readonly session: ServerSession;

  constructor(desk: Desk, timeline: Timeline) {
    this.connection = new MemoryConnection('127.0.0.1', (run) => { timeline.soon(run); });
    this.session = new ServerSession(desk, this.connection);
    this.connection.attach(this.session);
    this.session.onOpen();
  }

  lastReply(): string {
    const text = this.connection.text.trimEnd();
    const end = text.lastIndexOf('\r\n');
    return end < 0 ? text : text.slice(end + 2);
  }

  /** The whole dialog at once, as one that pipelines blindly: what is not taken is answered line by line. */
  send(mail: ClientMail, prng: Prng): void {
    const words = NOTIFY_WORDS.filter(([bit]) => (mail.notify & bit) !== 0).map(([, word]) => word).join();
    const lines = ['EHLO client.example', `MAIL FROM:<${mail.reversePath}>`];
    for (const name of mail.names) {
      for (let i = 0; i < mail.recipients; i++) lines.push(`RCPT TO:<${String(i)}@${name}.example>${words === '' ? '' : ` NOTIFY=${words}`}`);
    }
    this.connection.text = '';
    if (prng.below(100) < CHUNKED_PERCENT) {
      this.#bytes(asciiBytes(`${lines.join('\r\n')}\r\nBDAT ${String(mail.bytes)}\r\n`), prng);
      this.#bytes(contentOf(mail.contentKey, mail.bytes), prng);
      if (!this.lastReply().startsWith('250 2.0.0')) return;
      this.connection.text = '';
      this.#bytes(asciiBytes('BDAT 2 LAST\r\n\r\n'), prng);
      return;
    }
    this.#bytes(asciiBytes(`${lines.join('\r\n')}\r\nDATA\r\n`), prng);
    if (!this.lastReply().startsWith('354')) return;
    this.#bytes(contentOf(mail.contentKey, mail.bytes), prng);
    this.connection.text = '';
    this.#bytes(asciiBytes('\r\n.\r\n'), prng);
  }

  quit(): void {
    this.session.onData(asciiBytes('QUIT\r\n'));
  }

  #bytes(bytes: Uint8Array, prng: Prng): void {
    const pieceBytes = prng.below(100) < SMALL_PIECES_PERCENT && bytes.length < LARGE_PIECE_BYTES ? 7 : LARGE_PIECE_BYTES;
    for (let from = 0; from < bytes.length;) {
      const to = Math.min(bytes.length, from + 1 + prng.below(pieceBytes));
      // A copy: the session works in what it is given, and nobody may lean on it later.
      const read = bytes.slice(from, to);
      if (!this.connection.isOver) this.session.onData(read);
      from = to;
    }
  }
}
