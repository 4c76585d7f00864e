/**
 * Single messages, held, released and deleted by an operator.
 *
 *   POST /api/v1/messages/ID/hold     {"reason": TEXT, "who": TEXT}
 *   POST /api/v1/messages/ID/release  {"reason": TEXT, "who": TEXT}
 *   POST /api/v1/messages/ID/delete   {"reason": TEXT, "who": TEXT}
 *
 * Answers {queue_id, queues: [{queue_name, queue_class, done, why, kept}]}: every queue that has the message,
 * and why it was not done there. None: this gateway has no such message. Who asked, and why, is in the log.
 * It is answered when the mirrors have acknowledged it (kept), or else at a bound: then a crash of the
 * gateway may undo it.
 */
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import type { HoldAnswer, Order } from '../../admin-api/orders.js';
import { formatMessageId, parseMessageId } from '../../base/text-id.js';
import type { HoldOutcome, HoldRequest, HoldsDone } from '../queue/message-holds.js';
import { refuse } from '../../platform/node/admin-server.js';
import { orderOf, postedBy, refuseUnsaid } from './orders.js';

export interface HoldControl {
  hold(request: HoldRequest, done: HoldsDone): void;
  release(request: HoldRequest, done: HoldsDone): void;
  delete(request: HoldRequest, done: HoldsDone): void;
}

type Apply = (wanted: HoldRequest, done: HoldsDone) => void;

export function addHolds(api: FastifyInstance, control: HoldControl): void {
  const add = (verb: string, apply: Apply): void => {
    api.post(`/messages/:id/${verb}`, (request, reply) => change(request, reply, apply));
  };
  add('hold', (wanted, done) => { control.hold(wanted, done); });
  add('release', (wanted, done) => { control.release(wanted, done); });
  add('delete', (wanted, done) => { control.delete(wanted, done); });
}

async function change(
  request: FastifyRequest, reply: FastifyReply, apply: Apply,
): Promise<HoldAnswer | FastifyReply> {
  const { id } = request.params as { id: string };
  const messageId = parseMessageId(id);
  if (messageId === undefined) return refuse(reply, 400, `'${id.slice(0, 40)}' is no queue id`);
  const order = orderOf(postedBy<Order>(request));
  if (order === undefined) return refuseUnsaid(reply);
  const outcomes = await new Promise<readonly HoldOutcome[]>((resolve) => {
    apply({ messageId, ...order }, resolve);
  });
  const queues = outcomes.map(({ queue, queueClass, done, why, kept }) =>
    ({ queue_name: queue, queue_class: queueClass, done, why, kept }));
  return { queue_id: formatMessageId(messageId), queues };
}
