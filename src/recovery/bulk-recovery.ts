/**
 * A gateway's queues coming back from the stores after a restart (the paper's section IV.D).
 *
 *   store up ─► LIST ─► census ─► CLAIM at every member ─► adopt ─► PULL block after block ─► recovered
 *                          │ member missing
 *                          └─► wait, and say so
 *
 *   state      leaves it when                            waits for
 *   WAITING    every member of the newest epoch listed   a store that is down, or all stores when one came back empty
 *   CLAIMING   every claim granted                       CLAIMED of each member
 *   PULLING    the block with `end`                      BLOCK; a lost source is replaced by another member
 *   STRANDED   the last source is back, same boot        a store
 *   DONE
 *
 * Several queues are claimed and pulled side by side. Pure: the stores and the gateway are ports.
 */
import type { EventLog, Packer } from '../platform/ports.js';
import { BLOCK, CLAIM, CLAIMED, LIST, LISTED, PULL } from '../protocol/message-types.js';
import { CLAIM_DENIED, CLAIM_GRANTED, CLAIM_TOKEN_LOW } from '../protocol/reasons.js';
import type { CensusRow } from './census.js';
import { judgeQueue, queueKey, sourcesOf } from './census.js';
import type { ListedRow } from './recovery-replies.js';
import { readBlock, readClaimed, readListed } from './recovery-replies.js';

/** One store as recovery sees it. */
export interface RecoveryStore {
  readonly storeId: string;
  readonly bootId: string;
  readonly isUp: boolean;
  /** Writes what was requested, without waiting for the end of the turn. */
  flush(): void;
  request(type: number, control: Uint8Array, bodies: readonly Uint8Array[], creditBytes: number): number;
}

/** A queue whose members have all granted the claim. */
export interface ClaimedQueue {
  readonly handle: number;
  readonly birth: number;
  readonly serial: number;
  readonly name: string;
  readonly queueClass: string;
  readonly epoch: number;
  readonly members: readonly string[];
  /** As they stood when the claim was granted; the first is read from. */
  readonly holders: readonly CensusRow[];
  readonly number: number;
  readonly digestA: number;
  readonly digestB: number;
}

export interface RecoveryOptions {
  readonly gatewayId: string;
  /** Token of the claims: the incarnation. */
  readonly token: number;
  readonly blockEntries: number;
  readonly blockBytes: number;
}

export interface RecoveryPorts {
  readonly packer: Packer;
  readonly log: EventLog;
  needFlush(): void;
  takeHandle(): number;
  onClaimed(queue: ClaimedQueue): void;
  /** Entry rows by ascending position and their payloads; false when a checksum is wrong: another mirror is asked. */
  onBlock(handle: number, rows: Uint8Array, bodies: Uint8Array, lastSource: boolean): boolean;
  onRecovered(handle: number): void;
  onFenced(storeId: string): void;
}

const QUEUES_AT_ONCE = 8;

interface QueueJob {
  readonly key: string;
  readonly handle: number;
  state: 'waiting' | 'claiming' | 'pulling' | 'stranded' | 'done';
  rows: CensusRow[];
  claims: Map<string, CensusRow>;
  asked: Set<string>;
  epoch: number;
  members: readonly string[];
  sources: CensusRow[];
  source: string;
  cursor: number;
  until: number;
  toldMissing: string;
}

interface StoreView {
  readonly store: RecoveryStore;
  rows: ListedRow[];
  listed: boolean;
  bootId: string;
}

export class BulkRecovery {
  private readonly options: RecoveryOptions;
  private readonly ports: RecoveryPorts;
  private readonly views = new Map<string, StoreView>();
  private readonly jobs = new Map<string, QueueJob>();
  private readonly byHandle = new Map<number, QueueJob>();
  private firstRoundOver = false;

  constructor(options: RecoveryOptions, ports: RecoveryPorts) {
    this.options = options;
    this.ports = ports;
  }

  addStore(store: RecoveryStore): void {
    this.views.set(store.storeId, { store, rows: [], listed: false, bootId: '' });
  }

  /** Every store of the group has told its list at least once. */
  get allListed(): boolean {
    for (const view of this.views.values()) if (!view.listed) return false;
    return true;
  }

  /** Queues known and not whole yet. */
  get openCount(): number {
    let open = 0;
    for (const job of this.jobs.values()) if (job.state !== 'done') open += 1;
    return open;
  }

  /** True once every queue that the stores listed so far is whole. */
  get isIdle(): boolean {
    return this.openCount === 0;
  }

  onStoreUp(store: RecoveryStore): void {
    const view = this.views.get(store.storeId);
    if (view === undefined) return;
    if (view.bootId !== store.bootId) {
      view.rows = [];
      view.listed = false;
      for (const job of this.jobs.values()) this.forget(job, store.storeId);
    }
    view.bootId = store.bootId;
    if (!view.listed) {
      view.rows = [];
      this.list(view, 0);
    }
    for (const job of this.jobs.values()) {
      if (job.state === 'claiming' && job.asked.has(store.storeId)) {
        job.asked.delete(store.storeId);
        this.claim(job);
      } else if (job.state === 'stranded') this.reclaim(job, store.storeId);
    }
  }

