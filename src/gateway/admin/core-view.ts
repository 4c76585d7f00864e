/**
 * The gateway as the admin HTTP shows it: reads the core and the links into the answers of admin-api.
 */
import type { GatewayMetrics } from '../../observability/gateway-metrics.js';
import { logAnswerOf } from '../../observability/log-losses.js';
import type { StateFigures } from '../../observability/queue-metrics.js';
import type { Clock, EventLog, LogLosses } from '../../platform/ports.js';
import { verifiedText } from '../../platform/transport.js';
import type {
  BusiestAnswer, GatewayConfigurationAnswer, MessageAnswer, MessagePageAnswer, OrphansAnswer,
  OutagesAnswer, QueueAnswer, QueuePageAnswer, SourceAnswer, StatusAnswer, StoreAnswer, TablePageAnswer,
  TableRowAnswer, UnreachedStoreAnswer, UntoldEndsAnswer, WaitingPartitionAnswer,
} from '../../admin-api/gateway-answers.js';
import type { ShownMessageAnswer } from '../../admin-api/look.js';
import type { MemberAnswer } from '../../admin-api/pages.js';
import { awaitedBackText } from '../../admin-api/awaited-back.js';
import { wholeSeconds } from '../../base/units.js';
import type { GatewayView } from './view.js';
import type { GatewayCore } from '../daemon/core.js';
import { Degradation } from './degradation.js';
import { MessageView } from '../look/message-view.js';
import { MirrorTable, lagOf, pageByHandle, queueLag } from './mirror-table.js';
import type { StoreLink } from '../mirror/link/store-link.js';
import type { Partition } from '../mirror/set/partition.js';
import type { PartitionMember } from '../../recovery/ownership/member.js';
import { MemberState } from '../../recovery/ownership/member.js';
import { ruleAnswers } from '../orders/rule-answers.js';
import type { WaitingPartition } from '../ownership/holdings.js';
import type { UnreachedStore } from '../ownership/known-stores.js';
import { WAITING_NAMES, Waiting } from '../../recovery/ownership/waiting.js';
import type { NextHopState } from '../outbound/connection-pool.js';
import { EntryState } from '../queue/entry-table.js';
import { HurtingQueues } from '../queue/hurting-queues.js';
import type { MailQueue } from '../queue/mail-queue.js';
import { nextHopOf } from '../queue/next-hop.js';
import { cursorAt, placesBehind, queuesOfClass } from '../queue/queue-walk.js';

export interface CoreViewOptions {
  readonly gatewayId: string;
  readonly host: string;
  readonly incarnation: number;
  readonly version: string;
  readonly insecure: boolean;
  readonly replicas: number;
  readonly minReplicas: number;
  readonly leaseMs: number;
  /** Gateways that it takes over from. */
  rescues(): readonly string[];
  /** Host label of a store, '' when it is not known. */
  hostOf(storeId: string): string;
  /** Gateways and stores of the group as they are known, without this one. */
  others(): readonly Omit<MemberAnswer, 'self'>[];
  /** Stores that the register names and this gateway does not reach. */
  unreached(): readonly UnreachedStore[];
}

export interface CoreViewPorts {
  readonly clock: Clock;
  readonly log: EventLog;
  readonly core: GatewayCore;
  readonly links: readonly StoreLink[];
  readonly metrics: GatewayMetrics;
  readonly pid: number;
  /** host:port at which others reach this gateway's admin HTTP; undefined when that can't be told. */
  adminAddress(): string | undefined;
  isDraining(): boolean;
  /** The SMTP port is open; left out where there is none. */
  isListening?(): boolean;
  /** Undefined for a store that is used, and when it is not known. */
  drainedSinceWallMs(storeId: string): number | undefined;
  connectionsIn(): number;
  connectionsOut(): number;
  dotsInFlight(): number;
  /** Left out where nothing is delivered, as are the next. */
  outages?(): OutagesAnswer;
  dnsAway?(): string;
  lookupsHeld?(): string;
  connectionsFull?(): string;
  sources?(): readonly SourceAnswer[];
  isDown?(queue: MailQueue): boolean;
  nextHopOf?(queue: MailQueue): NextHopState | undefined;
  /** Left out where nothing comes in. */
  busiest?(): BusiestAnswer;
  /** Left out where there is no file. */
  configuration?(): GatewayConfigurationAnswer;
  readonly logLosses?: LogLosses;
}

