/**
 * POST /api/v1/rescue: an operator has queues taken without a store that does not come back.
 *
 *   {"queue": NAME} or {"owner": GATEWAY}, "missing": STORE, "reason": TEXT, "who": TEXT
 *
 * Answers the names of the queues concerned. What only the missing store knew is lost, or comes twice: who asked for
 * it, and why, is in the log. Nothing happens to a queue whose members all answer.
 */
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import type { ForceRequest } from '../../recovery/force.js';

export interface RescueControl {
  /** The names of the queues that this concerns. */
  force(request: ForceRequest): readonly string[];
}

const TEXT_CHARACTERS_MAX = 500;

export function addRescue(api: FastifyInstance, control: RescueControl): void {
  api.post('/rescue', (request, reply) => force(request, reply, control));
}

function force(request: FastifyRequest, reply: FastifyReply, control: RescueControl): object {
  const body = typeof request.body === 'object' && request.body !== null ? (request.body as Readonly<Record<string, unknown>>) : {};
  const text = (key: string): string | undefined => {
    const value = body[key];
    return typeof value === 'string' && value.trim() !== '' && value.length <= TEXT_CHARACTERS_MAX ? value.trim() : undefined;
  };
  const [queue, owner, missing, reason, who] = ['queue', 'owner', 'missing', 'reason', 'who'].map(text);
  if ((queue === undefined) === (owner === undefined)) return reply.code(400).send({ error: 'name either a queue or the gateway that owns it' });
  if (missing === undefined) return reply.code(400).send({ error: 'name the store that is missing' });
  if (reason === undefined || who === undefined) return reply.code(400).send({ error: 'say who does this, and for what reason: it is logged' });
  return { queues: control.force({ queue, owner, missing, reason, who }) };
}
