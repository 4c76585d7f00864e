/**
 * Deliveries that wait because a partition is not ours to deliver from at this instant (G5). The rule itself
 * is PartitionHolder.mayDeliver: a lease at every member of every record that is possible.
 *
 * A queue without the right hands nothing out, since each attempt would end before its final dot; it is woken
 * when the right is back. Logged when the first queue loses it, and when the last one has it again.
 */
import type { EventLog } from '../../platform/ports.js';
import type { MailQueue } from '../queue/mail-queue.js';
import type { Partition } from './set/partition.js';

export interface DeliveryRightPorts {
  readonly log: EventLog;
  nowMs(): number;
  wake(queue: MailQueue): void;
}

export class DeliveryRight {
  readonly #waiting = new Set<MailQueue>();
  #sinceMs = 0;
  readonly #ports: DeliveryRightPorts;

  constructor(ports: DeliveryRightPorts) {
    this.#ports = ports;
  }

  /** Queues with something to deliver that may not. */
  get waitingCount(): number {
    return this.#waiting.size;
  }

  /** Asked before a message is handed out; a queue that may not is remembered. */
  mayTake(queue: MailQueue): boolean {
    const { partition } = queue;
    const nowMs = this.#ports.nowMs();
    if (partition.mayDeliver(nowMs)) return true;
    if (this.#waiting.size === 0) {
      this.#sinceMs = nowMs;
      this.#ports.log.warn('lease', partition.holder.hasRules
        ? 'deliveries wait: this process has no lease at every copy that counts'
        : 'deliveries wait: the register has not said yet what operators have ordered', {
        queue: queue.name, partition: partition.name, stores: partition.rows.map((row) => row.storeId),
      });
    }
    this.#waiting.add(queue);
    return false;
  }

  /** Looks again: time has passed, or a right was confirmed. */
  look(): void {
    if (this.#waiting.size === 0) return;
    const nowMs = this.#ports.nowMs();
    for (const queue of this.#waiting) {
      if (!queue.partition.mayDeliver(nowMs)) continue;
      this.#waiting.delete(queue);
      this.#ports.wake(queue);
    }
    if (this.#waiting.size > 0) return;
    this.#ports.log.info('lease', 'deliveries go on: every queue with mail is ours again', {
      after_ms: Math.round(nowMs - this.#sinceMs),
    });
  }

  forget(partition: Partition): void {
    for (const queue of this.#waiting) if (queue.partition === partition) this.#waiting.delete(queue);
  }
}
