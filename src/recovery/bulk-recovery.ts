/**
 * Queues that the stores hold and this process is to serve: its own after a restart (the paper's section IV.D),
 * and those of another gateway of its group that stays dead. One machine for both.
 *
 *   store up ─► LIST ─► census ─► claims at every member ─► TAIL ─► adopt ─► PULL block after block ─► whole
 *                          │ member missing, lease runs        (queue-job.ts has the states)
 *                          └─► wait, and say so
 *
 * All queues are claimed at once, a few pulled side by side. Not here: when another gateway's queue may be
 * looked at and when it goes back (rescue-watch.ts), the claims of one queue (claim-machine.ts), blocks (pulls.ts).
 * Pure: the stores and the gateway are ports.
 */
import type { EventLog, Packer } from '../platform/ports.js';
import { BLOCK, CLAIMED, LISTED, TAILED } from '../protocol/message-types.js';
import type { Claimed } from '../protocol/messages/claimed.js';
import { CLAIM_GRANTED, ROLE_MEMBER } from '../protocol/reasons.js';
import type { Reply } from '../protocol/replies.js';
import type { CensusRow } from './census.js';
import { queueKey } from './census.js';
import { Claiming } from './claiming.js';
import type { ForceRequest, ForcedQueue } from './force.js';
import { forceQueues } from './forcing.js';
import { Pulls } from './pulls.js';
import type { PullOptions } from './pulls.js';
import type { ClaimedQueue, QueueJob, QueueName, RecoveryStore } from './queue-job.js';
import { RescueWatch } from './rescue-watch.js';
import type { SetHint } from './set-hints.js';
import { SetHints } from './set-hints.js';
import { StoreViews } from './store-views.js';
import type { StoreList } from './store-views.js';
import type { Expected, HeldQueue } from './waiting-queues.js';
import { anySoon, expectedOf, heldQueues, openOwn } from './waiting-queues.js';

export interface RecoveryOptions extends PullOptions {
  readonly gatewayId: string;
  /** Tokens of the claims begin here: the incarnation. */
  readonly token: number;
  /** Ids of the gateways that may take over one another's queues. */
  readonly group: readonly string[];
  /** Takes over the queues of the others in the group. */
  readonly rescue: boolean;
  /** Sets of mirrors as the process before us knew them. */
  readonly hints?: readonly SetHint[];
}

export interface RecoveryPorts {
  readonly packer: Packer;
  readonly log: EventLog;
  nowMs(): number;
  random(): number;
  /** An older process of this id may still live: nothing is claimed at a store before its lease there has ended. */
  olderMayLive(): boolean;
  needFlush(): void;
  takeHandle(): number;
  /** Handle and token of the queue if this process serves it now. */
  served(ownerId: string, birth: number, serial: number): { readonly handle: number; readonly token: number } | undefined;
  /** Stores that are members of a queue that is served; empty when one of them can't be asked. */
  membersOf(handle: number): readonly string[];
  /** Stores that have all of a queue up to this number (pulls.ts); undefined: not known yet. */
  copiesUpTo(handle: number, number: number): readonly string[] | undefined;
  /** Whether one more block may come, with `pulling` of them on their way and this much in hand that is not counted yet. */
  mayPull(isOwn: boolean, pulling: number, inHandBytes: number): boolean;
  onClaimed(queue: ClaimedQueue): void;
  onBlock(handle: number, rows: Uint8Array, bodies: Uint8Array, texts: Uint8Array, lastSource: boolean): boolean;
  onRecovered(handle: number): void;
  /** A store has a copy of a queue that is served here. */
  onCopyTold(handle: number, row: CensusRow): void;
  /** Its owner is back: deliveries end, then release() gives it up. */
  onOwnerBack(handle: number): void;
  /** Queues that are served, and wait for an operator. */
  readonly lostSets: { held(): HeldQueue[]; force(request: ForceRequest): ForcedQueue[] };
}

export type StoreId = Pick<RecoveryStore, 'storeId'>;

/** What counts for the metrics. */
export interface RecoveryCounters {
  takeovers: number;
  handedBack: number;
  /** Queues that another process had taken over while this one stood still or was cut off. */
  lost: number;
}

/** Answers of a lease that began before a process stood still: 1% of clock drift and 200 ms, as in DESIGN. */
const DRIFT_SHARE = 1.01;
const DRIFT_MS = 200;
/** The stores' lists come within this; one that was under way is asked for again by then. */
const LOST_LOOK_MS = 500;

