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
 *   CLAIMED    few enough others are being pulled        a turn; new mail of its route is taken behind it already
 *   PULLING    the block with `end`                      BLOCK; a lost source is replaced by another member
 *   STRANDED   a member that still has it is back        a store; given up when all have answered and none has it
 *   DONE
 *
 * All queues are claimed at once, a few pulled side by side. Pure: the stores and the gateway are ports.
 */
import type { EventLog, Packer } from '../platform/ports.js';
import { BLOCK, CLAIM, CLAIMED, LIST, LISTED, PULL } from '../protocol/message-types.js';
import { CLAIM_DENIED, CLAIM_GRANTED, CLAIM_TOKEN_LOW } from '../protocol/reasons.js';
import type { CensusRow } from './census.js';
import { judgeQueue, queueKey, sourcesOf } from './census.js';
import type { ClaimedQueue, QueueJob, RecoveryStore, StoreView } from './queue-job.js';
import { newQueueJob } from './queue-job.js';
import { readBlock, readClaimed, readListed } from './recovery-replies.js';

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

const PULLS_AT_ONCE = 8;

/** What is known of a queue that a store has told of and that has not been adopted. */
export type Expected = '' | 'soon' | 'held';

export class BulkRecovery {
  private readonly options: RecoveryOptions;
  private readonly ports: RecoveryPorts;
  private readonly views = new Map<string, StoreView>();
  private readonly jobs = new Map<string, QueueJob>();
  private readonly byHandle = new Map<number, QueueJob>();
  /** Before this, a store that has not answered is no news. */
  private isLate = false;
  /** Jobs by name and class of their queue. */
  private readonly unadopted = new Map<string, QueueJob[]>();

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

  /** Whether a queue of this name is still to come: at once, or held until a store answers. */
  expects(name: string, queueClass: string): Expected {
    let expected: Expected = '';
    for (const job of this.unadopted.get(nameKey(name, queueClass)) ?? []) {
      if (job.state !== 'waiting' && job.state !== 'claiming') continue;
      if (job.toldMissing === '') return 'soon';
      expected = 'held';
    }
    return expected;
  }

