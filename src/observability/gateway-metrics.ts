/**
 * All metrics of a gateway in one place: names, units, reasons for buckets. The hot path adds to plain
 * numbers here (`metrics.delivered++`); prom-client sees them only when /metrics is read. What the gateway
 * knows as a state (queues, mirrors, memory) is not copied: it is read from a GaugeSource at that moment.
 *
 * Labels are bounded: reasons are words of this program, stores are configured.
 *
 * What is not here: series of queues and stores (queue-metrics.ts), of TLS, AUTH and look-ups
 * (reception-metrics.ts), the store's metrics (kvs/daemon), lines of the mail log (mail-log.ts).
 */
import { monitorEventLoopDelay } from 'node:perf_hooks';
import type { IntervalHistogram } from 'node:perf_hooks';
import type { Registry } from 'prom-client';
import type { QueueAnswer, StatusAnswer } from '../admin-api/gateway-answers.js';
import { AuthenticationMetrics, exportAuthentication } from './authentication-metrics.js';
import { exportConfiguration } from './configuration-in-force.js';
import { DkimMetrics, exportDkim } from './dkim-metrics.js';
import { DnsMetrics, exportDns } from './dns-metrics.js';
import { StsMetrics, exportSts } from './sts-metrics.js';
import { ExportedHistogram, FixedHistogram } from './fixed-histogram.js';
import {
  exportBusiest, exportHooks, exportHurting, exportOutages, exportQueues, exportRefusals, exportRules,
  exportStates, exportStores,
} from './queue-metrics.js';
import type { StateFigures } from './queue-metrics.js';
import { OutboundMetrics, exportOutbound } from './outbound-metrics.js';
import { ReceptionMetrics, exportReception } from './reception-metrics.js';
import { ReturnedMetrics, exportReturned } from './returned-metrics.js';
import { exportLogLosses } from './log-losses.js';
import { Series } from './series.js';

const REASONS_MAX = 64;
const DELAY_RESOLUTION_MS = 10;

/**
 * Seconds from final dot to 250, and of a mirror's acknowledgement: both are under 1 ms on a quiet LAN and
 * end at commit_timeout.
 */
const ANSWER_BUCKETS = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 20];
/** Seconds in a queue: from at once to the lifetime of five days. */
const QUEUE_BUCKETS = [0.01, 0.05, 0.1, 0.5, 1, 5, 15, 60, 300, 900, 3600, 14_400, 86_400, 432_000];
/** Seconds of one delivery attempt; ends at the timeout for the reply to the final dot. */
const DELIVERY_BUCKETS = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 5, 30, 120, 600];

/** States as they are now; asked for once a series, so that they should be kept for a scrape. */
export interface GaugeSource {
  status(): StatusAnswer;
  queues(): readonly QueueAnswer[];
  states(): readonly StateFigures[];
}

/** Plain counters of the hot path, since the start of the process. */
export class GatewayMetrics {
  received = 0;
  receivedBytes = 0;
  receivedRecipients = 0;
  delivered = 0;
  deliveredBytes = 0;
  deferred = 0;
  bounced = 0;
  expired = 0;
  reports = 0;
  connectionsAccepted = 0;
  connectionsRefused = 0;
  connectionsWaited = 0;
  connectionsOpened = 0;
  connectionsFailed = 0;
  tlsFallbacks = 0;
  possibleDuplicates = 0;
  withdrawn = 0;
  unanswered = 0;
  fenced = 0;
  epochs = 0;
  recoveredMessages = 0;
  poisonMessages = 0;
  /** Final dot to 250. */
  readonly acceptSeconds = new FixedHistogram(ANSWER_BUCKETS);
  /** Change sent to acknowledged. */
  readonly mirrorSeconds = new FixedHistogram(ANSWER_BUCKETS);
  /** 250 to the first attempt. */
  readonly queueSeconds = new FixedHistogram(QUEUE_BUCKETS);
  /** One attempt, connection set-up included. */
  readonly deliverySeconds = new FixedHistogram(DELIVERY_BUCKETS);
  /** A message handed to a hook until its answer. */
  readonly hookSeconds = new FixedHistogram(ANSWER_BUCKETS);
  readonly reception = new ReceptionMetrics();
  readonly dkim = new DkimMetrics();
  readonly returned = new ReturnedMetrics();
  readonly authentication = new AuthenticationMetrics();
  readonly sts = new StsMetrics();
  readonly dns = new DnsMetrics();
  readonly outbound = new OutboundMetrics();
  readonly #hookAnswers = new Map<string, Map<string, number>>();
  readonly #rejected = new Map<string, number>();
  readonly #removed = new Map<string, number>();
  /** By store: as many as are configured. */
  readonly #failovers = new Map<string, number>();

