/**
 * Orders for many messages (admin-api/queue-orders.ts): what an operator posts is judged here, and done by
 * gateway/orders. Who asked, and why, is in the log.
 */
import type { FastifyInstance, FastifyReply } from 'fastify';
import type { Order } from '../../admin-api/orders.js';
import type {
  LeftOrderAnswer, QueueOrder, QueueOrderAnswer, Selector,
} from '../../admin-api/queue-orders.js';
import { gatewayRoutes as routes } from '../../admin-api/routes.js';
import { orderOf, refuse } from '../../platform/node/admin-guard.js';
import { serve } from '../../platform/node/admin-server.js';
import type { LeaveOutcome } from '../orders/left-desk.js';
import type { RuleOutcome } from '../orders/rule-desk.js';

export interface QueueOrderControl {
  begin(order: QueueOrder): QueueOrderAnswer | string;
  whyNoRoute(selector: Selector): string;
  answerOf(id: string): QueueOrderAnswer | undefined;
  all(): readonly QueueOrderAnswer[];
  go(id: string, graceMs: number): boolean;
  cancel(id: string, order: Order): boolean;
  leave(id: string, passed: readonly string[]): Promise<LeaveOutcome> | undefined;
  withdraw(id: string, order: Order): Promise<RuleOutcome>;
  allLeft(): readonly LeftOrderAnswer[];
}

export function addQueueOrders(api: FastifyInstance, control: QueueOrderControl): void {
  serve(api, routes.beginOrder, (request, reply) => {
    const noRoute = control.whyNoRoute(request.body.selector);
    if (noRoute !== '') return refuse(reply, 404, noRoute);
    const answer = control.begin({ ...request.body, ...orderOf(request) });
    return typeof answer === 'string' ? refuse(reply, 400, answer) : answer;
  });
  serve(api, routes.orders, () => ({ orders: control.all(), left: control.allLeft() }));
  serve(api, routes.order, ({ params: { id } }, reply) => found(control, id, reply));
  serve(api, routes.goOrder, ({ params: { id }, body }, reply) => {
    if (control.answerOf(id) !== undefined && !control.go(id, body.grace_seconds * 1000)) {
      return refuse(
        reply,
        409,
        'it does not wait for that: it looks still, was a dry run, or goes on already',
      );
    }
    return found(control, id, reply);
  });
  serve(api, routes.cancelOrder, (request, reply) => {
    const { id } = request.params;
    if (control.answerOf(id) !== undefined && !control.cancel(id, orderOf(request)))
      return refuse(reply, 409, 'it is over');
    return found(control, id, reply);
  });
  addLeftOrders(api, control);
}

function addLeftOrders(api: FastifyInstance, control: QueueOrderControl): void {
  serve(api, routes.leaveOrder, async ({ params: { id }, body: { passed } }, reply) => {
    const left = control.leave(id, passed);
    if (left === undefined) {
      return refuse(reply, 409, 'there is no such order that does something to mail, or it is a flush');
    }
    const { code, why, left: answer } = await left;
    return code === 200 ? answer : refuse(reply, code, why);
  });
  serve(api, routes.withdrawOrder, async (request, reply) => {
    const { id, code, why } = await control.withdraw(request.params.id, orderOf(request));
    return code === 200 ? { order: id } : refuse(reply, code, why);
  });
}

function found(control: QueueOrderControl, id: string, reply: FastifyReply): QueueOrderAnswer | FastifyReply {
  return control.answerOf(id) ?? refuse(reply, 404, 'there is no such order, or it ended long ago');
}
