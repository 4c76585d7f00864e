/**
 * All partitions that this process may hold: its own from the start, and those of its group when it rescues.
 * Finds the one that an answer is for, and looks at each when time passes.
 *
 *   own, 0 … partitions − 1                                      ─► a Holding each
 *   another gateway's, met in the register, if we rescue for it  ─► a Holding that looks now and then
 *   one that stores have and the register lost (unrecorded.ts)   ─► likewise
 *   an orphan (orphans.ts), ours or another's                    ─► likewise; it takes no new mail
 *
 *   held for an owner that lives for 10 s again, at all copies   ─► handed back, whether all was read or not
 *   an orphan, or this gateway is retired, empty for a while     ─► ended (ended-partitions.ts)
 *   this gateway is retired, another of its group lives, at all  ─► handed on to that one (reach.ts)
 */
import type { Clock, EventLog, Packer } from '../../platform/ports.js';
import {
  ASKED, BLOCK, DECLINED, FENCED, FETCH, FETCHED, LISTED, PULL, TAILED, TOLD,
} from '../../protocol/message-types.js';
import type { FenceNotice } from '../../protocol/messages/beat.js';
import { encodeFetch } from '../../protocol/messages/fetch.js';
import { encodePull } from '../../protocol/messages/pull.js';
import type { HolderId, RecordedMember } from '../../protocol/partition-record.js';
import { isSameHolder, nobody, numberOf, ownerOf, partitionName } from '../../protocol/partition-record.js';
import type { Reply } from '../../protocol/replies.js';
import { HolderState } from '../../recovery/ownership/holder.js';
import type { HolderOptions } from '../../recovery/ownership/ports.js';
import type { WaitingValue } from '../../recovery/ownership/waiting.js';
import {
  WAITING_NAMES, WAITING_OUT_TEXT, Waiting, awayText, leaseText, unbegunText, unheardText, unstoredText,
  untakenText,
} from '../../recovery/ownership/waiting.js';
import { Readings } from '../../recovery/readings.js';
import type { BlockRoom, FetchLimits, ReadingOptions } from '../../recovery/readings.js';
import { SMALL_BYTES } from '../queue/absent-bodies.js';
import type { AbsentBodies } from '../queue/absent-bodies.js';
import type { AdoptedMail } from '../recovered/adopted-mail.js';
import { ENTRY_BOOKKEEPING_BYTES } from '../queue/entries.js';
import type { MemoryGauge } from '../queue/memory-gauge.js';
import type { Mirrors } from '../mirror/mirrors.js';
import type { Partition } from '../mirror/set/partition.js';
import type { StorePort } from '../mirror/link/store-port.js';
import type { QueueRegistry } from '../queue/queue-registry.js';
import type { RecoveredQueues } from '../recovered/recovered-queues.js';
import { EndedPartitions } from './ended-partitions.js';
import { GoneBack } from './gone-back.js';
import type { GivenUpEnds, UntoldEnd } from './ended-partitions.js';
import type { Expected } from './expected.js';
import type { HoldingCounters } from './holding.js';
import { Holding } from './holding.js';
import { Losses } from './losses.js';
import type { Loss, OrderedBy } from './losses.js';
import { Orphans } from './orphans.js';
import type { Orphan } from './orphans.js';
import type { LivingGateway, MetPartition, OwnershipRegister } from './ownership-register.js';
import { rendezvous } from './rendezvous.js';
import { UnrecordedPartitions } from './unrecorded.js';

export interface HoldingsOptions extends ReadingOptions {
  readonly gatewayId: string;
  readonly partitions: number;
  /** Ids of the gateways that may take over one another's partitions; undefined: all of the register. */
  readonly group: readonly string[] | undefined;
  /** Takes over those of the others in the group. */
  readonly rescue: boolean;
  readonly replicas: number;
  readonly minReplicas: number;
  readonly replaceAfterMs: number;
  /** No store grants a longer lease. */
  readonly leaseMs: number;
  readonly orphans: OrphanOptions;
}

export interface OrphanOptions {
  /** Partitions of a gateway that has no key in the register for so long are nobody's (orphans.ts). */
  readonly graceMs: number;
  /** They are taken over whether or not this gateway rescues: nobody else can. */
  readonly areOurs: boolean;
}

