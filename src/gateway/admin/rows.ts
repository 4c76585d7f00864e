/** Views as the answers of admin-api/gateway-answers.ts, which says what each field means. */
import type {
  MessageAnswer, OrphansAnswer, QueueAnswer, RefusedRouteAnswer, StatusAnswer, StoreAnswer, TableRowAnswer,
  UnreachedStoreAnswer, WaitingPartitionAnswer,
} from '../../admin-api/gateway-answers.js';
import type { MemberAnswer } from '../../admin-api/pages.js';
import type { OutageFigures, ReceptionFigures } from '../../observability/figures.js';
import type {
  MemberView, MessageView, OrphansView, QueueView, RefusedRouteView, StatusView, StoreView, TableRowView,
  UnreachedStoreView, WaitingPartitionView,
} from './view.js';

export function statusRow(status: StatusView, nowWallMs: number): StatusAnswer {
  return {
    gateway: status.gateway, host: status.host,
    version: status.version,
    incarnation: status.incarnation,
    pid: status.pid,
    uptime_seconds: Math.max(0, Math.round((nowWallMs - status.startedWallMs) / 1000)),
    ready: status.ready,
    not_ready_reason: status.notReadyReason,
    routes: status.routes,
    routes_refused: status.routesRefused.map(refusedRow),
    degraded: status.degradedSinceWallMs !== undefined,
    degraded_since: secondsIf(status.degradedSinceWallMs),
    degraded_cause: status.degradedCause,
    insecure: status.insecure,
    received: status.received,
    delivered: status.delivered,
    deferred: status.deferred,
    bounced: status.bounced,
    expired: status.expired,
    rejected: status.rejected,
    reception: receptionRow(status.reception),
    outages: outagesRow(status.outages),
    queues: status.queues,
    partitions: status.partitions,
    partitions_recovering: status.partitionsRecovering,
    partitions_without_memory: status.partitionsWithoutMemory,
    partitions_copies_missing: status.partitionsShort,
    partitions_waiting: status.partitionsWaiting,
    waiting_for: {
      register: status.waitingFor.register, lease: status.waitingFor.lease, stores: status.waitingFor.stores,
      copies_away: status.waitingFor.copiesAway,
    },
    waiting: status.waiting.map(waitingRow),
    register_away: status.registerAway,
    partitions_rescued: status.partitionsRescued,
    orphan_partitions: status.orphanPartitions,
    orphans: status.orphans.map(orphansRow),
    ends_untold: status.endsUntold.map(({ stores, partitions, names }) => ({ stores, partitions, names })),
    takeovers: status.takeovers,
    handed_back: status.handedBack,
    taken_away: status.takenAway,
    losses: status.losses,
    adopted: status.adopted,
    adopted_twice: status.adoptedTwice,
    tails: status.repairs.tails,
    tail_bytes: status.repairs.tailBytes,
    refills: status.repairs.refills,
    refill_bytes: status.repairs.refillBytes,
    queued_messages: status.queuedMessages,
    queued_bytes: status.queuedBytes,
    memory_used_bytes: status.memoryUsedBytes,
    memory_limit_bytes: status.memoryLimitBytes,
    connections_in: status.connectionsIn,
    connections_out: status.connectionsOut,
    dots_in_flight: status.dotsInFlight,
    stores: status.stores.map(storeRow),
    stores_unreached: status.storesUnreached.map(unreachedRow),
  };
}

function outagesRow({ nextHops, nextHopCount, hooks }: OutageFigures): NonNullable<StatusAnswer['outages']> {
  return {
    next_hops: nextHops.map(({ relay, sinceWallMs, waiting, why }) =>
      ({ relay, since: seconds(sinceWallMs), waiting, why })),
    next_hops_down: nextHopCount,
    hooks: hooks.map(({ hook, sinceWallMs, why }) => ({ hook, since: seconds(sinceWallMs), why })),
  };
}

function refusedRow({ route, reason, sinceWallMs }: RefusedRouteView): RefusedRouteAnswer {
  return { route, reason, since: seconds(sinceWallMs) };
}

function orphansRow({ gateway, isRetired, partitions, names, sinceWallMs }: OrphansView): OrphansAnswer {
  return { gateway, retired: isRetired, partitions, names, since: seconds(sinceWallMs) };
}

