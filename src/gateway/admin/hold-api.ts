/**
 * Single messages, held and released by an operator.
 *
 *   POST /api/v1/messages/ID/hold     {"reason": TEXT, "who": TEXT}
 *   POST /api/v1/messages/ID/release  {"reason": TEXT, "who": TEXT}
 *
 * Answers {queue_id, queues: [{queue_name, queue_class, done, why, kept}]}: every queue that has the message, and why it
 * was not done there. None: this gateway has no such message. Who asked, and why, is in the log. It is answered when the
 * mirrors have acknowledged it (kept), or else at a bound: then a crash of the gateway may undo it.
 */
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { formatMessageId, parseMessageId } from '../../base/text-id.js';
import type { HoldAnswer, HoldOutcome, HoldRequest } from '../queue/message-holds.js';

export interface HoldControl {
  hold(request: HoldRequest, answer: HoldAnswer): void;
  release(request: HoldRequest, answer: HoldAnswer): void;
}

const TEXT_CHARACTERS_MAX = 500;

export function addHolds(api: FastifyInstance, control: HoldControl): void {
  api.post('/messages/:id/hold', (request, reply) => change(request, reply, (wanted, answer) => { control.hold(wanted, answer); }));
  api.post('/messages/:id/release', (request, reply) => change(request, reply, (wanted, answer) => { control.release(wanted, answer); }));
}

async function change(request: FastifyRequest, reply: FastifyReply, apply: (wanted: HoldRequest, answer: HoldAnswer) => void): Promise<object> {
  const { id } = request.params as { id: string };
  const messageId = parseMessageId(id);
  if (messageId === undefined) return reply.code(400).send({ error: `'${id.slice(0, 40)}' is no queue id` });
  const body = typeof request.body === 'object' && request.body !== null ? (request.body as Readonly<Record<string, unknown>>) : {};
  const [reason, who] = [textOf(body['reason']), textOf(body['who'])];
  if (reason === undefined || who === undefined) return reply.code(400).send({ error: 'say who does this, and for what reason: it is logged' });
  const outcomes = await new Promise<readonly HoldOutcome[]>((resolve) => { apply({ messageId, reason, who }, resolve); });
  const queues = outcomes.map(({ queue, queueClass, done, why, kept }) => ({ queue_name: queue, queue_class: queueClass, done, why, kept }));
  return { queue_id: formatMessageId(messageId), queues };
}

function textOf(value: unknown): string | undefined {
  return typeof value === 'string' && value.trim() !== '' && value.length <= TEXT_CHARACTERS_MAX ? value.trim() : undefined;
}
