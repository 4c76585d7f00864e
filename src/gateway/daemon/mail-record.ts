/**
 * What happens to mail, as lines of the mail log and as counters: joins the ports that inbound and the
 * queues tell (InboundMailLog, InboundMetrics, MailEvents) with observability.
 */
import type { ReportKind } from '../queue/reports/report-writer.js';
import { OnceInAWhile } from '../../base/once-in-a-while.js';
import { formatMessageId } from '../../base/text-id.js';
import { BusySenders } from '../../observability/busy-senders.js';
import type { GatewayMetrics } from '../../observability/gateway-metrics.js';
import type { MailLog } from '../../observability/mail-log.js';
import { countOutcome } from '../../observability/outbound-metrics.js';
import type { OutboundMetrics, OutcomesOfRoute } from '../../observability/outbound-metrics.js';
import type { AuthResult } from '../../observability/reception-metrics.js';
import type { Clock, EventLog } from '../../platform/ports.js';
import type { HandshakeResult, SecuredFacts } from '../../platform/transport.js';
import type { InboundMailLog, InboundMetrics, Refused, RejectStage } from '../inbound/options.js';
import type { MailTransaction } from '../inbound/session/transaction.js';
import type {
  MadeHere, ResultClass, ReturnRecord, UnreadCause,
} from '../returned/came-back.js';
import type { Feedback, StatusOfRecipient } from '../returned/report-content.js';
import type { MailEvents, OutcomeEvent } from '../queue/mail-events.js';
import type { MailQueue } from '../queue/mail-queue.js';
import { nextHopUrl } from '../queue/next-hop.js';
import { givenAddress } from '../queue/given-address.js';
import type { Envelope, Outage, RecipientResult, Route } from '../mail-types.js';

export interface MailRecordPorts {
  readonly clock: Clock;
  readonly log: EventLog;
  readonly mailLog: MailLog;
  readonly metrics: GatewayMetrics;
  /** Of a route, as the configuration names it. */
  routeNameOf(route: Route): string;
  /** The mirrors of the queue of a route. */
  mirrorsOf(route: Route): { readonly inSyncCount: number; readonly epoch: number } | undefined;
}

/** An unreachable next hop is said once in this time, not at each attempt to connect. */
const UNREACHABLE_EVERY_MS = 10_000;
const UNREAD_EVERY_MS = 10_000;
const UNREACHABLE =
  'the next hop of a queue can not be reached; its mail waits in order and is tried again by itself';
const DOT_UNANSWERED =
  'a final dot got no reply: the next hop may have the message, which is tried again (RFC 1047)';

export class MailRecord implements MailEvents, InboundMailLog, ReturnRecord {
  readonly #ports: MailRecordPorts;
  readonly #tellingUnread = new OnceInAWhile(UNREAD_EVERY_MS);
  readonly #toldUnreachableMs = new WeakMap<MailQueue, number>();
  readonly #outcomes = new WeakMap<Route, OutcomesOfRoute>();

  constructor(ports: MailRecordPorts) {
    this.#ports = ports;
  }

  // ---- inbound ----

