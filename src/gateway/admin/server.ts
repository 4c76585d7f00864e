/**
 * The gateway's admin HTTP: for scrapers, load balancers and the command line. It owns the listening port
 * and nothing else; all it shows comes from a GatewayView.
 *
 *   GET /healthz                             200 while the event loop turns
 *   GET /readyz                              200 when new mail is taken, else 503 with the reason
 *   GET /metrics                             Prometheus text
 *   GET /api/v1/status                       one object
 *   GET /api/v1/mirrors                      management table, rows of whole partitions; ?limit=100&cursor=…,
 *                                            or ?troubled=20: the partitions that need a look first
 *   GET /api/v1/table                        the same, in pages of 1,000 partitions
 *   GET /api/v1/queues                       one row a queue; ?limit=1000&cursor=…
 *   GET /api/v1/register                     each endpoint of etcd, asked now: for `host drain`
 *   GET /api/v1/group                        gateways and stores that belong together, where their admin is
 *   GET, POST /api/v1/stores/ID/drain, POST /api/v1/partitions/NAME/resync   (store-api.ts)
 *   GET /api/v1/messages/ID                  one message, wherever it is here (admin-api/look.ts)
 *   GET, POST /api/v1/orders, …/ID, …/ID/go, …/ID/cancel  (order-api.ts)
 *   GET, POST /api/v1/rules, POST …/ID/cancel  (rule-api.ts)
 *   POST /api/v1/ages, /api/v1/find          what is asked of all the mail here (walk-api.ts)
 *   GET /api/v1/trace/clients, /trace/servers  SMTP sessions live (trace-api.ts)
 *   GET /api/v1/limits                       what limits mail of a queue now (limits-api.ts)
 *   POST /api/v1/rescue                      partitions go on without lost copies (rescue-api.ts)
 *   GET, POST /api/v1/rebalance              copies are spread evenly over the stores (rebalance-api.ts)
 *   POST /api/v1/config/reload, GET …/diff   the configuration is read again (reload-api.ts)
 *   GET, POST /api/v1/gateways/ID/retire     a gateway that is taken out for good (retire-api.ts)
 *   GET /api/v1/queues/NAME/messages         rows in queue order; ?class=mail&limit=100&cursor=…
 *   GET /api/v1/queues/NAME/export           content too; ?class=mail&cursor=… (export-page.ts)
 *   GET /api/v1/messages/ID/export           that of one message (export-page.ts)
 *
 * Who may ask: platform/node/admin-server.ts.
 */
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import type { Registry } from 'prom-client';
import { adminApp, listenAs, refuse } from '../../platform/node/admin-server.js';
import type { AdminOptions, RunningAdmin } from '../../platform/node/admin-server.js';
import type { EventLog } from '../../platform/ports.js';
import { addExport } from './export-page.js';
import type { ExportSource } from './export-page.js';
import type {
  MessagePageAnswer, QueuePageAnswer, RegisterAnswer, TablePageAnswer,
} from '../../admin-api/gateway-answers.js';
import type { LimitsAnswer } from '../../admin-api/limits.js';
import type { ShownMessageAnswer } from '../../admin-api/look.js';
import { CURSOR_CHARACTERS_MAX, PAGE_ROWS_MAX } from '../../admin-api/pages.js';
import type { GroupAnswer } from '../../admin-api/pages.js';
import { addLimits } from './limits-api.js';
import { messageOf } from './orders.js';
import type { QueueOrderControl } from './order-api.js';
import { addQueueOrders } from './order-api.js';
import type { RebalancePorts } from './rebalance-api.js';
import { addRebalance } from './rebalance-api.js';
import type { ReloadControl } from '../gateway-options.js';
import { addReload } from './reload-api.js';
import type { RescueControl } from './rescue-api.js';
import { addRescue } from './rescue-api.js';
import type { RetireControl } from './retire-api.js';
import { addRetire } from './retire-api.js';
import type { QueueRuleControl } from './rule-api.js';
import { addQueueRules } from './rule-api.js';
import type { StoreControl } from './store-api.js';
import { addStores } from './store-api.js';
import type { TracePorts } from './trace-api.js';
import { addTrace } from './trace-api.js';
import type { GatewayView } from './view.js';
import type { Walks } from './walk-api.js';
import { addWalks } from './walk-api.js';

const PAGE_DEFAULT = 100;

export interface AdminPorts {
  readonly view: GatewayView;
  readonly registry: Registry;
  /** Who keeps the register. */
  members?(): Promise<RegisterAnswer['members']>;
  /** Content of queues and messages, for `queue export` and `queue cat`. */
  readonly exports?: ExportSource;
  /** For `queue ages` and `queue find`. */
  readonly walks?: Walks;
  /** For `rescue --give-up`. */
  readonly rescue?: RescueControl;
  /** For `store drain` and `resync`. */
  readonly stores?: StoreControl;
  /** For orders that many messages are meant by. */
  readonly orders?: QueueOrderControl;
  /** For standing rules over queues. */
  readonly rules?: QueueRuleControl;
  /** For `rebalance`. */
  readonly rebalance?: Omit<RebalancePorts, 'log'>;
  /** For `gateway retire`. */
  readonly retire?: RetireControl;
  /** For `explain`. */
  readonly limitsOf?: (queue: string) => LimitsAnswer;
  /** For `trace`. */
  readonly traces?: TracePorts;
  /** For `config reload` and `diff`. */
  readonly reloads?: ReloadControl | undefined;
  readonly log: EventLog;
}

