/**
 * How long to wait before the next attempt: growing by a factor up to a bound, and spread, so that many
 * who failed together do not come back together.
 */

export interface Backoff {
  /** Wait after the first failure. */
  readonly firstMs: number;
  /** Each wait is so many times the one before; at least 1. */
  readonly factor: number;
  /** No wait is longer. */
  readonly maxMs: number;
  /** Share of the wait that chance may take off: 0 none, 0.2 from 80% to 100%, 1 all of it. */
  readonly jitter: number;
}

/** The wait after `attempt` earlier failures (0 for the first). `random` gives numbers in [0, 1). */
export function nextDelayMs(attempt: number, backoff: Backoff, random: () => number): number {
  // factor ** attempt may be Infinity after years of failures; the bound holds all the same.
  const waitMs = Math.min(backoff.maxMs, backoff.firstMs * backoff.factor ** Math.max(0, attempt));
  // Chance only shortens: at the bound everyone would else pile up on it.
  return Math.round(waitMs * (1 - backoff.jitter * random()));
}