export class BulkRecovery {
  readonly counters: RecoveryCounters = { takeovers: 0, handedBack: 0, lost: 0 };
  private readonly options: RecoveryOptions;
  private readonly ports: RecoveryPorts;
  private readonly views: StoreViews;
  private readonly hints: SetHints;
  private readonly claiming: Claiming;
  private readonly pulls: Pulls;
  private readonly watch: RescueWatch;
  private readonly jobs = new Map<string, QueueJob>();
  private readonly byHandle = new Map<number, QueueJob>();
  private readonly isKnown = (key: string): boolean => this.jobs.has(key);

  constructor(options: RecoveryOptions, ports: RecoveryPorts) {
    this.options = options;
    this.ports = ports;
    this.views = new StoreViews(options.gatewayId, ports.packer);
    this.hints = new SetHints(options.hints ?? [], ports.log);
    this.pulls = new Pulls(options, {
      packer: ports.packer, log: ports.log, views: this.views, nowMs: () => ports.nowMs(), needFlush: () => { ports.needFlush(); },
      mayPull: (isOwn, pulling, inHandBytes) => ports.mayPull(isOwn, pulling, inHandBytes), copiesUpTo: (handle, number) => ports.copiesUpTo(handle, number),
      onBlock: (handle, rows, bodies, texts, lastSource) => ports.onBlock(handle, rows, bodies, texts, lastSource),
      onWhole: (job) => { ports.onRecovered(job.handle); },
    });
    this.claiming = new Claiming({ gatewayId: options.gatewayId, token: options.token, group: options.group }, {
      packer: ports.packer, log: ports.log, views: this.views, hints: this.hints,
      nowMs: () => ports.nowMs(), random: () => ports.random(), olderMayLive: () => ports.olderMayLive(), needFlush: () => { ports.needFlush(); },
      onClaimed: (job, queue) => { this.adopt(job, queue); },
    });
    this.watch = new RescueWatch({ gatewayId: options.gatewayId, group: options.group, rescue: options.rescue }, {
      nowMs: () => ports.nowMs(), random: () => ports.random(), views: this.views, jobs: () => this.jobs.values(),
      ask: (view, kind, job) => { this.claiming.ask(view, kind, job, kind === 'holder' ? 0 : job.machine.token); },
      membersOf: (handle) => ports.membersOf(handle),
      takeUp: (job) => { job.restart('waiting', 0); },
      isOfLastSet: (job, row) => this.claiming.isOfLastSet(job, row),
      giveUp: (job, row, isOld) => { this.claiming[isOld ? 'dropAt' : 'giveUpAt'](job, row.storeId, row.holderToken); },
      onOwnerBack: (job) => { ports.onOwnerBack(job.handle); },
    });
  }

  addStore(store: RecoveryStore): void {
    this.views.add(store);
  }

  /** Every store of the group has told its list at least once. */
  get allListed(): boolean {
    return this.views.allListed;
  }

  /** Stores that have not told their list, or can't be asked now. */
  get silentStores(): readonly string[] {
    return this.views.silent();
  }

  /** No queue of ours is to come within moments: new mail is put off for none. */
  get isSettled(): boolean {
    return this.allListed && !anySoon(this.jobs.values());
  }

  /** Queues of our own that are known and not whole yet. */
  get openCount(): number {
    return openOwn(this.jobs.values());
  }

  /** Every queue of our own that the stores listed so far is whole. */
  get isIdle(): boolean {
    return this.openCount === 0;
  }

  /** Queues whose mail waits, for whom, and since when. */
  held(): HeldQueue[] {
    const silent = this.views.silent();
    const lost = this.ports.lostSets.held();
    return lost.concat(heldQueues(this.jobs.values(), this.hints, this.claiming.news.isLate ? this.hints.untold(this.options.gatewayId, this.isKnown, silent) : [], silent));
  }

  /** Whether a partition of ours is still to come, this one or any: at once, or held until a store or a rescuer answers. */
  expects(name?: string): Expected {
    return expectedOf(this.jobs.values(), name);
  }

  /** What was known before of queues that have not come back yet. */
  openHints(): Iterable<SetHint> {
    return this.hints.all();
  }