  onStoreUp(store: RecoveryStore): void {
    const view = this.views.get(store.storeId);
    if (view === undefined) return;
    if (view.bootId !== store.bootId) {
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
      } else if (job.state !== 'done') this.reclaim(job, store.storeId);
    }
  }

  onStoreDown(store: RecoveryStore): void {
    for (const job of this.jobs.values()) {
      if (job.state === 'pulling' && job.source === store.storeId) this.nextSource(job, 'its store is gone');
    }
  }

  /** A store refused a request about one of our queues: if it was a PULL, another member is read. */
  onRefusal(store: RecoveryStore, handle: number): void {
    const job = this.byHandle.get(handle);
    if (job?.state === 'pulling' && job.source === store.storeId) this.nextSource(job, 'it refused');
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
    // What this very process has created meanwhile does not come back.
    for (const row of listed.rows) if (row.gatewayId === this.options.gatewayId && row.birth !== this.options.token) view.rows.push(row);
    if (!listed.complete) {
      this.list(view, listed.next);
      return;
    }
    view.listed = true;
    for (const row of view.rows) {
      const key = queueKey(row.birth, row.serial);
      const job = this.jobs.get(key) ?? this.newJob(key, row.name, row.queueClass);
      if (job.state !== 'waiting') continue;
      job.rows = job.rows.filter((known) => known.storeId !== store.storeId);
      job.rows.push({ ...row, storeId: store.storeId });
    }
    this.startJobs();
  }

  private newJob(key: string, name: string, queueClass: string): QueueJob {
    const job = newQueueJob(key, this.ports.takeHandle());
    this.jobs.set(key, job);
    this.byHandle.set(job.handle, job);
    const sameName = this.unadopted.get(nameKey(name, queueClass)) ?? [];
    sameName.push(job);
    this.unadopted.set(nameKey(name, queueClass), sameName);
    return job;
  }

  /** Takes up what can be taken up. */
  private startJobs(): void {
    const answered = new Set<string>();
    for (const view of this.views.values()) if (view.listed) answered.add(view.store.storeId);
    const all = [...this.views.keys()];
    for (const job of this.jobs.values()) {
      if (job.state === 'waiting') this.judge(job, answered, all);
      else if (job.state === 'stranded') this.rescue(job, answered.size === all.length);
    }
    this.startPulls();
  }

  private judge(job: QueueJob, answered: ReadonlySet<string>, all: readonly string[]): void {
    const verdict = judgeQueue(job.rows, answered, all);
    if (verdict.kind === 'nothing') {
      const unasked = all.filter((store) => !answered.has(store));
      if (unasked.length === 0) this.abandon(job);
      else this.tellMissing(job, unasked, 'unreachable');
      return;
    }
    if (verdict.kind === 'wait') {
      this.tellMissing(job, verdict.missing, verdict.why);
      return;
    }
    if (verdict.emptyMembers.length > 0) this.ports.log.warn('recovery', 'a mirror of this queue came back empty; every store answered, so the newest epoch goes on; repeats are possible', { queue: this.nameOf(job), epoch: verdict.epoch, empty: verdict.emptyMembers });
    job.state = 'claiming';
    job.toldMissing = '';
    job.epoch = verdict.epoch;
    job.members = verdict.members;
    job.rows = job.rows.filter((row) => verdict.holders.some((holder) => holder.storeId === row.storeId));
    this.claim(job);
  }

  private startPulls(): void {
    let pulling = 0;
    for (const job of this.jobs.values()) if (job.state === 'pulling') pulling += 1;
    for (const job of this.jobs.values()) {
      if (pulling >= PULLS_AT_ONCE) return;
      if (job.state !== 'claimed') continue;
      job.state = 'pulling';
      pulling += 1;
      this.pull(job);
    }
  }

  /** A queue that is only partly back goes on from any member that still has it; damaged ones come last. */
  private rescue(job: QueueJob, allAnswered: boolean): void {
    const sound = [...job.claims.keys()].filter((id) => !job.damaged.has(id));
    const source = (sound.length > 0 ? sound : [...job.claims.keys()]).find((id) => this.isUsable(job, id));
    if (source !== undefined) {
      job.source = source;
      job.state = 'claimed';
    } else if (job.claims.size === 0 && allAnswered) {
      job.state = 'done';
      this.ports.log.error('recovery', 'the rest of a queue is lost: every store that had it has restarted', { queue: this.nameOf(job), from: job.cursor });
      this.ports.onRecovered(job.handle);
    }
  }

  /** Whether the store is there and has what it had when it granted the claim. */
  private isUsable(job: QueueJob, storeId: string): boolean {
    return job.claims.has(storeId) && this.views.get(storeId)?.store.isUp === true;
  }

  /** No store is a member: what they hold was never acknowledged by anyone. */
  private abandon(job: QueueJob): void {
    job.state = 'done';
    this.ports.log.info('recovery', 'a refill that never ended is left behind; nothing of it was acknowledged', { queue: this.nameOf(job) });
  }

  private tellMissing(job: QueueJob, missing: readonly string[], why: string): void {
    const text = missing.join(' ');
    if (!this.isLate || job.toldMissing === text) return;
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
    // Repeated because the link was down: the handle is attached again.
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
      job.claims.clear();
      job.asked.clear();
      this.startJobs();
      return;
    }
    const sources = sourcesOf(holders, newest);
    const best = sources[0];
    if (best === undefined) return;
    job.sources = sources.slice(1).map((row) => row.storeId);
    job.source = best.storeId;
    job.until = best.number;
    job.state = 'claimed';
    for (const row of holders) if (!sources.includes(row)) job.claims.delete(row.storeId);
    this.ports.onClaimed({ handle: job.handle, ownerId: this.options.gatewayId, birth: best.birth, serial: best.serial, name: best.name, queueClass: best.queueClass, epoch: newest, members: job.members, holders: [best, ...holders.filter((row) => row !== best)], number: best.number, digestA: best.digestA, digestB: best.digestB });
    this.startPulls();
  }

  private pull(job: QueueJob): void {
    const view = this.views.get(job.source);
    if (view === undefined || !this.isUsable(job, job.source)) {
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
      job.damaged.add(store.storeId);
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
    this.ports.log.warn('recovery', 'going on from another mirror', { queue: this.nameOf(job), store: lost, next, why });
    job.source = next;
    this.pull(job);
  }

  private reclaim(job: QueueJob, storeId: string): void {
    const row = job.claims.get(storeId);
    const view = this.views.get(storeId);
    if (row === undefined || view === undefined) return;
    view.store.request(CLAIM, this.ports.packer.pack([job.handle, this.options.gatewayId, row.birth, row.serial, this.options.token]), [], 0);
    this.ports.needFlush();
  }

  /** A store restarted: what it said before is gone. */
  private forget(job: QueueJob, storeId: string): void {
    job.claims.delete(storeId);
    job.asked.delete(storeId);
    job.sources = job.sources.filter((id) => id !== storeId);
    if (job.state !== 'waiting' && job.state !== 'claiming') return;
    job.rows = job.rows.filter((row) => row.storeId !== storeId);
    job.claims.clear();
    job.asked.clear();
    job.state = 'waiting';
  }

  /** Called now and then: claims that were put off are asked again. `isLate`: the stores have had their time to answer. */
  tick(isLate: boolean): void {
    this.isLate = isLate;
    for (const job of this.jobs.values()) if (job.state === 'claiming' && job.asked.size < job.rows.length) this.claim(job);
    this.startJobs();
  }

  private nameOf(job: QueueJob): string {
    return job.rows[0]?.name ?? job.key;
  }
}

function nameKey(name: string, queueClass: string): string {
  return `${name}/${queueClass}`;
}
