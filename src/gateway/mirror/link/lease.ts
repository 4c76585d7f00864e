/**
 * The gateway's own reckoning of its lease at one store: until when it may deliver from queues there, and
 * whether a right that was confirmed earlier still says anything.
 *
 *              HEARTBEAT or PROOF, on either path        BEAT or WELCOME
 *   gateway ──────●──────────────────────────────────────────●───────────── now
 *               sentMs                                    receipt
 *   store   ────────────────●───────────────────────────────────────────── its lease: from here, leaseMs long
 *   ours                    └─ sentMs + leaseMs − margin: before the store's own end, however long the way took
 *
 *   no lease ──a grant that reaches past now / term + 1──► running ──its end──► no lease
 *   running  ──a grant of the same boot, before the end / end moves on──► running
 *   running  ──a grant of another boot / term + 1──► running
 *
 * A grant that comes after the old end begins a new term even if the store saw no gap: from here the gap can't
 * be told from one in which another process was granted a claim. docs/GUARANTEES.md "Links".
 *
 * Ends on time, late loop or not: nothing has to run for a lease to end, its reader compares with the clock.
 *
 * What is not here: what may be done under a lease (mirrors.ts); when heartbeats are sent (path-connection.ts).
 */

/**
 * What two monotonic clocks may drift apart over a lease, and a fixed part for what reading, rounding and
 * coarse kernel clocks take. Quartz stays within 0.01%; 1% bears a clock that a bad NTP source slews.
 */
export const LEASE_DRIFT = { driftShare: 0.01, driftFixedMs: 200 } as const;

export interface LeaseOptions {
  /** Share of the lease that the clocks of both ends may differ by. */
  readonly driftShare: number;
  readonly driftFixedMs: number;
}

export class Lease {
  readonly #options: LeaseOptions;
  #bootId = '';
  #endsMs = -Infinity;
  #term = 0;

  constructor(options: LeaseOptions) {
    this.#options = options;
  }

  /** Monotonic time of its end; -Infinity before the first grant. */
  get endsMs(): number {
    return this.#endsMs;
  }

  /** Counts the leases that began without one running; 0 before the first. */
  get term(): number {
    return this.#term;
  }

  /**
   * The store `bootId` granted `leaseMs` in answer to what was handed to the socket no earlier than `sentMs`.
   * `nowMs` is read after the answer came: a time from before would hide a lapse.
   */
  renew(bootId: string, sentMs: number, leaseMs: number, nowMs: number): void {
    const { driftShare, driftFixedMs } = this.#options;
    const endsMs = sentMs + leaseMs - leaseMs * driftShare - driftFixedMs;
    // Granted so long ago that it is over already: nothing begins.
    if (endsMs <= nowMs) return;
    const goesOn = bootId === this.#bootId && nowMs < this.#endsMs;
    if (goesOn) {
      if (endsMs > this.#endsMs) this.#endsMs = endsMs;
      return;
    }
    this.#bootId = bootId;
    this.#endsMs = endsMs;
    this.#term++;
  }
}