const NO_OUTAGES: OutagesAnswer = {
  next_hops: [], next_hops_down: 0, next_hops_denied: 0, mx: [], mx_down: 0, mx_waiting: 0, hooks: [],
};
const NOBODY: BusiestAnswer = { seconds: 1, messages: 0, clients: [], senders: [], users: [] };
/** Waiting partitions of each kind named in the status; the others are counted. */
const WAITING_SHOWN_MAX = 20;
/** Gateways of a group, while the register is away. */
const HOLDERS_SHOWN_MAX = 100;
/** Of the orphans of one gateway. */
const ORPHANS_SHOWN_MAX = 8;

const STATES_SHOWN = [
  { state: EntryState.STORING, name: 'incoming' },
  { state: EntryState.READY, name: 'queued' },
  { state: EntryState.IN_FLIGHT, name: 'active' },
  { state: EntryState.DEFERRED, name: 'deferred' },
  { state: EntryState.REPORTING, name: 'ending' },
  { state: EntryState.HELD, name: 'held' },
] as const;

export class CoreView implements GatewayView {
  readonly #options: CoreViewOptions;
  readonly #ports: CoreViewPorts;
  readonly #startedWallMs: number;
  readonly #degradation: Degradation;
  readonly #mirrorTable: MirrorTable;
  readonly #hurting: HurtingQueues;
  readonly #messages: MessageView;

