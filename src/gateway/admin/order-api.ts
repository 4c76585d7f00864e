/**
 * Orders for many messages (admin-api/queue-orders.ts): what an operator posts is judged here, and done by
 * gateway/orders. Who asked, and why, is in the log.
 */
import type { FastifyInstance, FastifyReply } from 'fastify';
import type { Order } from '../../admin-api/orders.js';
import { goOrder, leaveOrder, queueOrder } from '../../admin-api/queue-orders.js';
import type {
  LeftOrderAnswer, LeftOrderIdAnswer, QueueOrder, QueueOrderAnswer, QueueOrdersAnswer,
} from '../../admin-api/queue-orders.js';
import { BrokenRule, readShape } from '../../base/json-shape.js';
import { refuse } from '../../platform/node/admin-server.js';
import type { LeaveOutcome } from '../orders/left-desk.js';
import type { RuleOutcome } from '../orders/rule-desk.js';
import { orderOf, postedBy, refuseUnsaid } from './orders.js';

/** Names of the partitions of 500 gateways, of some 30 characters each: more than others post. */
const LEAVE_BYTES_MAX = 256 * 1024;

export interface QueueOrderControl {
  begin(order: QueueOrder): QueueOrderAnswer | string;
  answerOf(id: string): QueueOrderAnswer | undefined;
  all(): readonly QueueOrderAnswer[];
  go(id: string, graceMs: number): boolean;
  cancel(id: string, order: Order): boolean;
  leave(id: string, passed: readonly string[]): Promise<LeaveOutcome> | undefined;
  withdraw(id: string, order: Order): Promise<RuleOutcome>;
  allLeft(): readonly LeftOrderAnswer[];
}

export function addQueueOrders(api: FastifyInstance, control: QueueOrderControl): void {
  api.post('/orders', (request, reply): QueueOrderAnswer | FastifyReply => {
    const who = orderOf(postedBy<Order>(request));
    if (who === undefined) return refuseUnsaid(reply);
    const order = readShape(queueOrder, request.body);
    if (order instanceof BrokenRule) return refuse(reply, 400, `no order: ${order.rule}`);
    const answer = control.begin({ ...order, ...who });
    return typeof answer === 'string' ? refuse(reply, 400, answer) : answer;
  });
  api.get('/orders', (): QueueOrdersAnswer => ({ orders: control.all(), left: control.allLeft() }));
  api.get('/orders/:id', (request, reply): QueueOrderAnswer | FastifyReply =>
    found(control, idOf(request.params), reply),
  );
  api.post('/orders/:id/go', (request, reply): QueueOrderAnswer | FastifyReply => {
    const posted = readShape(goOrder, request.body);
    if (posted instanceof BrokenRule) return refuse(reply, 400, `grace_seconds: ${posted.rule}`);
    const id = idOf(request.params);
    if (control.answerOf(id) !== undefined && !control.go(id, posted.grace_seconds * 1000)) {
      return refuse(
        reply,
        409,
        'it does not wait for that: it looks still, was a dry run, or goes on already',
      );
    }
    return found(control, id, reply);
  });
  api.post('/orders/:id/cancel', (request, reply): QueueOrderAnswer | FastifyReply => {
    const who = orderOf(postedBy<Order>(request));
    if (who === undefined) return refuseUnsaid(reply);
    const id = idOf(request.params);
    if (control.answerOf(id) !== undefined && !control.cancel(id, who))
      return refuse(reply, 409, 'it is over');
    return found(control, id, reply);
  });
  addLeftOrders(api, control);
}

function addLeftOrders(api: FastifyInstance, control: QueueOrderControl): void {
  const long = { bodyLimit: LEAVE_BYTES_MAX };
  api.post('/orders/:id/leave', long, async (request, reply): Promise<LeftOrderAnswer | FastifyReply> => {
    const posted = readShape(leaveOrder, request.body);
    if (posted instanceof BrokenRule) return refuse(reply, 400, posted.rule);
    const id = idOf(request.params);
    const left = control.leave(id, posted.passed);
    if (left === undefined) {
      return refuse(reply, 409, 'there is no such order that does something to mail, or it is a flush');
    }
    const { code, why, left: answer } = await left;
    return code === 200 ? answer : refuse(reply, code, why);
  });
  api.post('/orders/:id/withdraw', async (request, reply): Promise<LeftOrderIdAnswer | FastifyReply> => {
    const who = orderOf(postedBy<Order>(request));
    if (who === undefined) return refuseUnsaid(reply);
    const { id, code, why } = await control.withdraw(idOf(request.params), who);
    return code === 200 ? { order: id } : refuse(reply, code, why);
  });
}

function idOf(params: unknown): string {
  return (params as { readonly id: string }).id;
}

function found(control: QueueOrderControl, id: string, reply: FastifyReply): QueueOrderAnswer | FastifyReply {
  return control.answerOf(id) ?? refuse(reply, 404, 'there is no such order, or it ended long ago');
}