  onStoreUp(store: StoreId): void {
    const view = this.views.get(store.storeId);
    if (view === undefined) return;
    const nowMs = this.ports.nowMs();
    // The older process may have renewed its lease here until this store heard of us: counted anew in each boot.
    if (view.bootId !== view.store.bootId) view.claimFromMs = this.ports.olderMayLive() ? nowMs + view.store.leaseMs * DRIFT_SHARE + DRIFT_MS : nowMs;
    view.graceEndsMs = nowMs + view.store.graceMs;
    if (view.bootId !== view.store.bootId) {
      view.listed = false;
      for (const job of this.jobs.values()) {
        if (view.bootId !== '') job.onStoreRestarted(store.storeId);
        this.forget(job, store.storeId);
      }
    }
    view.bootId = view.store.bootId;
    if (!view.listed || [...this.jobs.values()].some((job) => job.unheard.has(store.storeId))) this.views.list(view, false);
    for (const job of this.jobs.values()) if (job.isComing && job.claims.has(store.storeId)) this.claiming.ask(view, 'attach', job, job.machine.token);
  }

  onStoreDown(store: StoreId): void {
    this.views.onDown(store);
    for (const job of this.jobs.values()) {
      job.machine.onStoreLost(store.storeId);
      this.claiming.onTailLost(job, store.storeId);
    }
    this.pulls.onStoreDown(store.storeId);
  }

  /** A store refused a request about one of our queues: if it was a PULL or a TAIL, another member is read. */
  onRefusal(store: StoreId, handle: number): void {
    const job = this.byHandle.get(handle);
    if (job === undefined) return;
    this.claiming.onTailRefused(job, store.storeId);
    this.pulls.onRefusal(job, store.storeId);
  }

  /** A reply to one of our requests. */
  onReply(store: StoreId, reply: Reply): void {
    switch (reply.type) {
      case LISTED: {
        const list = this.views.onListed(store, reply.message);
        if (list !== undefined) this.onListed(list);
        return;
      }
      case CLAIMED:
        this.onClaimed(store, reply.sequence, reply.message);
        return;
      case TAILED:
        this.claiming.onTailed(store.storeId, reply.message, reply.bodies, (handle) => this.byHandle.get(handle));
        return;
      case BLOCK:
        this.pulls.onBlock(store.storeId, reply.message, reply.bodies, (handle) => this.byHandle.get(handle));
        return;
    }
  }

  /** Called now and then: claims that were put off are made again. `isLate`: the stores have had their time to answer. */
  tick(nowMs: number, isLate: boolean): void {
    this.lookForOlder(nowMs);
    this.claiming.news.isLate = isLate;
    if (isLate) this.hints.tell(this.options.gatewayId, this.isKnown, this.views.silent(), this.allListed);
    this.watch.tick(nowMs);
    this.startJobs();
  }

  /** Its end proves as much as the end of its leases. */
  private lookForOlder(nowMs: number): void {
    let waits = false;
    for (const view of this.views.all()) if (view.claimFromMs > nowMs) waits = true;
    if (!waits || this.ports.olderMayLive()) return;
    for (const view of this.views.all()) if (view.claimFromMs > nowMs) view.claimFromMs = nowMs;
    for (const job of this.jobs.values()) if (job.state === 'waiting') job.notBeforeMs = Math.min(job.notBeforeMs, nowMs);
  }

  /** Handed back: the claims are released at the members; copies that left the set are dropped, or the owner could believe them. */
  handedBack(handle: number, members: readonly string[], others: readonly string[]): void {
    this.counters.handedBack += 1;
    const job = this.byHandle.get(handle);
    if (job === undefined) return;
    for (const storeId of members) this.claiming.giveUpAt(job, storeId, job.machine.token);
    for (const storeId of others) this.claiming.dropAt(job, storeId, job.machine.token);
    this.pulls.remove(job);
    this.drop(job);
    this.stand(job);
    this.ports.needFlush();
  }

  /** The queue is another process's from here on. Its owner's queues are not all here, whatever the last lists said. */
  private stand(queue: QueueName): QueueJob {
    const job = this.newJob(queueKey(queue.ownerId, queue.birth, queue.serial), queue);
    for (const { store } of this.views.all()) job.unheard.add(store.storeId);
    return job;
  }

  /**
   * Another process has the queue. What it still has under way here keeps its handle: should it come again, it gets
   * another one. Our own is held until it is released: a fifo route goes on beside it, a strict one waits.
   */
  onLost(handle: number, queue: QueueName, epoch: number): void {
    const old = this.byHandle.get(handle);
    if (old !== undefined) {
      this.pulls.remove(old);
      this.drop(old);
    }
    this.counters.lost += 1;
    const job = this.stand(queue);
    if (!job.isOwn) return;
    job.wasLost = true;
    job.noteElsewhere(epoch);
    const nowMs = this.ports.nowMs();
    job.blocked = 'another process has it';
    job.missingSinceMs = nowMs;
    job.notBeforeMs = nowMs + LOST_LOOK_MS;
    for (const view of this.views.all()) if (view.store.isUp && view.listing === undefined) this.views.list(view, false);
    this.ports.needFlush();
  }