  /** `reason` is a word of ours ("relay", "size", "memory"), never text from outside. */
  rejected(reason: string): void {
    add(this.#rejected, reason);
  }

  /** Recipients ended without delivery and without report (G2). */
  removed(reason: string): void {
    add(this.#removed, reason);
  }

  /** `hook` is configured, `answer` a word of ours ("accept", "failed"). */
  hookAnswered(hook: string, answer: string, ms: number): void {
    this.hookSeconds.observe(ms / 1000);
    const answers = this.#hookAnswers.get(hook) ?? new Map<string, number>();
    this.#hookAnswers.set(hook, answers);
    add(answers, answer);
  }

  /** Another path to a store took over. */
  failedOver(store: string): void {
    this.#failovers.set(store, this.failoversOf(store) + 1);
  }

  failoversOf(store: string): number {
    return this.#failovers.get(store) ?? 0;
  }

  get rejectedTotal(): number {
    return sum(this.#rejected);
  }

  get rejectedByReason(): ReadonlyMap<string, number> {
    return this.#rejected;
  }

  get hookAnswers(): ReadonlyMap<string, ReadonlyMap<string, number>> {
    return this.#hookAnswers;
  }

  get removedByReason(): ReadonlyMap<string, number> {
    return this.#removed;
  }
}

export interface MetricsExport {
  readonly registry: Registry;
  close(): void;
}

/** Makes the registry that /metrics reads. */
export function exportGatewayMetrics(metrics: GatewayMetrics, source: GaugeSource): MetricsExport {
  const series = new Series('twinpost');
  exportCounters(series, metrics);
  exportHistograms(series.registry, metrics);
  exportReception(series, metrics.reception);
  exportDkim(series, metrics.dkim);
  exportReturned(series, metrics.returned);
  exportAuthentication(series, metrics.authentication);
  exportSts(series, metrics.sts);
  exportDns(series, metrics.dns);
  exportOutbound(series, metrics.outbound);
  exportQueues(series, () => source.queues());
  exportStates(series, () => source.states());
  exportRefusals(series, () => source.status().routes_refused);
  exportRules(series, () => source.status());
  exportOutages(series, () => source.status());
  exportHooks(series, () => source.status().outages?.hooks ?? []);
  exportHurting(series, () => source.status().hurting);
  exportBusiest(series, () => source.status().busiest);
  exportStores(series, () => source.status().stores);
  exportStatus(series, source);
  const loop = monitorEventLoopDelay({ resolution: DELAY_RESOLUTION_MS });
  loop.enable();
  exportLoopDelay(series, loop);
  return { registry: series.registry, close: () => { loop.disable(); } };
}

function exportCounters(series: Series, metrics: GatewayMetrics): void {
  for (const [name, help, read] of COUNTERS) series.counter(name, help, () => read(metrics));
  const byReason = (name: string, help: string, counts: ReadonlyMap<string, number>): void => {
    series.counters(name, help, ['reason'], () => [...counts].map(([reason, count]) => [{ reason }, count]));
  };
  byReason('rejected', 'Refusals to clients by reason', metrics.rejectedByReason);
  byReason('removed', 'Recipients ended without delivery and report, by reason', metrics.removedByReason);
  series.counters('hook_answers', 'Answers of hooks about a message', ['hook', 'answer'], () =>
    [...metrics.hookAnswers].flatMap(([hook, answers]) =>
      [...answers].map(([answer, count]) => [{ hook, answer }, count] as const)));
}

type Described<From> = readonly (readonly [name: string, help: string, read: (from: From) => number])[];

const COUNTERS: Described<GatewayMetrics> = [
  ['received', 'Messages accepted (250 to the final dot)', (from) => from.received],
  ['received_bytes', 'Bytes of accepted messages', (from) => from.receivedBytes],
  ['received_recipients', 'Recipients of accepted messages', (from) => from.receivedRecipients],
  ['delivered', 'Recipients that a next hop took over', (from) => from.delivered],
  ['delivered_bytes', 'Bytes that next hops took over, once a recipient', (from) => from.deliveredBytes],
  ['deferred', 'Attempts for a recipient that ended in a deferral', (from) => from.deferred],
  ['bounced', 'Recipients refused for good by a next hop', (from) => from.bounced],
  ['expired', 'Recipients whose lifetime ended', (from) => from.expired],
  ['reports', 'Delivery status notifications made', (from) => from.reports],
  ['connections_accepted', 'SMTP connections of clients accepted', (from) => from.connectionsAccepted],
  ['connections_refused',
    'SMTP connections of clients refused by a limit', (from) => from.connectionsRefused],
  ['connections_waited',
    'Times that the connection of a client waited for its turn to be read',
    (from) => from.connectionsWaited],
  ['connections_opened', 'Connections to next hops begun', (from) => from.connectionsOpened],
  ['connections_failed',
    'Of those, connections that did not come up', (from) => from.connectionsFailed],
  ['tls_fallbacks',
    'Times that TLS with a next hop (tls: may) did not come up, so that mail went there in clear',
    (from) => from.tlsFallbacks],
  ['possible_duplicates',
    'Deliveries whose final dot got no reply: the next hop may have the message (RFC 1047)',
    (from) => from.possibleDuplicates],
  ['withdrawn', 'Messages withdrawn from the mirrors and refused', (from) => from.withdrawn],
  ['unanswered', 'Connections closed without a reply to the final dot', (from) => from.unanswered],
  ['fenced', 'Times that a store refused us because another process has a partition', (from) => from.fenced],
  ['epochs',
    'Changes of the record of a partition: its holder, or the copies that count', (from) => from.epochs],
  ['recovered_messages',
    'Messages taken back from the stores after a start', (from) => from.recoveredMessages],
  ['poison_held',
    'Times that a message was held because each process that worked on it had crashed',
    (from) => from.poisonMessages],
];

function exportHistograms(registry: Registry, metrics: GatewayMetrics): void {
  const histogram = (name: string, help: string, values: FixedHistogram): void => {
    new ExportedHistogram(registry, `twinpost_${name}_seconds`, help, values);
  };
  histogram('accept', 'Final dot of a client to our 250', metrics.acceptSeconds);
  histogram('hook', 'A message handed to a hook until its answer', metrics.hookSeconds);
  histogram('mirror', 'Change sent to the mirrors until acknowledged by all in sync', metrics.mirrorSeconds);
  histogram('queue', 'Acceptance to first delivery attempt', metrics.queueSeconds);
  histogram('delivery', 'One delivery attempt, connection set-up included', metrics.deliverySeconds);
}

const STATUS_GAUGES: Described<StatusAnswer> = [
  ['ready', '1 when new mail is taken', (from) => Number(from.ready)],
  ['degraded',
    '1 when a partition has fewer copies in step, or on other machines, than configured',
    (from) => Number(from.degraded)],
  ['register_up', '1 while the register answers', (from) => Number(from.register_away === '')],
  ['dns_up', '0 while no resolver of DNS answers', (from) => Number((from.dns_away ?? '') === '')],
  ['lookups_held', '1 while mail waits for the system to look up the names of next hops',
    (from) => Number((from.lookups_held ?? '') !== '')],
  ['connections_out_full',
    '1 while mail waits as connections to next hops are used up (delivery.connections)',
    (from) => Number((from.connections_full ?? '') !== '')],
  ['next_hops_down', 'Next hops that can not be reached', (from) => from.outages?.next_hops_down ?? 0],
  ['next_hops_denied', 'Of those, next hops that answer and refuse our user and password (auth)',
    (from) => from.outages?.next_hops_denied ?? 0],
  ['mx_down', 'Sets of MX hosts that can not be reached, and domains of which the DNS says nothing',
    (from) => from.outages?.mx_down ?? 0],
  ['stores_unreached',
    'Stores that the register names and are not reached', (from) => from.stores_unreached.length],
  ['partitions', 'Partitions held by this process', (from) => from.partitions],
  ['partitions_copies_missing',
    'Partitions with fewer copies in step than configured', (from) => from.partitions_copies_missing],
  ['partitions_on_own_host',
    'Partitions with a copy on the host of this gateway, which is lost with it',
    (from) => from.partitions_on_own_host],
  ['partitions_recovering', 'Partitions that are not whole here yet', (from) => from.partitions_recovering],
  ['partitions_without_memory',
    'Partitions that wait at their stores, for here is no memory even for an index of them',
    (from) => from.partitions_without_memory],
  ['orphan_partitions',
    'Partitions in the register that no configuration serves any more', (from) => from.orphan_partitions],
  ['partitions_rescued',
    'Partitions of another gateway that this one delivers', (from) => from.partitions_rescued],
  ['memory_used_bytes', 'Memory that counts against the limit', (from) => from.memory_used_bytes],
  ['memory_kept_bytes',
    'Empty blocks kept for the next burst, beside what is used', (from) => from.memory_kept_bytes ?? 0],
  ['memory_limit_bytes', 'Memory that the process may use', (from) => from.memory_limit_bytes],
  ['connections_in', 'SMTP connections of clients open', (from) => from.connections_in],
  ['connections_out', 'Connections to next hops open', (from) => from.connections_out],
  ['dots_in_flight', 'Final dots sent to next hops and not yet answered', (from) => from.dots_in_flight],
];

const STATUS_COUNTERS: Described<StatusAnswer> = [
  ['takeovers', 'Partitions taken over from a gateway that was gone', (from) => from.takeovers],
  ['handed_back', 'Partitions given back to their gateway', (from) => from.handed_back],
  ['taken_away',
    'Partitions that another process had taken over while this one stood still or was cut off',
    (from) => from.taken_away],
  ['losses', 'Partitions that began empty, because every copy was lost or given up', (from) => from.losses],
  ['adopted', 'Messages of copies that were given up and came back', (from) => from.adopted],
  ['adopted_twice', 'Of those, messages that may be delivered twice', (from) => from.adopted_twice],
  ['tails', 'Times that a mirror got only the changes that it lacked', (from) => from.tails],
  ['tail_bytes', 'Bytes of those changes', (from) => from.tail_bytes],
  ['refills', 'Times that a mirror was emptied and filled', (from) => from.refills],
  ['refill_bytes', 'Bytes that went into those', (from) => from.refill_bytes],
];

function exportStatus(series: Series, source: GaugeSource): void {
  exportConfiguration(series, () => source.status().configuration);
  for (const [name, help, read] of STATUS_GAUGES) series.gauge(name, help, () => read(source.status()));
  for (const [name, help, read] of STATUS_COUNTERS) series.counter(name, help, () => read(source.status()));
  const waitingHelp =
    'Partitions that are not served, by what they wait for; copies_away asks for an operator';
  // A series for each cause, so that an alarm on copies_away finds its 0.
  series.gauges('partitions_waiting', waitingHelp, ['for'], () => {
    return Object.entries(source.status().waiting_for).map(([cause, count]) => [{ for: cause }, count]);
  });
  series.gauge('resident_bytes', 'Resident memory of the process', () => process.memoryUsage.rss());
  exportLogLosses(series, () => source.status().log);
  series.counter('cpu_seconds', 'Processor time used', () => {
    const usage = process.cpuUsage();
    return (usage.user + usage.system) / 1e6;
  });
}

/** Since the last scrape: a maximum over the life of the process would hide everything after the start. */
function exportLoopDelay(series: Series, loop: IntervalHistogram): void {
  const help = 'How late the event loop was since the last scrape';
  series.gauges('event_loop_delay_seconds', help, ['quantile'], () => {
    const seconds = (nanoseconds: number): number => {
      if (!Number.isFinite(nanoseconds)) return 0;
      return Math.max(0, nanoseconds / 1e9 - DELAY_RESOLUTION_MS / 1000);
    };
    const samples = [
      [{ quantile: '0.5' }, seconds(loop.percentile(50))],
      [{ quantile: '0.99' }, seconds(loop.percentile(99))],
      [{ quantile: '1' }, seconds(loop.max)],
    ] as const;
    loop.reset();
    return samples;
  });
}

function add(counts: Map<string, number>, reason: string): void {
  const known = counts.has(reason) || counts.size < REASONS_MAX ? reason : 'other';
  counts.set(known, (counts.get(known) ?? 0) + 1);
}

function sum(counts: ReadonlyMap<string, number>): number {
  let total = 0;
  for (const count of counts.values()) total += count;
  return total;
}
