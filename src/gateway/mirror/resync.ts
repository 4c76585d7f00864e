/**
 * Refills towards one store: which mirrors there are being filled, and at what pace.
 *
 *   waiting ─► start: OPEN, REFILL_BEGIN ─► FILLING: REFILL frames as the byte window allows
 *           ─► ENDING: REFILL_END sent ─► acknowledged ─► CAUGHT_UP, handed to reviseSet
 *
 * A few refills run side by side, so that a thousand small queues do not cost a round trip each; the frames
 * of a turn are bounded, so that live mail on the same link does not wait behind a large queue. A queue that
 * is itself still coming back from a store is not refilled before it is whole. A queue without any mirror in
 * sync fills one after the other.
 */
import type { Packer } from '../../platform/ports.js';
import { REFILL, REFILL_BEGIN, REFILL_END } from '../../protocol/message-types.js';
import { encodeRefill } from '../../protocol/messages/refill.js';
import { encodeRefillBegin } from '../../protocol/messages/refill-begin.js';
import { encodeRefillEnd } from '../../protocol/messages/refill-end.js';
import type { RefillEntries } from '../../recovery/refill-source.js';
import { RefillSource } from '../../recovery/refill-source.js';
import { ENTRY_CREDIT_BYTES } from './partition.js';
import type { Partition } from './partition.js';
import type { RepairCounters } from './repair-counters.js';
import type { Replica } from './replica.js';
import { ResyncPhase, SyncState } from './replica.js';
import { decides, isItsTime, mayFound } from './replica-set.js';
import type { StorePort } from './store-port.js';

const ACTIVE_MAX = 16;
/** 4 × 256 KiB a turn: about 1 ms of a store's time, so that live mail waits no longer than that. */
const FRAMES_PER_PUMP = 4;

export interface ResyncOptions {
  readonly frameBytes: number;
  readonly retryMs: number;
}

export interface ResyncPorts {
  readonly packer: Packer;
  readonly counters: RepairCounters;
  refillEntries(partition: Partition): RefillEntries;
  nowMs(): number;
  /** Seals all that is pending, so that numbers and cursor agree. */
  sealAll(): void;
  needFlush(): void;
  /** OPEN: the queue gets its handle there, and our right to it is confirmed. */
  attach(partition: Partition, replica: Replica): void;
  /** True while sealed frames for the store wait: nothing may overtake them. */
  isBacklogged(): boolean;
  onCaughtUp(partition: Partition): void;
}

interface Job {
  readonly partition: Partition;
  readonly replica: Replica;
  refill: RefillSource | undefined;
  /** Sequence of REFILL_END, 0 before. */
  endSequence: number;
}

export class Resync {
  private waiting: Job[] = [];
  private active: Job[] = [];
  private readonly options: ResyncOptions;
  private readonly ports: ResyncPorts;
  private readonly store: StorePort;

  constructor(options: ResyncOptions, ports: ResyncPorts, store: StorePort) {
    this.options = options;
    this.ports = ports;
    this.store = store;
  }

  get hasWork(): boolean {
    return this.waiting.length + this.active.length > 0;
  }

  /** Asks for a refill; does nothing when one is under way. Whether it is time for it is the caller's to know (catch-up.ts). */
  add(partition: Partition, replica: Replica): void {
    if (replica.sync !== SyncState.NG || partition.isRecovering || this.has(partition)) return;
    if (!mayFill(partition, replica, this.ports.nowMs())) return;
    this.waiting.push({ partition, replica, refill: undefined, endSequence: 0 });
    this.ports.needFlush();
  }

  has(partition: Partition): boolean {
    return this.waiting.some((job) => job.partition === partition) || this.active.some((job) => job.partition === partition);
  }

  /** The link is gone: every refill there is over. */
  reset(): void {
    this.waiting = [];
    this.active = [];
  }

  cancel(partition: Partition): void {
    this.waiting = this.waiting.filter((job) => job.partition !== partition);
    this.active = this.active.filter((job) => job.partition !== partition);
  }

  onUnlinked(partition: Partition, row: number, following: number): void {
    for (const job of this.active) {
      // The mirror's cursor stays until the next pump: what this turn ended in front of it is sealed as SKIPPED first.
      if (job.partition === partition) job.refill?.onUnlinked(row, following);
    }
  }

  onAckedThrough(sequence: number): void {
    let over = false;
    for (const job of this.active) {
      if (job.endSequence === 0 || job.endSequence > sequence || job.replica.phase !== ResyncPhase.ENDING) continue;
      job.replica.phase = ResyncPhase.CAUGHT_UP;
      job.replica.filledBootId = this.store.bootId;
      over = true;
    }
    if (over) {
      const done = this.active.filter((job) => job.replica.phase === ResyncPhase.CAUGHT_UP);
      this.active = this.active.filter((job) => job.replica.phase !== ResyncPhase.CAUGHT_UP);
      for (const job of done) this.ports.onCaughtUp(job.partition);
    }
    if (this.hasWork) this.ports.needFlush();
  }

