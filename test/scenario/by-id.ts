/** What an operator does to one message of a gateway at once, as an order over many does to each (src/gateway/orders/order-act.ts). */
import type { GatewayCore } from '../../src/gateway/core.js';
import type { MessageHolds } from '../../src/gateway/queue/message-holds.js';

export type MessageVerb = 'hold' | 'release' | 'delete';

export interface DoneById {
  /** Of each queue that has the message: why it was not done there; '' when it was. */
  readonly whys: readonly string[];
  /** The copies have it: a crash of the gateway undoes nothing. */
  readonly isKept: boolean;
}

const DO: Readonly<Record<MessageVerb, keyof Pick<MessageHolds, 'holdEntry' | 'releaseEntry' | 'deleteEntry'>>> = { hold: 'holdEntry', release: 'releaseEntry', delete: 'deleteEntry' };

export function doById({ registry, holds }: GatewayCore, verb: MessageVerb, id: number, order = { reason: 'a look first', who: 'ann' }): DoneById {
  const done = [...registry.placesOf(id)].map(({ queue, row }) => {
    const why = holds[DO[verb]](queue, row, order);
    return { why, partition: queue.partition, number: queue.partition.lastNumber };
  });
  return {
    whys: done.map(({ why }) => why),
    get isKept() { return done.every(({ partition, number }) => partition.ackedNumber >= number); },
  };
}
