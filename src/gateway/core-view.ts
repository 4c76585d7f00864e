/**
 * The gateway as the admin HTTP shows it: reads the core and the links into the rows of admin/view.ts.
 */
import { formatMessageId } from '../base/text-id.js';
import type { GatewayMetrics } from '../observability/gateway-metrics.js';
import type { OutageFigures, StateFigures } from '../observability/figures.js';
import type { Clock, EventLog } from '../platform/ports.js';
import type {
  GatewayView, MemberView, MessagePage, MessageRecipientView, MessageView, OrphansView, QueuePage, QueueView,
  StatusView, StoreView, TablePage, TableRowView, UnreachedStoreView, UntoldEndsView, WaitingPartitionView,
} from './admin/view.js';
import { countWaiting } from './admin/waiting-counts.js';
import type { GatewayCore } from './core.js';
import { Degradation } from './degradation.js';
import { MirrorTable, lagOf, pageByHandle, queueLag } from './mirror-table.js';
import type { StoreLink } from './mirror/link/store-link.js';
import type { Partition } from './mirror/partition.js';
import type { PartitionMember } from '../recovery/ownership/member.js';
import { MemberState } from '../recovery/ownership/member.js';
import type { WaitingPartition } from './ownership/holdings.js';
import type { UnreachedStore } from './ownership/known-stores.js';
import { WAITING_NAMES, Waiting } from '../recovery/ownership/waiting.js';
import { EntryState } from './queue/entry-table.js';
import type { MailQueue } from './queue/mail-queue.js';
import type { Note } from './queue/note.js';
import { TO_TRY } from './queue/note.js';
import { cursorAt, placesBehind, queuesOfClass } from './queue/queue-walk.js';

export interface CoreViewOptions {
  readonly gatewayId: string;
  readonly host: string;
  readonly incarnation: number;
  readonly version: string;
  readonly insecure: boolean;
  readonly replicas: number;
  /** Host label of a store, '' when it is not known. */
  hostOf(storeId: string): string;
  /** Gateways and stores of the group as they are known, without this one. */
  others(): readonly Omit<MemberView, 'self'>[];
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
  /** Left out where nothing is delivered. */
  outages?(): OutageFigures;
}

const NO_OUTAGES: OutageFigures = { nextHops: [], nextHopCount: 0, hooks: [] };
/** Waiting partitions named in the status; the others are counted. */
const WAITING_SHOWN_MAX = 20;
/** Of the orphans of one gateway. */
const ORPHANS_SHOWN_MAX = 8;

