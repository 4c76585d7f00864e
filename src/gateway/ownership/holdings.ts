/**
 * All partitions that this process may hold: its own from the start, and those of its group when it rescues. Finds the
 * one that an answer is for, and looks at each when time passes.
 *
 *   own, 0 … partitions − 1, and those of ours that the register knows besides ─► a Holding each
 *   another gateway's, met in the register, if we rescue for it                ─► a Holding that looks now and then
 *   its owner lives for 10 s again ─► handed back
 */
import type { Clock, EventLog, Packer } from '../../platform/ports.js';
import { ASKED, BLOCK, DECLINED, FENCED, PULL, TAILED, TOLD } from '../../protocol/message-types.js';
import type { FenceNotice } from '../../protocol/messages/beat.js';
import { encodePull } from '../../protocol/messages/pull.js';
import { ownerOf, partitionName } from '../../protocol/partition-record.js';
import type { Reply } from '../../protocol/replies.js';
import { HolderState } from '../../recovery/ownership/holder.js';
import type { HolderOptions } from '../../recovery/ownership/ports.js';
import type { WaitingValue } from '../../recovery/ownership/waiting.js';
import { WAITING_NAMES, Waiting, copiesAwayText, storesOf } from '../../recovery/ownership/waiting.js';
import { Readings } from '../../recovery/readings.js';
import type { ReadingOptions } from '../../recovery/readings.js';
import type { MemoryGauge } from '../queue/memory-gauge.js';
import type { Mirrors } from '../mirror/mirrors.js';
import type { Partition } from '../mirror/partition.js';
import type { StorePort } from '../mirror/store-port.js';
import type { QueueRegistry } from '../queue/queue-registry.js';
import type { RecoveredQueues } from '../queue/recovered-queues.js';
import type { Expected } from './expected.js';
import type { HoldingCounters } from './holding.js';
import { Holding } from './holding.js';
import type { OwnershipRegister } from './ownership-register.js';

export interface HoldingsOptions extends ReadingOptions {
  readonly gatewayId: string;
  readonly partitions: number;
  /** Ids of the gateways that may take over one another's partitions. */
  readonly group: readonly string[];
  /** Takes over those of the others in the group. */
  readonly rescue: boolean;
  readonly replicas: number;
  readonly minReplicas: number;
  readonly replaceAfterMs: number;
  /** No store grants a longer lease. */
  readonly leaseMs: number;
}

export interface HoldingsPorts {
  readonly clock: Clock;
  readonly packer: Packer;
  readonly log: EventLog;
  readonly register: OwnershipRegister;
  readonly mirrors: Mirrors;
  readonly registry: QueueRegistry;
  readonly recovered: RecoveredQueues;
  readonly memory: MemoryGauge;
  readonly counters: { recoveredMessages: number; epochs: number };
  random(): number;
  forget(partition: Partition): void;
  wake(partition: Partition): void;
}

/** A partition that is not served here although it should be, and why. */
export interface WaitingPartition {
  readonly partition: string;
  readonly owner: string;
  readonly waitsFor: (typeof WAITING_NAMES)[number];
  /** Of copies away: where the copies are that count. None: only a process had it in memory. */
  readonly copies: readonly string[];
  readonly why: string;
  readonly sinceMs: number;
}

/** A link is lost only after its timeout: what is missing then is dropped soon, but not in a moment's change of path. */
const DROP_AFTER_MS = 100;
const RETRY_MS = 500;
const CHANGE_TIMEOUT_MS = 2_000;
const TELL_AGAIN_MS = 1_000;
const AWAY_AFTER_MS = 5_000;
const LOOK_AGAIN_MS = 15_000;
const FOUND_WAIT_MS = 2_000;
/** Two rescuers in rendezvous order. */
const RESCUE_STEP_MS = 200;
/** An owner has been up for so long before its partitions go home (rule 13 of docs/model). */
const HAND_BACK_AFTER_MS = 10_000;
/** The clock of a store may run so much slower than ours. */
const LEASE_DRIFT_SHARE = 1.01;
const LEASE_DRIFT_MS = 200;
/** A partition is waited for so long before its mail counts as held elsewhere. */
const SOON_MS = 5_000;
/** One block is always let in while half of this is free, or a small limit would never let the first one come. */
const FIRST_BLOCK_SHARE = 0.5;

