/**
 * GET /api/v1/explain (admin-api/explain.ts): where mail would go, by what this gateway runs by. It asks the
 * DNS, and servers of policies, so that only a few are under way at once.
 */
import type { FastifyInstance } from 'fastify';
import type { ExplainAnswer, ExplainQuestion } from '../../admin-api/explain.js';
import { gatewayRoutes as routes } from '../../admin-api/routes.js';
import { refuse } from '../../platform/node/admin-guard.js';
import { serve } from '../../platform/node/admin-server.js';
import { NotExplained } from '../explain/not-explained.js';

/** Their questions share the room of those that deliveries ask. */
const AT_ONCE_MAX = 4;

const REFUSALS = { question: 400, answer: 409, unknown: 503 } as const;

export function addExplain(
  api: FastifyInstance, explain: (question: ExplainQuestion) => Promise<ExplainAnswer>,
): void {
  let count = 0;
  serve(api, routes.explain, async ({ query }, reply) => {
    if (count >= AT_ONCE_MAX) {
      return refuse(reply, 503, `${String(AT_ONCE_MAX)} explanations are under way: ask again in a moment`);
    }
    count += 1;
    try {
      return await explain(query);
    } catch (error) {
      if (!(error instanceof NotExplained)) throw error;
      return refuse(reply, REFUSALS[error.isOf], error.message);
    } finally {
      count -= 1;
    }
  });
}