export interface HoldingsPorts {
  readonly clock: Clock;
  readonly packer: Packer;
  readonly log: EventLog;
  readonly register: OwnershipRegister;
  readonly mirrors: Mirrors;
  readonly registry: QueueRegistry;
  readonly recovered: RecoveredQueues;
  readonly adopted: AdoptedMail;
  readonly memory: MemoryGauge;
  readonly absent: AbsentBodies;
  readonly counters: { recoveredMessages: number; epochs: number };
  random(): number;
  areStoresKnown(): boolean;
  forget(partition: Partition): void;
  obeyRules(): void;
  /** An operator's order passes over it: it stays here until that is done, or has taken long. */
  isPassedOver(partition: Partition): boolean;
  wake(partition: Partition): void;
}

/** A partition that is not served here although it should be, and why. */
export interface WaitingPartition {
  readonly partition: string;
  readonly owner: string;
  readonly waitsFor: (typeof WAITING_NAMES)[number];
  /**
   * Of copies away: where the copies are that count, or who has to say whether it has one. None: only a
   * process had it in memory.
   */
  readonly copies: readonly string[];
  /** Of copies away: with the order it begins empty. Else it goes on by what the other stores know. */
  readonly beginsEmpty: boolean;
  readonly why: string;
  /** Of it in memory here: there may be no other copy. */
  readonly messages: number;
  readonly sinceMs: number;
}

/** Partitions of this gateway that other processes hold, after a rescue, and will hand back. */
export interface AwaitedBack {
  readonly partitions: number;
  /** Ids of gateways. */
  readonly holders: readonly string[];
  /** When that begins, as far as this process can tell; 0: when it reaches every copy. */
  readonly inMs: number;
}

export interface KeptPartitions {
  readonly count: number;
  /** Where the copies are that were given up. */
  readonly stores: readonly string[];
}

/**
 * A link is lost only after its timeout: what is missing then is dropped soon, but not in a moment's change
 * of path.
 */
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
/** A partition that is to end has been empty for so long. */
const END_AFTER_MS = 2_000;
/** The clock of a store may run so much slower than ours. */
const LEASE_DRIFT_SHARE = 1.01;
const LEASE_DRIFT_MS = 200;
/** A partition is expected soon for so long; from then on it counts as held by another process. */
const SOON_MS = 5_000;
/**
 * One block is always let in while half of this is free, or a small limit would never let the first one come.
 */
const FIRST_BLOCK_SHARE = 0.5;
/** Of a block that passes through: most envelopes fit. */
const PASSING_MIN_BYTES = 4096;

export class Holdings {
  #foundedTold = 0;
  readonly counters: HoldingCounters = {
    takeovers: 0, handedBack: 0, lost: 0, losses: 0, epochs: 0, founded: 0, adopted: 0, adoptedTwice: 0,
  };
  readonly #options: HoldingsOptions;
  readonly #ports: HoldingsPorts;
  readonly #readings: Readings;
  readonly #byName = new Map<string, Holding>();
  readonly #byHandle: (Holding | undefined)[] = [];
  readonly #orphans: Orphans;
  readonly #ended: EndedPartitions;
  readonly #goneBack: GoneBack;
  readonly #losses = new Losses();
  readonly #unrecorded: UnrecordedPartitions;
  /** Of which the log has said that they wait for a person. */
  readonly #away = new Set<string>();

