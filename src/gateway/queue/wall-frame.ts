/**
 * The wall clock of one process as its queues reckon with it: read once, at the start; from then on it goes
 * with the monotonic clock. Times that are written into entries (expiry, due time) are of this frame, and so
 * is what the heartbeats tell the stores, so that whoever takes over can reckon with it (base/told-clock.ts).
 *
 *   the system's wall clock   ──────────┐ set back a month
 *                                       └───────────────────►
 *   this frame                ───────────────────────────────►   start + what has passed since
 *
 * So a clock that is set moves no due time and no expiry, neither here nor at a taker. What people read (the
 * Received field, Date of a report, the log) shows the system's wall clock.
 */
import type { Clock } from '../../platform/ports.js';

export class WallFrame {
  readonly #clock: Clock;
  /** Wall less monotonic time. */
  readonly #offsetMs: number;

  constructor(clock: Clock) {
    this.#clock = clock;
    this.#offsetMs = Math.floor(clock.wallMs() - clock.nowMs());
  }

  /** Whole milliseconds since 1970, as this process reckons. */
  wallMs(): number {
    return Math.floor(this.#clock.nowMs()) + this.#offsetMs;
  }

  /** How far the system's wall clock is ahead of this frame: 0 until somebody sets it. */
  aheadMs(): number {
    return this.#clock.wallMs() - this.#clock.nowMs() - this.#offsetMs;
  }
}