const MESSAGE_STATES: Readonly<Record<number, MessageView['state']>> = {
  [EntryState.STORING]: 'incoming',
  [EntryState.READY]: 'queued',
  [EntryState.IN_FLIGHT]: 'active',
  [EntryState.DEFERRED]: 'deferred',
  [EntryState.REPORTING]: 'ending',
  [EntryState.HELD]: 'held',
};

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

  constructor(options: CoreViewOptions, ports: CoreViewPorts) {
    this.#options = options;
    this.#ports = ports;
    this.#startedWallMs = ports.clock.wallMs();
    const { replicas } = options;
    const { clock, log, core, links } = ports;
    this.#degradation = new Degradation(replicas, { clock, log, core, storeViews: () => this.#storeViews() });
    this.#mirrorTable = new MirrorTable({ clock, links, replicas, all: () => core.registry.partitions });
  }

  /** Called with each tick. */
  watch(nowMs: number): void {
    this.#degradation.watch(nowMs);
  }

  status(): StatusView {
    const { core, metrics } = this.#ports;
    const { counters, openCount, shortCount } = core.holdings;
    let messages = 0;
    let bytes = 0;
    for (const queue of core.registry.queues()) {
      messages += queue.length;
      bytes += queue.bytes;
    }
    const waiting = core.holdings.waiting();
    const orphans = this.#orphans();
    const stores = this.#storeViews();
    const degradedSinceWallMs = this.#degradation.sinceWallMs();
    return {
      gateway: this.#options.gatewayId, host: this.#options.host,
      version: this.#options.version, incarnation: this.#options.incarnation,
      pid: this.#ports.pid,
      startedWallMs: this.#startedWallMs,
      ready: core.accepting && core.memory.admits(0) && this.#isListening,
      notReadyReason: this.#notReadyReason(),
      routes: core.readiness.routeCount,
      routesRefused: core.readiness.refused.map(({ route, reason, sinceWallMs }) =>
        ({ route: route.queueName, reason, sinceWallMs })),
      outages: this.#ports.outages?.() ?? NO_OUTAGES,
      degradedSinceWallMs,
      degradedCause: degradedSinceWallMs === undefined ? '' : this.#degradation.cause(stores),
      insecure: this.#options.insecure,
      received: metrics.received,
      delivered: metrics.delivered,
      deferred: metrics.deferred,
      bounced: metrics.bounced,
      expired: metrics.expired,
      rejected: metrics.rejectedTotal,
      reception: metrics.reception.figures(),
      queues: core.registry.queueCount,
      partitions: core.registry.partitions.length,
      partitionsRecovering: openCount, partitionsWithoutMemory: shortCount,
      partitionsShort: this.#degradation.partitionsShort(),
      partitionsWaiting: waiting.length,
      waitingFor: countWaiting(waiting),
      waiting: forPersonsFirst(waiting).slice(0, WAITING_SHOWN_MAX).map((one) => this.#waitingView(one)),
      partitionsRescued: core.registry.partitions.filter((one) => !one.isOwn).length,
      orphanPartitions: orphans.reduce((sum, one) => sum + one.partitions, 0),
      orphans, endsUntold: this.#endsUntold(),
      takeovers: counters.takeovers, handedBack: counters.handedBack, takenAway: counters.lost,
      losses: counters.losses,
      adopted: counters.adopted, adoptedTwice: counters.adoptedTwice,
      registerAway: core.registerAway,
      repairs: { ...core.mirrors.counters },
      queuedMessages: messages, queuedBytes: bytes,
      memoryUsedBytes: core.memory.usedBytes,
      memoryKeptBytes: core.entries.keptBytes,
      memoryLimitBytes: core.memory.limitBytes,
      connectionsIn: this.#ports.connectionsIn(),
      connectionsOut: this.#ports.connectionsOut(),
      dotsInFlight: this.#ports.dotsInFlight(),
      stores,
      storesUnreached: this.#unreached(),
    };
  }

  mirrors(cursor: string, limit: number): TablePage {
    return this.#mirrorTable.page(cursor, limit);
  }

  troubled(most: number): readonly TableRowView[] {
    return this.#mirrorTable.troubled(most);
  }

  queues(cursor: string, limit: number): QueuePage {
    const { page, nextCursor } = pageByHandle([...this.#ports.core.registry.queues()], cursor, limit);
    return { queues: page.map(queueView), nextCursor };
  }

  group(): readonly MemberView[] {
    const { gatewayId: id, others } = this.#options;
    const admin = this.#ports.adminAddress();
    const self: MemberView = { id, kind: 'gateway', admin, away: false, self: true };
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

  messages(name: string, queueClass: string, cursor: string, limit: number): MessagePage | undefined {
    const { registry, entries: { table } } = this.#ports.core;
    const queues = queuesOfClass(registry.byName(name), queueClass);
    if (queues.length === 0) return undefined;
    const messages: MessageView[] = [];
    let nextCursor = '';
    for (const place of placesBehind(cursor, queues, table)) {
      if (messages.length === limit) return { messages, nextCursor };
      messages.push(this.#messageView(place.queue, place.row));
      nextCursor = cursorAt(place, table);
    }
    return { messages, nextCursor: undefined };
  }

  #messageView(queue: MailQueue, row: number): MessageView {
    const { core } = this.#ports;
    const table = core.entries.table;
    const envelope = core.envelopeOf(row);
    // Where only its place is here, who looks again sees all of it.
    if (core.entries.isAllAbsent(row)) core.entries.absent.wantLater(queue.partition, row);
    const note = core.noteOf(row, envelope?.recipients.length ?? 0);
    const isDeferred = table.state(row) === EntryState.DEFERRED;
    const texts = core.textsOf(row);
    const recipients: MessageRecipientView[] = [];
    envelope?.recipients.forEach((recipient, index) => {
      if ((note.states[index] ?? TO_TRY) !== TO_TRY) return;
      const delayReason = texts.get(index) ?? codesOf(note, index);
      recipients.push({ address: recipient.address, delayReason });
    });
    return {
      queueId: formatMessageId(table.messageId(row)),
      owner: queue.ownerId,
      arrivalWallMs: envelope?.arrivalWallMs ?? table.arrivalSeconds.get(row) * 1000,
      messageBytes: table.bodyBytes.get(row),
      sender: envelope?.reversePath ?? '',
      recipients,
      state: MESSAGE_STATES[table.state(row)] ?? 'held',
      heldReason: core.holds.reasonOf(queue, row),
      attempts: table.attempts.get(row),
      nextAttemptWallMs: isDeferred && envelope !== undefined
        ? note.dueWallMs + core.frame.aheadMs()
        : undefined,
      expiryWallMs: envelope === undefined ? 0 : table.expirySeconds.get(row) * 1000 + core.frame.aheadMs(),
    };
  }

  /** One walk over all queues for all stores. */
  #storeViews(): StoreView[] {
    const sums = new Map<object, StoreSum>(this.#ports.links.map((link) => [link, new StoreSum()]));
    for (const partition of this.#ports.core.registry.partitions) {
      for (const copy of partition.rows) {
        const { store } = partition.feedOf(copy);
        if (store !== undefined) sums.get(store)?.add(partition, copy);
      }
    }
    return this.#ports.links.map((link) => this.#storeView(link, sums.get(link) ?? new StoreSum()));
  }

  #storeView(link: StoreLink, sum: StoreSum): StoreView {
    const nowMs = this.#ports.clock.nowMs();
    const { outOfSync } = sum;
    const drained = this.#ports.core.mirrors.placement.drained.has(link.storeId);
    return {
      id: link.storeId,
      host: this.#options.hostOf(link.storeId),
      protocol: link.version,
      up: link.isUp,
      drained,
      drainedSinceWallMs: drained ? this.#ports.drainedSinceWallMs(link.storeId) : undefined,
      paths: link.pathStates().map(({ path, state, sinceMs }) =>
        ({ path, state, sinceWallMs: this.#wallMs(sinceMs) })),
      partitionsSync: sum.sync,
      partitionsResync: sum.resync,
      partitionsNg: sum.ng,
      lagMessages: sum.lagMessages,
      lagBytes: sum.lagBytes,
      refillMessages: sum.refillMessages,
      refillBytes: sum.refillBytes,
      creditBytes: link.credit,
      // A lease is never longer than the store grants, whatever the clock says.
      leaseLeftMs: Math.max(0, Math.min(link.leaseMs, link.lease.endsMs - nowMs)),
      failovers: this.#ports.metrics.failoversOf(link.storeId),
      cause: link.isUp ? (outOfSync?.cause ?? '') : noLinkText(link.trouble),
      causeSinceWallMs: outOfSync === undefined ? undefined : this.#wallMs(outOfSync.sinceMs),
    };
  }

  #unreached(): readonly UnreachedStoreView[] {
    const all = this.#options.unreached();
    return all.map(({ sinceMs, ...store }) => ({ ...store, sinceWallMs: this.#wallMs(sinceMs) }));
  }

  #waitingView({ sinceMs, ...waiting }: WaitingPartition): WaitingPartitionView {
    return { ...waiting, sinceWallMs: this.#wallMs(sinceMs) };
  }

  /** By the gateway whose they were. */
  #orphans(): readonly OrphansView[] {
    const { holdings } = this.#ports.core;
    const byOwner = new Map<string, { names: string[]; partitions: number; sinceMs: number }>();
    for (const { partition, owner, sinceMs } of holdings.orphans()) {
      const known = byOwner.get(owner) ?? { names: [], partitions: 0, sinceMs };
      byOwner.set(owner, known);
      known.partitions += 1;
      known.sinceMs = Math.min(known.sinceMs, sinceMs);
      if (known.names.length < ORPHANS_SHOWN_MAX) known.names.push(partition);
    }
    return [...byOwner].map(([gateway, { names, partitions, sinceMs }]) => ({
      gateway, isRetired: holdings.retired.has(gateway), partitions, names,
      sinceWallMs: this.#wallMs(sinceMs),
    }));
  }

  /** By the stores that may have copies of them. */
  #endsUntold(): readonly UntoldEndsView[] {
    const byStores = new Map<string, { stores: readonly string[]; names: string[]; partitions: number }>();
    for (const { partition, stores } of this.#ports.core.holdings.untoldEnds()) {
      const known = byStores.get(stores.join()) ?? { stores, names: [], partitions: 0 };
      byStores.set(stores.join(), known);
      known.partitions += 1;
      if (known.names.length < ORPHANS_SHOWN_MAX) known.names.push(partition);
    }
    return [...byStores.values()];
  }

  #wallMs(monotonicMs: number): number {
    const { clock } = this.#ports;
    return clock.wallMs() - (clock.nowMs() - monotonicMs);
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
    if (!core.partitionsAwaited) return 'recovering';
    const { stuckCount, routeCount } = core.readiness;
    return `${String(stuckCount)} of ${String(routeCount)} routes can not commit new mail`;
  }
}

function noLinkText(trouble: string): string {
  return trouble === '' ? 'no link to it yet' : `no link to it: ${trouble}`;
}

/** Those that go on by themselves need not be named. */
function forPersonsFirst(waiting: readonly WaitingPartition[]): readonly WaitingPartition[] {
  const name = WAITING_NAMES[Waiting.COPIES_AWAY];
  const asksAPerson = ({ waitsFor }: WaitingPartition): boolean => waitsFor === name;
  return [...waiting.filter(asksAPerson), ...waiting.filter((one) => !asksAPerson(one))];
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

/** What is left of a reply whose text is not known any more. */
function codesOf(note: Note, recipient: number): string {
  const last = note.results.find((result) => result.recipient === recipient);
  if (last === undefined) return '';
  return [last.code === 0 ? '' : String(last.code), last.enhanced].filter((part) => part !== '').join(' ');
}

function queueView(queue: MailQueue): QueueView {
  const { partition } = queue;
  const { protocol, host, port } = queue.route.nextHop;
  const lag = queueLag(partition);
  let refillShare: number | undefined;
  for (const copy of partition.rows) {
    const share = partition.feedOf(copy).progress.refillShare;
    if (share !== undefined) refillShare = Math.min(refillShare ?? 1, share);
  }
  return {
    name: queue.name,
    queueClass: queue.route.queueClass,
    owner: queue.ownerId,
    nextHop: `${protocol}://${host}:${String(port)}`,
    ordering: queue.route.ordering,
    messages: queue.length,
    bytes: queue.bytes,
    active: queue.inFlightCount,
    deferred: queue.deferredCount,
    held: queue.heldCount,
    partition: partition.name,
    inSync: partition.inSyncCount,
    epoch: partition.epoch,
    lagMessages: lag.messages,
    lagBytes: lag.bytes,
    refillShare,
    oldestArrivalWallMs: queue.length === 0 ? undefined : queue.oldestArrivalSeconds * 1000,
    lastError: queue.lastError,
  };
}
