/**
 * How fast copies are filled that nobody waits for: those that move only to spread the load (rebalance.ts).
 * All of them together stay under one rate; every other refill goes as fast as its link allows.
 *
 * A bucket of bytes that fills with time: a frame is sent when it is not empty, and may overdraw it
 * by its size.
 */
import type { Partition } from '../set/partition.js';

/** The bucket holds no more than so long of its rate: after a pause nothing comes in a burst. */
const BURST_MS = 250;

export class RefillPace {
  readonly #nowMs: () => number;
  readonly #limited = new Set<Partition>();
  #bytesPerSecond = 0;
  #bytes = 0;
  #filledMs = 0;

  constructor(nowMs: () => number) {
    this.#nowMs = nowMs;
  }

  limit(partition: Partition, bytesPerSecond: number): void {
    if (this.#limited.size === 0) {
      this.#bytes = 0;
      this.#filledMs = this.#nowMs();
    }
    this.#bytesPerSecond = bytesPerSecond;
    this.#limited.add(partition);
  }

  free(partition: Partition): void {
    this.#limited.delete(partition);
  }

  mayGoOn(partition: Partition): boolean {
    if (!this.#limited.has(partition)) return true;
    const nowMs = this.#nowMs();
    const perMs = this.#bytesPerSecond / 1000;
    this.#bytes = Math.min(this.#bytes + (nowMs - this.#filledMs) * perMs, BURST_MS * perMs);
    this.#filledMs = nowMs;
    return this.#bytes > 0;
  }

  sent(partition: Partition, bytes: number): void {
    if (this.#limited.has(partition)) this.#bytes -= bytes;
  }
}
