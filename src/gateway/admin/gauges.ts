/** Lets the metrics read the gateway through its operators' view: one reading a scrape, not one a series. */
import type { GaugeSource } from '../../observability/gateway-metrics.js';
import type { QueueGauges, StateGauges, StoreGauges } from '../../observability/queue-metrics.js';
import type { GatewayView, QueueView, StatusView } from './view.js';

/** A scrape asks for some twenty series within a few milliseconds; they should agree with each other. */
const SAME_SCRAPE_MS = 50;

export interface GaugePorts {
  readonly view: GatewayView;
  nowMs(): number;
  wallMs(): number;
  logLinesDropped(): number;
  /** Messages by state. */
  states(): readonly StateGauges[];
}

export function gaugeSource(ports: GaugePorts): GaugeSource {
  let readAtMs = -Infinity;
  let status: StatusView | undefined;
  let queues: readonly QueueGauges[] = [];
  const refresh = (): StatusView => {
    const now = ports.nowMs();
    if (status === undefined || now - readAtMs >= SAME_SCRAPE_MS) {
      readAtMs = now;
      status = ports.view.status();
      queues = ports.view.queues('', Number.MAX_SAFE_INTEGER).queues.map((queue) => queueGauges(queue, ports.wallMs()));
    }
    return status;
  };
  const fromStatus = <T>(read: (status: StatusView) => T): (() => T) => () => read(refresh());
  return {
    queues: () => {
      refresh();
      return queues;
    },
    states: () => ports.states(),
    stores: fromStatus((now) => now.stores.map((store): StoreGauges => ({ ...store, store: store.id, leaseLeftSeconds: store.leaseLeftMs / 1000 }))),
    ready: fromStatus((now) => now.ready),
    routesRefused: fromStatus((now) => now.routesRefused),
    degraded: fromStatus((now) => now.degradedSinceWallMs !== undefined),
    partitionsShort: fromStatus((now) => now.partitionsShort),
    waitingFor: fromStatus((now) => now.waitingFor),
    partitions: fromStatus((now) => now.partitions),
    partitionsRecovering: fromStatus((now) => now.partitionsRecovering),
    partitionsRescued: fromStatus((now) => now.partitionsRescued),
    orphanPartitions: fromStatus((now) => now.orphanPartitions),
    takeovers: fromStatus((now) => now.takeovers),
    handedBack: fromStatus((now) => now.handedBack),
    takenAway: fromStatus((now) => now.takenAway),
    losses: fromStatus((now) => now.losses),
    adopted: fromStatus((now) => now.adopted),
    adoptedTwice: fromStatus((now) => now.adoptedTwice),
    registerUp: fromStatus((now) => now.registerAway === ''),
    storesUnreached: fromStatus((now) => now.storesUnreached.length),
    repairs: fromStatus((now) => now.repairs),
    memoryUsedBytes: fromStatus((now) => now.memoryUsedBytes),
    memoryKeptBytes: fromStatus((now) => now.memoryKeptBytes),
    memoryLimitBytes: fromStatus((now) => now.memoryLimitBytes),
    connectionsIn: fromStatus((now) => now.connectionsIn),
    connectionsOut: fromStatus((now) => now.connectionsOut),
    dotsInFlight: fromStatus((now) => now.dotsInFlight),
    logLinesDropped: () => ports.logLinesDropped(),
  };
}

function queueGauges(queue: QueueView, wallMs: number): QueueGauges {
  return {
    name: queue.name,
    queueClass: queue.queueClass,
    partition: queue.partition,
    owner: queue.owner,
    messages: queue.messages,
    bytes: queue.bytes,
    active: queue.active,
    deferred: queue.deferred,
    held: queue.held,
    inSync: queue.inSync,
    epoch: queue.epoch,
    lagMessages: queue.lagMessages,
    lagBytes: queue.lagBytes,
    refillShare: queue.refillShare ?? 1,
    oldestAgeSeconds: queue.oldestArrivalWallMs === undefined ? 0 : Math.max(0, (wallMs - queue.oldestArrivalWallMs) / 1000),
  };
}
