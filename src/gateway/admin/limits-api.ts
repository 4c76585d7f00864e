/** GET /api/v1/limits (admin-api/limits.ts): what limits mail of a queue now, for `explain`. */
import type { FastifyInstance } from 'fastify';
import type { LimitsAnswer } from '../../admin-api/limits.js';
import { gatewayRoutes as routes } from '../../admin-api/routes.js';
import { serve } from '../../platform/node/admin-server.js';

export function addLimits(api: FastifyInstance, limitsOf: (queue: string, to: string) => LimitsAnswer): void {
  serve(api, routes.limits, ({ query: { queue, to } }) => limitsOf(queue, to));
}
