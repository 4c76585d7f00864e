/**
 * The admin port of a gateway or store: what is served, and its bounds. Who may ask is admin-guard.ts; what
 * it answers is in gateway/admin/server.ts and kvs/daemon/admin-http.ts.
 *
 * Nothing is served but rows of the table that it is made with (admin-api/routes.ts): serve() takes the
 * shapes from there and gives its handler what they let through.
 */
import { fastify } from 'fastify';
import type {
  FastifyInstance, FastifyReply, FastifyRequest, FastifyTypeProvider, RawServerDefault, RouteHandlerMethod,
} from 'fastify';
import type { IncomingMessage } from 'node:http';
import type { z } from 'zod';
import type { AnswerOf, ParamsOf, Route } from '../../admin-api/route.js';
import { BrokenRule, readShape } from '../../base/json-shape.js';
import { invariant } from '../../base/invariant.js';
import { addGuard, refuse } from './admin-guard.js';

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
const BODY_BYTES_MAX = 64 * 1024;

/** What fastify says of a request: read by zod. */
interface ZodTypes extends FastifyTypeProvider {
  readonly validator: this['schema'] extends z.ZodType ? z.output<this['schema']> : undefined;
}

interface SchemaOf<R extends Route> {
  readonly querystring: R['query'];
  readonly body: R['body'];
}

export type RequestOf<R extends Route> =
  FastifyRequest<{ Params: ParamsOf<R> }, RawServerDefault, IncomingMessage, SchemaOf<R>, ZodTypes>;

type Answer<R extends Route> = AnswerOf<R> | FastifyReply;

/**
 * Answers are plain objects of the type of their shape, which JSON.stringify writes. Without this fastify
 * loads two compilers of JSON schemas when it is made, a twentieth of the start of a process.
 */
function noSchemas(): never {
  throw new Error('shapes of an admin port are read by zod');
}

/** It serves the rows of `table`. `notFound` answers at all addresses that no route has. */
export function adminApp(
  { token }: AdminOptions, table: Readonly<Record<string, Route>>,
  notFound = (reply: FastifyReply) => refuse(reply, 404, 'there is nothing at this address'),
): FastifyInstance {
  const app = fastify({
    logger: false, bodyLimit: BODY_BYTES_MAX, requestTimeout: 10_000, connectionTimeout: 30_000,
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
  app.setValidatorCompiler<z.ZodType>(({ schema }) => (given: unknown) => {
    const read = readShape(schema, given ?? {});
    return read instanceof BrokenRule ? { error: new Error(read.rule) } : { value: read };
  });
  const rows = new Set<Route | undefined>(Object.values(table));
  app.addHook('onRoute', ({ url, config }) => {
    invariant(rows.has(config?.route), `${url} is a row of the table of this server`);
  });
  addGuard(app, token);
  return app;
}

/** Registers a row. The handler answers what the row says, or refuses. */
export function serve<R extends Route>(
  app: FastifyInstance, route: R,
  handler: (request: RequestOf<R>, reply: FastifyReply) => Answer<R> | Promise<Answer<R>>,
): void {
  const { method, path: url, query: querystring, body, bodyBytesMax: bodyLimit = BODY_BYTES_MAX } = route;
  app.route({
    method, url, bodyLimit, config: { route },
    schema: {
      ...(querystring === undefined ? {} : { querystring }), ...(body === undefined ? {} : { body }),
    },
    // What fastify hands on was read by the shapes of the row.
    handler: handler as unknown as RouteHandlerMethod,
  });
}

export async function listenAs(app: FastifyInstance, options: AdminOptions): Promise<RunningAdmin> {
  await app.listen({ host: options.host, port: options.port, exclusive: true });
  const address = app.server.address();
  return {
    port: address !== null && typeof address === 'object' ? address.port : options.port,
    close: () => app.close(),
  };
}
