/**
 * The admin port of a gateway or store: who may ask it, and its bounds. What it answers is in
 * gateway/admin/server.ts and kvs/daemon/admin-http.ts.
 *
 * With a token, /api/ wants "Authorization: Bearer TOKEN"; /healthz, /readyz and /metrics are for scrapers
 * and load balancers, which have none. Without one, a Host header that names another machine is refused (DNS
 * rebinding, own-host.ts).
 */
import { createHash, timingSafeEqual } from 'node:crypto';
import { fastify } from 'fastify';
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import type { RefusalAnswer } from '../../admin-api/pages.js';
import { namesThisMachine } from './own-host.js';

export interface AdminOptions {
  readonly host: string;
  /** 0 takes any. */
  readonly port: number;
  readonly token?: string | undefined;
}

export interface RunningAdmin {
  readonly port: number;
  close(): Promise<void>;
}

/** Scrapers and people; more are refused, so that none can take the descriptors of links and mail. */
const CONNECTIONS_MAX = 256;
/** A queue is named by a domain, up to 255 characters; fastify's own limit is 100. */
const NAME_CHARACTERS_MAX = 255;

/**
 * Our routes judge by hand what they are asked, and answer with plain objects. Without this fastify loads two
 * compilers of schemas when it is made, a twentieth of the start of a process.
 */
function noSchemas(): never {
  throw new Error('no route of an admin port has a schema');
}

/** `notFound` answers at all addresses that no route has. */
export function adminApp(
  { token }: AdminOptions,
  notFound = (reply: FastifyReply) => refuse(reply, 404, 'there is nothing at this address'),
): FastifyInstance {
  const app = fastify({
    logger: false, bodyLimit: 64 * 1024, requestTimeout: 10_000, connectionTimeout: 30_000,
    keepAliveTimeout: 15_000, forceCloseConnections: true, return503OnClosing: true,
    schemaController: { compilersFactory: { buildValidator: noSchemas, buildSerializer: noSchemas } },
    routerOptions: { maxParamLength: NAME_CHARACTERS_MAX },
  });
  app.server.maxConnections = CONNECTIONS_MAX;
  app.setErrorHandler((error, _request, reply) => {
    const code = (error as { statusCode?: number }).statusCode ?? 500;
    return refuse(reply, code, code < 500 && error instanceof Error ? error.message : 'internal error');
  });
  app.setNotFoundHandler((_request, reply) => notFound(reply));
  app.addHook('onRequest', token === undefined || token === '' ? refuseForeignHost : tokenGuard(token));
  return app;
}

export async function listenAs(app: FastifyInstance, options: AdminOptions): Promise<RunningAdmin> {
  await app.listen({ host: options.host, port: options.port, exclusive: true });
  const address = app.server.address();
  return {
    port: address !== null && typeof address === 'object' ? address.port : options.port,
    close: () => app.close(),
  };
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

type Hook = (request: FastifyRequest, reply: FastifyReply, next: () => void) => void;

/** By the route that was found, however the client spelled its address. */
function tokenGuard(token: string): Hook {
  const expected = digest(`Bearer ${token}`);
  return (request, reply, next) => {
    const isApi = request.routeOptions.url?.startsWith('/api/') === true;
    if (!isApi || timingSafeEqual(digest(request.headers.authorization ?? ''), expected)) next();
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