  /** Goes on as far as the window and the bound of a turn allow. Everything pending is sealed before. */
  pump(): void {
    if (!this.store.isUp || this.ports.isBacklogged()) return;
    while (this.active.length < ACTIVE_MAX && this.waiting.length > 0 && this.store.canSend) {
      const job = this.waiting.shift();
      if (job !== undefined && job.replica.sync === SyncState.NG && !job.partition.isRecovering && mayFill(job.partition, job.replica, this.ports.nowMs())) this.start(job);
    }
    let frames = 0;
    for (const job of this.active) {
      while (frames < FRAMES_PER_PUMP && this.store.canSend && this.step(job)) frames += 1;
      if (!this.store.canSend) return;
    }
  }

  private start(job: Job): void {
    const { partition, replica } = job;
    this.ports.sealAll();
    replica.transition(SyncState.RESYNC, 'refill begins', this.ports.nowMs());
    replica.acked = 0;
    replica.mustRefill = false;
    replica.filledBootId = '';
    this.ports.counters.refills += 1;
    this.ports.attach(partition, replica);
    const { handle, lastNumber: number, digest } = partition;
    const control = encodeRefillBegin(this.ports.packer, { handle, number, digestA: digest.a, digestB: digest.b });
    this.store.request(REFILL_BEGIN, control, [], 0);
    job.refill = new RefillSource({ baseNumber: partition.lastNumber, frameBytes: this.options.frameBytes, entryCreditBytes: ENTRY_CREDIT_BYTES }, this.ports.refillEntries(partition));
    replica.refillBase = partition.lastNumber;
    replica.refillCursor = job.refill.cursor;
    replica.phase = ResyncPhase.FILLING;
    replica.progress.beginRefill(partition.length, partition.bytes);
    this.active.push(job);
  }

  /** One frame; false when nothing more is to be sent for this job. */
  private step(job: Job): boolean {
    const { partition, replica, refill } = job;
    if (refill === undefined || replica.phase !== ResyncPhase.FILLING) return false;
    // Takes of the credit, and goes on without: the store has a reserve for it.
    const before = refill.sentCount;
    const frame = refill.nextFrame(Number.MAX_SAFE_INTEGER);
    replica.refillCursor = refill.cursor;
    if (frame !== undefined) {
      this.ports.counters.refillBytes += frame.payload.length + frame.rows.length;
      replica.progress.refilled(refill.sentCount - before, frame.payload.length);
      const control = encodeRefill(this.ports.packer, { handle: partition.handle, rows: frame.rows });
      this.store.request(REFILL, control, [frame.payload], frame.creditBytes);
      if (!refill.isOver) return true;
    }
    replica.phase = ResyncPhase.ENDING;
    const end = encodeRefillEnd(this.ports.packer, { handle: partition.handle, count: refill.sentCount });
    job.endSequence = this.store.request(REFILL_END, end, [], 0);
    return true;
  }
}

/**
 * A refill empties the copy first. With no mirror in sync that copy may be all that a crash of this process
 * would leave: then one mirror is filled at a time, first those that have least to lose; the others when the
 * first is a member at its store. Not waited for is what can't begin, or can't found a set, before this one is
 * filled: without it the queue has no set any more. Nor one that must itself wait for such a one.
 */
function mayFill(partition: Partition, replica: Replica, nowMs: number): boolean {
  if (partition.inSyncCount > 0) return true;
  const decidesAll = !mayFound(partition) && mayFound(partition, replica);
  for (const other of partition.replicas) {
    if (other === replica) continue;
    if (other.sync === SyncState.RESYNC) {
      const founds = partition.founding && partition.setChangeNumber !== 0 && other.phase === ResyncPhase.JOINING && other.acked >= partition.setChangeNumber;
      const isLevel = other.phase === ResyncPhase.CAUGHT_UP || other.phase === ResyncPhase.JOINING;
      if (!founds && !(decidesAll && isLevel)) return false;
    } else if (worthOf(partition, other) < worthOf(partition, replica) && other.store.isUp && other.retryAtMs <= nowMs && isItsTime(partition, other) && mayFill(partition, other, nowMs)) return false;
  }
  return true;
}

/** What would be lost with this copy: nothing, what it had when it left the set, or what the last set acknowledged. */
function worthOf(partition: Partition, replica: Replica): number {
  if (!replica.stillClaims) return 0;
  return decides(partition, replica) ? 2 : 1;
}
