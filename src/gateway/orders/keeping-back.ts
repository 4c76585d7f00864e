/**
 * Orders that end mail, or lead it elsewhere, keep back what they mean from the moment they go on until they
 * are through with it, or over: it is not handed out, does not expire, and nobody is told that it is late.
 *
 *   an order goes on, or is over; a partition leaves ─► note() ─► a flag in each partition that is concerned
 *   an entry would be handed out where the flag is ─► keeps() ─► its queue sets it aside; a strict one stands
 *   an order keeps nothing back there any more ─► the queues have all in their order again, and are asked
 *
 * Nothing is kept of it with a message but the list in which that stands (queue/mail-queue.ts): what still
 * means it is judged anew when it would be handed out. It ends with the process; what the register has of an
 * order in its grace (order-key.ts) keeps the same back at whoever has the partition then. Pure.
 */
import type { Partition } from '../mirror/set/partition.js';
import type { MailQueue } from '../queue/mail-queue.js';
import type { QueueRegistry } from '../queue/queue-registry.js';

/** An order that passes over what is here (order-pass.ts). */
export interface Keeper {
  keepsBack(partition: Partition): boolean;
  /** Some of its mail may be meant. */
  concernsQueue(queue: MailQueue): boolean;
  /** In a partition where it keeps mail back. */
  means(queue: MailQueue, row: number): boolean;
}

export interface KeepingBackPorts {
  readonly registry: Pick<QueueRegistry, 'partitions'>;
  wake(queue: MailQueue): void;
}

export class KeepingBack {
  readonly #ports: KeepingBackPorts;
  #orders: readonly Keeper[] = [];
  #keepers = new Map<Partition, readonly Keeper[]>();

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
    const keepers = new Map<Partition, readonly Keeper[]>();
    for (const partition of this.#ports.registry.partitions) {
      const keeping = orders.filter((one) => one.keepsBack(partition));
      if (keeping.length > 0) keepers.set(partition, keeping);
      // Others may mean some of it: they keep that back when it is its turn.
      const over = before.get(partition)?.filter((one) => !keeping.includes(one)) ?? [];
      if (over.length > 0) this.#letGo(partition, over);
    }
    this.#keepers = keepers;
    return before.size > 0 || keepers.size > 0;
  }

  #letGo({ queues }: Partition, over: readonly Keeper[]): void {
    for (const queue of queues.values()) {
      if (!over.some((one) => one.concernsQueue(queue))) continue;
      queue.letGo();
      if (queue.readyCount > 0) this.#ports.wake(queue);
    }
  }
}