  constructor(options: HoldingsOptions, ports: HoldingsPorts) {
    this.#options = options;
    this.#ports = ports;
    this.#readings = new Readings(options, {
      log: ports.log,
      pull: (source, pull) => this.#request(source, PULL, encodePull(ports.packer, pull)),
      fetch: (source, fetch) => this.#request(source, FETCH, encodeFetch(ports.packer, fetch)),
      flush: (storeId) => { ports.mirrors.storeOf(storeId)?.flush(); },
      blockRoom: (isOwn, pulling, inHandBytes) => this.#blockRoom(isOwn, pulling, inHandBytes),
      onBlock: (handle, rows, bodies, texts, isLast) =>
        ports.recovered.onBlock(handle, rows, bodies, texts, isLast),
      mayBringBodies: (isOwn, pulling, inHandBytes) => this.#mayBringBodies(isOwn, pulling, inHandBytes),
      nextBodies: (handle, limits, withRest) => this.#nextBodies(handle, limits, withRest),
      onFetched: (handle, fetched, bodies, isLast) =>
        ports.recovered.onFetched(handle, fetched, bodies, isLast),
      askAgain: (handle) => { this.#absentOf(handle, (partition) => { ports.absent.askAgain(partition); }); },
      absentCount: (handle) => this.#absentOf(handle, (partition) => ports.absent.countOf(partition)) ?? 0,
      otherSource: (handle, damaged) => this.#otherSource(handle, damaged),
      mayHaveOther: (handle, damaged) =>
        this.#byHandle[handle]?.holder.set?.mayHaveOther(damaged, ports.clock.nowMs()) === true,
      onSwitched: (handle, source) => { this.#switchSource(handle, source); },
      onIndexed: (handle) => { ports.recovered.onIndexed(handle); },
      onWhole: (handle) => { this.#onWhole(handle); },
    });
    const { gatewayId, partitions, group, rescue, orphans: { graceMs } } = options;
    const { clock, log, register, packer, mirrors } = ports;
    this.#orphans = new Orphans(
      { gatewayId, partitions, group, rescue, graceMs }, { clock, log, register, met: () => this.#met() },
    );
    this.#unrecorded = new UnrecordedPartitions({ packer, mirrors, register });
    this.#ended = new EndedPartitions({ packer, mirrors, register });
    this.#goneBack = new GoneBack(log);
    this.#addOwn();
  }

  /** Partitions that no configuration serves any more, whoever holds them now. */
  orphans(): readonly Orphan[] {
    return [...this.#orphans.all.values()];
  }

  /** Ids of gateways that operators have retired. */
  get retired(): ReadonlySet<string> {
    return this.#ports.register.retired();
  }

  /** An operator has retired this gateway: it takes nothing new, and gives away what it has. */
  get isRetired(): boolean {
    return this.#ports.register.retired().has(this.#options.gatewayId);
  }

  *all(): IterableIterator<Holding> {
    yield* this.#byName.values();
  }

  /** Partitions of ours that are not whole here. */
  get openCount(): number {
    let open = 0;
    for (const { isOwn, holder, partition } of this.#byName.values()) {
      if (isOwn && holder.ended === undefined && partition?.isPartial !== false) open += 1;
    }
    return open;
  }

  /** Partitions of which there is no memory even for an index: they go on when there is. */
  get shortCount(): number {
    return this.#readings.shortCount;
  }

  /** Blocks are still to come. */
  get isReading(): boolean {
    return this.#readings.count > 0;
  }

  expected(): Expected {
    let expected: Expected = '';
    for (const holding of this.#byName.values()) {
      if (!holding.isOwn || holding.partition !== undefined || holding.holder.ended !== undefined) continue;
      if (!this.#isLate(holding, this.#ports.clock.nowMs())) return 'soon';
      expected = 'held';
    }
    return expected;
  }

  awaitedBack(): AwaitedBack {
    const { gatewayId } = this.#options;
    const holders = new Set<string>();
    let partitions = 0;
    for (const { isOwn, partition, holder } of this.#byName.values()) {
      if (!isOwn || partition !== undefined || holder.state !== HolderState.IDLE) continue;
      const { lastHolder, ended } = holder;
      if (lastHolder.gatewayId === gatewayId || ended !== undefined || this.isRetired) continue;
      partitions += 1;
      holders.add(lastHolder.gatewayId);
    }
    const nowMs = this.#ports.clock.nowMs();
    const sinceMs = this.#ports.register.living().get(gatewayId)?.sinceMs ?? nowMs;
    const inMs = Math.max(0, sinceMs + HAND_BACK_AFTER_MS - nowMs);
    return { partitions, holders: [...holders].sort(), inMs };
  }

  /** Partitions that should be served here and are not, each with what it waits for. */
  waiting(): readonly WaitingPartition[] {
    const nowMs = this.#ports.clock.nowMs();
    const waiting: WaitingPartition[] = [];
    for (const holding of this.#byName.values()) {
      const waitsFor = holding.holder.waitsFor(nowMs);
      if (waitsFor === Waiting.NOTHING) continue;
      if (waitsFor === Waiting.REGISTER && isServed(holding)) continue;
      const { name: partition, ownerId: owner, sinceMs } = holding;
      const away = waitsFor === Waiting.COPIES_AWAY ? holding.holder.away : undefined;
      waiting.push({
        partition, owner, waitsFor: WAITING_NAMES[waitsFor], copies: away?.stores ?? [],
        beginsEmpty: away !== undefined && holding.holder.wouldBeginEmpty,
        why: this.#why(holding, waitsFor), messages: holding.partition?.length ?? 0, sinceMs,
      });
    }
    return waiting;
  }

  /**
   * The one order of a person: these copies do not come back; without stores, what only a process had in
   * memory. It counts for partitions that wait for a person and have no other copy: one that has goes on by
   * itself when that answers, one that another process serves keeps its copies, and memory is not given up by
   * who gives up a store. Names of the partitions that go on, empty but for what is found after all.
   */
  giveUp(storeIds: readonly string[]): readonly string[] {
    const nowMs = this.#ports.clock.nowMs();
    const given: string[] = [];
    for (const { name, holder } of this.#byName.values()) {
      if (holder.awaitsOrder(storeIds, nowMs) && holder.giveUp(storeIds, nowMs)) given.push(name);
    }
    return given;
  }

  /** Who ordered that these go on without copies (giveUp), and why. */
  noteGivenUp(partitions: readonly string[], by: OrderedBy): void {
    for (const name of partitions) this.#byName.get(name)?.noteGivenUp(by);
  }

  /** The last partitions that began empty. */
  get losses(): readonly Loss[] {
    return this.#losses.last;
  }

  /**
   * Partitions of a gateway that are held here, empty, and would have ended but for copies that an operator
   * gave up: should one come back, its mail is delivered. Nobody waits for that.
   */
  keptFor(gatewayId: string): KeptPartitions {
    const nowMs = this.#ports.clock.nowMs();
    const stores = new Set<string>();
    let count = 0;
    for (const holding of this.#byName.values()) {
      const { givenUp } = holding.holder;
      if (holding.ownerId !== gatewayId || givenUp.length === 0) continue;
      if (holding.emptyForMs(nowMs) < END_AFTER_MS) continue;
      count += 1;
      for (const { storeId } of givenUp) stores.add(storeId);
    }
    return { count, stores: [...stores].sort() };
  }

  /** Partitions that have ended, but for stores that are away. */
  untoldEnds(): readonly UntoldEnd[] {
    return this.#ended.untold();
  }

  /** The same order ends those that wait for nothing but these stores. No mail is lost by it. */
  giveUpEnded(storeIds: readonly string[], by: OrderedBy, done: (result: GivenUpEnds) => void): void {
    this.#ended.giveUp(storeIds, { ...by, wallMs: this.#ports.clock.wallMs() }, done);
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
    for (const { partition, term } of notices) {
      this.#byName.get(partition)?.onFenceNotice(store, bootId, term);
    }
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
        this.#ended.onTold(store, reply.message);
        break;
      case LISTED:
        this.#unrecorded.onListed(store, reply.message);
        break;
      case BLOCK:
        if (this.#byHandle[reply.message.handle]?.onBlock(store, reply.message, reply.bodies) === true) break;
        this.#ports.counters.recoveredMessages += this.#taken(
          () => { this.#readings.onBlock(store.storeId, reply.message, reply.bodies); },
        );
        break;
      case FETCHED:
        this.#readings.onFetched(store.storeId, reply.message, reply.bodies);
        break;
      case TAILED:
        this.#byHandle[reply.message.handle]?.onTailed(reply.message, reply.bodies);
        break;
    }
  }

  /** Deliveries have come to wait for bodies. */
  fetchAwaited(): void {
    const { absent } = this.#ports;
    if (!absent.isAwaited) return;
    absent.isAwaited = false;
    this.#readings.start();
  }

  // ── time ────────────────────────────────────────────────────────────────────────────────────────

  tick(nowMs: number): void {
    this.#unrecorded.tick(nowMs);
    if (this.#orphans.tick(nowMs)) {
      this.#addOwn();
      for (const met of this.#met()) this.#meet(met);
    }
    this.#giveAway(nowMs);
    for (const holding of this.#byName.values()) this.#goOnEnding(holding, nowMs);
    this.#ended.tick(nowMs);
    this.#goneBack.tick(nowMs);
    for (const holding of this.#byName.values()) {
      holding.tick(nowMs);
      this.#tellAway(holding, nowMs);
    }
    this.#tellFounded();
    this.#readings.start();
    this.#ports.counters.epochs = this.counters.epochs;
    if (!this.isReading) this.#ports.recovered.onAllRead();
  }

  /** All that a start founds in one line, once there is nothing more of it to come. */
  #tellFounded(): void {
    const count = this.counters.founded - this.#foundedTold;
    if (count === 0 || [...this.#byName.values()].some(({ isNew }) => isNew)) return;
    this.#foundedTold += count;
    this.#ports.log.info('partition', 'new partitions stand and take mail', { count });
  }

  /** Who reads only the log is told, too, that a person is asked for, and for what; once each time. */
  #tellAway({ name: partition, holder }: Holding, nowMs: number): void {
    const isAway = holder.waitsFor(nowMs) === Waiting.COPIES_AWAY;
    if (isAway === this.#away.has(partition)) return;
    const { log } = this.#ports;
    if (isAway) {
      this.#away.add(partition);
      const why = awayText(holder.away, holder.lastHolder);
      log.error('partition', 'a partition waits for a person', { partition, why });
    } else {
      this.#away.delete(partition);
      log.info('partition', 'a partition waits for a person no more', { partition });
    }
  }

  /** While this gateway is retired, what has ended of it stays ended. */
  #addOwn(): void {
    const { gatewayId, partitions } = this.#options;
    for (let number = 0; number < partitions; number++) {
      const name = partitionName(gatewayId, number);
      if (!this.#byName.has(name) && this.#isWanted(name)) this.#add(name);
    }
  }

  /** This gateway is to have it: its number is configured, and nobody has retired the gateway. */
  #isWanted(name: string): boolean {
    const { gatewayId, partitions } = this.#options;
    return ownerOf(name) === gatewayId && numberOf(name) < partitions && !this.isRetired;
  }

  #meet({ partition: name, stores, isEnded }: MetPartition): void {
    const { gatewayId, rescue, group, orphans: { areOurs } } = this.#options;
    if (this.#byName.has(name)) return;
    const owner = ownerOf(name);
    // An operator who retires a gateway wants its mail delivered, whoever else does not rescue.
    const isOurs = rescue || areOurs || owner === gatewayId || this.retired.has(owner);
    const isOrphan = this.#orphans.all.has(name) && isOurs && this.#knowsOneOf(stores);
    const isOfGroup = rescue && (group?.includes(owner) ?? true);
    // What has ended is met to be cleared away: by those who would have met it before.
    const isToBeCleared = isEnded && isOurs;
    if (isOrphan || isOfGroup || isToBeCleared) this.#add(name);
  }

  /** In the register, and those that it has lost. */
  *#met(): IterableIterator<MetPartition> {
    yield* this.#ports.register.partitions();
    yield* this.#unrecorded.met();
  }

  /** Where all copies are at stores of others, others deliver. */
  #knowsOneOf(stores: readonly string[]): boolean {
    return stores.length === 0 || stores.some((id) => this.#ports.mirrors.storeOf(id) !== undefined);
  }

  #add(name: string): void {
    const { gatewayId, replicas, minReplicas, replaceAfterMs, leaseMs } = this.#options;
    const isOwn = ownerOf(name) === gatewayId;
    const rescueDelayMs = (): number => RESCUE_STEP_MS * this.#rankFor(name);
    const options: HolderOptions = {
      partition: name, self: this.#ports.register.self, isOwn, replicas, minReplicas, replaceAfterMs,
      dropAfterMs: DROP_AFTER_MS, tellAgainMs: TELL_AGAIN_MS, retryMs: RETRY_MS,
      changeTimeoutMs: CHANGE_TIMEOUT_MS,
      get rescueDelayMs() { return rescueDelayMs(); }, awayAfterMs: AWAY_AFTER_MS,
      lookAgainMs: LOOK_AGAIN_MS,
      foundWaitMs: FOUND_WAIT_MS, longestLeaseMs: leaseMs * LEASE_DRIFT_SHARE + LEASE_DRIFT_MS,
    };
    const handle = this.#byHandle.length + 1;
    const { clock, packer, log, register, mirrors, registry, recovered, adopted } = this.#ports;
    const holding = new Holding(handle, options, {
      clock, packer, log, register, mirrors, registry, recovered, adopted,
      readings: this.#readings, counters: this.counters,
      random: () => this.#ports.random(),
      areStoresKnown: () => this.#ports.areStoresKnown(),
      mayBegin: (partition) => this.#isWanted(partition),
      forget: (partition) => { this.#ports.forget(partition); },
      obeyRules: () => { this.#ports.obeyRules(); },
      wake: (partition) => { this.#ports.wake(partition); },
      onLoss: (by) => { this.#losses.began({ partition: name, wallMs: clock.wallMs(), by }); },
      onWentBack: (storeId, partition, changes) => {
        this.#goneBack.note(storeId, partition, changes, clock.nowMs());
      },
    });
    this.#byHandle[handle] = holding;
    this.#byName.set(name, holding);
    for (const store of mirrors.stores) if (store.isUp) holding.onLinkUp(store);
  }

  /**
   * Our place among those that live and may rescue the partition, from 1 on: another order for each, so that
   * its mail spreads. Where a new gateway is not known yet, two may have the same: one of their changes is
   * made.
   */
  #rankFor(name: string): number {
    const { gatewayId, group } = this.#options;
    const own = rendezvous(gatewayId, name);
    const before = [...this.#ports.register.living().keys()].filter((id) => id !== gatewayId
      && id !== ownerOf(name) && group?.includes(id) !== false && rendezvous(id, name) < own);
    return before.length + 1;
  }

  /** Those held for others, those that are to end, and all of a gateway that is retired. */
  #giveAway(nowMs: number): void {
    const living = this.#ports.register.living();
    const { isRetired } = this;
    for (const holding of this.#byName.values()) {
      const { holder, partition, name, isOwn } = holding;
      if (partition === undefined) continue;
      const isOrphan = this.#orphans.all.has(name);
      const isClosed = isOrphan || (isOwn && isRetired);
      if (partition.isClosed !== isClosed) {
        partition.isClosed = isClosed;
        this.#ports.mirrors.stateVersion += 1;
      }
      const isEmpty = holding.emptyForMs(nowMs) >= END_AFTER_MS;
      if (holder.state === HolderState.HANDING_BACK) {
        const { goesTo } = holding;
        if (goesTo === undefined || !isStillThere(goesTo, living)) holder.keep(nowMs);
        else holding.keepIfLate(nowMs);
      } else if (isClosed && isEmpty && holder.mayEnd) {
        if (holding.mayGive(nowMs)) holding.giveTo(nobody(name), nowMs);
      } else if (holder.state === HolderState.HOLDER || holder.state === HolderState.READING) {
        const heir = isOwn
          ? this.#heirOf(holding, isRetired, living, nowMs)
          : this.#ownerOf(holding, living, nowMs);
        const mayGo = holding.mayGive(nowMs) && !this.#ports.isPassedOver(partition);
        holding.noteHeir(heir !== undefined, nowMs);
        if (heir !== undefined && mayGo) holding.giveTo(heir, nowMs);
      }
    }
  }

  /**
   * The owner of a partition held for it, once it has been up for long enough to have it back, and can hold
   * it.
   */
  #ownerOf(holding: Holding, living: Living, nowMs: number): HolderId | undefined {
    const { ownerId } = holding;
    const owner = living.get(ownerId);
    if (owner === undefined || nowMs - owner.sinceMs < HAND_BACK_AFTER_MS) return undefined;
    if (this.#ports.register.retired().has(ownerId)) return undefined;
    return holding.isReachedBy(owner.holder, nowMs) ? owner.holder : undefined;
  }

  /**
   * Who goes on for a gateway that is retired: the first in rendezvous order of those that live and can hold
   * it.
   */
  #heirOf(holding: Holding, isWanted: boolean, living: Living, nowMs: number): HolderId | undefined {
    if (!isWanted) return undefined;
    const { name } = holding;
    const { gatewayId, group: named } = this.#options;
    const retired = this.#ports.register.retired();
    let heir: HolderId | undefined;
    for (const [id, { holder, sinceMs, group }] of living) {
      const isOfGroup = (named?.includes(id) ?? true) || group.length === 0 || group.includes(gatewayId);
      if (id === gatewayId || retired.has(id) || !isOfGroup || nowMs - sinceMs < HAND_BACK_AFTER_MS) continue;
      if (!holding.isReachedBy(holder, nowMs)) continue;
      if (heir === undefined || rendezvous(id, name) < rendezvous(heir.gatewayId, name)) heir = holder;
    }
    return heir;
  }

  /** What has ended is cleared away; one that this gateway is configured to have is begun anew instead. */
  #goOnEnding({ name, handle, holder }: Holding, nowMs: number): void {
    if (holder.state !== HolderState.IDLE) return;
    const { ended } = holder;
    // One that is begun anew may have its record at any moment: forgotten, it would deliver beside its
    // successor.
    if (ended === undefined || this.#isWanted(name)) return;
    // One that no record told of its end, on a disk that was found late, is told now.
    const isMissed = !this.#ended.isToldAt(this.#unrecorded.storesWith(name), name);
    if (isMissed || this.#ports.register.partition(name) !== undefined) {
      this.#ended.goOn(name, ended, this.#rankFor(name) - 1, nowMs);
      return;
    }
    this.#ended.forget(name);
    this.#unrecorded.forget(name);
    this.#ports.register.leave(name);
    this.#byName.delete(name);
    this.#byHandle[handle] = undefined;
    this.#ports.log.info('orphans', 'a partition that nobody needs any more has ended', { partition: name });
  }

  #request(source: RecordedMember, type: typeof PULL | typeof FETCH, control: Uint8Array): boolean {
    const { mirrors } = this.#ports;
    const store = mirrors.storeAt(source);
    const outbox = store === undefined ? undefined : mirrors.outboxOf(store);
    if (outbox === undefined) return false;
    outbox.request(type, control);
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

  #otherSource(handle: number, damaged: ReadonlySet<string>): RecordedMember | undefined {
    const other = this.#byHandle[handle]?.holder.set?.otherSource();
    return other === undefined || damaged.has(other.storeId) ? undefined : other;
  }

  #switchSource(handle: number, { storeId }: RecordedMember): void {
    const set = this.#byHandle[handle]?.holder.set;
    const row = set?.otherSource();
    if (row?.storeId === storeId) set?.switchSource(row);
  }

  #onWhole(handle: number): void {
    this.#ports.recovered.onWhole(handle);
    this.#byHandle[handle]?.onWhole();
  }

  #absentOf<T>(handle: number, act: (partition: Partition) => T): T | undefined {
    const partition = this.#byHandle[handle]?.partition;
    return partition === undefined ? undefined : act(partition);
  }

