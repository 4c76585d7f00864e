/**
 * What all sessions of a listener share that go by one configuration: options, ports, relay policy, time,
 * counts, and the way to the mail log and the metrics. One object, so that a session carries one reference.
 *
 *   tick ─▶ greetings that are due ─▶ the intake's look ─▶ once in deadlineTickMs: every session's deadlines
 *
 * No timer is made, moved or cleared for a message or a command: sessions write down the coarse time of
 * `nowMs`. Owns the sessions, their counts, and the line of those that wait for their next turn. Pure.
 */
import type { SubmissionOutcome } from '../../mail-types.js';
import { NO_TAP } from '../../../smtp/session-tap.js';
import type { SessionTap } from '../../../smtp/session-tap.js';
import { addressText } from '../../../base/address-text.js';
import { COMMITTED } from '../../mail-types.js';
import { HelloReplies } from '../commands/hello.js';
import { ByteViews } from '../content/byte-views.js';
import { TraceDate, TraceWriter } from '../content/trace-header.js';
import { ClientCounts } from '../limits/client-counts.js';
import { Greeting } from '../limits/greeting.js';
import { Intake } from '../limits/intake.js';
import type { Doer } from '../limits/rate-limits.js';
import { RejectionDamper } from '../limits/rejection-damper.js';
import type { InboundOptions, InboundPorts, RejectStage } from '../options.js';
import { NetworkList } from '../policy/network-list.js';
import { RelayPolicy } from '../policy/relay-policy.js';
import { RoleAddresses } from '../policy/role-addresses.js';
import type { InboundDialog } from './dialog.js';
import {
  AUTH_FAILED_OFTEN, MAIL_FIRST, NO_RECIPIENTS, NOT_ACCEPTING, RELAY_DENIED, TOO_MANY_CONNECTIONS,
  TOO_MANY_CONNECTS, TOO_MANY_ERRORS, TOO_MANY_FROM_CLIENT,
} from './replies.js';
import type { Refusal } from './replies.js';
import type { MailTransaction } from './transaction.js';

/** A session as the desk sees it. */
export interface LiveSession {
  /** 421 and close, unless a message is in our hands: then after its answer. */
  shutDown(): void;
  destroy(): void;
  tick(nowMs: number): void;
  takeTurn(): void;
}

/** What the sessions of a listener count together, whichever of its configurations they go by. */
export interface Crowd {
  connections: number;
  readonly clients: ClientCounts;
}

/** Some 5 ms. */
const LOOKUPS_PER_TURN = 1_000;

export class Desk {
  readonly options: InboundOptions;
  readonly ports: InboundPorts;
  readonly policy: RelayPolicy;
  readonly balancers: NetworkList;
  readonly xclientPeers: NetworkList;
  readonly tap: SessionTap;
  readonly date: TraceDate;
  readonly trace = new TraceWriter();
  readonly views = new ByteViews();
  readonly greeting: Greeting;
  readonly hello: HelloReplies;
  readonly intake: Intake;
  readonly roles: RoleAddresses;
  readonly live = new Set<LiveSession>();
  /** In a table of recipients, since those that yielded had their last turn. */
  lookups = 0;
  /** Monotonic time of the last tick. */
  nowMs: number;
  isClosing = false;
  /** The configuration that it is of may still be refused: nobody is served by it. */
  isHeld = false;
  /** "address:port" that clients are listened to on: its name in the log. */
  listener: string;
  /** Told when the last session has gone. */
  onEmpty: (() => void) | undefined;

  readonly #crowd: Crowd;
  readonly #damper: RejectionDamper;
  #lookedMs: number;
  #yielding: LiveSession[] = [];
  #isTakingTurns = false;
  readonly #takeTurns = (): void => {
    this.lookups = 0;
    const sessions = this.#yielding;
    this.#yielding = [];
    this.#isTakingTurns = true;
    let taken = 0;
    while (taken < sessions.length && !this.isTurnSpent) sessions[taken++]?.takeTurn();
    this.#isTakingTurns = false;
    // Who had no turn now comes before those that had one and want another.
    this.#yielding.unshift(...sessions.slice(taken));
    if (this.#yielding.length > 0) this.ports.nextTurn(this.#takeTurns);
  };

