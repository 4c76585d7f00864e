/**
 * Who may ask what at an admin port, judged before a body is read; the same for all processes, by the row of
 * the table (admin-api/routes.ts) that was found, however the client spelled its address.
 *
 *   every request   without tokens a Host that names another machine is refused (DNS rebinding, own-host.ts);
 *                   with a token /api/ wants "Authorization: Bearer TOKEN"
 *   POST            JSON, and no Origin but this port's own: a page in an operator's browser can post text
 *                   without asking first, but no JSON, and not without saying where it comes from
 *   POST, operate   who it is, before it is done
 */
import { createHash, timingSafeEqual } from 'node:crypto';
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import type { Order } from '../../admin-api/orders.js';
import type { RefusalAnswer } from '../../admin-api/pages.js';
import type { Route } from '../../admin-api/route.js';
import { invariant } from '../../base/invariant.js';
import { namesThisMachine } from './own-host.js';

declare module 'fastify' {
  interface FastifyContextConfig {
    /** Its row; none of an address where there is nothing. */
    readonly route?: Route;
  }
}

type Hook = (request: FastifyRequest, reply: FastifyReply, next: () => void) => void;

const JSON_TYPE = /^application\/json\s*(;|$)/i;

export function addGuard(app: FastifyInstance, token: string | undefined): void {
  app.addHook('onRequest', token === undefined || token === '' ? refuseForeignHost : tokenGuard(token));
  app.addHook('onRequest', refuseForeignChange);
  app.addHook('preHandler', refuseUnsaid);
}

export function refuse(reply: FastifyReply, code: number, error: string): FastifyReply {
  const answer: RefusalAnswer = { error };
  return reply.code(code).send(answer);
}

/** Who asks, as the log has it: where from, and whether with a token (judged where one is needed). */
export function readerOf(
  request: FastifyRequest,
): { readonly client: string; readonly client_port: number; readonly token: boolean } {
  const { remoteAddress: client = '', remotePort: port = 0 } = request.socket;
  return { client, client_port: port, token: request.headers.authorization !== undefined };
}

/** Who ordered it, and why. */
export function orderOf({ body: { reason, who } }: { readonly body: Partial<Order> }): Order {
  invariant(reason !== undefined && who !== undefined, 'an order without who or why was refused');
  return { reason, who };
}

function tokenGuard(token: string): Hook {
  const expected = digest(`Bearer ${token}`);
  return (request, reply, next) => {
    const role = request.routeOptions.config.route?.role ?? 'probe';
    const isRight = timingSafeEqual(digest(request.headers.authorization ?? ''), expected);
    if (role === 'probe' || isRight) next();
    else void refuse(reply.header('www-authenticate', 'Bearer'), 401, 'a bearer token is needed');
  };
}

/** Digests have one length, so the comparison tells nothing of the token's. */
function digest(text: string): Buffer {
  return createHash('sha256').update(text).digest();
}

function refuseForeignHost(request: FastifyRequest, reply: FastifyReply, next: () => void): void {
  if (namesThisMachine(request.headers.host)) next();
  else void refuse(reply, 403, 'this port is for this machine only');
}

function refuseForeignChange(request: FastifyRequest, reply: FastifyReply, next: () => void): void {
  if (request.routeOptions.config.route?.method !== 'POST') next();
  else if (isForeign(request)) void refuse(reply, 403, 'this port takes nothing from pages of other servers');
  else if (!JSON_TYPE.test(request.headers['content-type'] ?? '')) {
    void refuse(reply, 415, 'post JSON, with content-type: application/json');
  } else next();
}

/** A browser says where a page that posts comes from; others say nothing. */
function isForeign({ headers: { origin, host = '' } }: FastifyRequest): boolean {
  if (origin === undefined) return false;
  return !URL.canParse(origin) || new URL(origin).host !== host.toLowerCase();
}

/** The shapes want a reason; who it is stands beside that. */
function refuseUnsaid(request: FastifyRequest, reply: FastifyReply, next: () => void): void {
  const { method, role } = request.routeOptions.config.route ?? {};
  const isOrder = method === 'POST' && role === 'operate';
  if (!isOrder || (request.body as Partial<Order>).who !== undefined) next();
  else void refuse(reply, 400, 'say who does this, and for what reason: it is logged');
}
