/**
 * The configuration of a gateway is read again (docs/RELOAD.md).
 *
 *   POST /api/v1/config/reload    {"reason": TEXT, "who": TEXT}: it is in force when this is answered; 409
 *                                 and why when it is refused, and the old one stays
 *   GET  /api/v1/config/diff      what that would do
 */
import type { FastifyInstance } from 'fastify';
import { gatewayRoutes as routes } from '../../admin-api/routes.js';
import { reloaded } from '../../platform/node/admin-reload.js';
import { serve } from '../../platform/node/admin-server.js';
import type { ReloadControl } from '../../platform/reloads.js';
import type { GatewayView } from './view.js';

export function addReload(api: FastifyInstance, control: ReloadControl, view: GatewayView): void {
  serve(api, routes.reload, (request, reply) => reloaded(control, request, reply, (changed, warnings) => {
    const { gateway, configuration } = view.status();
    return { gateway, hash: configuration?.hash ?? '', changed, warnings };
  }));
  serve(api, routes.configDiff, async () => {
    const { why: refused, changed, warnings, following, secrets } = await control.compare();
    const { gateway } = view.status();
    return {
      gateway, changed: [...changed], warnings: [...warnings], following, secrets: [...secrets], refused,
    };
  });
}
