/**
 * The gateway as the admin HTTP shows it: reads the core and the links into the rows of admin/view.ts.
 */
import { formatMessageId } from '../base/text-id.js';
import type { GatewayMetrics } from '../observability/gateway-metrics.js';
import type { Clock } from '../platform/ports.js';
import type { GatewayView, MessagePage, MessageRecipientView, MessageView, QueueView, StatusView, StoreView, TableRowView } from './admin/view.js';
import type { GatewayCore } from './core.js';
import type { StoreLink } from './mirror/link/store-link.js';
import type { QueueMirror } from './mirror/queue-mirror.js';
import { SyncState, SYNC_STATE_NAMES } from './mirror/replica.js';
import { EntryState } from './queue/entry-table.js';
import { TO_TRY } from './queue/note.js';

export interface CoreViewOptions {
  readonly gatewayId: string;
  readonly host: string;
  readonly incarnation: number;
  readonly insecure: boolean;
  readonly replicas: number;
  /** Host labels of the configured stores. */
  readonly storeHosts: ReadonlyMap<string, string>;
}

export interface CoreViewPorts {
  readonly clock: Clock;
  readonly core: GatewayCore;
  readonly links: readonly StoreLink[];
  readonly metrics: GatewayMetrics;
  readonly pid: number;
  isDraining(): boolean;
  connectionsIn(): number;
  connectionsOut(): number;
  dotsInFlight(): number;
}

/** How often it is looked whether copies are missing, so that `since` is right when somebody asks. */
const WATCH_MS = 1000;

const MESSAGE_STATES: Readonly<Record<number, MessageView['state']>> = {
  [EntryState.STORING]: 'incoming',
  [EntryState.READY]: 'queued',
  [EntryState.IN_FLIGHT]: 'active',
  [EntryState.DEFERRED]: 'deferred',
  [EntryState.REPORTING]: 'ending',
  [EntryState.PARKED]: 'held',
  [EntryState.HELD]: 'held',
};

export class CoreView implements GatewayView {
  private readonly options: CoreViewOptions;
  private readonly ports: CoreViewPorts;
  private readonly startedWallMs: number;
  private degradedSinceWallMs: number | undefined;
  private watchedMs = -Infinity;

  constructor(options: CoreViewOptions, ports: CoreViewPorts) {
    this.options = options;
    this.ports = ports;
    this.startedWallMs = ports.clock.wallMs();
  }

  /** Called with each tick. */
  watch(nowMs: number): void {
    if (nowMs - this.watchedMs < WATCH_MS) return;
    this.watchedMs = nowMs;
    this.degradedSince();
  }

  status(): StatusView {
    const { core, metrics } = this.ports;
    let messages = 0;
    let bytes = 0;
    for (const mirror of core.registry.all) {
      messages += mirror.queue.length;
      bytes += mirror.queue.bytes;
    }
    return {
      gateway: this.options.gatewayId,
      host: this.options.host,
      incarnation: this.options.incarnation,
      pid: this.ports.pid,
      startedWallMs: this.startedWallMs,
      ready: core.accepting && core.memory.admits(0),
      notReadyReason: this.notReadyReason(),
      degradedSinceWallMs: this.degradedSince(),
      insecure: this.options.insecure,
      received: metrics.received,
      delivered: metrics.delivered,
      deferred: metrics.deferred,
      bounced: metrics.bounced,
      expired: metrics.expired,
      rejected: metrics.rejectedTotal,
      queues: core.registry.all.length,
      queuesRecovering: core.recovery.openCount,
      queuesShort: this.queuesShort(),
      queuedMessages: messages,
      queuedBytes: bytes,
      memoryUsedBytes: core.memory.usedBytes,
      memoryLimitBytes: core.memory.limitBytes,
      connectionsIn: this.ports.connectionsIn(),
      connectionsOut: this.ports.connectionsOut(),
      dotsInFlight: this.ports.dotsInFlight(),
      stores: this.ports.links.map((link) => this.storeView(link)),
    };
  }

  table(): readonly TableRowView[] {
    const rows: TableRowView[] = [];
    for (const mirror of this.ports.core.registry.all) {
      for (const replica of mirror.replicas) {
        const paths = this.ports.links.find((link) => link === replica.store)?.pathStates() ?? [];
        rows.push({
          queue: mirror.queue.name,
          queueClass: mirror.queue.route.queueClass,
          store: replica.store.storeId,
          networkA: paths[0]?.state ?? '-',
          networkS: paths[1]?.state ?? '-',
          sync: SYNC_STATE_NAMES[replica.sync],
          epoch: mirror.epoch,
          transactions: replica.sync === SyncState.NG ? undefined : replica.acked,
        });
      }
    }
    return rows;
  }

  queues(): readonly QueueView[] {
    return this.ports.core.registry.all.map((mirror) => {
      const { queue } = mirror;
      const { protocol, host, port } = queue.route.nextHop;
      return {
        name: queue.name,
        queueClass: queue.route.queueClass,
        nextHop: `${protocol}://${host}:${String(port)}`,
        ordering: queue.route.ordering,
        messages: queue.length,
        bytes: queue.bytes,
        active: queue.inFlightCount,
        deferred: queue.deferredCount,
        oldestArrivalWallMs: queue.length === 0 ? undefined : queue.oldestArrivalSeconds * 1000,
        lastError: queue.lastError,
      };
    });
  }