  get wantsMessageId(): boolean { return this.#ports.mailLog.enabled; }

  received(message: MailTransaction, listener: string): void {
    const { mailLog } = this.#ports;
    const route = message.groups[0]?.route;
    const mirrors = route === undefined ? undefined : this.#ports.mirrorsOf(route);
    mailLog.received({
      queueId: formatMessageId(message.messageId),
      queue: route?.queueName ?? '',
      messageId: message.messageIdField,
      from: message.reversePath,
      to: message.namedRecipient,
      listener,
      client: message.client,
      clientPort: message.clientPort,
      helo: message.helo,
      size: message.contentBytes,
      nrcpt: message.recipientCount,
      tls: message.tls,
      user: message.user,
      certificate: message.certificate,
      proxy: message.proxy,
      authentication: message.authentication,
      mirrors: mirrors?.inSyncCount ?? 0,
      epoch: mirrors?.epoch ?? 0,
      delayMs: this.#ports.clock.nowMs() - message.receivedMs,
    });
  }

  rejected({ messageId, stage: _stage, ...refused }: Refused): void {
    this.#ports.mailLog.rejected({ ...refused, queueId: messageId === 0 ? '' : formatMessageId(messageId) });
  }

  // ---- queues ----

  outcome(
    event: OutcomeEvent, queue: MailQueue, envelope: Envelope, recipient: number, result: RecipientResult,
    contentBytes: number, relay: string, attempt: number, setupMs: number, transmitMs: number,
    reversePath: string, last: string, tls: SecuredFacts | undefined, source: string,
  ): void {
    const { metrics, mailLog, clock } = this.#ports;
    metrics[event] += 1;
    countOutcome(this.#outcomesOf(queue.route), source, event);
    if (event === 'delivered') {
      metrics.deliveredBytes += contentBytes;
      metrics.outbound.delivered[howOf(tls)] += 1;
    }
    const to = envelope.recipients[recipient];
    const fields = {
      queueId: formatMessageId(envelope.messageId),
      queue: queue.name,
      from: envelope.reversePath,
      // Nobody was told it.
      mailFrom: relay === '' || reversePath === envelope.reversePath ? '' : reversePath,
      to: to?.address ?? '',
      origTo: to === undefined ? '' : givenAddress(to),
      last,
      size: contentBytes,
      relay,
      source,
      tls,
      attempt,
      dsn: result.enhanced,
      reply: result.text,
      delayMs: clock.wallMs() - envelope.arrivalWallMs,
      beforeQueueMs: 0,
      setupMs,
      transmitMs,
    };
    metrics.deliverySeconds.observe((setupMs + transmitMs) / 1000);
    if (attempt === 1) metrics.queueSeconds.observe((fields.delayMs - setupMs - transmitMs) / 1000);
    mailLog[event](fields);
  }

  #outcomesOf(route: Route): OutcomesOfRoute {
    const known = this.#outcomes.get(route);
    if (known !== undefined) return known;
    const of = this.#ports.metrics.outbound.ofRoute(this.#ports.routeNameOf(route));
    this.#outcomes.set(route, of);
    return of;
  }

  waits(
    queue: MailQueue, envelope: Envelope, recipient: number, contentBytes: number, { relay, why }: Outage,
  ): void {
    const { mailLog, clock } = this.#ports;
    const to = envelope.recipients[recipient];
    if (to === undefined) return;
    mailLog.deferred({
      queueId: formatMessageId(envelope.messageId), queue: queue.name,
      from: envelope.reversePath, mailFrom: '', to: to.address, origTo: givenAddress(to), last: '',
      size: contentBytes, relay, source: '', tls: undefined, attempt: 0, dsn: why.enhanced, reply: why.text,
      delayMs: clock.wallMs() - envelope.arrivalWallMs, beforeQueueMs: 0, setupMs: 0, transmitMs: 0,
    });
  }

  ended(queue: MailQueue, envelope: Envelope, recipient: number, reason: string, text: string): void {
    this.#ports.metrics.removed(reason);
    this.#ports.mailLog.removed({
      queueId: formatMessageId(envelope.messageId), queue: queue.name,
      from: envelope.reversePath, to: envelope.recipients[recipient]?.address ?? '',
      reason: `${reason}: ${text}`,
    });
  }

  unreachable(queue: MailQueue, dsn: string, text: string, source: string): void {
    const now = this.#ports.clock.nowMs();
    const told = this.#toldUnreachableMs.get(queue);
    if (told !== undefined && now - told < UNREACHABLE_EVERY_MS) return;
    this.#toldUnreachableMs.set(queue, now);
    const relay = nextHopUrl(queue.route.nextHop);
    const from = source === '' ? {} : { source };
    const fields = { queue: queue.name, relay, ...from, dsn, why: text, messages: queue.length };
    this.#ports.log.warn('suspended', UNREACHABLE, fields);
  }

  reported(queue: MailQueue, envelope: Envelope, reportId: number, kind: ReportKind, why: string): void {
    this.#ports.metrics.reports += 1;
    this.#ports.log.info('report', 'a delivery status notification was stored', {
      queue: queue.name, queue_id: formatMessageId(envelope.messageId), report_id: formatMessageId(reportId),
      kind, to: envelope.reversePath, ...(why === '' ? {} : { why }),
    });
  }

  dotUnanswered(queue: MailQueue, relay: string): void {
    this.#ports.metrics.possibleDuplicates += 1;
    this.#ports.log.warn('duplicate', DOT_UNANSWERED, { queue: queue.name, relay });
  }

  // ---- what comes back ----

  returned(
    reportId: number, { route, token }: MadeHere, said: StatusOfRecipient | undefined,
    resultClass: ResultClass,
  ): void {
    this.#ports.metrics.returned.returned(route, resultClass);
    const named = [said?.originalRecipient ?? '', said?.finalRecipient ?? ''].filter((text) => text !== '');
    const to = named.find((address) => token.isOf(address)) ?? '';
    const finalTo = said?.finalRecipient ?? '';
    this.#ports.mailLog.returned({
      queueId: formatMessageId(token.messageId), reportId: formatMessageId(reportId), route, resultClass,
      from: token.sender, to, finalTo: finalTo === to ? '' : finalTo,
      action: said?.action ?? '', dsn: said?.status ?? '', reply: said?.diagnostic ?? '',
      relay: said?.remoteMta ?? '',
    });
  }

  feedback(reportId: number, feedback: Feedback | undefined, made: MadeHere | undefined): void {
    const type = feedback?.type ?? 'unknown';
    const route = made?.route ?? '';
    this.#ports.metrics.returned.feedback(type, route);
    const { token } = made ?? {};
    const to = feedback?.rcptTo ?? '';
    this.#ports.mailLog.feedback({
      reportId: formatMessageId(reportId), type, isVerified: token !== undefined, route,
      queueId: token === undefined ? '' : formatMessageId(token.messageId),
      from: token?.sender ?? '', mailFrom: feedback?.mailFrom ?? '', to,
      userAgent: feedback?.userAgent ?? '', sourceIp: feedback?.sourceIp ?? '',
      arrivalDate: feedback?.arrivalDate ?? '',
    });
  }

  unread(reportId: number, why: UnreadCause): void {
    const { clock, log, metrics } = this.#ports;
    metrics.returned.unread(why);
    if (!this.#tellingUnread.isDue(clock.nowMs())) return;
    log.warn('returned', 'mail that came back is not read; it is counted, and goes its way', {
      report_id: formatMessageId(reportId), why,
    });
  }

  committed(commitMs: number): void {
    this.#ports.metrics.mirrorSeconds.observe(commitMs / 1000);
  }

  refused(withReply: boolean): void {
    if (withReply) this.#ports.metrics.withdrawn += 1;
    else this.#ports.metrics.unanswered += 1;
  }
}

