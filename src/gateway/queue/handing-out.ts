/**
 * The queues as outbound sees them (DeliverySource): hands out what is due, in order, while the queue is ours
 * to deliver from, and takes results back.
 *
 *   take ─► mirror/delivery-right.ts ─► next READY entry ─► IN_FLIGHT ─► settle ─► settlement.ts
 *                                              └─ an operator's order means it (orders/left-orders.ts)
 */
import type { ReturnAddresses } from '../../base/return-addresses.js';
import type { SenderRewriting } from '../../base/sender-rewriting.js';
import { formatMessageId } from '../../base/text-id.js';
import type { DeliveryRight } from '../mirror/delivery-right.js';
import type { Clock, EventLog } from '../../platform/ports.js';
import type { DeliveryRoom } from './delivery-room.js';
import type { DueBodies } from './due-bodies.js';
import type { Entries } from './entries.js';
import { EntryState } from './entry-table.js';
import type { ForgottenQueues } from '../recovered/forgotten-queues.js';
import { MailQueue } from './mail-queue.js';
import { TO_TRY } from './note.js';
import type { QueueRegistry } from './queue-registry.js';
import type { Settlement } from './settlement.js';
import type { Delivery, DeliveryQueue, DeliveryResult, Envelope, Recipient } from '../mail-types.js';
import { ALIAS_LEAVES, ENVELOPE_BY_ANYBODY } from '../mail-types.js';

/** Reverse-paths that are made here, by the configuration in force. */
export interface OwnPaths {
  /** Undefined: none is rewritten. */
  readonly rewriting: SenderRewriting | undefined;
  /** Of routes with `verp`, by name. */
  readonly returnAddresses: ReadonlyMap<string, ReturnAddresses>;
}

export interface HandingOutPorts {
  readonly clock: Clock;
  readonly log: EventLog;
  readonly entries: Entries;
  readonly registry: QueueRegistry;
  readonly settlement: Settlement;
  readonly right: DeliveryRight;
  readonly room: DeliveryRoom;
  readonly forgotten: ForgottenQueues;
  readonly bodies: DueBodies;
  readonly ownPaths: OwnPaths;
  wake(queue: MailQueue): void;
  /** In a partition that an order concerns: it is done to an entry that is meant, or keeps it back. */
  obeyOrder(queue: MailQueue, row: number): Ordered;
}

/**
 * NOT: no order means it. DONE: it waits here no more. LATER: it may not leave, and its queue is woken.
 * KEPT: it may not leave, and others may.
 */
export const Ordered = { NOT: 0, DONE: 1, LATER: 2, KEPT: 3 } as const;
export type Ordered = (typeof Ordered)[keyof typeof Ordered];

const UNKNOWN_VERSION =
  'a message is held: another release wrote its envelope; upgrade this gateway or export it';
const FIRST_ONLY: readonly number[] = [0];

export class HandingOut {
  readonly #ports: HandingOutPorts;

  constructor(ports: HandingOutPorts) {
    this.#ports = ports;
  }

