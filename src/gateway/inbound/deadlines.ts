/**
 * The deadlines of all connections, kept by one coarse timer: no timer is made, moved or cleared for a message
 * or a command. Connections write down the coarse time; each tick looks at all of them.
 *
 * Node runs timers before it reads sockets: after a stall of the event loop the bytes that would have met a
 * deadline may still lie in the kernel. Hence the look is taken after one full poll (setImmediate).
 *
 * Owns the timer and the list. Not here: what a missed deadline means (connection.ts).
 */

import type { Clock } from '../../platform/ports.js';

export interface Watched {
  checkDeadlines(nowMs: number): void;
}

export class Deadlines {
  /** Monotonic time at the last tick: at most one tick old while the loop runs freely. */
  nowMs: number;

  readonly #clock: Clock;
  readonly #tickMs: number;
  readonly #watched = new Set<Watched>();
  #timer: NodeJS.Timeout | undefined;
  readonly #look = (): void => {
    this.nowMs = this.#clock.nowMs();
    for (const each of this.#watched) each.checkDeadlines(this.nowMs);
  };

  constructor(tickMs: number, clock: Clock) {
    this.#clock = clock;
    this.#tickMs = tickMs;
    this.nowMs = clock.nowMs();
  }

  watch(connection: Watched): void {
    if (this.#watched.size === 0) this.nowMs = this.#clock.nowMs();
    this.#watched.add(connection);
    this.#timer ??= setInterval(() => setImmediate(this.#look), this.#tickMs).unref();
  }

  unwatch(connection: Watched): void {
    this.#watched.delete(connection);
    if (this.#watched.size > 0 || this.#timer === undefined) return;
    clearInterval(this.#timer);
    this.#timer = undefined;
  }
}
