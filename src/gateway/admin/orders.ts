/** What the admin HTTP reads of a request that orders something or names a message; how it refuses one. */
import type { FastifyReply, FastifyRequest } from 'fastify';
import type { Order } from '../../admin-api/orders.js';
import { ORDER_TEXT_CHARACTERS_MAX } from '../../admin-api/pages.js';
import { parseMessageId } from '../../base/text-id.js';
import { refuse } from '../../platform/node/admin-server.js';

const SHOWN_CHARACTERS_MAX = 40;

/** The fields of an order as somebody sent them: named by its type, of any kind. */
export type Posted<T> = { readonly [K in keyof T]?: unknown };

export function postedBy<T>(request: FastifyRequest): Posted<T> {
  return typeof request.body === 'object' && request.body !== null ? (request.body as Posted<T>) : {};
}

/** A text that says something and can be logged as it is. */
export function textOf(value: unknown): string | undefined {
  if (typeof value !== 'string' || value.length > ORDER_TEXT_CHARACTERS_MAX) return undefined;
  const trimmed = value.trim();
  return trimmed === '' ? undefined : trimmed;
}

/** Who wants it, and why; undefined when that is not said. */
export function orderOf(posted: Posted<Order>): Order | undefined {
  const [reason, who] = [textOf(posted.reason), textOf(posted.who)];
  return reason === undefined || who === undefined ? undefined : { reason, who };
}

export function refuseUnsaid(reply: FastifyReply): FastifyReply {
  return refuse(reply, 400, 'say who does this, and for what reason: it is logged');
}

/** The message that the address of a request names, or the refusal of what is none. */
export function messageOf({ params }: FastifyRequest, reply: FastifyReply): number | FastifyReply {
  const { id } = params as { readonly id: string };
  return parseMessageId(id) ?? refuse(reply, 400, `'${id.slice(0, SHOWN_CHARACTERS_MAX)}' is no queue id`);
}