  onStoreDown(store: RecoveryStore): void {
    for (const job of this.jobs.values()) {
      if (job.state === 'pulling' && job.source === store.storeId) this.nextSource(job, 'its store is gone');
    }
  }

  /** A reply to one of our requests; true when it was ours. */
  onReply(store: RecoveryStore, type: number, control: Uint8Array, bodies: Uint8Array): boolean {
    if (type === LISTED) this.onListed(store, control);
    else if (type === CLAIMED) this.onClaimed(store, control);
    else if (type === BLOCK) this.onBlock(store, control, bodies);
    else return false;
    return true;
  }

  private list(view: StoreView, cursor: number): void {
    view.store.request(LIST, this.ports.packer.pack([this.options.gatewayId, cursor]), [], 0);
    this.ports.needFlush();
  }

  private onListed(store: RecoveryStore, control: Uint8Array): void {
    const view = this.views.get(store.storeId);
    const listed = readListed(this.ports.packer, control);
    if (view === undefined || listed === undefined) return;
    for (const row of listed.rows) if (row.gatewayId === this.options.gatewayId) view.rows.push(row);
    if (!listed.complete) {
      this.list(view, listed.next);
      return;
    }
    view.listed = true;
    for (const row of view.rows) {
      const key = queueKey(row.birth, row.serial);
      const job = this.jobs.get(key) ?? this.newJob(key);
      if (job.state !== 'waiting') continue;
      job.rows = job.rows.filter((known) => known.storeId !== store.storeId);
      job.rows.push({ ...row, storeId: store.storeId });
    }
    this.startJobs();
  }

  private newJob(key: string): QueueJob {
    const job: QueueJob = { key, handle: this.ports.takeHandle(), state: 'waiting', rows: [], claims: new Map(), asked: new Set(), epoch: 0, members: [], sources: [], source: '', cursor: 0, until: 0, toldMissing: '' };
    this.jobs.set(key, job);
    this.byHandle.set(job.handle, job);
    return job;
  }

  /** Takes up what can be taken up, a few queues at a time. */
  private startJobs(): void {
    const answered = new Set<string>();
    for (const view of this.views.values()) if (view.listed) answered.add(view.store.storeId);
    const all = [...this.views.keys()];
    let busy = 0;
    for (const job of this.jobs.values()) if (job.state === 'claiming' || job.state === 'pulling') busy += 1;
    for (const job of this.jobs.values()) {
      if (job.state !== 'waiting') continue;
      if (busy >= QUEUES_AT_ONCE) return;
      const verdict = judgeQueue(job.rows, answered, all);
      if (verdict.kind === 'nothing') {
        if (answered.size === all.length) this.abandon(job);
        continue;
      }
      if (verdict.kind === 'wait') {
        this.tellMissing(job, verdict.missing, verdict.why);
        continue;
      }
      if (verdict.emptyMembers.length > 0) this.ports.log.warn('recovery', 'a mirror of this queue came back empty; every store answered, so the newest epoch goes on; repeats are possible', { queue: this.nameOf(job), epoch: verdict.epoch, empty: verdict.emptyMembers });
      job.state = 'claiming';
      job.epoch = verdict.epoch;
      job.members = verdict.members;
      job.rows = job.rows.filter((row) => verdict.holders.some((holder) => holder.storeId === row.storeId));
      busy += 1;
      this.claim(job);
    }
    if (!this.firstRoundOver && this.allListed) this.firstRoundOver = true;
  }

  /** No store is a member: what they hold was never acknowledged by anyone. */
  private abandon(job: QueueJob): void {
    job.state = 'done';
    this.ports.log.info('recovery', 'a refill that never ended is left behind; nothing of it was acknowledged', { queue: this.nameOf(job) });
  }

  private tellMissing(job: QueueJob, missing: readonly string[], why: string): void {
    const text = missing.join(' ');
    if (job.toldMissing === text) return;
    job.toldMissing = text;
    this.ports.log.warn('recovery', 'mail of this queue is held: a store that may know more of it has not answered; start it', { queue: this.nameOf(job), missing, why });
  }

  private claim(job: QueueJob): void {
    const first = job.rows[0];
    if (first === undefined) return;
    for (const row of job.rows) {
      const view = this.views.get(row.storeId);
      if (job.asked.has(row.storeId) || view === undefined || !view.store.isUp) continue;
      job.asked.add(row.storeId);
      view.store.request(CLAIM, this.ports.packer.pack([job.handle, this.options.gatewayId, first.birth, first.serial, this.options.token]), [], 0);
    }
    this.ports.needFlush();
  }

