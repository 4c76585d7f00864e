/** What the admin HTTP reads of a request that orders something, and how it refuses one. */
import type { FastifyReply, FastifyRequest } from 'fastify';
import { ORDER_TEXT_CHARACTERS_MAX } from '../../admin-api/pages.js';
import type { RefusalAnswer } from '../../admin-api/pages.js';

/** The fields of an order as somebody sent them: named by its type, of any kind. */
export type Posted<Order> = { readonly [K in keyof Order]?: unknown };

export function postedBy<Order>(request: FastifyRequest): Posted<Order> {
  return typeof request.body === 'object' && request.body !== null ? (request.body as Posted<Order>) : {};
}

/** A text that says something and can be logged as it is. */
export function textOf(value: unknown): string | undefined {
  if (typeof value !== 'string' || value.length > ORDER_TEXT_CHARACTERS_MAX) return undefined;
  const trimmed = value.trim();
  return trimmed === '' ? undefined : trimmed;
}

export function refuse(reply: FastifyReply, code: number, error: string): FastifyReply {
  const answer: RefusalAnswer = { error };
  return reply.code(code).send(answer);
}
