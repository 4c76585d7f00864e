/**
 * Copies spread evenly over the stores (gateway/mirror/rebalance.ts).
 *
 *   GET  /api/v1/rebalance                                  what would move, and what moves: RebalanceAnswer
 *   POST /api/v1/rebalance  {"reason": TEXT, "who": TEXT}   it begins now
 *
 * Who asked for it, and why, is in the log.
 */
import type { FastifyInstance, FastifyReply } from 'fastify';
import type { Order, RebalanceAnswer } from '../../admin-api/orders.js';
import type { EventLog } from '../../platform/ports.js';
import type { CopyMove, Rebalance } from '../mirror/rebalance.js';
import { orderOf, postedBy, refuseUnsaid } from './orders.js';

export interface RebalancePorts {
  readonly gatewayId: string;
  readonly control: Pick<Rebalance, 'moving' | 'plan' | 'why' | 'order'>;
  readonly log: EventLog;
}

export function addRebalance(api: FastifyInstance, ports: RebalancePorts): void {
  api.get('/rebalance', (): RebalanceAnswer => answer(ports));
  api.post('/rebalance', (request, reply): RebalanceAnswer | FastifyReply => {
    const order = orderOf(postedBy<Order>(request));
    if (order === undefined) return refuseUnsaid(reply);
    const before = answer(ports);
    const fields = { copies: before.planned.length, ...order };
    ports.log.warn('rebalance', 'an operator has copies spread evenly over the stores', fields);
    ports.control.order();
    return before;
  });
}

function answer({ gatewayId, control }: RebalancePorts): RebalanceAnswer {
  const [moving, planned] = [control.moving.map(row), control.plan().map(row)];
  return { gateway: gatewayId, moving, planned, why: control.why() };
}

function row({ partition: { name, length, bytes }, from, to }: CopyMove): RebalanceAnswer['moving'][number] {
  return { partition: name, from, to, messages: length, bytes };
}
