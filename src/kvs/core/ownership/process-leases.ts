/**
 * Leases that this store granted, by process, and how often each process was fenced in some partition here.
 *
 *   heartbeat of a process / its lease runs leaseMs from now; the answer says how often, and in which
 *                            partitions, it was fenced
 *   fence in a partition   / the count goes up; the lease of that partition is frozen (partition-fence.ts),
 *                            that of the process runs on for its other partitions
 *
 * An answer renews at the process only what it still holds after it has processed every fence that the
 * answer counts (rule 6; its side is recovery/ownership/link-lease.ts). Therefore the answer names the fences
 * that the process has not confirmed yet, in this boot. One entry a partition: an older fence of the same
 * partition says nothing more.
 */
import { NOTICES_MAX } from '../../../protocol/messages/beat.js';
import type { Term } from '../../../protocol/partition-record.js';

/** A fence that a process must hear of. */
export interface FenceNotice {
  /** Its number among the fences of this process here, from 1 on. */
  readonly count: number;
  readonly partition: string;
  readonly term: Term;
}

export interface HeartbeatAnswer {
  readonly leaseMs: number;
  readonly fenceCount: number;
  /** Those past what the process said it has processed. */
  readonly fences: readonly FenceNotice[];
}

/** What is left of a process in the file of a stopped store. */
type CarriedLease = readonly [process: string, fenceCount: number, fences: readonly FenceNotice[]];

interface ProcessRow {
  endsMs: number;
  fenceCount: number;
  fences: FenceNotice[];
}

const NO_FENCES: readonly FenceNotice[] = [];

export class ProcessLeases {
  readonly #leaseMs: number;
  readonly #rows = new Map<string, ProcessRow>();
  #longestMs: number;

  /** `longestMs`: the longest lease that a boot carried on by file has granted; 0 for a new boot. */
  constructor(leaseMs: number, longestMs = 0) {
    this.#leaseMs = leaseMs;
    this.#longestMs = Math.max(leaseMs, longestMs);
  }

  get count(): number {
    return this.#rows.size;
  }

  /** The longest lease ever granted in this boot, for the file that a stopping store writes. */
  get longestMs(): number {
    return this.#longestMs;
  }

  heartbeat(process: string, fencesProcessed: number, nowMs: number): HeartbeatAnswer {
    const row = this.#rowOf(process);
    row.endsMs = nowMs + this.#leaseMs;
    if (row.fences.length > 0) row.fences = row.fences.filter((notice) => notice.count > fencesProcessed);
    // What an answer has no room for comes with the next: until then its count renews nothing.
    const fences = row.fences.length === 0 ? NO_FENCES : row.fences.slice(0, NOTICES_MAX);
    return { leaseMs: this.#leaseMs, fenceCount: row.fenceCount, fences };
  }

  /** When the lease of a process ends here; -Infinity when it had none in this boot. */
  endsMs(process: string): number {
    return this.#rows.get(process)?.endsMs ?? -Infinity;
  }

  noteFence(process: string, partition: string, term: Term): void {
    const row = this.#rowOf(process);
    row.fenceCount += 1;
    row.fences = row.fences.filter((notice) => notice.partition !== partition);
    row.fences.push({ count: row.fenceCount, partition, term });
  }

  /**
   * Counts for the file, and from it: a successor's answers go on counting, or a process would
   * take one for confirmed.
   */
  carried(): readonly CarriedLease[] {
    return [...this.#rows].map(([process, row]) => [process, row.fenceCount, [...row.fences]] as const);
  }

  carryOn(rows: readonly CarriedLease[]): void {
    for (const [process, fenceCount, fences] of rows) {
      const row = this.#rowOf(process);
      row.fenceCount = fenceCount;
      row.fences = [...fences];
    }
  }

  /** Processes whose lease is over and of which nobody can come back. */
  forgetEnded(nowMs: number, mayComeBack: (process: string) => boolean): void {
    for (const [process, row] of this.#rows) {
      if (row.endsMs <= nowMs && !mayComeBack(process)) this.#rows.delete(process);
    }
  }

  #rowOf(process: string): ProcessRow {
    let row = this.#rows.get(process);
    if (row === undefined) {
      row = { endsMs: -Infinity, fenceCount: 0, fences: [] };
      this.#rows.set(process, row);
    }
    return row;
  }
}
