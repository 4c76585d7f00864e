/**
 * What a gateway claimed, for the log: one line for each burst and owner of the queues, with counts. A gateway that
 * comes back claims all its queues at once; a line for each would hide everything else.
 *
 *   first CLAIM of a burst ─► counted … ─► BURST_MS later, or when the connection ends: one line for each owner
 */
import type { EventLog } from '../../platform/ports.js';
import { CLAIM_GRANTED, claimResultName } from '../../protocol/reasons.js';

/** A restart's claims of thousands of queues come within this; so does a round of a rescue. */
const BURST_MS = 1000;
/** A gateway may say any owner: so many have a line of their own, the rest share one. */
const OWNERS_MAX = 16;

interface Burst {
  claims: number;
  granted: number;
  /** Of the one claim, when there is only one. */
  queue: string | undefined;
  readonly results: Map<number, number>;
  waitMs: number;
}

export class ClaimLog {
  readonly #log: EventLog;
  readonly #bursts = new Map<string, Burst>();
  #beganMs = 0;

  constructor(log: EventLog) {
    this.#log = log;
  }

  note(owner: string, queue: string | undefined, result: number, waitMs: number, nowMs: number): void {
    if (this.#bursts.size === 0) this.#beganMs = nowMs;
    const key = this.#bursts.has(owner) || this.#bursts.size < OWNERS_MAX ? owner : 'others';
    let burst = this.#bursts.get(key);
    if (burst === undefined) {
      burst = { claims: 0, granted: 0, queue, results: new Map(), waitMs: 0 };
      this.#bursts.set(key, burst);
    }
    burst.claims += 1;
    if (result === CLAIM_GRANTED) burst.granted += 1;
    else burst.results.set(result, (burst.results.get(result) ?? 0) + 1);
    burst.waitMs = Math.max(burst.waitMs, waitMs);
  }

  tick(gateway: string, nowMs: number): void {
    if (this.#bursts.size > 0 && nowMs - this.#beganMs >= BURST_MS) this.flush(gateway);
  }

  /** Writes what was counted. */
  flush(gateway: string): void {
    for (const [owner, { claims, granted, queue, results, waitMs }] of this.#bursts) {
      const others = [...results].map(([result, count]) => `${claimResultName(result)} ${String(count)}`);
      this.#log.info('claim', 'claims answered', { gateway, owner, claims, granted, queue: claims === 1 ? queue : undefined, other_results: others, wait_ms: waitMs });
    }
    this.#bursts.clear();
  }
}