  /** Of one more block without bodies, with as many on their way and one in hand. */
  #blockRoom(isOwn: boolean, pulling: number, inHandBytes: number): BlockRoom | undefined {
    const { memory, absent } = this.#ports;
    const { blockBytes, blockEntries } = this.#options;
    const most = memory.entriesBytes(isOwn);
    const used = memory.usedBytes + absent.askedBytes + inHandBytes;
    if (used + (pulling + 1) * blockBytes <= most || (pulling === 0 && used < most * FIRST_BLOCK_SHARE)) {
      return { entriesMax: blockEntries, bytesMax: blockBytes };
    }
    return pulling === 0 ? this.#passingRoom(isOwn, used) : undefined;
  }

  /** Of a block that passes through: only places of its entries stay here, in what is kept for them. */
  #passingRoom(isOwn: boolean, used: number): BlockRoom | undefined {
    const { memory } = this.#ports;
    const { blockBytes, blockEntries } = this.#options;
    const keptLeft = isOwn ? Infinity : memory.foreignPlacesBytes - this.#foreignBytes();
    const forPlaces = Math.min(memory.placesBytes - used, keptLeft);
    const placesLeft = Math.max(memory.entriesBytes(isOwn) - used, forPlaces);
    const entriesMax = Math.min(blockEntries, Math.floor(placesLeft / ENTRY_BOOKKEEPING_BYTES));
    const bytesMax = Math.min(blockBytes, Math.floor((memory.reserveBytes - used) / 2));
    return entriesMax < 1 || bytesMax < PASSING_MIN_BYTES ? undefined : { entriesMax, bytesMax };
  }

  /** Places of entries that are held for others. */
  #foreignBytes(): number {
    let entries = 0;
    for (const { isOwn, partition } of this.#byName.values()) if (!isOwn) entries += partition?.length ?? 0;
    return entries * ENTRY_BOOKKEEPING_BYTES;
  }

  #mayBringBodies(isOwn: boolean, pulling: number, inHandBytes: number): boolean {
    const { memory, absent, recovered } = this.#ports;
    const blockBytes = Math.max(this.#options.blockBytes, this.#options.largestBytes ?? 0);
    const coming = inHandBytes + (pulling + 1) * blockBytes + recovered.comingBytes;
    return memory.usedBytes + absent.askedBytes + coming <= memory.restBytes(isOwn);
  }

  #nextBodies(handle: number, limits: FetchLimits, withRest: boolean): readonly number[] {
    const { memory, absent, recovered } = this.#ports;
    const partition = this.#byHandle[handle]?.partition;
    if (partition === undefined || absent.countOf(partition) === 0) return [];
    const used = memory.usedBytes + absent.askedBytes;
    const most = memory.recoveryBytes(partition.isOwn);
    // Up to the last reserve, however full memory is: what they end makes room.
    const aloneBytes = absent.askedBytes === 0 ? memory.reserveBytes - recovered.grainBytes - used : 0;
    return absent.next(partition, {
      ...limits, wantedBytes: Math.max(most - used, Math.min(SMALL_BYTES, aloneBytes)),
      restBytes: memory.restBytes(partition.isOwn) - used,
      mayTakeOne: absent.askedBytes === 0 && used < most * FIRST_BLOCK_SHARE,
      aloneBytes, nowMs: this.#ports.clock.nowMs(),
    }, withRest);
  }

  #isLate({ holder, sinceMs }: Holding, nowMs: number): boolean {
    const isWaiting = holder.waitsFor(nowMs) !== Waiting.NOTHING || holder.state === HolderState.IDLE;
    return isWaiting || nowMs - sinceMs >= SOON_MS;
  }

  #why({ holder }: Holding, waitsFor: WaitingValue): string {
    switch (waitsFor) {
      case Waiting.COPIES_AWAY: return awayText(holder.away, holder.lastHolder);
      case Waiting.REGISTER:
        return registerAwayText(holder.set === undefined || holder.hasRules, this.#ports.register.away);
      case Waiting.LEASE:
        if (holder.state === HolderState.WAITING_OUT) return WAITING_OUT_TEXT;
        return holder.isUntaken ? untakenText(holder.lastHolder) : leaseText(holder.lastHolder);
      case Waiting.STORES:
        if (!holder.isUnstored(this.#ports.clock.nowMs())) return unheardText(holder.away);
        return holder.set === undefined
          ? unbegunText(holder.refusingStores, holder.lastHolder) : unstoredText(holder.silentStores);
      case Waiting.NOTHING: return '';
    }
  }
}

/**
 * Only a change of its record waits: mail is taken and delivered here. Of what others have nobody can say
 * without the register that it is not served; that it is away stands in status by itself.
 */
function isServed({ holder, partition, isOwn }: Holding): boolean {
  if (holder.mayAccept) return partition?.hasMissing === false && holder.hasRules;
  return !isOwn && (holder.state === HolderState.IDLE || holder.state === HolderState.ASKING);
}

/** `why` is empty where it answers others, and not this partition. */
function registerAwayText(areRulesKnown: boolean, why: string): string {
  const text = areRulesKnown ? 'the register does not answer' : 'the register, which alone knows what '
    + 'operators have ordered, does not answer: mail is taken, and no delivery starts';
  return why === '' ? text : `${text}: ${why}`;
}

type Living = ReadonlyMap<string, LivingGateway>;

/** A partition that is given to nobody ends, whoever lives. */
function isStillThere(to: HolderId, living: Living): boolean {
  const one = living.get(to.gatewayId);
  return to.incarnation === 0 || (one !== undefined && isSameHolder(one.holder, to));
}
