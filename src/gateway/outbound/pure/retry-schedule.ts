/**
 * How long after a failed attempt a deferred recipient is tried again: delays that grow, by default from 5
 * minutes to an hour, with jitter (RFC 5321 4.5.4.1 asks for 30 minutes or more; the first two are sooner on
 * purpose, as greylisting and restarts pass quickly). Pure: the caller brings randomness.
 *
 * Not here: that no attempt is put off beyond the end of the message's life (queue/settlement.ts).
 */
import { invariant } from '../../../base/invariant.js';
import type { Random } from '../../../platform/ports.js';

const MINUTE_MS = 60_000;

export interface RetryScheduleOptions {
  /** Delay after the first, second, … failed attempt; the last one repeats. */
  readonly delaysMs: readonly number[];
  /** Fraction by which a delay may be longer or shorter, 0 to below 1: else deferred mail comes in waves. */
  readonly jitter: number;
}

export const RETRY_JITTER = 0.2;

export class RetrySchedule {
  readonly #options: RetryScheduleOptions;
  readonly #random: Random;

  constructor(options: RetryScheduleOptions, ports: { readonly random: Random }) {
    const { delaysMs } = options;
    invariant(delaysMs.length > 0, 'a retry schedule has a delay');
    const areLong = delaysMs.every((delayMs) => delayMs > 0);
    invariant(areLong, 'retry delays are above zero, else a deferral would spin');
    invariant(options.jitter >= 0 && options.jitter < 1, 'jitter is a fraction below one');
    this.#options = options;
    this.#random = ports.random;
  }

  /** Delay after attempt number `attempts` (1 = the first) failed. */
  delayMs(attempts: number): number {
    const delays = this.#options.delaysMs;
    const plain = delays[Math.min(Math.max(attempts, 1), delays.length) - 1] ?? MINUTE_MS;
    return Math.round(plain * (1 + this.#options.jitter * (2 * this.#random() - 1)));
  }

  /** The most that delayMs() says. */
  get longestMs(): number {
    return Math.ceil(Math.max(...this.#options.delaysMs) * (1 + this.#options.jitter));
  }
}
