/**
 * One mirrored partition as a store holds it, in short a copy: at which number and digest it stands and under
 * which term it came there, where its entries start and end, and how far a refill has come.
 *
 *   none ── FENCE how=FOUND ──► COMPLETE at number 0        COMPLETE ── FENCE how=FILL ──► FILLING
 *   none ── FENCE how=FILL ───► FILLING at the number told   FILLING ── REFILL_END, count agrees ──► COMPLETE
 *   any ─── TELL: out of the record, or under a term that never came to be ──► gone
 *
 * Whether it counts is the record's to say, not the store's: nothing here is a role. Who may write to it is
 * its fence (ownership/partition-fence.ts), which is there also when no copy is. Owns: the fields. Entries
 * are rows in stored-entries.ts, rules of change in section.ts.
 */

import type { ToldClock } from '../../base/told-clock.js';
import type { Term } from '../../protocol/partition-record.js';
import type { AppliedChanges } from './applied-changes.js';
import { DigestHistory } from './digest-history.js';
import type { PartitionFence } from './ownership/partition-fence.js';

export class MirroredPartition {
  readonly fence: PartitionFence;
  /** Number of the account of the gateway that the partition belongs to: shared bodies are its. */
  readonly ownerAccount: number;
  /** In the order in which copies were made: for pages. */
  readonly ordinal: number;
  /**
   * Salt of its entries in the index; a fresh one whenever it is emptied, so that the old
   * chain can be freed in steps.
   */
  key: number;

  number = 0;
  digestA = 0;
  digestB = 0;
  /**
   * Under which the last change was applied here, or it was founded or filled: not below
   * the term of its content.
   */
  lastTerm: Term;
  readonly history = new DigestHistory();
  /** The last changes of all partitions of its owner. */
  readonly ring: AppliedChanges;

  /** Its last record in the ring of its owner: number of the chunk (0 = none) and offset. */
  ringChunk = 0;
  ringAt = 0;

  first = 0;
  last = 0;
  count = 0;
  /** Bodies and heads, a shared body counted for each entry. */
  bytes = 0;

  /** It has all entries below its number. Not while it is filled. */
  isComplete = false;
  /** The store holds it no more: handles that were bound to it name nothing. */
  isGone = false;
  /**
   * Wall clock of the process that wrote to it last: due times and expiry are of it. Undefined out of a file.
   */
  clock: ToldClock | undefined;

  /**
   * Refill: last entry refilled (0: in front of all), its position, entries taken, number at which it began.
   */
  refillRow = 0;
  refillPosition = 0;
  refillCount = 0;
  refillNumber = 0;

  /** Where the last pull ended, so that the next block needs no search even if that entry is gone by then. */
  pullRow = 0;
  pullPosition = 0;

  constructor(
    fence: PartitionFence, ownerAccount: number, ordinal: number, key: number, ring: AppliedChanges,
  ) {
    this.fence = fence;
    this.ownerAccount = ownerAccount;
    this.ordinal = ordinal;
    this.key = key;
    this.ring = ring;
    this.lastTerm = fence.term;
    this.history.restart(0, 0, 0);
  }

  /** GATEWAY/N. */
  get partition(): string {
    return this.fence.partition;
  }

  /**
   * Stands empty and incomplete at this number and digest; the chain of old entries is the caller's to free.
   */
  restart(key: number, number: number, a: number, b: number): void {
    this.key = key;
    this.number = number;
    this.digestA = a;
    this.digestB = b;
    this.history.restart(number, a, b);
    this.ringChunk = 0;
    this.first = 0;
    this.last = 0;
    this.count = 0;
    this.bytes = 0;
    this.isComplete = false;
    this.refillRow = 0;
    this.refillPosition = 0;
    this.refillCount = 0;
    this.refillNumber = number;
    this.pullRow = 0;
    this.pullPosition = 0;
  }
}