function waitingRow(
  { partition, owner, waitsFor, copies, why, sinceWallMs }: WaitingPartitionView,
): WaitingPartitionAnswer {
  return { partition, owner, waits_for: waitsFor, copies, why, since: seconds(sinceWallMs) };
}

function unreachedRow({ id, host, why, sinceWallMs }: UnreachedStoreView): UnreachedStoreAnswer {
  return { store: id, host, why, since: seconds(sinceWallMs) };
}

function storeRow(store: StoreView): StoreAnswer {
  return {
    store: store.id,
    host: store.host,
    protocol: store.protocol,
    up: store.up,
    drained: store.drained,
    drained_since: secondsIf(store.drainedSinceWallMs),
    paths: store.paths.map(({ path, state, sinceWallMs }) => ({ path, state, since: seconds(sinceWallMs) })),
    partitions_sync: store.partitionsSync,
    partitions_resync: store.partitionsResync,
    partitions_ng: store.partitionsNg,
    lag_messages: store.lagMessages,
    lag_bytes: store.lagBytes,
    refill_messages: store.refillMessages,
    refill_bytes: store.refillBytes,
    credit_bytes: store.creditBytes,
    lease_left_ms: Math.round(store.leaseLeftMs),
    failovers: store.failovers,
    cause: store.cause,
    cause_since: secondsIf(store.causeSinceWallMs),
  };
}

export function tableRow(row: TableRowView): TableRowAnswer {
  return {
    partition: row.partition,
    owner: row.owner,
    store: row.store,
    network_a: row.networkA,
    network_s: row.networkS,
    sync: row.sync,
    progress: row.progress === undefined ? null : Math.round(row.progress * 1000) / 1000,
    member: row.member,
    epoch: row.epoch,
    transactions: row.transactions ?? null,
    last_transaction: row.lastTransaction,
    digest: row.digest ?? null,
    messages: row.messages,
    lag_messages: row.lagMessages,
    lag_bytes: row.lagBytes,
    since: seconds(row.sinceWallMs),
    cause: row.cause,
  };
}

export function memberRow(member: MemberView): MemberAnswer {
  const { id, kind, admin = null, away, self } = member;
  return { id, kind, admin, away, self };
}

export function queueRow(queue: QueueView, nowWallMs: number): QueueAnswer {
  const oldest = queue.oldestArrivalWallMs;
  return {
    queue_name: queue.name,
    queue_class: queue.queueClass,
    owner: queue.owner,
    partition: queue.partition,
    next_hop: queue.nextHop,
    order: queue.ordering,
    messages: queue.messages,
    bytes: queue.bytes,
    active: queue.active,
    deferred: queue.deferred,
    held: queue.held,
    copies_in_sync: queue.inSync,
    epoch: queue.epoch,
    lag_messages: queue.lagMessages,
    lag_bytes: queue.lagBytes,
    oldest_age_seconds: oldest === undefined ? null : Math.max(0, Math.round((nowWallMs - oldest) / 1000)),
    last_error: queue.lastError,
  };
}

export function messageRow(queue: string, queueClass: string, message: MessageView): MessageAnswer {
  return {
    queue_name: queue,
    queue_class: queueClass,
    owner: message.owner,
    queue_id: message.queueId,
    arrival_time: seconds(message.arrivalWallMs),
    message_size: message.messageBytes,
    sender: message.sender,
    recipients: message.recipients.map(({ address, delayReason }) =>
      ({ address, ...(delayReason === '' ? {} : { delay_reason: delayReason }) })),
    state: message.state,
    ...(message.heldReason === '' ? {} : { held_reason: message.heldReason }),
    attempts: message.attempts,
    next_attempt_time: secondsIf(message.nextAttemptWallMs),
    expiry_time: seconds(message.expiryWallMs),
  };
}

function seconds(wallMs: number): number {
  return Math.floor(wallMs / 1000);
}

function secondsIf(wallMs: number | undefined): number | null {
  return wallMs === undefined ? null : seconds(wallMs);
}

function receptionRow(figures: ReceptionFigures): NonNullable<StatusAnswer['reception']> {
  return {
    tls_handshakes: figures.handshakes, tls_failed: figures.handshakesFailed,
    auth: figures.auths, auth_failed: figures.authsFailed,
    lookups: figures.lookups, lookups_failed: figures.lookupsFailed,
    stale_files: [...figures.staleFiles],
  };
}