export class Holdings {
  readonly counters: HoldingCounters = { takeovers: 0, handedBack: 0, lost: 0, losses: 0, epochs: 0 };
  readonly #options: HoldingsOptions;
  readonly #ports: HoldingsPorts;
  readonly #readings: Readings;
  readonly #byName = new Map<string, Holding>();
  readonly #byHandle: (Holding | undefined)[] = [];
  /** Of which the log has said that they wait for a person. */
  readonly #away = new Set<string>();

  constructor(options: HoldingsOptions, ports: HoldingsPorts) {
    this.#options = options;
    this.#ports = ports;
    this.#readings = new Readings(options, {
      log: ports.log,
      pull: (storeId, pull) => this.#pull(storeId, encodePull(ports.packer, pull)),
      flush: (storeId) => { ports.mirrors.storeOf(storeId)?.flush(); },
      mayPull: (isOwn, pulling, inHandBytes) => this.#mayPull(isOwn, pulling, inHandBytes),
      onBlock: (handle, rows, bodies, texts, isLast) => ports.recovered.onBlock(handle, rows, bodies, texts, isLast),
      otherSource: (handle, damaged) => this.#otherSource(handle, damaged),
      onSwitched: (handle, storeId) => { this.#switchSource(handle, storeId); },
      onWhole: (handle) => { this.#onWhole(handle); },
    });
    for (let number = 0; number < options.partitions; number++) this.#add(partitionName(options.gatewayId, number));
    ports.register.watchPartitions((partition) => { this.#meet(partition); });
  }

  *all(): IterableIterator<Holding> {
    yield* this.#byName.values();
  }

  /** Partitions of ours that are not whole here. */
  get openCount(): number {
    let open = 0;
    for (const { isOwn, partition } of this.#byName.values()) if (isOwn && partition?.isRecovering !== false) open += 1;
    return open;
  }

  /** Blocks are still to come. */
  get isReading(): boolean {
    return this.#readings.count > 0;
  }

  expected(): Expected {
    const nowMs = this.#ports.clock.nowMs();
    let expected: Expected = '';
    for (const holding of this.#byName.values()) {
      if (!holding.isOwn || holding.partition !== undefined) continue;
      if (!this.#isLate(holding, nowMs)) return 'soon';
      expected = 'held';
    }
    return expected;
  }

  /** Partitions that should be served here and are not, each with what it waits for. */
  waiting(): readonly WaitingPartition[] {
    const nowMs = this.#ports.clock.nowMs();
    const waiting: WaitingPartition[] = [];
    for (const holding of this.#byName.values()) {
      const waitsFor = holding.holder.waitsFor(nowMs);
      if (waitsFor === Waiting.NOTHING) continue;
      const { name: partition, ownerId: owner, sinceMs } = holding;
      const copies = waitsFor === Waiting.COPIES_AWAY ? storesOf(holding.holder.members) : [];
      const why = this.#why(holding, waitsFor);
      waiting.push({ partition, owner, waitsFor: WAITING_NAMES[waitsFor], copies, why, sinceMs });
    }
    return waiting;
  }

  /**
   * The one order of a person: these copies do not come back; without stores, what only a process had in memory. It
   * counts for partitions that wait for a person and have no other copy: one that has goes on by itself when that
   * answers, one that another process serves keeps its copies, and memory is not given up by who gives up a store.
   * Names of the partitions that go on, empty.
   */
  giveUp(storeIds: readonly string[]): readonly string[] {
    const nowMs = this.#ports.clock.nowMs();
    const given: string[] = [];
    for (const { name, holder } of this.#byName.values()) {
      if (holder.waitsFor(nowMs) !== Waiting.COPIES_AWAY) continue;
      const stores = storesOf(holder.members);
      if ((storeIds.length === 0) !== (stores.length === 0)) continue;
      if (stores.some((store) => !storeIds.includes(store))) continue;
      if (holder.giveUp(storeIds, nowMs)) given.push(name);
    }
    return given;
  }

  // ── links ───────────────────────────────────────────────────────────────────────────────────────

  onLinkUp(store: StorePort): void {
    for (const holding of this.#byName.values()) holding.onLinkUp(store);
  }

  onLinkDown(store: StorePort): void {
    this.#readings.onConnectionLost(store.storeId);
    for (const holding of this.#byName.values()) holding.onLinkDown(store);
  }

  /** Mirrors have attached what they feed already. */
  onLinkSwitched(store: StorePort): void {
    this.#readings.onConnectionLost(store.storeId);
    for (const holding of this.#byName.values()) holding.onLinkSwitched(store);
    this.#readings.start();
  }

  /** Of a heartbeat's answer, on either path: before it may renew anything. */
  onFenceNotices(store: StorePort, bootId: string, notices: readonly FenceNotice[]): void {
    for (const { partition, term } of notices) this.#byName.get(partition)?.onFenceNotice(store, bootId, term);
  }

  onReply(store: StorePort, reply: Reply): void {
    switch (reply.type) {
      case FENCED:
        this.#byHandle[reply.message.handle]?.onFenced(store, reply.message);
        break;
      case DECLINED:
        this.#byHandle[reply.message.handle]?.onDeclined(store, reply.message);
        break;
      case ASKED:
        this.#byName.get(reply.message.partition)?.onAsked(store, reply.message);
        break;
      case TOLD:
        this.#byName.get(reply.message.partition)?.onTold(store, reply.message);
        break;
      case BLOCK:
        this.#ports.counters.recoveredMessages += this.#taken(() => { this.#readings.onBlock(store.storeId, reply.message, reply.bodies); });
        break;
      case TAILED:
        this.#byHandle[reply.message.handle]?.onTailed(reply.message, reply.bodies);
        break;
    }
  }

  // ── time ────────────────────────────────────────────────────────────────────────────────────────

  tick(nowMs: number): void {
    this.#handBack(nowMs);
    for (const holding of this.#byName.values()) {
      holding.tick(nowMs);
      this.#tellAway(holding, nowMs);
    }
    this.#readings.start();
    this.#ports.counters.epochs = this.counters.epochs;
    if (!this.isReading) this.#ports.recovered.onAllRead();
  }

  /** Who reads only the log is told, too, that a person is asked for, and for what; once each time. */
  #tellAway({ name: partition, holder }: Holding, nowMs: number): void {
    const isAway = holder.waitsFor(nowMs) === Waiting.COPIES_AWAY;
    if (isAway === this.#away.has(partition)) return;
    const { log } = this.#ports;
    if (isAway) {
      this.#away.add(partition);
      log.error('partition', 'a partition waits for a person', { partition, why: copiesAwayText(holder.members) });
    } else {
      this.#away.delete(partition);
      log.info('partition', 'a partition waits for a person no more', { partition });
    }
  }

  #meet(name: string): void {
    const { gatewayId, rescue, group } = this.#options;
    const owner = ownerOf(name);
    if (this.#byName.has(name)) return;
    if (owner === gatewayId || (rescue && group.includes(owner))) this.#add(name);
  }

  #add(name: string): void {
    const { gatewayId, replicas, minReplicas, replaceAfterMs, leaseMs } = this.#options;
    const isOwn = ownerOf(name) === gatewayId;
    const options: HolderOptions = {
      partition: name, self: this.#ports.register.self, isOwn, replicas, minReplicas, replaceAfterMs,
      dropAfterMs: DROP_AFTER_MS, tellAgainMs: TELL_AGAIN_MS, retryMs: RETRY_MS, changeTimeoutMs: CHANGE_TIMEOUT_MS,
      rescueDelayMs: RESCUE_STEP_MS * this.#rankFor(name), awayAfterMs: AWAY_AFTER_MS, lookAgainMs: LOOK_AGAIN_MS,
      foundWaitMs: FOUND_WAIT_MS, longestLeaseMs: leaseMs * LEASE_DRIFT_SHARE + LEASE_DRIFT_MS,
    };
    const handle = this.#byHandle.length + 1;
    const { clock, packer, log, register, mirrors, registry, recovered } = this.#ports;
    const holding = new Holding(handle, options, {
      clock, packer, log, register, mirrors, registry, recovered, readings: this.#readings, counters: this.counters,
      random: () => this.#ports.random(),
      forget: (partition) => { this.#ports.forget(partition); },
      wake: (partition) => { this.#ports.wake(partition); },
    });
    this.#byHandle[handle] = holding;
    this.#byName.set(name, holding);
    for (const store of mirrors.stores) if (store.isUp) holding.onLinkUp(store);
  }

  /** Our place among those that may rescue the partition, from 1 on: another order for each, so that its mail spreads. */
  #rankFor(name: string): number {
    const { gatewayId, group } = this.#options;
    const own = rendezvous(gatewayId, name);
    const before = group.filter((id) => id !== gatewayId && id !== ownerOf(name) && rendezvous(id, name) < own);
    return before.length + 1;
  }

  #handBack(nowMs: number): void {
    const living = this.#ports.register.living();
    for (const { isOwn, ownerId, holder, partition } of this.#byName.values()) {
      if (isOwn || partition === undefined) continue;
      const owner = living.get(ownerId);
      if (owner === undefined) holder.keep(nowMs);
      else if (holder.state === HolderState.HOLDER && nowMs - owner.sinceMs >= HAND_BACK_AFTER_MS) holder.handBack(owner.holder, nowMs);
    }
  }

  #pull(storeId: string, control: Uint8Array): boolean {
    const { mirrors } = this.#ports;
    const store = mirrors.storeOf(storeId);
    const outbox = store?.isUp === true ? mirrors.outboxOf(store) : undefined;
    if (outbox === undefined) return false;
    outbox.request(PULL, control);
    mirrors.askFlush();
    return true;
  }

  /** Messages that came in meanwhile. */
  #taken(take: () => void): number {
    const { recovered } = this.#ports;
    const before = recovered.entryCount;
    take();
    return recovered.entryCount - before;
  }

  #otherSource(handle: number, damaged: ReadonlySet<string>): string {
    const other = this.#byHandle[handle]?.holder.set?.otherSource();
    return other === undefined || damaged.has(other.storeId) ? '' : other.storeId;
  }

  #switchSource(handle: number, storeId: string): void {
    const set = this.#byHandle[handle]?.holder.set;
    const row = set?.otherSource();
    if (row?.storeId === storeId) set?.switchSource(row);
  }

  #onWhole(handle: number): void {
    this.#ports.recovered.onRecovered(handle);
    this.#byHandle[handle]?.onWhole();
  }

  /**
   * One more block, with as many on their way and one in hand: our own partitions may fill all but the last reserve;
   * those of another gateway leave alone what new mail may use.
   */
  #mayPull(isOwn: boolean, pulling: number, inHandBytes: number): boolean {
    const { memory } = this.#ports;
    const most = isOwn ? memory.reserveBytes : memory.acceptBytes;
    const used = memory.usedBytes + inHandBytes;
    const blockBytes = Math.max(this.#options.blockBytes, this.#options.largestBytes ?? 0);
    return used + (pulling + 1) * blockBytes <= most || (pulling === 0 && used < most * FIRST_BLOCK_SHARE);
  }

  #isLate({ holder, sinceMs }: Holding, nowMs: number): boolean {
    return holder.waitsFor(nowMs) !== Waiting.NOTHING || holder.state === HolderState.IDLE || nowMs - sinceMs >= SOON_MS;
  }

  #why({ holder }: Holding, waitsFor: WaitingValue): string {
    switch (waitsFor) {
      case Waiting.COPIES_AWAY: return copiesAwayText(holder.members);
      case Waiting.REGISTER: return `the register does not answer: ${this.#ports.register.away}`;
      case Waiting.LEASE: return 'another process may still deliver from it by a lease; it is over within seconds';
      case Waiting.STORES: return 'stores were told of a newer record than the register has: all stores must answer';
      case Waiting.NOTHING: return '';
    }
  }
}

/** The same for all gateways: FNV-1a over both names. */
function rendezvous(gatewayId: string, partition: string): number {
  let hash = 0x811c9dc5;
  const text = `${gatewayId} ${partition}`;
  for (let i = 0; i < text.length; i++) hash = Math.imul(hash ^ text.charCodeAt(i), 0x01000193);
  return hash >>> 0;
}
