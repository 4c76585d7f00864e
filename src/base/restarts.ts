/** When a process that has died is started again: soon, and later each time while it keeps dying. */
import type { Backoff } from './backoff.js';
import { nextDelayMs } from './backoff.js';

/** A process that lived so long was no part of a crash loop. */
const STABLE_MS = 10_000;
const BACKOFF: Backoff = { firstMs: 100, factor: 2, maxMs: 10_000, jitter: 0.1 };

export class Restarts {
  /** Deaths in a row, each soon after its start. */
  deaths = 0;

  /** It died after `livedMs`. Returns the wait before the next start. */
  onDeath(livedMs: number, random: () => number): number {
    this.deaths = livedMs >= STABLE_MS ? 1 : this.deaths + 1;
    return nextDelayMs(this.deaths, BACKOFF, random);
  }
}
