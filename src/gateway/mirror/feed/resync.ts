/**
 * Refills towards one store: which copies there are being filled, and at what pace.
 *
 *   waits ─► its turn: FENCE (FILL) ─► REFILL frames as the byte window allows
 *         ─► REFILL_END sent ─► acknowledged ─► the set hears of it        (states: copy-feed.ts)
 *
 * A few refills run side by side, so that many small partitions do not cost a round trip each; the frames of
 * a turn are bounded, so that live mail on the same link does not wait behind a large one. A partition that
 * is itself still coming back from a store is not refilled before all its entries are known; bodies may be
 * missing (refill-source.ts).
 */
import type { Packer } from '../../../platform/ports.js';
import { REFILL, REFILL_END } from '../../../protocol/message-types.js';
import { encodeRefill } from '../../../protocol/messages/refill.js';
import { encodeRefillEnd } from '../../../protocol/messages/refill-end.js';
import { MemberState } from '../../../recovery/ownership/member.js';
import type { RefillEntries } from '../../../recovery/refill-source.js';
import { RefillSource } from '../../../recovery/refill-source.js';
import type { CopyFeed } from './copy-feed.js';
import { FillPhase } from './copy-feed.js';
import { ENTRY_CREDIT_BYTES } from '../set/partition.js';
import type { Partition } from '../set/partition.js';
import type { RefillPace } from './refill-pace.js';
import type { RepairCounters } from './repair-counters.js';
import type { StorePort } from '../link/store-port.js';

const ACTIVE_MAX = 16;
/** 4 × 256 KiB a turn: about 1 ms of a store's time, so that live mail waits no longer than that. */
const FRAMES_PER_PUMP = 4;

export interface ResyncOptions {
  readonly frameBytes: number;
}

export interface ResyncPorts {
  readonly packer: Packer;
  readonly counters: RepairCounters;
  refillEntries(partition: Partition): RefillEntries;
  nowMs(): number;
  readonly pace: RefillPace;
  /** Seals all that is pending, so that numbers and cursor agree. */
  sealAll(): void;
  needFlush(): void;
  /** FENCE (FILL): the copy is emptied, and stands where the partition does. */
  fenceToFill(partition: Partition): void;
  /** True while sealed frames for the store wait: nothing may overtake them. */
  isBacklogged(): boolean;
}

interface Job {
  readonly partition: Partition;
  readonly feed: CopyFeed;
  refill: RefillSource | undefined;
  /** Sequence of REFILL_END, 0 before. */
  endSequence: number;
}

export class Resync {
  #waiting: Job[] = [];
  #active: Job[] = [];
  readonly #options: ResyncOptions;
  readonly #ports: ResyncPorts;
  readonly #store: StorePort;

  constructor(options: ResyncOptions, ports: ResyncPorts, store: StorePort) {
    this.#options = options;
    this.#ports = ports;
    this.#store = store;
  }

  get hasWork(): boolean {
    return this.#waiting.length + this.#active.length > 0;
  }

  /** Asks for a refill; one that was under way is begun anew by the caller (cancel()). */
  add(partition: Partition, feed: CopyFeed): void {
    this.#waiting.push({ partition, feed, refill: undefined, endSequence: 0 });
    this.#ports.needFlush();
  }

  /** The link is gone: every refill there is over. */
  reset(): void {
    this.#waiting = [];
    this.#active = [];
  }

  cancel(partition: Partition): void {
    this.#waiting = this.#waiting.filter((job) => job.partition !== partition);
    this.#active = this.#active.filter((job) => job.partition !== partition);
  }

  onUnlinked(partition: Partition, row: number, following: number): void {
    for (const job of this.#active) {
      // The mirror's cursor stays until the next pump: what this turn ended in front of it is sealed as
      // SKIPPED first.
      if (job.partition === partition) job.refill?.onUnlinked(row, following);
    }
  }

  onAckedThrough(sequence: number, filled: (partition: Partition, feed: CopyFeed) => void): void {
    const done = this.#active.filter((job) => job.endSequence !== 0 && job.endSequence <= sequence);
    if (done.length > 0) {
      this.#active = this.#active.filter((job) => !done.includes(job));
      for (const { partition, feed } of done) filled(partition, feed);
    }
    if (this.hasWork) this.#ports.needFlush();
  }

  /** Goes on as far as the window and the bound of a turn allow. Everything pending is sealed before. */
  pump(): void {
    if (!this.hasWork || !this.#store.isUp || this.#ports.isBacklogged()) return;
    this.#waiting = this.#waiting.filter(isWanted);
    this.#active = this.#active.filter(isWanted);
    // One whose entries are still being read waits, and holds no other up.
    for (const job of [...this.#waiting]) {
      if (this.#active.length >= ACTIVE_MAX || !this.#store.canSend) break;
      if (job.partition.isRecovering) continue;
      this.#waiting.splice(this.#waiting.indexOf(job), 1);
      this.#start(job);
    }
    let frames = 0;
    for (const job of this.#active) {
      while (frames < FRAMES_PER_PUMP && this.#store.canSend && this.#ports.pace.mayGoOn(job.partition)
        && this.#step(job)) frames += 1;
    }
  }

  #start(job: Job): void {
    const { partition, feed } = job;
    this.#ports.sealAll();
    this.#ports.counters.refills += 1;
    this.#ports.fenceToFill(partition);
    job.refill = new RefillSource({
      baseNumber: partition.lastNumber, frameBytes: this.#options.frameBytes,
      entryCreditBytes: ENTRY_CREDIT_BYTES,
    }, this.#ports.refillEntries(partition));
    feed.beginFill(partition.lastNumber, partition.length, partition.bytes);
    feed.fillCursor = job.refill.cursor;
    this.#active.push(job);
  }

  /** One frame; false when nothing more is to be sent for this job. */
  #step(job: Job): boolean {
    const { partition, feed, refill } = job;
    if (refill === undefined || feed.fill !== FillPhase.SENDING) return false;
    // Takes of the credit, and goes on without: the store has a reserve for it.
    const before = refill.sentCount;
    const frame = refill.nextFrame(Number.MAX_SAFE_INTEGER);
    feed.fillCursor = refill.cursor;
    if (frame !== undefined) {
      this.#ports.counters.refillBytes += frame.payload.length + frame.rows.length;
      this.#ports.pace.sent(partition, frame.payload.length + frame.rows.length);
      feed.progress.refilled(refill.sentCount - before, frame.payload.length);
      const control = encodeRefill(this.#ports.packer, { handle: partition.handle, rows: frame.rows });
      this.#store.request(REFILL, control, [frame.payload], frame.creditBytes);
    }
    // Without a frame it waits for a body that is still at a store.
    if (!refill.isOver) return frame !== undefined;
    feed.awaitEnd();
    const end = encodeRefillEnd(this.#ports.packer, { handle: partition.handle, count: refill.sentCount });
    job.endSequence = this.#store.request(REFILL_END, end, [], 0);
    return true;
  }
}

/** The set still has the row, and it is to be filled. */
function isWanted({ partition, feed: { row } }: Job): boolean {
  return row.state === MemberState.FILLING && partition.rows.includes(row);
}