  private onClaimed(store: RecoveryStore, control: Uint8Array): void {
    const claimed = readClaimed(this.ports.packer, control);
    const job = claimed === undefined ? undefined : this.byHandle.get(claimed.handle);
    if (claimed === undefined || job === undefined) return;
    const known = job.rows.find((row) => row.storeId === store.storeId);
    if (known === undefined) return;
    if (claimed.result === CLAIM_TOKEN_LOW || claimed.result === CLAIM_DENIED) {
      this.ports.onFenced(store.storeId);
      return;
    }
    if (claimed.result !== CLAIM_GRANTED) {
      this.ports.log.warn('recovery', 'a store does not grant the claim of this queue yet; asking again', { queue: this.nameOf(job), store: store.storeId, result: claimed.result, waitMs: claimed.waitMs });
      job.asked.delete(store.storeId);
      return;
    }
    const row: CensusRow = { ...known, role: claimed.role, epoch: claimed.epoch, members: claimed.members, number: claimed.number, digestA: claimed.digestA, digestB: claimed.digestB, count: claimed.count };
    if (job.state === 'stranded') {
      job.claims.set(store.storeId, row);
      this.resume(job, row);
      return;
    }
    if (job.state !== 'claiming') return;
    job.claims.set(store.storeId, row);
    if (job.rows.every((wanted) => job.claims.has(wanted.storeId))) this.adopt(job);
  }

  private adopt(job: QueueJob): void {
    const holders = [...job.claims.values()];
    const newest = Math.max(...holders.map((row) => row.epoch));
    if (newest > job.epoch) {
      // The old owner's last change of the set arrived between the list and the claim: judge again by what the claims showed.
      job.state = 'waiting';
      job.rows = holders;
      job.claims = new Map();
      job.asked = new Set();
      this.startJobs();
      return;
    }
    const sources = sourcesOf(holders, newest);
    const best = sources[0];
    if (best === undefined) return;
    job.sources = sources.slice(1);
    job.source = best.storeId;
    job.until = best.number;
    job.state = 'pulling';
    this.ports.onClaimed({ handle: job.handle, birth: best.birth, serial: best.serial, name: best.name, queueClass: best.queueClass, epoch: newest, members: job.members, holders: [best, ...holders.filter((row) => row !== best)], number: best.number, digestA: best.digestA, digestB: best.digestB });
    this.pull(job);
  }

  private pull(job: QueueJob): void {
    const view = this.views.get(job.source);
    if (view === undefined || !view.store.isUp) {
      this.nextSource(job, 'its store is gone');
      return;
    }
    view.store.request(PULL, this.ports.packer.pack([job.handle, job.cursor, job.until, this.options.blockEntries, this.options.blockBytes, true]), [], 0);
    this.ports.needFlush();
  }

  private onBlock(store: RecoveryStore, control: Uint8Array, bodies: Uint8Array): void {
    const block = readBlock(this.ports.packer, control);
    const job = block === undefined ? undefined : this.byHandle.get(block.handle);
    if (block === undefined || job === undefined || job.state !== 'pulling' || job.source !== store.storeId || block.afterPosition !== job.cursor) return;
    const before = job.cursor;
    job.cursor = block.nextPosition;
    // The next block travels while this one is taken in.
    if (!block.end) {
      this.pull(job);
      store.flush();
    }
    if (!this.ports.onBlock(job.handle, block.rows, bodies, job.sources.length === 0)) {
      job.cursor = before;
      this.nextSource(job, 'it holds a damaged message');
      return;
    }
    if (!block.end) return;
    job.state = 'done';
    this.ports.onRecovered(job.handle);
    this.startJobs();
  }

  private nextSource(job: QueueJob, why: string): void {
    const lost = job.source;
    const next = job.sources.shift();
    if (next === undefined) {
      job.state = 'stranded';
      this.ports.log.error('recovery', 'a queue is only partly back and no other mirror has the rest; start the store that had it', { queue: this.nameOf(job), store: lost, why, from: job.cursor });
      return;
    }
    this.ports.log.warn('recovery', 'going on from another mirror', { queue: this.nameOf(job), store: lost, next: next.storeId, why });
    job.source = next.storeId;
    this.pull(job);
  }

  private reclaim(job: QueueJob, storeId: string): void {
    const row = job.claims.get(storeId);
    const view = this.views.get(storeId);
    if (row === undefined || view === undefined) return;
    view.store.request(CLAIM, this.ports.packer.pack([job.handle, this.options.gatewayId, row.birth, row.serial, this.options.token]), [], 0);
    this.ports.needFlush();
  }

  private resume(job: QueueJob, row: CensusRow): void {
    job.source = row.storeId;
    job.state = 'pulling';
    this.pull(job);
  }

  /** A store restarted: what it said before is gone. */
  private forget(job: QueueJob, storeId: string): void {
    if (job.state === 'done' || job.state === 'pulling') return;
    job.rows = job.rows.filter((row) => row.storeId !== storeId);
    job.claims.delete(storeId);
    job.asked.delete(storeId);
    if (job.state === 'claiming') {
      job.state = 'waiting';
      job.claims = new Map();
      job.asked = new Set();
    }
  }

  /** Called now and then: claims that were put off are asked again. */
  tick(): void {
    for (const job of this.jobs.values()) if (job.state === 'claiming' && job.asked.size < job.rows.length) this.claim(job);
    this.startJobs();
  }

  private nameOf(job: QueueJob): string {
    return job.rows[0]?.name ?? job.key;
  }
}
