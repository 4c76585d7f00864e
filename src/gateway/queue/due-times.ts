/**
 * When entries and queues are looked at again: deferred entries in a timer wheel, queues that back off in
 * a map. One tick for all; no timer a message. All of it is monotonic time: no wall clock moves it.
 *
 * Not here: expiry, which does not depend on retries (expiry-sweep.ts).
 */
import { TimerWheel } from '../../base/timer-wheel.js';
import type { Clock } from '../../platform/ports.js';
import type { MailQueue } from './mail-queue.js';

/** Retries are minutes apart: a quarter of a second is exact enough and keeps the wheel small. */
const TICK_MS = 250;
const DUE_PER_TICK = 2000;

export interface DueTimesPorts {
  readonly clock: Clock;
  /** The entry's time has come. */
  onDue(row: number): void;
  /** The queue's back-off is over. */
  onWake(queue: MailQueue): void;
}

export class DueTimes {
  readonly #wheel: TimerWheel;
  readonly #ports: DueTimesPorts;
  readonly #sleeping = new Map<MailQueue, number>();
  readonly #fire: (row: number) => void;

  constructor(ports: DueTimesPorts) {
    this.#ports = ports;
    this.#wheel = new TimerWheel({ tickMs: TICK_MS, startMs: ports.clock.nowMs() });
    this.#fire = (row) => {
      ports.onDue(row);
    };
  }

  schedule(row: number, delayMs: number): void {
    this.#wheel.schedule(row, this.#ports.clock.nowMs() + delayMs);
  }

  cancel(row: number): void {
    this.#wheel.cancel(row);
  }

  /** The queue is woken at `atMs`; a later call replaces an earlier one. */
  wakeAt(queue: MailQueue, atMs: number): void {
    this.#sleeping.set(queue, atMs);
  }

  /** Its partition is another process's now: that a queue of it waits hours must not keep it in memory. */
  forget(queue: MailQueue): void {
    this.#sleeping.delete(queue);
  }

  tick(nowMs: number): void {
    this.#wheel.advance(nowMs, this.#fire, DUE_PER_TICK);
    for (const [queue, atMs] of this.#sleeping) {
      if (atMs > nowMs) continue;
      this.#sleeping.delete(queue);
      this.#ports.onWake(queue);
    }
  }
}