  take(queue: DeliveryQueue): Delivery | undefined {
    const { clock, entries, log, right, room, settlement } = this.#ports;
    if (!(queue instanceof MailQueue) || queue.readyCount === 0) return undefined;
    if (!right.mayTake(queue)) return undefined;
    for (;;) {
      const next = queue.nextReady(clock.nowMs());
      if (next === 0 || !this.#ports.bodies.isHere(queue, next)) return undefined;
      if (queue.partition.isUnderOrder) {
        const ordered = this.#ports.obeyOrder(queue, next);
        if (ordered === Ordered.LATER) return undefined;
        if (ordered === Ordered.KEPT) this.#ports.bodies.onUsed(queue.partition, next);
        if (ordered !== Ordered.NOT) continue;
      }
      if (!room.admits(queue, entries.room(next))) return undefined;
      const row = queue.takeReady(clock.nowMs());
      const envelope = settlement.envelopeOf(row);
      if (envelope !== undefined) {
        room.taken(envelope.recipients.length);
        const pending = this.#pendingOf(row, envelope.recipients.length);
        const contentBytes = entries.table.bodyBytes.get(row);
        if (queue.route.verp !== undefined) {
          const own = this.#ownPath(queue.route.verp, envelope, pending);
          if (own !== undefined) return { entry: row, queue, envelope, pending, contentBytes, ...own };
        }
        const reversePath = this.#reversePathOf(envelope, pending);
        return { entry: row, queue, envelope, reversePath, pending, contentBytes };
      }
      queue.inFlightCount -= 1;
      queue.heldCount += 1;
      entries.table.transition(row, EntryState.HELD);
      log.error('held', UNKNOWN_VERSION, {
        queue: queue.name, queue_id: formatMessageId(entries.table.messageId(row)),
      });
    }
  }

  settle(delivery: Delivery, result: DeliveryResult): void {
    this.#ports.room.settled(delivery.envelope.recipients.length);
    const queue = this.#ports.registry.queueOf(delivery.entry);
    if (queue === undefined || this.#ports.forgotten.onSettled(queue, delivery.entry)) return;
    this.#ports.settlement.settle(queue, delivery, result);
    this.#ports.bodies.onAttempted(queue, delivery.entry, delivery.envelope.messageId);
    this.#ports.wake(queue);
  }

  /** Asked right before each final dot (G5). */
  mayDeliver(delivery: Delivery): boolean {
    const partition = this.#ports.registry.queueOf(delivery.entry)?.partition;
    if (partition === undefined || this.#ports.forgotten.has(partition)) return false;
    return partition.mayDeliver(this.#ports.clock.nowMs());
  }

  /**
   * Undefined where none can be written: the null reverse-path stays, and whatever has no room. SPF of the
   * route's domain vouches for what leaves under such an address: mail of strangers, which aliases,
   * `smtp.postmaster` and `smtp.feedback` lead out, must not pass as ours (DMARC).
   */
  #ownPath(
    route: string, envelope: Envelope, pending: readonly number[],
  ): Pick<Delivery, 'reversePath' | 'verp'> | undefined {
    const { messageId, recipients, reversePath: sender, flags } = envelope;
    const verp = this.#ports.ownPaths.returnAddresses.get(route);
    if (verp === undefined || sender === '' || (flags & ENVELOPE_BY_ANYBODY) !== 0) return undefined;
    const first = pending.find((index) => !leaves(recipients[index]));
    if (first === undefined) return undefined;
    const own = verp.written(messageId, recipients[first]?.address ?? '', sender);
    if (own === sender) return undefined;
    return { reversePath: pending.length === 1 ? own : this.#reversePathOf(envelope, pending), verp };
  }

  /** One for all of them: it does no harm where the mail stays with us. */
  #reversePathOf({ reversePath, recipients }: Envelope, pending: readonly number[]): string {
    const { rewriting } = this.#ports.ownPaths;
    if (rewriting === undefined) return reversePath;
    const isLed = pending.some((index) => leaves(recipients[index]));
    return isLed ? rewriting.rewritten(reversePath) : reversePath;
  }

  #pendingOf(row: number, recipientCount: number): readonly number[] {
    const { entries, settlement } = this.#ports;
    if (!entries.hasNote(row)) {
      return recipientCount === 1 ? FIRST_ONLY : Array.from({ length: recipientCount }, (_, index) => index);
    }
    const states = settlement.noteOf(row, recipientCount).states;
    const pending: number[] = [];
    for (let i = 0; i < recipientCount; i++) if ((states[i] ?? TO_TRY) === TO_TRY) pending.push(i);
    return pending;
  }
}

function leaves(recipient: Recipient | undefined): boolean {
  return ((recipient?.notify ?? 0) & ALIAS_LEAVES) !== 0;
}
