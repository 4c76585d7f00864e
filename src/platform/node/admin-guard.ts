/**
 * Who may ask what at an admin port, judged before a body is read; the same for all processes, by the row of
 * the table (admin-api/routes.ts) that was found, however the client spelled its address.
 *
 *   every request   one that is meant for another process is refused (admin-request.ts);
 *                   without tokens a Host that names another machine is refused (DNS rebinding, own-host.ts);
 *                   with tokens /api/ wants "Authorization: Bearer TOKEN": 401 without one, 403 when it has
 *                   not the role of the row
 *   POST            JSON, and no Origin but this port's own: a page in an operator's browser can post text
 *                   without asking first, but no JSON, and not without saying where it comes from
 *   POST, operate   who it is, before it is done: the token's name, or what the body says where there are
 *                   none
 */
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import type { Order } from '../../admin-api/orders.js';
import type { RefusalAnswer } from '../../admin-api/pages.js';
import type { Route } from '../../admin-api/route.js';
import { invariant } from '../../base/invariant.js';
import type { AdminFiles } from './admin-files.js';
import { EXPECTED_HEADER } from './admin-request.js';
import { ownerOf } from './admin-tokens.js';
import { namesThisMachine } from './own-host.js';

declare module 'fastify' {
  interface FastifyContextConfig {
    /** Its row; none of an address where there is nothing. */
    readonly route?: Route;
  }
  interface FastifyRequest {
    /** The name of its token; '' where none are asked for. */
    tokenName: string;
  }
}

type Hook = (request: FastifyRequest, reply: FastifyReply, next: () => void) => void;

const JSON_TYPE = /^application\/json\s*(;|$)/i;

const BEARER = /^Bearer +(\S+)$/i;

/**
 * `isForOthers`: nothing but probes is served, to anybody. `ownId`: of the gateway or store; '' while that is
 * not known.
 */
export function addGuard(
  app: FastifyInstance, files: AdminFiles, isForOthers: boolean, ownId: () => string,
): void {
  app.decorateRequest('tokenName', '');
  app.addHook('onRequest', expectedGuard(ownId));
  const guard = files.tokens === undefined ? refuseForeignHost : tokenGuard(files);
  if (!isForOthers) app.addHook('onRequest', guard);
  app.addHook('onRequest', refuseForeignChange);
  app.addHook('preHandler', refuseUnsaid);
}

export function refuse(reply: FastifyReply, code: number, error: string): FastifyReply {
  const answer: RefusalAnswer = { error };
  return reply.code(code).send(answer);
}

/** Who asks, as the log has it: where from, and by whose token. */
export function readerOf(
  { socket, tokenName }: Pick<FastifyRequest, 'socket' | 'tokenName'>,
): { readonly client: string; readonly client_port: number; readonly who: string } {
  const { remoteAddress: client = '', remotePort: port = 0 } = socket;
  return { client, client_port: port, who: tokenName };
}

/** Who ordered it, and why. */
export function orderOf({ body: { reason, who } }: { readonly body: Partial<Order> }): Order {
  invariant(reason !== undefined && who !== undefined, 'an order without who or why was refused');
  return { reason, who };
}

/** The token that is shown; undefined without one. */
export function tokenOf({ headers }: Pick<FastifyRequest, 'headers'>): string | undefined {
  return BEARER.exec(headers.authorization ?? '')?.[1];
}

/** An address in a register may be another process's by now. */
function expectedGuard(ownId: () => string): Hook {
  return ({ headers: { [EXPECTED_HEADER]: expected } }, reply, next) => {
    const id = expected === undefined ? '' : ownId();
    if (id === '' || expected === id) next();
    else void refuse(reply, 421, `this is ${id}`);
  };
}

function tokenGuard(files: AdminFiles): Hook {
  return (request, reply, next) => {
    const role = request.routeOptions.config.route?.role ?? 'probe';
    const presented = tokenOf(request);
    const owner = presented === undefined ? undefined : ownerOf(files.tokens ?? [], presented);
    if (owner !== undefined) request.tokenName = owner.name;
    if (role === 'probe' || owner?.roles.has(role) === true) next();
    else if (owner === undefined) {
      const why = presented === undefined ? 'a bearer token is needed' : 'this token is not known here';
      void refuse(reply.header('www-authenticate', 'Bearer'), 401, why);
    } else void refuse(reply, 403, `the token of ${owner.name} has not the role ${role}`);
  };
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
  if (method !== 'POST' || role !== 'operate') {
    next();
    return;
  }
  // Its shape has been read: an object.
  const body = request.body as { who?: string };
  if (request.tokenName !== '') body.who = request.tokenName;
  if (body.who === undefined) {
    void refuse(reply, 400, 'say who does this, and for what reason: it is logged');
  } else next();
}
