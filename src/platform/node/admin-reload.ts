/** POST /api/v1/config/reload of a gateway or store: in force when it is answered, or 409 and why not. */
import type { FastifyReply } from 'fastify';
import type { Order } from '../../admin-api/orders.js';
import type { ReloadControl } from '../reloads.js';
import { orderOf, refuse } from './admin-guard.js';

/** `inForce`: the answer, by the keys that have changed. */
export async function reloaded<Answer>(
  control: ReloadControl, request: { readonly body: Partial<Order> }, reply: FastifyReply,
  inForce: (changed: string[]) => Answer,
): Promise<Answer | FastifyReply> {
  const { why, changed } = await control.reload(orderOf(request));
  return why === '' ? inForce([...changed]) : refuse(reply, 409, `${why}; nothing was changed`);
}