  messages(queue: string, queueClass: string, cursor: string, limit: number): MessagePage | undefined {
    const mirrors = this.ports.core.registry.byName(queue).filter((mirror) => mirror.queue.route.queueClass === queueClass).sort((a, b) => a.handle - b.handle);
    if (mirrors.length === 0) return undefined;
    // The row shown last: handle of its queue, position, message id.
    const [handle = 0, position = 0, id = 0] = cursor.split('.').map(Number);
    const table = this.ports.core.entries.table;
    const messages: MessageView[] = [];
    let last = '';
    for (const mirror of mirrors) {
      if (mirror.handle < handle) continue;
      let row = mirror.handle === handle ? this.rowBehind(mirror, position, id) : mirror.queue.first;
      for (; row !== 0; row = mirror.queue.following(row)) {
        if (messages.length === limit) return { messages, nextCursor: last };
        messages.push(this.messageView(row));
        last = `${String(mirror.handle)}.${String(table.position.get(row))}.${String(table.messageId(row))}`;
      }
    }
    return { messages, nextCursor: undefined };
  }

  /** The first row of a queue past a position. An entry that has gone meanwhile costs a walk, no more. */
  private rowBehind(mirror: QueueMirror, position: number, messageId: number): number {
    const { table } = this.ports.core.entries;
    let row = Number.isSafeInteger(messageId) ? table.index.find(messageId, mirror.handle) : 0;
    if (row !== 0 && table.position.get(row) === position) return mirror.queue.following(row);
    row = mirror.queue.first;
    while (row !== 0 && table.position.get(row) <= position) row = mirror.queue.following(row);
    return row;
  }

  private messageView(row: number): MessageView {
    const { core } = this.ports;
    const table = core.entries.table;
    const envelope = core.envelopeOf(row);
    const note = core.noteOf(row, envelope?.recipients.length ?? 0);
    const recipients: MessageRecipientView[] = [];
    envelope?.recipients.forEach((recipient, index) => {
      if ((note.states[index] ?? TO_TRY) === TO_TRY) recipients.push({ address: recipient.address, delayReason: note.results.find((result) => result.recipient === index)?.text ?? '' });
    });
    return {
      queueId: formatMessageId(table.messageId(row)),
      arrivalWallMs: envelope?.arrivalWallMs ?? 0,
      messageBytes: table.bodyBytes.get(row),
      sender: envelope?.reversePath ?? '',
      recipients,
      state: MESSAGE_STATES[table.state(row)] ?? 'held',
      attempts: table.attempts.get(row),
      nextAttemptWallMs: table.state(row) === EntryState.DEFERRED ? note.dueWallMs : undefined,
      expiryWallMs: envelope?.expiryWallMs ?? 0,
    };
  }

  private storeView(link: StoreLink): StoreView {
    let queuesSync = 0;
    let queuesResync = 0;
    let queuesNg = 0;
    let lagMessages = 0;
    for (const mirror of this.ports.core.registry.all) {
      for (const replica of mirror.replicas) {
        if (replica.store !== link) continue;
        if (replica.sync === SyncState.SYNC) queuesSync += 1;
        else if (replica.sync === SyncState.RESYNC) queuesResync += 1;
        else queuesNg += 1;
        lagMessages += lagOf(mirror, replica.acked);
      }
    }
    const { clock } = this.ports;
    return {
      id: link.storeId,
      host: this.options.storeHosts.get(link.storeId) ?? '',
      up: link.isUp,
      paths: link.pathStates().map((path) => ({ path: path.path, state: path.state, sinceWallMs: clock.wallMs() - (clock.nowMs() - path.sinceMs) })),
      queuesSync,
      queuesResync,
      queuesNg,
      lagMessages,
      lagBytes: link.unackedBytes,
      creditBytes: link.credit,
    };
  }

  private notReadyReason(): string {
    const { core } = this.ports;
    if (core.accepting) return core.memory.admits(0) ? '' : 'memory';
    if (this.ports.isDraining()) return 'stopping';
    if (core.upCount === 0) return 'no store can be reached';
    return core.recovery.allListed ? 'too few mirrors in sync' : 'recovering';
  }

  /** Queues with fewer copies in sync than configured. */
  private queuesShort(): number {
    let short = 0;
    for (const mirror of this.ports.core.registry.all) if (mirror.inSyncCount < this.options.replicas) short += 1;
    return short;
  }

  private degradedSince(): number | undefined {
    const { links, clock } = this.ports;
    const degraded = links.filter((link) => link.isUp).length < this.options.replicas || this.queuesShort() > 0;
    this.degradedSinceWallMs = degraded ? (this.degradedSinceWallMs ?? clock.wallMs()) : undefined;
    return this.degradedSinceWallMs;
  }
}

function lagOf(mirror: QueueMirror, acked: number): number {
  return Math.max(0, mirror.lastNumber - acked);
}