  constructor(
    options: InboundOptions, ports: InboundPorts,
    crowd: Crowd = { connections: 0, clients: new ClientCounts() },
  ) {
    this.options = options;
    this.ports = ports;
    this.#crowd = crowd;
    const { relayNetworks: networks, relayDomains: domains } = options;
    this.listener = addressText(options.host, options.port);
    this.policy = new RelayPolicy({ networks, domains }, ports.toAscii);
    this.balancers = new NetworkList(options.proxyNetworks, 'networks of balancers');
    this.xclientPeers = new NetworkList(options.xclientNetworks, 'networks of XCLIENT');
    this.tap = ports.tap ?? NO_TAP;
    this.date = new TraceDate(ports.clock);
    this.greeting = new Greeting(options.greetingDelayMs, () => ports.clock.nowMs());
    this.hello = new HelloReplies(options);
    this.intake = new Intake(options.messagesInHandMax, () => { ports.metrics.connectionWaits(); });
    this.#damper = new RejectionDamper((client, refusals) => {
      ports.log.warn('rejections', 'refusals without a line each: there were too many in a minute', {
        client: client === '' ? 'several' : client, refusals,
      });
    });
    this.roles = new RoleAddresses(options, this.policy, ports.made);
    this.nowMs = ports.clock.nowMs();
    this.#lookedMs = this.nowMs;
  }

  /** Offered within TLS; none where AUTH is not offered. */
  get mechanisms(): readonly string[] {
    return this.options.isSubmission ? (this.ports.authenticator?.mechanisms ?? []) : [];
  }

  /** Some 20 times a second while there are sessions. */
  tick(): void {
    this.nowMs = this.ports.clock.nowMs();
    this.greeting.tick(this.nowMs);
    this.intake.look();
    if (this.nowMs - this.#lookedMs < this.options.deadlineTickMs) return;
    this.#lookedMs = this.nowMs;
    this.#damper.tick(this.nowMs);
    this.ports.rates?.tick(this.nowMs);
    for (const each of this.live) each.tick(this.nowMs);
  }

  /** Sessions have let others wait for long enough: no command is begun before the next turn. */
  get isTurnSpent(): boolean {
    return this.lookups >= LOOKUPS_PER_TURN;
  }

  /** The session goes on in the next turn of the loop. */
  goOnLater(session: LiveSession): void {
    if (this.#yielding.length === 0 && !this.#isTakingTurns) this.ports.nextTurn(this.#takeTurns);
    this.#yielding.push(session);
  }

  /** Counts the connection, also when the answer is a refusal: it lives until its socket is closed. */
  connectionOpened(session: LiveSession): Refusal | undefined {
    if (this.live.size === 0) this.nowMs = this.ports.clock.nowMs();
    this.live.add(session);
    this.#crowd.connections += 1;
    this.ports.metrics.connectionOpened();
    if (this.isHeld) return NOT_ACCEPTING;
    return this.#crowd.connections > this.options.connectionsMax ? TOO_MANY_CONNECTIONS : undefined;
  }

  /** It is known whose connection it is; counted until connectionClosed(). */
  clientKnown(key: string, doer: Doer): Refusal | undefined {
    const ofClient = this.#crowd.clients.open(key, this.ports.clock.nowMs());
    if (ofClient > this.options.connectionsPerClientMax) return TOO_MANY_FROM_CLIENT;
    const { rates } = this.ports;
    if (rates === undefined) return undefined;
    if (rates.hasDoneAll('errors', doer, '', this.nowMs)) return TOO_MANY_ERRORS;
    return rates.mayDo('connections', doer, '', this.nowMs) ? undefined : TOO_MANY_CONNECTS;
  }

  /** Counts an error, if it is one; whether there were too many of them. `sender`: as a key; '': none. */
  isOneTooMany(refusal: Refusal, doer: Doer, sender: string): boolean {
    const { rates } = this.ports;
    if (rates === undefined || !isError(refusal)) return false;
    rates.did('errors', 1, doer, sender, this.nowMs);
    return rates.hasDoneAll('errors', doer, sender, this.nowMs);
  }

  /** The session is another client's now; `key`: '' when its proxy does not know whose. */
  clientChanged(before: string, key: string, doer: Doer): Refusal | undefined {
    if (before !== '') this.#crowd.clients.close(before);
    return key === '' ? undefined : this.clientKnown(key, doer);
  }

  /** `key`: '' when it was never known whose it was. */
  connectionClosed(session: LiveSession, key: string): void {
    this.live.delete(session);
    this.#crowd.connections -= 1;
    if (key !== '') this.#crowd.clients.close(key);
    this.ports.metrics.connectionClosed();
    if (this.live.size === 0) this.onEmpty?.();
  }

  submit(message: MailTransaction): void {
    message.intakeLook = this.intake.begin();
    message.keep(this.ports.reading);
    // What came back, and goes on to nobody, has no queue.
    if (message.recipientCount === 0) message.settle(COMMITTED);
    else this.ports.reception.submit(message);
  }

  settled(message: MailTransaction, outcome: SubmissionOutcome): void {
    this.intake.end(message.intakeLook);
    message.release();
    if (outcome === COMMITTED) this.#received(message);
  }

  #received(message: MailTransaction): void {
    const { clock, mailLog, metrics } = this.ports;
    mailLog.received(message, this.listener);
    metrics.received(message, clock.nowMs() - message.receivedMs);
  }

  /** `said`: the command, of which an address is logged, and nothing else: AUTH has passwords in it. */
  rejected(
    stage: RejectStage, refusal: Refusal, dialog: InboundDialog, said: string,
    message: MailTransaction | undefined = dialog.transaction,
  ): void {
    const { reason, reply } = refusal;
    this.ports.metrics.rejected(stage, reason);
    if (!this.#damper.onRefusal(dialog.remoteAddress, this.nowMs)) return;
    this.ports.mailLog.rejected({
      stage, reason, reply, listener: this.listener,
      client: dialog.remoteAddress, clientPort: dialog.remotePort, helo: dialog.helo,
      user: refusal.user ?? dialog.user,
      from: message?.reversePath ?? (stage === 'mail' ? pathIn(said) : ''),
      to: stage === 'rcpt' ? pathIn(said) : (message?.namedRecipient ?? ''),
      messageId: message?.messageId ?? 0,
      limit: reason.startsWith('rate-') ? (this.ports.rates?.reached ?? '') : '',
      hook: refusal.hook ?? '',
      why: refusal.why ?? (reason === RELAY_DENIED.reason ? dialog.certificateWhy : ''),
      state: refusal.state ?? '', octets: refusal.octets ?? 0,
      certificate: dialog.certificate, proxy: dialog.proxy,
    });
  }
}

/** What was pipelined behind a refused MAIL or RCPT is no other error: that one may have been ours. */
function isError({ reply, reason }: Refusal): boolean {
  if (reply === AUTH_FAILED_OFTEN.reply) return true;
  return reply.startsWith('5') && reason !== MAIL_FIRST.reason && reason !== NO_RECIPIENTS.reason;
}

/** What stands in the brackets of MAIL or RCPT, or what is there instead. */
function pathIn(command: string): string {
  const text = command.slice(command.indexOf(':') + 1).trimStart();
  const close = text.indexOf('>');
  return text.startsWith('<') && close > 0 ? text.slice(1, close) : text;
}
