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
import { formatMessageId, parseMessageId } from '../../base/text-id.js';
import type { QueueChange } from '../control/kept-waits.js';
import type { HoldOutcome, HoldRequest } from '../control/message-holds.js';

export interface HoldControl {
  hold(request: HoldRequest): readonly HoldOutcome[];
  release(request: HoldRequest): readonly HoldOutcome[];
  delete(request: HoldRequest): readonly HoldOutcome[];
  /** Tells once whether the mirrors have acknowledged what was changed for these owners, and these changes. */
  whenKept(owners: Iterable<string>, done: (kept: boolean) => void, changes?: readonly QueueChange[]): void;
}

const TEXT_CHARACTERS_MAX = 500;

export function addHolds(api: FastifyInstance, control: HoldControl): void {
  api.post('/messages/:id/hold', (request, reply) => change(request, reply, control, (wanted) => control.hold(wanted)));
  api.post('/messages/:id/release', (request, reply) => change(request, reply, control, (wanted) => control.release(wanted)));
  api.post('/messages/:id/delete', (request, reply) => (
    change(request, reply, control, (wanted) => control.delete(wanted))
  ));
}

async function change(request: FastifyRequest, reply: FastifyReply, control: HoldControl, apply: (wanted: HoldRequest) => readonly HoldOutcome[]): Promise<object> {
  const { id } = request.params as { id: string };
  const messageId = parseMessageId(id);
  if (messageId === undefined) return reply.code(400).send({ error: `'${id.slice(0, 40)}' is no queue id` });
  const body = typeof request.body === 'object' && request.body !== null ? (request.body as Readonly<Record<string, unknown>>) : {};
  const [reason, who] = [textOf(body['reason']), textOf(body['who'])];
  if (reason === undefined || who === undefined) return reply.code(400).send({ error: 'say who does this, and for what reason: it is logged' });
  const outcomes = apply({ messageId, reason, who });
  const owners = outcomes.filter(({ done }) => done).map(({ owner }) => owner);
  const changes = outcomes.flatMap((one) => one.change ?? []);
  const kept = await new Promise<boolean>((resolve) => { control.whenKept(owners, resolve, changes); });
  const queues = outcomes.map(({ queue, queueClass, done, why }) => ({ queue_name: queue, queue_class: queueClass, done, why, kept: done && kept }));
  return { queue_id: formatMessageId(messageId), queues };
}

function textOf(value: unknown): string | undefined {
  return typeof value === 'string' && value.trim() !== '' && value.length <= TEXT_CHARACTERS_MAX ? value.trim() : undefined;
}
