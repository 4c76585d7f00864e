/**
 * A gateway taken out of its group for good.
 *
 *   GET  /api/v1/gateways/ID/retire     how far it is: RetireAnswer of admin-api/orders.ts
 *   POST /api/v1/gateways/ID/retire     {"reason": TEXT, "who": TEXT}: the rule is written into the register
 *   POST /api/v1/gateways/ID/retire     {"undo": true, "reason": TEXT, "who": TEXT}: it is taken back
 *
 * A POST is answered when the register has it: 503 when that can't be told, 404 when nobody knows the
 * gateway. Each gateway of the group learns of it by its own watch, and says so here. Who asked for it, and
 * why, is in the log.
 */
import type { FastifyInstance } from 'fastify';
import type { Order, RetireAnswer } from '../../admin-api/orders.js';
import { gatewayRoutes as routes } from '../../admin-api/routes.js';
import { orderOf, refuse } from '../../platform/node/admin-guard.js';
import { serve } from '../../platform/node/admin-server.js';

export interface RetireControl {
  stateOf(gatewayId: string): RetireAnswer;
  /** '' or why nobody is to be retired by this name. */
  refusalOf(gatewayId: string): string;
  /** '' when the register has it, else why not. */
  retire(gatewayId: string, order: Order, undo: boolean): Promise<string>;
}

export function addRetire(api: FastifyInstance, control: RetireControl): void {
  serve(api, routes.retire, ({ params: { id } }) => control.stateOf(id));
  serve(api, routes.orderRetire, async (request, reply) => {
    const { params: { id }, body: { undo = false } } = request;
    const refusal = undo ? '' : control.refusalOf(id);
    if (refusal !== '') return refuse(reply, 404, `${refusal}; nothing was done`);
    const why = await control.retire(id, orderOf(request), undo);
    if (why === '') return control.stateOf(id);
    return refuse(reply, 503, `${why}; it may be done or not: give the order again`);
  });
}
