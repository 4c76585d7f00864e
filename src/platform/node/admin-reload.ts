/** POST /api/v1/config/reload of a gateway or store: in force when it is answered, or 409 and why not. */
import type { FastifyReply } from 'fastify';
import type { Order } from '../../admin-api/orders.js';
import type { ReloadControl } from '../reloads.js';
import { orderOf, refuse } from './admin-guard.js';

/** `inForce`: the answer, by keys that have changed and what is warned of. */
export async function reloaded<Answer>(
  control: ReloadControl, request: { readonly body: Partial<Order> }, reply: FastifyReply,
  inForce: (changed: string[], warnings: string[]) => Answer,
): Promise<Answer | FastifyReply> {
  const { why, changed, warnings } = await control.reload(orderOf(request));
  if (why !== '') return refuse(reply, 409, `${why}; nothing was changed`);
  return inForce([...changed], [...warnings]);
}
