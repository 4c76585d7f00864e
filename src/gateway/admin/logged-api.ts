/** POST /api/v1/logged (admin-api/logged.ts): ends with its client. */
import type { FastifyInstance } from 'fastify';
import { gatewayRoutes as routes } from '../../admin-api/routes.js';
import { refuse } from '../../platform/node/admin-guard.js';
import { serve } from '../../platform/node/admin-server.js';
import type { LogSearch } from '../look/node/log-search.js';

export function addLogged(api: FastifyInstance, search: LogSearch): void {
  serve(api, routes.logged, async ({ body }, reply) => {
    if (search.isFull) return refuse(reply, 503, 'other searches are under way: ask again in a moment');
    const leaving = new AbortController();
    reply.raw.once('close', () => { leaving.abort(); });
    return search.search(body, leaving.signal);
  });
}