/** Rejects when the address can't be bound. */
export async function startAdmin(options: AdminOptions, ports: AdminPorts): Promise<RunningAdmin> {
  const app = adminApp(options);
  addProbes(app, ports);
  addApi(app, ports);
  return listenAs(app, options);
}

function addProbes(app: FastifyInstance, ports: AdminPorts): void {
  app.get('/healthz', (_request, reply) => reply.type('text/plain').send('ok\n'));
  app.get('/readyz', (_request, reply) => {
    const { ready, not_ready_reason: why } = ports.view.status();
    const text = ready ? 'ready' : why;
    return reply.type('text/plain').code(ready ? 200 : 503).send(`${text}\n`);
  });
  const { registry } = ports;
  app.get('/metrics', async (_request, reply) =>
    reply.type(registry.contentType).send(await registry.metrics()));
}

function addApi(app: FastifyInstance, ports: AdminPorts): void {
  void app.register((api, _options, done) => {
    api.get('/status', () => ports.view.status());
    api.get('/mirrors', (request, reply) => listMirrors(request, reply, ports.view, PAGE_DEFAULT));
    api.get('/table', (request, reply) => listMirrors(request, reply, ports.view, PAGE_ROWS_MAX));
    api.get('/queues', (request, reply) => listQueues(request, reply, ports.view));
    api.get('/group', (): GroupAnswer => ({ members: ports.view.group() }));
    api.get('/register', async (): Promise<RegisterAnswer> => ({ members: await ports.members?.() ?? [] }));
    api.get('/queues/:name/messages', (request, reply) => listMessages(request, reply, ports.view));
    const { view, log } = ports;
    if (ports.exports !== undefined) addExport(api, ports.exports, log);
    if (ports.walks !== undefined) addWalks(api, ports.walks);
    api.get('/messages/:id', (request, reply) => showMessage(request, reply, view));
    if (ports.rescue !== undefined) addRescue(api, { control: ports.rescue, view, log });
    if (ports.rebalance !== undefined) addRebalance(api, { ...ports.rebalance, log: ports.log });
    if (ports.retire !== undefined) addRetire(api, ports.retire);
    if (ports.reloads !== undefined) addReload(api, ports.reloads, view);
    if (ports.stores !== undefined) addStores(api, ports.stores);
    if (ports.limitsOf !== undefined) addLimits(api, ports.limitsOf);
    if (ports.traces !== undefined) addTrace(api, ports.traces, log);
    if (ports.orders !== undefined) addQueueOrders(api, ports.orders);
    if (ports.rules !== undefined) addQueueRules(api, ports.rules);
    done();
  }, { prefix: '/api/v1' });
}

interface PageAsked {
  readonly limit: number;
  readonly cursor: string;
}

const ROW_COUNT = `a whole number from 1 to ${String(PAGE_ROWS_MAX)}`;

function isRowCount(count: number): boolean {
  return Number.isInteger(count) && count >= 1 && count <= PAGE_ROWS_MAX;
}

/** What ?limit= and ?cursor= ask for, or what is wrong with them. */
function pageAsked(query: Readonly<Record<string, unknown>>, limitDefault: number): PageAsked | string {
  const limit = query['limit'] === undefined ? limitDefault : Number(query['limit']);
  const cursor = query['cursor'] ?? '';
  if (!isRowCount(limit)) return `limit is ${ROW_COUNT}`;
  const isCursor = typeof cursor === 'string' && cursor.length <= CURSOR_CHARACTERS_MAX;
  return isCursor ? { limit, cursor } : 'cursor is what the page before gave';
}

function listMirrors(
  request: FastifyRequest, reply: FastifyReply, view: GatewayView, limitDefault: number,
): TablePageAnswer | FastifyReply {
  const query = request.query as Readonly<Record<string, unknown>>;
  if (query['troubled'] !== undefined) {
    const most = Number(query['troubled']);
    if (!isRowCount(most)) return refuse(reply, 400, `troubled is ${ROW_COUNT}`);
    return { rows: view.troubled(most), next_cursor: null };
  }
  const asked = pageAsked(query, limitDefault);
  if (typeof asked === 'string') return refuse(reply, 400, asked);
  return view.mirrors(asked.cursor, asked.limit);
}

function listQueues(
  request: FastifyRequest, reply: FastifyReply, view: GatewayView,
): QueuePageAnswer | FastifyReply {
  const asked = pageAsked(request.query as Readonly<Record<string, unknown>>, PAGE_ROWS_MAX);
  if (typeof asked === 'string') return refuse(reply, 400, asked);
  return view.queues(asked.cursor, asked.limit);
}

function listMessages(
  request: FastifyRequest, reply: FastifyReply, view: GatewayView,
): MessagePageAnswer | FastifyReply {
  const { name } = request.params as { name: string };
  const query = request.query as Readonly<Record<string, unknown>>;
  const asked = pageAsked(query, PAGE_DEFAULT);
  const queueClass = query['class'] ?? 'mail';
  if (typeof asked === 'string') return refuse(reply, 400, asked);
  if (typeof queueClass !== 'string') return refuse(reply, 400, 'class is given once');
  const page = view.messages(name, queueClass, asked.cursor, asked.limit);
  return page ?? refuse(reply, 404, `there is no queue '${name}' of class '${queueClass}'`);
}

function showMessage(
  request: FastifyRequest, reply: FastifyReply, view: GatewayView,
): ShownMessageAnswer | FastifyReply {
  const messageId = messageOf(request, reply);
  return typeof messageId === 'number' ? view.message(messageId) : messageId;
}
