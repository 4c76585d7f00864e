/**
 * All metrics of a gateway in one place: names, units, reasons for buckets. The hot path adds to plain
 * numbers here (`metrics.delivered++`); prom-client sees them only when /metrics is read. What the gateway
 * knows as a state (queues, mirrors, memory) is not copied: it is read from a GaugeSource at that moment.
 *
 * Labels are bounded: reasons are words of this program, stores are configured.
 *
 * What is not here: series of queues and stores (queue-metrics.ts), the store's metrics (kvs/daemon), lines
 * of the mail log (mail-log.ts).
 */
import { monitorEventLoopDelay } from 'node:perf_hooks';
import type { IntervalHistogram } from 'node:perf_hooks';
import { Counter, Gauge, Registry } from 'prom-client';
import { ExportedHistogram, FixedHistogram } from './fixed-histogram.js';
import type { WaitingFigures } from './queue-figures.js';
import { exportQueues, exportRefusals, exportStates, exportStores } from './queue-metrics.js';
import type { QueueGauges, RouteGauges, StateGauges, StoreGauges } from './queue-metrics.js';

const REASONS_MAX = 64;
const DELAY_RESOLUTION_MS = 10;

/** Seconds from final dot to 250, and of a mirror's acknowledgement: both are under 1 ms on a quiet LAN and end at commit_timeout. */
const ANSWER_BUCKETS = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 20];
/** Seconds in a queue: from at once to the lifetime of five days. */
const QUEUE_BUCKETS = [0.01, 0.05, 0.1, 0.5, 1, 5, 15, 60, 300, 900, 3600, 14_400, 86_400, 432_000];
/** Seconds of one delivery attempt; ends at the timeout for the reply to the final dot. */
const DELIVERY_BUCKETS = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 5, 30, 120, 600];

/** What it cost to bring mirrors level again, since the start of the process. */
export interface RepairTotals {
  readonly tails: number;
  readonly tailBytes: number;
  readonly refills: number;
  readonly refillBytes: number;
}

/** States as they are now; asked once a scrape. */
export interface GaugeSource {
  queues(): readonly QueueGauges[];
  states(): readonly StateGauges[];
  stores(): readonly StoreGauges[];
  ready(): boolean;
  /** Configured routes whose new mail is refused, each with a word of ours why. */
  routesRefused(): readonly RouteGauges[];
  degraded(): boolean;
  /** The register answers. */
  registerUp(): boolean;
  /** Stores that the register names and this gateway does not reach. */
  storesUnreached(): number;
  /** Held here. */
  partitions(): number;
  /** With fewer copies in step than configured. */
  partitionsShort(): number;
  waitingFor(): WaitingFigures;
  partitionsRecovering(): number;
  /** Of another gateway. */
  partitionsRescued(): number;
  orphanPartitions(): number;
  /** Of others, taken over and given back. */
  takeovers(): number;
  handedBack(): number;
  /** Those that another process had taken over from this one. */
  takenAway(): number;
  /** Those that began empty, because every copy was lost or given up. */
  losses(): number;
  /** Messages of copies that were given up and came back. */
  adopted(): number;
  /** Of these, those that may be delivered twice. */
  adoptedTwice(): number;
  repairs(): RepairTotals;
  memoryUsedBytes(): number;
  /** Empty blocks kept for the next burst, beside what is used. */
  memoryKeptBytes(): number;
  memoryLimitBytes(): number;
  connectionsIn(): number;
  connectionsOut(): number;
  /** Final dots sent whose reply is awaited: what could be repeated if we died now. */
  dotsInFlight(): number;
  logLinesDropped(): number;
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
  const registry = new Registry();
  exportCounters(registry, metrics);
  exportHistograms(registry, metrics);
  exportQueues(registry, () => source.queues());
  exportStates(registry, () => source.states());
  exportRefusals(registry, () => source.routesRefused());
  exportStores(registry, () => source.stores());
  exportProcess(registry, source);
  const loop = monitorEventLoopDelay({ resolution: DELAY_RESOLUTION_MS });
  loop.enable();
  exportLoopDelay(registry, loop);
  return { registry, close: () => { loop.disable(); } };
}

