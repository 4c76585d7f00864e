/**
 * Copies spread evenly over the stores (gateway/mirror/set/rebalance.ts).
 *
 *   GET  /api/v1/rebalance                                  what would move, and what moves: RebalanceAnswer
 *   POST /api/v1/rebalance  {"reason": TEXT, "who": TEXT}   it begins now
 *
 * Who asked for it, and why, is in the log.
 */
import type { FastifyInstance } from 'fastify';
import type { RebalanceAnswer } from '../../admin-api/orders.js';
import { gatewayRoutes as routes } from '../../admin-api/routes.js';
import { orderOf } from '../../platform/node/admin-guard.js';
import { serve } from '../../platform/node/admin-server.js';
import type { EventLog } from '../../platform/ports.js';
import type { CopyMove, Rebalance } from '../mirror/set/rebalance.js';

export interface RebalancePorts {
  readonly gatewayId: string;
  readonly control: Pick<Rebalance, 'moving' | 'plan' | 'why' | 'order'>;
  readonly log: EventLog;
}

export function addRebalance(api: FastifyInstance, ports: RebalancePorts): void {
  serve(api, routes.rebalance, () => answer(ports));
  serve(api, routes.orderRebalance, (request) => {
    const before = answer(ports);
    const fields = { copies: before.planned.length, ...orderOf(request) };
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
