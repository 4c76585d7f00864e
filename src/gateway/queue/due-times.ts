/**
 * When entries and queues are looked at again: deferred entries in a timer wheel, queues that back off in
 * a map, expiry by a sweep from each queue's oldest entry. One tick for all; no timer a message.
 *
 * Expiry does not depend on retries: within a queue all entries have one lifetime, so that expiry times
 * ascend with the position and the sweep stops at the first entry that still has time. Only entries that
 * rest (READY, DEFERRED, HELD) are expired; one that is being tried or reported is met by a later sweep.
 */
import { Round } from '../../base/round.js';
import { TimerWheel } from '../../base/timer-wheel.js';
import type { Clock } from '../../platform/ports.js';
import { EntryState } from './entry-table.js';
import type { MailQueue } from './mail-queue.js';
import type { EntryTable } from './entry-table.js';

/** Retries are minutes apart: a quarter of a second is exact enough and keeps the wheel small. */
const TICK_MS = 250;
const DUE_PER_TICK = 2000;
const EXPIRED_PER_TICK = 500;
const SWEPT_PER_TICK = 1024;
/** Entries that do not rest, or stay, are stepped over; so many at most before the sweep gives up until next time. */
const SWEEP_STEPS = 64;

export interface DueTimesPorts {
  readonly clock: Clock;
  readonly table: EntryTable;
  /** The entry's time has come. */
  onDue(row: number): void;
  /** The queue's back-off is over. */
  onWake(queue: MailQueue): void;
  /** The entry's lifetime is over; false when it stays all the same. */
  onExpired(queue: MailQueue, row: number): boolean;
}

export class DueTimes {
  private readonly wheel: TimerWheel;
  private readonly ports: DueTimesPorts;
  private readonly sleeping = new Map<MailQueue, number>();
  private readonly round = new Round<MailQueue>({ partMax: SWEPT_PER_TICK });
  private readonly fire: (row: number) => void;

  constructor(ports: DueTimesPorts) {
    this.ports = ports;
    this.wheel = new TimerWheel({ tickMs: TICK_MS, startMs: ports.clock.nowMs() });
    this.fire = (row) => {
      ports.onDue(row);
    };
  }

  schedule(row: number, delayMs: number): void {
    this.wheel.schedule(row, this.ports.clock.nowMs() + delayMs);
  }

  cancel(row: number): void {
    this.wheel.cancel(row);
  }

  /** The queue is woken at `atMs`; a later call replaces an earlier one. */
  wakeAt(queue: MailQueue, atMs: number): void {
    this.sleeping.set(queue, atMs);
  }

  tick(nowMs: number, queues: readonly (MailQueue | undefined)[]): void {
    this.wheel.advance(nowMs, this.fire, DUE_PER_TICK);
    for (const [queue, atMs] of this.sleeping) {
      if (atMs > nowMs) continue;
      this.sleeping.delete(queue);
      this.ports.onWake(queue);
    }
    this.sweep(queues);
  }

  private sweep(queues: readonly (MailQueue | undefined)[]): void {
    const nowSeconds = Math.floor(this.ports.clock.wallMs() / 1000);
    const table = this.ports.table;
    let left = EXPIRED_PER_TICK;
    for (const queue of this.round.next(queues)) {
      let row = queue.first;
      for (let steps = 0; row !== 0 && left > 0 && steps < SWEEP_STEPS; steps++) {
        if (table.expirySeconds.get(row) > nowSeconds) break;
        const following = queue.following(row);
        const state = table.state(row);
        if ((state === EntryState.READY || state === EntryState.DEFERRED || state === EntryState.HELD) && this.ports.onExpired(queue, row)) {
          left -= 1;
          steps = 0;
        }
        row = following;
      }
    }
  }
}