function exportCounters(registry: Registry, metrics: GatewayMetrics): void {
  const counter = (name: string, help: string, read: () => number): void => { total(registry, name, help, read); };
  counter('received', 'Messages accepted (250 to the final dot)', () => metrics.received);
  counter('received_bytes', 'Bytes of accepted messages', () => metrics.receivedBytes);
  counter('received_recipients', 'Recipients of accepted messages', () => metrics.receivedRecipients);
  counter('delivered', 'Recipients that a next hop took over', () => metrics.delivered);
  counter('delivered_bytes', 'Bytes that next hops took over, once a recipient', () => metrics.deliveredBytes);
  counter('deferred', 'Attempts for a recipient that ended in a deferral', () => metrics.deferred);
  counter('bounced', 'Recipients refused for good by a next hop', () => metrics.bounced);
  counter('expired', 'Recipients whose lifetime ended', () => metrics.expired);
  counter('reports', 'Delivery status notifications made', () => metrics.reports);
  counter('connections_accepted', 'SMTP connections of clients accepted', () => metrics.connectionsAccepted);
  counter('connections_refused', 'SMTP connections of clients refused by a limit', () => metrics.connectionsRefused);
  counter('connections_waited', 'Times that the connection of a client waited for its turn to be read', () => metrics.connectionsWaited);
  counter('connections_opened', 'Connections to next hops begun', () => metrics.connectionsOpened);
  counter('connections_failed', 'Connections to next hops that failed', () => metrics.connectionsFailed);
  counter('possible_duplicates', 'Deliveries whose final dot got no reply: the next hop may have the message (RFC 1047)', () => metrics.possibleDuplicates);
  counter('withdrawn', 'Messages withdrawn from the mirrors and refused', () => metrics.withdrawn);
  counter('unanswered', 'Connections closed without a reply to the final dot', () => metrics.unanswered);
  counter('fenced', 'Times that a store refused us because another process has a partition', () => metrics.fenced);
  counter('epochs', 'Changes of the record of a partition: its holder, or the copies that count', () => metrics.epochs);
  counter('recovered_messages', 'Messages taken back from the stores after a start', () => metrics.recoveredMessages);
  counter('poison_held', 'Times that a message was held because each process that worked on it had crashed', () => metrics.poisonMessages);
  labelled(registry, 'rejected', 'Refusals to clients by reason', metrics.rejectedByReason);
  labelled(registry, 'removed', 'Recipients ended without delivery and report, by reason', metrics.removedByReason);
}

function labelled(registry: Registry, name: string, help: string, counts: ReadonlyMap<string, number>): void {
  new Counter({
    name: `twinpost_${name}_total`,
    help,
    labelNames: ['reason'],
    registers: [registry],
    collect() {
      this.reset();
      for (const [reason, count] of counts) this.inc({ reason }, count);
    },
  });
}

function exportHistograms(registry: Registry, metrics: GatewayMetrics): void {
  new ExportedHistogram(registry, 'twinpost_accept_seconds', 'Final dot of a client to our 250', metrics.acceptSeconds);
  new ExportedHistogram(registry, 'twinpost_mirror_seconds', 'Change sent to the mirrors until acknowledged by all in sync', metrics.mirrorSeconds);
  new ExportedHistogram(registry, 'twinpost_queue_seconds', 'Acceptance to first delivery attempt', metrics.queueSeconds);
  new ExportedHistogram(registry, 'twinpost_delivery_seconds', 'One delivery attempt, connection set-up included', metrics.deliverySeconds);
}