function howOf(tls: SecuredFacts | undefined): keyof OutboundMetrics['delivered'] {
  if (tls === undefined) return 'clear';
  if (!tls.isVerified) return 'tls';
  return tls.by ?? 'verified';
}

/** Counters of reception. */
export class InboundRecord implements InboundMetrics {
  connections = 0;
  readonly busy: BusySenders;
  readonly #metrics: GatewayMetrics;

  constructor(metrics: GatewayMetrics, nowMs: number) {
    this.#metrics = metrics;
    this.busy = new BusySenders(nowMs);
  }

  connectionOpened(): void {
    this.connections += 1;
    this.#metrics.connectionsAccepted += 1;
  }

  connectionClosed(): void {
    this.connections -= 1;
  }

  connectionWaits(): void {
    this.#metrics.connectionsWaited += 1;
  }

  received(message: MailTransaction, acceptMs: number): void {
    this.#metrics.received += 1;
    this.#metrics.receivedBytes += message.contentBytes;
    this.#metrics.receivedRecipients += message.recipientCount;
    this.busy.received(message.client, message.senderKey, message.user);
    this.#metrics.acceptSeconds.observe(acceptMs / 1000);
  }

  rejected(stage: RejectStage, reason: string): void {
    this.#metrics.rejected(reason);
    if (stage === 'connect') this.#metrics.connectionsRefused += 1;
  }

  authEnded(mechanism: string, result: AuthResult): void {
    this.#metrics.reception.auth(mechanism, result);
  }

  handshakeEnded(result: HandshakeResult): void {
    this.#metrics.reception.handshake(result);
  }

  resultsRenamed(count: number): void {
    this.#metrics.authentication.renamed += count;
  }

  certificateStale(isStale: boolean): void {
    this.#metrics.reception.followed('certificate', isStale);
  }
}
