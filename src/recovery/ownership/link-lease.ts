/**
 * The holder's reckoning of its lease at one store, for all partitions of the link (rule 6).
 *
 *              HEARTBEAT, on either path                  answer
 *   process ──────●──────────────────────────────────────────●───────────── now
 *               sentMs                                    receipt
 *   store   ────────────────●───────────────────────────────────────────── its lease: from here, leaseMs long
 *   ours                    └─ sentMs + leaseMs − drift: before the store's own end, however long the way
 *
 *   answer counts no fence that is not processed yet / the end moves on
 *   answer counts more   / waits for them: the store's view of those partitions is frozen, and an answer that
 *                          renewed them would outlive it
 *   fence processed      / what waited for it moves the end on
 *   another boot         / begins anew
 *
 * Ends on time, late loop or not: nothing has to run for it, its reader compares with the clock.
 */

export interface LeaseDrift {
  /** Share of the lease that the clocks of both ends may differ by. */
  readonly driftShare: number;
  readonly driftFixedMs: number;
}

/** What the set of a partition reads. */
export interface LeaseView {
  readonly bootId: string;
  readonly endsMs: number;
}

/** Boots of a store that may come back: it had begun without its file, and has found it since. */
const EARLIER_MAX = 8;

export class LinkLease implements LeaseView {
  readonly #drift: LeaseDrift;
  #bootId = '';
  #endsMs = -Infinity;
  #fencesProcessed = 0;
  /** In boots before, oldest first: what was said to be processed there, the store does not tell again. */
  readonly #earlier = new Map<string, number>();
  /** The best answer that waits for fences: what it would move the end to, and how many it counts. */
  #waitingEndsMs = -Infinity;
  #waitingCount = 0;

  constructor(drift: LeaseDrift) {
    this.#drift = drift;
  }

  get bootId(): string {
    return this.#bootId;
  }

  get endsMs(): number {
    return this.#endsMs;
  }

  /**
   * Goes out with each heartbeat to this boot: the store names those past it. A count of another boot would
   * be taken for a confirmation of fences that we never heard of, and the lease would wait for them for ever.
   */
  fencesProcessedIn(bootId: string): number {
    return bootId === this.#bootId ? this.#fencesProcessed : this.#earlier.get(bootId) ?? 0;
  }

  onAnswer(bootId: string, sentMs: number, leaseMs: number, fenceCount: number): void {
    if (bootId !== this.#bootId) this.#begin(bootId);
    const endsMs = sentMs + leaseMs - leaseMs * this.#drift.driftShare - this.#drift.driftFixedMs;
    if (fenceCount <= this.#fencesProcessed) {
      if (endsMs > this.#endsMs) this.#endsMs = endsMs;
    } else if (endsMs > this.#waitingEndsMs) {
      this.#waitingEndsMs = endsMs;
      this.#waitingCount = fenceCount;
    }
  }

  /** Every partition fenced up to this count has been stopped. */
  onFencesProcessed(bootId: string, count: number): void {
    if (bootId !== this.#bootId) this.#begin(bootId);
    if (count > this.#fencesProcessed) this.#fencesProcessed = count;
    if (this.#waitingCount === 0 || this.#waitingCount > this.#fencesProcessed) return;
    if (this.#waitingEndsMs > this.#endsMs) this.#endsMs = this.#waitingEndsMs;
    this.#waitingEndsMs = -Infinity;
    this.#waitingCount = 0;
  }

  #begin(bootId: string): void {
    if (this.#fencesProcessed > 0) this.#earlier.set(this.#bootId, this.#fencesProcessed);
    for (const oldest of this.#earlier.keys()) {
      if (this.#earlier.size > EARLIER_MAX) this.#earlier.delete(oldest);
    }
    this.#bootId = bootId;
    this.#endsMs = -Infinity;
    this.#fencesProcessed = this.#earlier.get(bootId) ?? 0;
    this.#earlier.delete(bootId);
    this.#waitingEndsMs = -Infinity;
    this.#waitingCount = 0;
  }
}
