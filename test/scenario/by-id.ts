/** What an operator does to one message of a gateway at once, as an order over many does to each (src/gateway/orders/order-act.ts). */
import type { GatewayCore } from '../../src/gateway/daemon/core.js';
import type { MailQueue } from '../../src/gateway/queue/mail-queue.js';

export type MessageVerb = 'hold' | 'delay' | 'release' | 'delete';

export interface DoneById {
  /** Of each queue that has the message: why it was not done there; '' when it was. */
  readonly whys: readonly string[];
  /** The copies have it: a crash of the gateway undoes nothing. */
  readonly isKept: boolean;
}

export function doById({ registry, holds }: GatewayCore, verb: MessageVerb, id: number, order = { reason: 'a look first', who: 'ann' }, untilWallMs = 0): DoneById {
  const did = (queue: MailQueue, row: number): string => {
    switch (verb) {
      case 'hold': return holds.holdEntry(queue, row, order);
      case 'delay': return holds.delayEntry(queue, row, untilWallMs, order);
      case 'release': return holds.releaseEntry(queue, row, order);
      // Of one recipient.
      case 'delete': return holds.endEntry(queue, row, [0], 'delete', order);
    }
  };
  const done = [...registry.placesOf(id)].map(({ queue, row }) => {
    const why = did(queue, row);
    return { why, partition: queue.partition, number: queue.partition.lastNumber };
  });
  return {
    whys: done.map(({ why }) => why),
    get isKept() { return done.every(({ partition, number }) => partition.ackedNumber >= number); },
  };
}