  /** An operator goes on without a store (forcing.ts). */
  force(request: ForceRequest): ForcedQueue[] {
    const { log, lostSets } = this.ports;
    return forceQueues(request, { log, lostSets, views: this.views, hints: this.hints, pulls: this.pulls, nowMs: () => this.ports.nowMs(), jobs: () => this.jobs.values(), startJobs: () => { this.startJobs(); } });
  }

  private adopt(job: QueueJob, queue: ClaimedQueue): void {
    if (!job.isOwn) this.counters.takeovers += 1;
    this.ports.onClaimed(queue);
    for (const row of job.rows.values()) this.ports.onCopyTold(job.handle, row); // It may say that the queue is another's.
    if (this.byHandle.get(job.handle) === job) this.pulls.add(job);
  }

  private onListed(list: StoreList): void {
    const { storeId } = list.view.store;
    const seen = new Set<string>();
    for (const row of list.rows) {
      const key = queueKey(row.ownerId, row.birth, row.serial);
      seen.add(key);
      this.hints.note(key, row);
      // What this process serves does not come back, whoever founded it.
      const served = this.ports.served(row.ownerId, row.birth, row.serial);
      if (served !== undefined) {
        // A bounce queue that we founded for its owner was never claimed, and goes home with the others.
        if (row.ownerId !== this.options.gatewayId && !this.jobs.has(key)) this.add(this.claiming.servedJob(row, key, served.handle, served.token));
        this.ports.onCopyTold(served.handle, row);
        continue;
      }
      const job = this.jobs.get(key) ?? this.newJob(key, row);
      if (list.all || job.isOwn) job.unheard.delete(storeId);
      // Lost to another process since, and it is ours again to ask for.
      if (job.state === 'done' && row.role === ROLE_MEMBER) job.restart(job.isOwn ? 'waiting' : 'elsewhere', 0);
      if (job.state === 'waiting' || job.state === 'elsewhere') job.rows.set(storeId, row);
      if (row.holder !== this.options.gatewayId && row.holder !== '') {
        job.heldBy = row.holder;
        job.noteElsewhere(row.epoch);
      }
    }
    for (const job of this.jobs.values()) {
      if ((!list.all && !job.isOwn) || seen.has(job.key)) continue;
      job.unheard.delete(storeId);
      if (job.state === 'waiting' || job.state === 'elsewhere') job.rows.delete(storeId);
      if (job.state === 'elsewhere' && job.rows.size === 0 && job.unheard.size === 0) this.drop(job);
    }
    this.startJobs();
  }

  private newJob(key: string, row: QueueName): QueueJob {
    return this.add(this.claiming.newJob(row, key, this.ports.takeHandle()));
  }

  private add(job: QueueJob): QueueJob {
    this.jobs.set(job.key, job);
    this.byHandle.set(job.handle, job);
    return job;
  }

  private drop(job: QueueJob): void {
    this.jobs.delete(job.key);
    this.byHandle.delete(job.handle);
  }

  /** Takes up what can be taken up. */
  private startJobs(): void {
    const answering = this.views.answering();
    const nowMs = this.ports.nowMs();
    for (const job of this.jobs.values()) if (job.state === 'waiting' && job.notBeforeMs <= nowMs) this.claiming.judge(job, answering, nowMs);
    this.pulls.resumeStranded(this.allListed);
    this.pulls.start();
    this.ports.needFlush();
  }

  private onClaimed(store: StoreId, sequence: number, claimed: Claimed): void {
    const ask = this.views.takeAsk(store, sequence);
    if (ask === undefined) return;
    const { kind, job } = ask;
    if (kind === 'holder' || kind === 'owner') this.watch.onAnswer(store.storeId, kind, job, claimed);
    else if (kind === 'attach') {
      if (claimed.result !== CLAIM_GRANTED) this.forget(job, store.storeId);
      else this.pulls.start();
    } else {
      this.claiming.note(job, store.storeId, claimed);
      job.machine.onAnswer(store.storeId, kind, claimed);
    }
  }

  /** A store restarted: what it said before is gone. */
  private forget(job: QueueJob, storeId: string): void {
    job.machine.onStoreLost(storeId);
    job.claims.delete(storeId);
    job.sources = job.sources.filter((id) => id !== storeId);
    job.forgetStore(storeId);
    this.claiming.onTailLost(job, storeId);
  }
}
