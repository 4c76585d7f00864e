/**
 * The admin port of a gateway or store: what is served, and its bounds. Who may ask is admin-guard.ts; what
 * it answers is in gateway/admin/server.ts and kvs/daemon/admin-http.ts.
 *
 * Nothing is served but rows of the table that it is made with (admin-api/routes.ts): serve() takes the
 * shapes from there and gives its handler what they let through.
 */
import http from 'node:http';
import https from 'node:https';
import type { IncomingMessage, RequestListener } from 'node:http';
import { fastify } from 'fastify';
import type {
  FastifyInstance, FastifyReply, FastifyRequest, FastifyTypeProvider, RawServerDefault, RouteHandlerMethod,
} from 'fastify';
import type { z } from 'zod';
import { isGroupRoute } from '../../admin-api/group.js';
import type { MemberAnswer } from '../../admin-api/pages.js';
import type { AnswerOf, ParamsOf, Route } from '../../admin-api/route.js';
import { BrokenRule, readShape } from '../../base/json-shape.js';
import { invariant } from '../../base/invariant.js';
import type { EventLog } from '../ports.js';
import { AdminFiles } from './admin-files.js';
import type { AdminFileNames } from './admin-files.js';
import { GroupQuestions } from './admin-group.js';
import { addGuard, refuse } from './admin-guard.js';
import { isLoopback } from './own-host.js';
import { probeServer } from './probe-server.js';

interface Address {
  readonly host: string;
  /** 0 takes any. */
  readonly port: number;
}

export interface AdminOptions extends AdminFileNames {
  readonly listen: Address;
  /** Of a port for the probes alone. */
  readonly probes?: Address | undefined;
}

export interface RunningAdmin {
  readonly port: number;
  /** 0: there is none. */
  readonly probesPort: number;
  close(): Promise<void>;
}

/** What a process serves. */
export interface AdminTables {
  readonly probes: Readonly<Record<string, Route>>;
  /** Beside those. */
  readonly api: Readonly<Record<string, Route>>;
  addProbes(app: FastifyInstance): void;
  addApi(app: FastifyInstance): void;
  /** The gateway or store itself, and who belongs to it, as it knows them; left out while it knows nobody. */
  members?(): readonly MemberAnswer[];
  /** Answers at all addresses that no row has. */
  readonly notFound?: (reply: FastifyReply) => FastifyReply;
}

/** Scrapers and people; more are refused, so that none can take the descriptors of links and mail. */
const CONNECTIONS_MAX = 256;
/** A request that has not come whole by then is given up. */
const REQUEST_MS = 10_000;
const IDLE_MS = 30_000;
const KEEP_ALIVE_MS = 15_000;
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

interface AppOptions extends Pick<AdminTables, 'members' | 'notFound'> {
  readonly kind?: ServerKind;
}

/** It serves the rows of `table`, to whom the guard lets in. */
export function adminApp(
  table: Readonly<Record<string, Route>>, files: AdminFiles,
  { kind = ADMIN_KIND, notFound = nothingHere, members = () => [] }: AppOptions = {},
): FastifyInstance {
  const app = fastify({
    logger: false, bodyLimit: BODY_BYTES_MAX, forceCloseConnections: true, return503OnClosing: true,
    schemaController: { compilersFactory: { buildValidator: noSchemas, buildSerializer: noSchemas } },
    routerOptions: { maxParamLength: NAME_CHARACTERS_MAX },
    serverFactory: (handler) => kind.make(handler, files),
  });
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
  addGuard(app, files, kind.isForOthers, () => members().find(({ self }) => self)?.id ?? '');
  return app;
}

function nothingHere(reply: FastifyReply): FastifyReply {
  return refuse(reply, 404, 'there is nothing at this address');
}

/** How connections are taken, and from whom. */
interface ServerKind {
  readonly isForOthers: boolean;
  make(handler: RequestListener, files: AdminFiles): http.Server;
}

/** On loopback no other name for this machine is heard, as at the admin port. */
function probesKind(host: string): ServerKind {
  return { isForOthers: !isLoopback(host), make: probeServer };
}

const ADMIN_KIND: ServerKind = { isForOthers: false, make: adminServer };

function adminServer(handler: RequestListener, files: AdminFiles): http.Server {
  const times = { requestTimeout: REQUEST_MS, headersTimeout: REQUEST_MS, keepAliveTimeout: KEEP_ALIVE_MS };
  const { tls } = files;
  let server: http.Server;
  if (tls === undefined) server = http.createServer(times, handler);
  else {
    const secured = https.createServer({ ...times, ...tls.own, handshakeTimeout: REQUEST_MS }, handler);
    files.keep(secured);
    server = secured;
  }
  server.setTimeout(IDLE_MS);
  server.maxConnections = CONNECTIONS_MAX;
  return server;
}

/** Registers a row. The handler answers what the row says, or refuses. */
export function serve<R extends Route>(
  app: FastifyInstance, route: R,
  handler: (request: RequestOf<R>, reply: FastifyReply) => Answer<R> | Promise<Answer<R>>,
): void {
  const { method, path: url, query: querystring, body, bodyBytesMax: bodyLimit = BODY_BYTES_MAX } = route;
  app.route({
    method, url, bodyLimit, config: { route },
    // For load balancers; elsewhere it would do the work of an answer, or begin to follow, for nobody.
    exposeHeadRoute: method === 'GET' && route.role === 'probe',
    schema: {
      ...(querystring === undefined ? {} : { querystring }), ...(body === undefined ? {} : { body }),
    },
    // What fastify hands on was read by the shapes of the row.
    handler: handler as unknown as RouteHandlerMethod,
  });
}

/** Registers the rows that all gateways answer. */
function serveGroup(
  app: FastifyInstance, table: Readonly<Record<string, Route>>, questions: GroupQuestions,
): void {
  for (const route of Object.values(table)) {
    if (isGroupRoute(route)) serve(app, route, (request, reply) => questions.ask(route, request, reply));
  }
}

/** Listens on both ports. Rejects when one can't be had, or a file can't be used. */
export async function listenAs(
  options: AdminOptions, tables: AdminTables, log: EventLog,
): Promise<RunningAdmin> {
  const { probes, api, addProbes, addApi, members } = tables;
  const files = new AdminFiles(options, log);
  const app = adminApp({ ...probes, ...api }, files, tables);
  addProbes(app);
  addApi(app);
  if (members !== undefined) serveGroup(app, api, new GroupQuestions(app, files, members));
  const running = [app];
  const close = async (): Promise<void> => {
    files.close();
    await Promise.all(running.map((one) => one.close()));
  };
  try {
    const port = await listen(app, options.listen);
    if (options.probes === undefined) return { port, probesPort: 0, close };
    const probesApp = adminApp(probes, files, { ...tables, kind: probesKind(options.probes.host) });
    addProbes(probesApp);
    running.push(probesApp);
    return { port, probesPort: await listen(probesApp, options.probes), close };
  } catch (error) {
    await close();
    throw error;
  }
}

async function listen(app: FastifyInstance, { host, port }: Address): Promise<number> {
  await app.listen({ host, port, exclusive: true });
  const address = app.server.address();
  return address !== null && typeof address === 'object' ? address.port : port;
}
