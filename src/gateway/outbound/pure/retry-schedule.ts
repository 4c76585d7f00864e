/**
 * When a deferred recipient is tried again, and until when: delays that grow from 5 min to 1 h with jitter,
 * a life of 5 d, for bounces 1 d (RFC 5321 4.5.4.1 asks for at least 4 to 5 d and retries 30 min apart or
 * more; the first two are sooner on purpose, as greylisting and restarts pass quickly). Pure: the caller
 * brings time and randomness.
 */
import { invariant } from '../../../base/invariant.js';
import type { Random } from '../../../platform/ports.js';

const MINUTE_MS = 60_000;
const DAY_MS = 24 * 60 * MINUTE_MS;

export interface RetryScheduleOptions {
  /** Delay after the first, second, … failed attempt; the last one repeats. */
  readonly delaysMs: readonly number[];
  /** Fraction by which a delay may be longer or shorter, 0 to below 1: else deferred mail comes in waves. */
  readonly jitter: number;
  readonly lifetimeMs: number;
  /** For mail with the null reverse-path: nobody waits for it. */
  readonly bounceLifetimeMs: number;
}

export const DEFAULT_RETRY_SCHEDULE: RetryScheduleOptions = {
  delaysMs: [5, 10, 20, 40, 60].map((minutes) => minutes * MINUTE_MS),
  jitter: 0.2,
  lifetimeMs: 5 * DAY_MS,
  bounceLifetimeMs: DAY_MS,
};

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

  /**
   * When to try again after `attempts` attempts, the last at nowMs. Never past `expiryMs`: the last attempt
   * is made right before the end rather than left out.
   */
  nextDueMs(attempts: number, nowMs: number, expiryMs: number): number {
    const due = nowMs + this.delayMs(attempts);
    return due >= expiryMs && nowMs < expiryMs - MINUTE_MS ? expiryMs - MINUTE_MS : due;
  }

  /** End of life of a message that arrived at arrivalMs. */
  expiryMs(arrivalMs: number, reversePath: string): number {
    return arrivalMs + (reversePath === '' ? this.#options.bounceLifetimeMs : this.#options.lifetimeMs);
  }
}
