/**
 * Orders that end mail, or lead it elsewhere, keep back what they mean from the moment they go on until they
 * are through with it, or over: it is not handed out, does not expire, and nobody is told that it is late.
 *
 *   an order goes on, or is over; a partition leaves ─► note() ─► a flag in each partition that is concerned
 *   an entry would be handed out where the flag is ─► keeps() ─► its queue sets it aside; a strict one stands
 *   an order keeps nothing back there any more ─► a walk through what its queues keep back: what no other
 *                                                 order means stands in front again, in its order
 *
 * Nothing is kept of it with a message but the list in which that stands (queue/mail-queue.ts): what still
 * means it is judged anew when it would be handed out. It ends with the process; what the register has of an
 * order in its grace (order-key.ts) keeps the same back at whoever has the partition then. Pure.
 */
import type { Clock } from '../../platform/ports.js';
import type { Partition } from '../mirror/set/partition.js';
import type { Entries } from '../queue/entries.js';
import type { MailQueue } from '../queue/mail-queue.js';
import type { QueueRegistry } from '../queue/queue-registry.js';
import { TICK_MS, WORK_A_LOOK, WORK_PER_TICK } from './queue-cursor.js';

/** An order that passes over what is here (order-pass.ts). */
export interface Keeper {
  keepsBack(partition: Partition): boolean;
  /** Some of its mail may be meant. */
  concernsQueue(queue: MailQueue): boolean;
  /** In a partition where it keeps mail back. */
  means(queue: MailQueue, row: number): boolean;
}

export interface KeepingBackPorts {
  readonly clock: Clock;
  readonly entries: Pick<Entries, 'isAllAbsent'>;
  readonly registry: Pick<QueueRegistry, 'partitions'>;
  wake(queue: MailQueue): void;
}

export class KeepingBack {
  readonly #ports: KeepingBackPorts;
  #orders: readonly Keeper[] = [];
  #keepers = new Map<Partition, readonly Keeper[]>();
  /** Some of what they keep back may go on; before them the one that is walked through. */
  readonly #toLetGo = new Set<MailQueue>();
  #walked: MailQueue | undefined;

  constructor(ports: KeepingBackPorts) {
    this.#ports = ports;
  }

  concerns(partition: Partition): boolean {
    return this.#keepers.has(partition);
  }

  /** A partition that is taken now, of which nothing was kept back here before. */
  meet(partition: Partition): void {
    const keeping = this.#orders.filter((one) => one.keepsBack(partition));
    if (keeping.length > 0) this.#keepers.set(partition, keeping);
  }

  /** An order that goes on means this entry, which rests. */
  keeps(queue: MailQueue, row: number): boolean {
    return this.#keepers.get(queue.partition)?.some((one) => one.means(queue, row)) === true;
  }

  /** False: nothing is another one. */
  note(orders: readonly Keeper[]): boolean {
    this.#orders = orders;
    if (orders.length === 0 && this.#keepers.size === 0) return false;
    const before = this.#keepers;
    this.#keepers = new Map();
    let isOver = false;
    for (const partition of this.#ports.registry.partitions) {
      const keeping = orders.filter((one) => one.keepsBack(partition));
      if (keeping.length > 0) this.#keepers.set(partition, keeping);
      const over = before.get(partition)?.filter((one) => !keeping.includes(one)) ?? [];
      if (over.length === 0) continue;
      this.#letGo(partition, over);
      isOver = true;
    }
    // At once, so that what is behind it does not go first.
    if (isOver) this.tick(this.#ports.clock.nowMs());
    return before.size > 0 || this.#keepers.size > 0;
  }

  #letGo(partition: Partition, over: readonly Keeper[]): void {
    // What is kept back of a queue may have another site by now: whoever kept it means it no more.
    const isLast = !this.#keepers.has(partition);
    for (const queue of partition.queues.values()) {
      if (!queue.keepsAny) continue;
      if (isLast || over.some((one) => one.concernsQueue(queue))) this.#toLetGo.add(queue);
    }
  }

  get isWalking(): boolean {
    return this.#walked !== undefined || this.#toLetGo.size > 0;
  }

  /** Called a few times in a tenth of a second; `sinceMs`: when the walks of this tick began. */
  tick(sinceMs: number): void {
    let left = WORK_PER_TICK;
    for (;;) {
      const queue = this.#walked ?? this.#enterNext();
      if (queue === undefined) return;
      left = this.#walk(queue, left, sinceMs);
      if (queue.readyCount > 0) this.#ports.wake(queue);
      if (left === 0) return;
      this.#walked = undefined;
    }
  }

  #enterNext(): MailQueue | undefined {
    const [queue] = this.#toLetGo;
    if (queue === undefined) return undefined;
    this.#toLetGo.delete(queue);
    queue.beginToLetGo();
    this.#walked = queue;
    return queue;
  }

  /** What is left of so much work when it is through; 0: it is not, and goes on in the next tick. */
  #walk(queue: MailQueue, most: number, sinceMs: number): number {
    const { clock, entries } = this.#ports;
    // What is at the stores is judged when it is its turn.
    const staysBack = (row: number): boolean => !entries.isAllAbsent(row) && this.keeps(queue, row);
    for (let left = most; left > 0; left -= 1) {
      if (queue.partition.isForgotten || !queue.letGoNext(staysBack)) return left;
      if (left % WORK_A_LOOK === 0 && clock.nowMs() - sinceMs > TICK_MS) return 0;
    }
    return 0;
  }
}