function exportProcess(registry: Registry, source: GaugeSource): void {
  single(registry, 'ready', '1 when new mail is taken', () => Number(source.ready()));
  single(registry, 'degraded', '1 when a partition has fewer copies in step than configured', () => Number(source.degraded()));
  single(registry, 'register_up', '1 while the register answers', () => Number(source.registerUp()));
  single(registry, 'stores_unreached', 'Stores that the register names and are not reached', () => source.storesUnreached());
  single(registry, 'partitions', 'Partitions held by this process', () => source.partitions());
  single(registry, 'partitions_copies_missing', 'Partitions with fewer copies in step than configured', () => source.partitionsShort());
  exportWaiting(registry, () => source.waitingFor());
  single(registry, 'partitions_recovering', 'Partitions that are not whole here yet', () => source.partitionsRecovering());
  single(registry, 'orphan_partitions', 'Partitions in the register that no configuration serves any more', () => source.orphanPartitions());
  single(registry, 'partitions_rescued', 'Partitions of another gateway that this one delivers', () => source.partitionsRescued());
  total(registry, 'takeovers', 'Partitions taken over from a gateway that was gone', () => source.takeovers());
  total(registry, 'handed_back', 'Partitions given back to their gateway', () => source.handedBack());
  total(registry, 'taken_away', 'Partitions that another process had taken over while this one stood still or was cut off', () => source.takenAway());
  total(registry, 'losses', 'Partitions that began empty, because every copy was lost or given up', () => source.losses());
  total(registry, 'adopted', 'Messages of copies that were given up and came back', () => source.adopted());
  total(registry, 'adopted_twice', 'Of those, messages that may be delivered twice', () => source.adoptedTwice());
  total(registry, 'tails', 'Times that a mirror got only the changes that it lacked', () => source.repairs().tails);
  total(registry, 'tail_bytes', 'Bytes of those changes', () => source.repairs().tailBytes);
  total(registry, 'refills', 'Times that a mirror was emptied and filled', () => source.repairs().refills);
  total(registry, 'refill_bytes', 'Bytes that went into those', () => source.repairs().refillBytes);
  single(registry, 'memory_used_bytes', 'Memory that counts against the limit', () => source.memoryUsedBytes());
  single(registry, 'memory_kept_bytes', 'Empty blocks kept for the next burst, beside what is used', () => source.memoryKeptBytes());
  single(registry, 'memory_limit_bytes', 'Memory that the process may use', () => source.memoryLimitBytes());
  single(registry, 'resident_bytes', 'Resident memory of the process', () => process.memoryUsage.rss());
  single(registry, 'connections_in', 'SMTP connections of clients open', () => source.connectionsIn());
  single(registry, 'connections_out', 'Connections to next hops open', () => source.connectionsOut());
  single(registry, 'dots_in_flight', 'Final dots sent to next hops and not yet answered', () => source.dotsInFlight());
  total(registry, 'log_lines_dropped', 'Mail log lines lost because their reader was too slow', () => source.logLinesDropped());
  total(registry, 'cpu_seconds', 'Processor time used', () => {
    const usage = process.cpuUsage();
    return (usage.user + usage.system) / 1e6;
  });
}

/** A series for each cause, so that an alarm on copies_away finds its 0. */
function exportWaiting(registry: Registry, waiting: () => WaitingFigures): void {
  new Gauge({
    name: 'twinpost_partitions_waiting',
    help: 'Partitions that are not served, by what they wait for; copies_away asks for an operator',
    labelNames: ['for'],
    registers: [registry],
    collect() {
      const { register, lease, stores, copiesAway } = waiting();
      this.set({ for: 'register' }, register);
      this.set({ for: 'lease' }, lease);
      this.set({ for: 'stores' }, stores);
      this.set({ for: 'copies_away' }, copiesAway);
    },
  });
}

/** A number that only grows, read when it is asked for. */
function total(registry: Registry, name: string, help: string, read: () => number): void {
  new Counter({
    name: `twinpost_${name}_total`,
    help,
    registers: [registry],
    collect() {
      this.reset();
      this.inc(read());
    },
  });
}

function single(registry: Registry, name: string, help: string, read: () => number): void {
  new Gauge({
    name: `twinpost_${name}`,
    help,
    registers: [registry],
    collect() {
      this.set(read());
    },
  });
}

/** Since the last scrape: a maximum over the life of the process would hide everything after the start. */
function exportLoopDelay(registry: Registry, loop: IntervalHistogram): void {
  new Gauge({
    name: 'twinpost_event_loop_delay_seconds',
    help: 'How late the event loop was since the last scrape',
    labelNames: ['quantile'],
    registers: [registry],
    collect() {
      const seconds = (nanoseconds: number): number => (Number.isFinite(nanoseconds) ? Math.max(0, nanoseconds / 1e9 - DELAY_RESOLUTION_MS / 1000) : 0);
      this.set({ quantile: '0.5' }, seconds(loop.percentile(50)));
      this.set({ quantile: '0.99' }, seconds(loop.percentile(99)));
      this.set({ quantile: '1' }, seconds(loop.max));
      loop.reset();
    },
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
