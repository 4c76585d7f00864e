/**
 * A walk through the entries of all queues, each queue in its own order, a bounded share of a turn at a time.
 * What is taken away meanwhile is passed over; what comes behind in a queue is met, too: whoever walks bounds
 * it.
 */
import type { Clock } from '../../platform/ports.js';
import type { EntryTable } from '../queue/entry-table.js';
import type { MailQueue } from '../queue/mail-queue.js';
import type { QueueRegistry } from '../queue/queue-registry.js';

/**
 * Of one tick: no longer than that, for clients wait meanwhile, and so much work at most: an entry is one,
 * and each recipient.
 */
export const TICK_MS = 2;
export const WORK_PER_TICK = 2_500;
/** How often the clock is looked at. */
export const WORK_A_LOOK = 100;

/** Pauses between walks for what was in hand: first and longest. Envelopes that came are kept for longer. */
export const PAUSE_FIRST_MS = 250;
const PAUSE_MAX_MS = 4_000;

export function longerPause(ms: number, mostMs = PAUSE_MAX_MS): number {
  return Math.min(mostMs, 2 * ms);
}

/** In the place of the work that a visit was: this one later, and no other now. */
export const NOT_NOW = -1;

export class QueueCursor {
  readonly #registry: Pick<QueueRegistry, 'byHandle'>;
  readonly #table: EntryTable;
  readonly #concerns: (queue: MailQueue) => boolean;
  #handle = 0;
  #queue: MailQueue | undefined;
  /** The next entry, as it was. */
  #row = 0;
  #messageId = 0;
  #position = 0;

  constructor(
    registry: Pick<QueueRegistry, 'byHandle'>, table: EntryTable, concerns: (queue: MailQueue) => boolean,
  ) {
    this.#registry = registry;
    this.#table = table;
    this.#concerns = concerns;
  }

  /**
   * One tick's part of it: true when all queues are through. `visit` answers the work that it was. `sinceMs`:
   * when the first of those began that share the tick.
   */
  walk(
    clock: Clock, visit: (queue: MailQueue, row: number) => number, sinceMs: number = clock.nowMs(),
  ): boolean {
    if (clock.nowMs() - sinceMs > TICK_MS) return false;
    let work = 0;
    let nextLook = WORK_A_LOOK;
    for (;;) {
      if (this.#queue === undefined && !this.#enterNext()) return true;
      const queue = this.#queue;
      if (queue === undefined) return true;
      let row = this.#resume(queue);
      while (row !== 0) {
        const following = queue.following(row);
        const did = visit(queue, row);
        if (did !== NOT_NOW) {
          row = following;
          work += 1 + did;
          if (work < nextLook) continue;
          nextLook = work + WORK_A_LOOK;
          if (work < WORK_PER_TICK && clock.nowMs() - sinceMs <= TICK_MS) continue;
        }
        if (row === 0) this.#queue = undefined;
        else this.#keep(row);
        return false;
      }
      this.#queue = undefined;
    }
  }

  /** Of the queues there are, how much is through. */
  get share(): number {
    return Math.min(1, this.#handle / Math.max(1, this.#registry.byHandle.length));
  }

  #enterNext(): boolean {
    const { byHandle } = this.#registry;
    while (this.#handle < byHandle.length) {
      const queue = byHandle[this.#handle];
      this.#handle += 1;
      if (queue === undefined || queue.first === 0 || !this.#concerns(queue)) continue;
      this.#queue = queue;
      this.#keep(queue.first);
      return true;
    }
    return false;
  }

  #keep(row: number): void {
    this.#row = row;
    this.#messageId = this.#table.messageId(row);
    this.#position = this.#table.position.get(row);
  }

  /** Where it stopped, or behind what has gone from there. */
  #resume(queue: MailQueue): number {
    const table = this.#table;
    if (table.index.find(this.#messageId, queue.handle) === this.#row) return this.#row;
    let row = this.#registry.byHandle[queue.handle] === queue ? queue.first : 0;
    while (row !== 0 && table.position.get(row) < this.#position) row = queue.following(row);
    return row;
  }
}
