/**
 * The configuration is read again (docs/RELOAD.md).
 *
 *   POST /api/v1/config/reload    {"reason": TEXT, "who": TEXT}: it is in force when this is answered; 409
 *                                 and why when it is refused, and the old one stays
 *   GET  /api/v1/config/diff      what that would do
 */
import type { FastifyInstance, FastifyReply } from 'fastify';
import type { ConfigDiffAnswer, Order, ReloadAnswer } from '../../admin-api/orders.js';
import { refuse } from '../../platform/node/admin-server.js';
import type { ReloadControl } from '../gateway-options.js';
import { orderOf, postedBy, refuseUnsaid } from './orders.js';
import type { GatewayView } from './view.js';

export function addReload(api: FastifyInstance, control: ReloadControl, view: GatewayView): void {
  api.post('/config/reload', async (request, reply): Promise<ReloadAnswer | FastifyReply> => {
    const order = orderOf(postedBy<Order>(request));
    if (order === undefined) return refuseUnsaid(reply);
    const { why, changed } = await control.reload(order);
    if (why !== '') return refuse(reply, 409, `${why}; nothing was changed`);
    const { gateway, configuration } = view.status();
    return { gateway, hash: configuration?.hash ?? '', changed: [...changed] };
  });
  api.get('/config/diff', async (): Promise<ConfigDiffAnswer> => {
    const { why: refused, changed, following } = await control.compare();
    return { gateway: view.status().gateway, changed: [...changed], following, refused };
  });
}
