/** GET /api/v1/limits?queue=NAME (admin-api/limits.ts): what limits mail of a queue now, for `explain`. */
import type { FastifyInstance } from 'fastify';
import type { LimitsAnswer } from '../../admin-api/limits.js';
import { refuse } from '../../platform/node/admin-server.js';

const NAME_CHARACTERS_MAX = 1_024;

export function addLimits(api: FastifyInstance, limitsOf: (queue: string) => LimitsAnswer): void {
  api.get('/limits', (request, reply) => {
    const { queue } = request.query as Readonly<Record<string, unknown>>;
    if (typeof queue !== 'string' || queue === '' || queue.length > NAME_CHARACTERS_MAX) {
      return refuse(reply, 400, 'queue is the name of one queue');
    }
    return limitsOf(queue);
  });
}