  constructor(options: CoreViewOptions, ports: CoreViewPorts) {
    this.#options = options;
    this.#ports = ports;
    this.#startedWallMs = ports.clock.wallMs();
    const { replicas } = options;
    const { clock, log, core, links, nextHopOf } = ports;
    this.#degradation = new Degradation(replicas, { clock, log, core, stores: () => this.#stores() });
    this.#mirrorTable = new MirrorTable({ clock, links, replicas, all: () => core.registry.partitions });
    this.#hurting = new HurtingQueues({
      table: core.entries.table,
      byHandle: () => core.registry.byHandle,
      isDown: (queue) => this.#isDown(queue),
      nowSeconds: () => wholeSeconds(core.frame.wallMs()),
      nextTryOf: (queue) => this.#messages.nextTryOf(queue),
    });
    this.#messages = new MessageView({ clock, core, ...(nextHopOf === undefined ? {} : { nextHopOf }) });
  }

  /** Called with each tick. */
  watch(nowMs: number): void {
    this.#degradation.watch(nowMs);
    this.#hurting.watch(nowMs);
  }

  status(): StatusAnswer {
    const { core, clock, metrics } = this.#ports;
    const {
      gatewayId, host, version, incarnation, insecure, replicas, minReplicas, leaseMs,
    } = this.#options;
    const degradedSinceWallMs = this.#degradation.sinceWallMs();
    const stores = this.#stores();
    const { configuration: configured, logLosses } = this.#ports;
    const configuration = configured?.();
    return {
      gateway: gatewayId, host, version, incarnation, pid: this.#ports.pid,
      uptime_seconds: Math.max(0, Math.round((clock.wallMs() - this.#startedWallMs) / 1000)),
      ready: core.accepting && core.memory.admits(0) && this.#isListening,
      not_ready_reason: this.#notReadyReason(),
      routes: core.readiness.routeCount,
      routes_refused: core.readiness.refused.map(({ route, reason, sinceWallMs }) =>
        ({ route: route.queueName, reason, since: wholeSeconds(sinceWallMs) })),
      replicas, min_replicas: minReplicas, lease_ms: leaseMs, rescues: this.#options.rescues(),
      degraded: degradedSinceWallMs !== undefined,
      degraded_since: secondsIf(degradedSinceWallMs),
      degraded_cause: degradedSinceWallMs === undefined ? '' : this.#degradation.cause(stores),
      insecure,
      received: metrics.received,
      delivered: metrics.delivered,
      deferred: metrics.deferred,
      bounced: metrics.bounced,
      expired: metrics.expired,
      rejected: metrics.rejectedTotal,
      reception: metrics.reception.answer(),
      outages: this.#ports.outages?.() ?? NO_OUTAGES,
      dns_away: this.#ports.dnsAway?.() ?? '',
      lookups_held: this.#ports.lookupsHeld?.() ?? '',
      connections_full: this.#ports.connectionsFull?.() ?? '',
      sources: this.#ports.sources?.() ?? [],
      hurting: this.#hurting.answer(),
      busiest: this.#ports.busiest?.() ?? NOBODY,
      ...this.#queued(),
      ...this.#partitions(),
      memory_used_bytes: core.memory.usedBytes,
      memory_limit_bytes: core.memory.limitBytes,
      memory_kept_bytes: core.entries.keptBytes,
      connections_in: this.#ports.connectionsIn(),
      connections_out: this.#ports.connectionsOut(),
      dots_in_flight: this.#ports.dotsInFlight(),
      stores,
      stores_unreached: this.#unreached(),
      rules: ruleAnswers(core.rules),
      orders_left: core.orders.left.waitingCount,
      orders: core.orders.inForce(),
      ...(configuration === undefined ? {} : { configuration }),
      ...(logLosses === undefined ? {} : { log: logAnswerOf(logLosses) }),
    };
  }

  #queued(): Pick<
    StatusAnswer, 'queues' | 'queued_messages' | 'queued_bytes' | 'held_messages' | 'unrouted_messages'
    | 'delayed_messages'
  > {
    const { registry, entries: { table } } = this.#ports.core;
    let messages = 0;
    let bytes = 0;
    let delayed = 0;
    let unrouted = 0;
    for (const queue of registry.queues()) {
      messages += queue.length;
      if (!queue.routed) unrouted += queue.heldCount;
      delayed += queue.delayedCount;
      bytes += queue.bytes;
    }
    return {
      queues: registry.queueCount, queued_messages: messages, queued_bytes: bytes,
      held_messages: table.census.count(EntryState.HELD), unrouted_messages: unrouted,
      delayed_messages: delayed,
    };
  }

  /** Of those that are held here, should be, or were. */
  #partitions() {
    const { core } = this.#ports;
    const { counters, openCount, shortCount } = core.holdings;
    const { tails, tailBytes, refills, refillBytes } = core.mirrors.counters;
    const waiting = core.holdings.waiting();
    const orphans = this.#orphans();
    return {
      partitions: core.registry.partitions.length,
      partitions_recovering: openCount,
      awaited_back: this.#awaitedBack(),
      partitions_without_memory: shortCount,
      partitions_copies_missing: this.#degradation.partitionsShort(),
      partitions_uncopied: core.leaving.uncopied(),
      partitions_on_own_host: this.#degradation.partitionsOnOwnHost(),
      partitions_waiting: waiting.length,
      waiting_for: countWaiting(waiting),
      waiting: forPersonsFirst(waiting).map((one) => this.#waiting(one)),
      register_away: core.registerAway,
      ...this.#lastHeld(),
      partitions_rescued: core.registry.partitions.filter((one) => !one.isOwn).length,
      orphan_partitions: orphans.reduce((sum, one) => sum + one.partitions, 0),
      orphans,
      ends_untold: this.#endsUntold(),
      takeovers: counters.takeovers,
      handed_back: counters.handedBack,
      taken_away: counters.lost,
      losses: counters.losses,
      lost: core.holdings.losses.map(({ partition, wallMs, by }) =>
        ({ partition, at: wholeSeconds(wallMs), who: by?.who ?? '', reason: by?.reason ?? '' })),
      adopted: counters.adopted,
      adopted_twice: counters.adoptedTwice,
      tails, tail_bytes: tailBytes, refills, refill_bytes: refillBytes,
    } satisfies Partial<StatusAnswer>;
  }

  mirrors(cursor: string, limit: number): TablePageAnswer {
    return this.#mirrorTable.page(cursor, limit);
  }

  troubled(most: number): readonly TableRowAnswer[] {
    return this.#mirrorTable.troubled(most);
  }

  queues(cursor: string, limit: number): QueuePageAnswer {
    const { rows, next_cursor } = pageByHandle([...this.#ports.core.registry.queues()], cursor, limit);
    const nowWallMs = this.#ports.clock.wallMs();
    return { rows: rows.map((queue) => queueAnswer(queue, nowWallMs, this.#isDown(queue))), next_cursor };
  }

  #isDown(queue: MailQueue): boolean {
    return this.#ports.isDown?.(queue) ?? false;
  }

  group(): readonly MemberAnswer[] {
    const { gatewayId: id, others } = this.#options;
    const admin = this.#ports.adminAddress() ?? null;
    const self: MemberAnswer = { id, kind: 'gateway', admin, away: false, self: true };
    return [self, ...others().map((member) => ({ ...member, self: false }))];
  }

  /** Messages of all queues by state. */
  states(): readonly StateFigures[] {
    const { census } = this.#ports.core.entries.table;
    const nowSeconds = Math.floor(this.#ports.clock.wallMs() / 1000);
    return STATES_SHOWN.map(({ state, name }) => ({
      state: name, messages: census.count(state), bytes: census.bytes(state),
      oldestAgeSeconds: census.oldestAgeSeconds(state, nowSeconds),
    }));
  }

  messages(name: string, queueClass: string, cursor: string, limit: number): MessagePageAnswer | undefined {
    const { registry, entries: { table } } = this.#ports.core;
    const queues = queuesOfClass(registry.byName(name), queueClass);
    if (queues.length === 0) return undefined;
    const rows: MessageAnswer[] = [];
    let nextCursor = '';
    for (const place of placesBehind(cursor, queues, table)) {
      if (rows.length === limit) return { rows, next_cursor: nextCursor };
      rows.push(this.row(place.queue, place.row));
      nextCursor = cursorAt(place, table);
    }
    return { rows, next_cursor: null };
  }

  /** As a list shows it. */
  row(queue: MailQueue, row: number): MessageAnswer {
    return this.#messages.row(queue, row);
  }

  message(messageId: number): ShownMessageAnswer {
    return this.#messages.shown(messageId);
  }

  /** One walk over all queues for all stores. */
  #stores(): StoreAnswer[] {
    const sums = new Map<object, StoreSum>(this.#ports.links.map((link) => [link, new StoreSum()]));
    for (const partition of this.#ports.core.registry.partitions) {
      for (const copy of partition.rows) {
        const { store } = partition.feedOf(copy);
        if (store !== undefined) sums.get(store)?.add(partition, copy);
      }
    }
    return this.#ports.links.map((link) => this.#store(link, sums.get(link) ?? new StoreSum()));
  }

  #store(link: StoreLink, sum: StoreSum): StoreAnswer {
    const nowMs = this.#ports.clock.nowMs();
    const { outOfSync } = sum;
    const drained = this.#ports.core.mirrors.placement.drained.has(link.storeId);
    return {
      store: link.storeId,
      host: this.#options.hostOf(link.storeId),
      protocol: link.version,
      up: link.isUp,
      drained,
      drained_since: secondsIf(drained ? this.#ports.drainedSinceWallMs(link.storeId) : undefined),
      paths: link.pathStates().map(({ path, state, sinceMs }) =>
        ({ path, state, since: this.#since(sinceMs) })),
      partitions_sync: sum.sync,
      partitions_resync: sum.resync,
      partitions_ng: sum.ng,
      lag_messages: sum.lagMessages,
      lag_bytes: sum.lagBytes,
      refill_messages: sum.refillMessages,
      refill_bytes: sum.refillBytes,
      credit_bytes: link.credit,
      // A lease is never longer than the store grants, whatever the clock says.
      lease_left_ms: Math.round(Math.max(0, Math.min(link.leaseMs, link.lease.endsMs - nowMs))),
      failovers: this.#ports.metrics.failoversOf(link.storeId),
      cause: link.isUp ? (outOfSync?.cause ?? '') : noLinkText(link.trouble),
      cause_since: outOfSync === undefined ? null : this.#since(outOfSync.sinceMs),
    };
  }

  #unreached(): readonly UnreachedStoreAnswer[] {
    return this.#options.unreached().map(({ id: store, host, why, sinceMs }) =>
      ({ store, host, why, since: this.#since(sinceMs) }));
  }

  #waiting(
    { partition, owner, waitsFor, copies, beginsEmpty, why, messages, sinceMs }: WaitingPartition,
  ): WaitingPartitionAnswer {
    return {
      partition, owner, waits_for: waitsFor, copies, begins_empty: beginsEmpty, why, messages,
      since: this.#since(sinceMs),
    };
  }

  #awaitedBack(): StatusAnswer['awaited_back'] {
    const { partitions, holders, inMs } = this.#ports.core.holdings.awaitedBack();
    return { partitions, holders: holders.slice(0, HOLDERS_SHOWN_MAX), seconds: Math.ceil(inMs / 1000) };
  }

  /** Who holds what, nobody can tell while the register is away: what it told last is shown. */
  #lastHeld(): Pick<StatusAnswer, 'register_heard' | 'last_held'> {
    const { core } = this.#ports;
    const { heardMs, holders } = core.lastHeld;
    const shown = core.registerAway === '' ? [] : holders.slice(0, HOLDERS_SHOWN_MAX);
    return {
      register_heard: this.#since(heardMs),
      last_held: shown.map(({ holder, isLiving, partitions }) => ({
        gateway: holder, lived: isLiving, partitions: partitions.length,
        names: partitions.slice(0, ORPHANS_SHOWN_MAX),
      })),
    };
  }

  /** By the gateway whose they were. */
  #orphans(): readonly OrphansAnswer[] {
    const { holdings } = this.#ports.core;
    const byOwner = new Map<string, { names: string[]; partitions: number; sinceMs: number }>();
    for (const { partition, owner, sinceMs } of holdings.orphans()) {
      const known = byOwner.get(owner) ?? { names: [], partitions: 0, sinceMs };
      byOwner.set(owner, known);
      known.partitions += 1;
      known.sinceMs = Math.min(known.sinceMs, sinceMs);
      if (known.names.length < ORPHANS_SHOWN_MAX) known.names.push(partition);
    }
    return [...byOwner].map(([gateway, { names, partitions, sinceMs }]) =>
      ({ gateway, retired: holdings.retired.has(gateway), partitions, names, since: this.#since(sinceMs) }));
  }

  /** By the stores that may have copies of them. */
  #endsUntold(): readonly UntoldEndsAnswer[] {
    const byStores = new Map<string, { stores: readonly string[]; names: string[]; partitions: number }>();
    for (const { partition, stores } of this.#ports.core.holdings.untoldEnds()) {
      const known = byStores.get(stores.join()) ?? { stores, names: [], partitions: 0 };
      byStores.set(stores.join(), known);
      known.partitions += 1;
      if (known.names.length < ORPHANS_SHOWN_MAX) known.names.push(partition);
    }
    return [...byStores.values()];
  }

  /** Of the monotonic clock, as answers say it. */
  #since(monotonicMs: number): number {
    const { clock } = this.#ports;
    return wholeSeconds(clock.wallMs() - (clock.nowMs() - monotonicMs));
  }

  get #isListening(): boolean {
    return this.#ports.isListening?.() ?? true;
  }

  #notReadyReason(): string {
    const { core } = this.#ports;
    if (core.accepting && !core.memory.admits(0)) return 'memory';
    if (core.accepting) return this.#isListening ? '' : 'the SMTP port is not open yet';
    if (this.#ports.isDraining()) return 'stopping';
    if (core.holdings.isRetired) return 'retired by an operator';
    if (core.mirrors.stores.length === 0) return 'no store is known: the register names none';
    if (core.upCount === 0) return 'no store can be reached';
    const awaited = this.#awaitedBack();
    if (awaited.partitions > 0 && !core.registry.canTake()) return awaitedBackText(awaited);
    if (!core.partitionsAwaited) return 'recovering';
    const { stuckCount, routeCount } = core.readiness;
    return `${String(stuckCount)} of ${String(routeCount)} routes can not commit new mail`;
  }
}

function noLinkText(trouble: string): string {
  return trouble === '' ? 'no link to it yet' : `no link to it: ${trouble}`;
}

/** By what they wait for, in the words of recovery/ownership/waiting.ts. */
function countWaiting(waiting: readonly WaitingPartition[]): StatusAnswer['waiting_for'] {
  const countOf = (word: string): number => waiting.filter(({ waitsFor }) => waitsFor === word).length;
  return {
    register: countOf('register'), lease: countOf('lease'), stores: countOf('stores'),
    copies_away: countOf('copies away'),
  };
}

/** Of those that go on by themselves, mail in memory first: orders given elsewhere may be about it. */
function forPersonsFirst(waiting: readonly WaitingPartition[]): readonly WaitingPartition[] {
  const name = WAITING_NAMES[Waiting.COPIES_AWAY];
  const persons = waiting.filter(({ waitsFor }) => waitsFor === name);
  const others = waiting.filter(({ waitsFor }) => waitsFor !== name).sort((a, b) => b.messages - a.messages);
  return [...persons.slice(0, WAITING_SHOWN_MAX), ...others.slice(0, WAITING_SHOWN_MAX)];
}

/** What the mirrors of one store add up to. */
class StoreSum {
  sync = 0;
  resync = 0;
  ng = 0;
  lagMessages = 0;
  lagBytes = 0;
  refillMessages = 0;
  refillBytes = 0;
  /** The copy that is out of step longest. */
  outOfSync: PartitionMember | undefined;

  add(partition: Partition, copy: PartitionMember): void {
    if (copy.isInStep && copy.isRecorded) this.sync += 1;
    else {
      if (copy.state === MemberState.NG) this.ng += 1;
      else this.resync += 1;
      if (this.outOfSync === undefined || copy.sinceMs < this.outOfSync.sinceMs) this.outOfSync = copy;
    }
    const { progress } = partition.feedOf(copy);
    this.refillMessages += progress.messagesToRefill;
    this.refillBytes += progress.bytesToRefill;
    const lag = lagOf(partition, copy);
    this.lagMessages += lag.messages;
    this.lagBytes += lag.bytes;
  }
}

function secondsIf(wallMs: number | undefined): number | null {
  return wallMs === undefined ? null : wholeSeconds(wallMs);
}

function tlsText(tls: MailQueue['lastTls']): string {
  if (tls === undefined || tls === 'none') return tls ?? '';
  return `${tls.version} ${tls.cipher} verified=${verifiedText(tls)}`;
}

function queueAnswer(queue: MailQueue, nowWallMs: number, isDown: boolean): QueueAnswer {
  const { partition } = queue;
  const lag = queueLag(partition);
  const shares = partition.rows.flatMap((copy) => partition.feedOf(copy).progress.refillShare ?? []);
  const age = Math.max(0, Math.round(nowWallMs / 1000 - queue.oldestArrivalSeconds));
  return {
    queue_name: queue.name,
    queue_class: queue.route.queueClass,
    owner: queue.ownerId,
    partition: partition.name,
    next_hop: nextHopOf(queue),
    tls: tlsText(queue.lastTls),
    order: queue.route.ordering,
    messages: queue.length,
    bytes: queue.bytes,
    active: queue.inFlightCount,
    deferred: queue.deferredCount,
    held: queue.heldCount,
    copies_in_sync: partition.inSyncCount,
    epoch: partition.epoch,
    lag_messages: lag.messages,
    lag_bytes: lag.bytes,
    ...(shares.length === 0 ? {} : { refill_share: Math.min(...shares) }),
    oldest_age_seconds: queue.length === 0 ? null : age,
    last_error: queue.lastError,
    ...(queue.isSuspended ? { suspended: true } : {}),
    ...(isDown ? { down: true } : {}),
  };
}
