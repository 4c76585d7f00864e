/**
 * May a message of a queue be handed to its next hop at this instant (G5)? The one place that says so.
 *
 *   a member in sync of the acknowledged set, and of the set sent if a change of it is open,
 *   at whose store our lease runs, and our right to the queue was confirmed in the present term of that lease
 *
 * A term ends when the lease lapses or the store restarts: in between another process may have claimed the queue.
 * A queue without the right hands nothing out, since each attempt would end before its final dot; it is woken when
 * the right is back. Logged when the first queue loses it, and when the last one has it again.
 */
import type { EventLog } from '../../platform/ports.js';
import type { MailQueue } from '../queue/mail-queue.js';
import type { Partition } from './partition.js';

/** Asked right before each final dot. */
export function mayDeliver(partition: Partition, nowMs: number): boolean {
  const isOpen = partition.setChangeNumber !== 0;
  for (const replica of partition.replicas) {
    if (!replica.inSync || (isOpen && !replica.wanted)) continue;
    if (nowMs < replica.store.leaseEndsMs && replica.confirmedTerm === replica.store.leaseTerm) return true;
  }
  return false;
}

export interface DeliveryRightPorts {
  readonly log: EventLog;
  nowMs(): number;
  wake(queue: MailQueue): void;
}

export class DeliveryRight {
  private readonly waiting = new Set<MailQueue>();
  private sinceMs = 0;
  private readonly ports: DeliveryRightPorts;

  constructor(ports: DeliveryRightPorts) {
    this.ports = ports;
  }

  /** Queues with something to deliver that may not. */
  get waitingCount(): number {
    return this.waiting.size;
  }

  /** Asked before a message is handed out; a queue that may not is remembered. */
  mayTake(queue: MailQueue): boolean {
    const { partition } = queue;
    const nowMs = this.ports.nowMs();
    if (mayDeliver(partition, nowMs)) return true;
    if (this.waiting.size === 0) {
      this.sinceMs = nowMs;
      this.ports.log.warn('lease', 'deliveries wait: no mirror in sync with a lease says that the partition is ours', { queue: queue.name, partition: partition.name, stores: partition.replicas.map((replica) => replica.store.storeId) });
    }
    this.waiting.add(queue);
    return false;
  }

  /** Looks again: time has passed, or a right was confirmed. */
  look(): void {
    if (this.waiting.size === 0) return;
    const nowMs = this.ports.nowMs();
    for (const queue of this.waiting) {
      if (!mayDeliver(queue.partition, nowMs)) continue;
      this.waiting.delete(queue);
      this.ports.wake(queue);
    }
    if (this.waiting.size === 0) this.ports.log.info('lease', 'deliveries go on: every queue with mail is ours again', { after_ms: Math.round(nowMs - this.sinceMs) });
  }

  forget(partition: Partition): void {
    for (const queue of this.waiting) if (queue.partition === partition) this.waiting.delete(queue);
  }
}
