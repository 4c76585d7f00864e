/**
 * Single messages, held, released and deleted by an operator.
 *
 *   POST /api/v1/messages/ID/hold     {"reason": TEXT, "who": TEXT}
 *   POST /api/v1/messages/ID/release  {"reason": TEXT, "who": TEXT}
 *   POST /api/v1/messages/ID/delete   {"reason": TEXT, "who": TEXT}
 *
 * Answers {queue_id, queues: [{queue_name, queue_class, done, why, kept}]}: every queue that has the message, and why it
 * was not done there. None: this gateway has no such message. Who asked, and why, is in the log. It is answered when the
 * mirrors have acknowledged it (kept), or else at a bound: then a crash of the gateway may undo it.
 */
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import type { HoldAnswer, Order } from '../../admin-api/orders.js';
import { formatMessageId, parseMessageId } from '../../base/text-id.js';
import type { HoldOutcome, HoldRequest, HoldsDone } from '../queue/message-holds.js';
import { postedBy, refuse, textOf } from './orders.js';

export interface HoldControl {
  hold(request: HoldRequest, done: HoldsDone): void;
  release(request: HoldRequest, done: HoldsDone): void;
  delete(request: HoldRequest, done: HoldsDone): void;
}

export function addHolds(api: FastifyInstance, control: HoldControl): void {
  api.post('/messages/:id/hold', (request, reply) => change(request, reply, (wanted, done) => { control.hold(wanted, done); }));
  api.post('/messages/:id/release', (request, reply) => change(request, reply, (wanted, done) => { control.release(wanted, done); }));
  api.post('/messages/:id/delete', (request, reply) => change(request, reply, (wanted, done) => { control.delete(wanted, done); }));
}

async function change(request: FastifyRequest, reply: FastifyReply, apply: (wanted: HoldRequest, done: HoldsDone) => void): Promise<HoldAnswer | FastifyReply> {
  const { id } = request.params as { id: string };
  const messageId = parseMessageId(id);
  if (messageId === undefined) return refuse(reply, 400, `'${id.slice(0, 40)}' is no queue id`);
  const posted = postedBy<Order>(request);
  const [reason, who] = [textOf(posted.reason), textOf(posted.who)];
  if (reason === undefined || who === undefined) return refuse(reply, 400, 'say who does this, and for what reason: it is logged');
  const outcomes = await new Promise<readonly HoldOutcome[]>((resolve) => { apply({ messageId, reason, who }, resolve); });
  const queues = outcomes.map(({ queue, queueClass, done, why, kept }) => ({ queue_name: queue, queue_class: queueClass, done, why, kept }));
  return { queue_id: formatMessageId(messageId), queues };
}
