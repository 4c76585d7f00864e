/**
 * The gateway's admin HTTP: for scrapers, load balancers and the command line. It owns the listening port
 * and nothing else; all it shows comes from a GatewayView. Addresses, shapes and roles: admin-api/routes.ts;
 * who may ask: platform/node/admin-guard.ts.
 */
import type { FastifyInstance } from 'fastify';
import type { Registry } from 'prom-client';
import { refuse } from '../../platform/node/admin-guard.js';
import { listenAs, serve } from '../../platform/node/admin-server.js';
import { serveDocument } from '../../platform/node/openapi-files.js';
import type { AdminOptions, RunningAdmin } from '../../platform/node/admin-server.js';
import type { EventLog } from '../../platform/ports.js';
import type { ReloadControl } from '../../platform/reloads.js';
import { addExport } from './export-page.js';
import type { ExportSource } from './export-page.js';
import type { RegisterAnswer } from '../../admin-api/gateway-answers.js';
import type { ExplainAnswer, ExplainQuestion } from '../../admin-api/explain.js';
import type { LimitsAnswer } from '../../admin-api/limits.js';
import { gatewayRoutes as routes, groupRoutes, probeRoutes } from '../../admin-api/routes.js';
import { addExplain } from './explain-api.js';
import { addLimits } from './limits-api.js';
import { addLogged } from './logged-api.js';
import type { LogSearch } from '../look/node/log-search.js';
import { messageOf } from './message-id.js';
import type { QueueOrderControl } from './order-api.js';
import { addQueueOrders } from './order-api.js';
import type { RebalancePorts } from './rebalance-api.js';
import { addRebalance } from './rebalance-api.js';
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

export interface AdminPorts {
  readonly view: GatewayView;
  readonly registry: Registry;
  /** Who keeps the register. */
  members?(): Promise<RegisterAnswer['members']>;
  /** Content of queues and messages, for `queue export` and `queue cat`. */
  readonly exports?: ExportSource;
  /** For `queue ages` and `queue find`. */
  readonly walks?: Walks;
  /** For `find`, beside those. */
  readonly logSearch?: LogSearch;
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
  readonly limitsOf?: (queue: string, to: string) => LimitsAnswer;
  readonly explain?: (question: ExplainQuestion) => Promise<ExplainAnswer>;
  /** For `trace`. */
  readonly traces?: TracePorts;
  /** For `config reload` and `diff`. */
  readonly reloads?: ReloadControl | undefined;
  readonly log: EventLog;
}

/** Rejects when an address can't be bound, or a file can't be used. */
export async function startAdmin(options: AdminOptions, ports: AdminPorts): Promise<RunningAdmin> {
  return listenAs(options, {
    probes: probeRoutes, api: { ...routes, ...groupRoutes }, members: () => ports.view.group(),
    addProbes: (app) => { addProbes(app, ports); },
    addApi: (app) => {
      addLooks(app, ports);
      addControls(app, ports);
    },
  }, ports.log);
}

function addProbes(app: FastifyInstance, ports: AdminPorts): void {
  serve(app, probeRoutes.healthz, (_request, reply) => reply.type('text/plain').send('ok\n'));
  serve(app, probeRoutes.readyz, (_request, reply) => {
    const { ready, not_ready_reason: why } = ports.view.status();
    const text = ready ? 'ready' : why;
    return reply.type('text/plain').code(ready ? 200 : 503).send(`${text}\n`);
  });
  const { registry } = ports;
  serve(app, probeRoutes.metrics, async (_request, reply) =>
    reply.type(registry.contentType).send(await registry.metrics()));
}

function addLooks(
  api: FastifyInstance, { view, log, members, exports, walks, logSearch }: AdminPorts,
): void {
  serve(api, routes.status, () => view.status());
  serve(api, routes.mirrors, ({ query: { troubled, cursor, limit } }) =>
    (troubled === undefined ? view.mirrors(cursor, limit)
      : { rows: view.troubled(troubled), next_cursor: null }));
  serve(api, routes.table, ({ query: { cursor, limit } }) => view.mirrors(cursor, limit));
  serve(api, routes.queues, ({ query: { cursor, limit } }) => view.queues(cursor, limit));
  serveDocument(api, routes.document, 'gateway');
  serve(api, routes.group, () => ({ members: view.group() }));
  serve(api, routes.register, async () => ({ members: await members?.() ?? [] }));
  serve(api, routes.messages, ({ params: { name }, query: { class: queueClass, cursor, limit } }, reply) =>
    view.messages(name, queueClass, cursor, limit)
      ?? refuse(reply, 404, `there is no queue '${name}' of class '${queueClass}'`));
  serve(api, routes.message, ({ params: { id } }, reply) => {
    const messageId = messageOf(id, reply);
    return typeof messageId === 'number' ? view.message(messageId) : messageId;
  });
  if (exports !== undefined) addExport(api, exports, log);
  if (walks !== undefined) addWalks(api, walks);
  if (logSearch !== undefined) addLogged(api, logSearch);
}

function addControls(api: FastifyInstance, ports: AdminPorts): void {
  const { view, log } = ports;
  if (ports.rescue !== undefined) addRescue(api, { control: ports.rescue, view, log });
  if (ports.rebalance !== undefined) addRebalance(api, { ...ports.rebalance, log });
  if (ports.retire !== undefined) addRetire(api, ports.retire);
  if (ports.reloads !== undefined) addReload(api, ports.reloads, view);
  if (ports.stores !== undefined) addStores(api, ports.stores);
  if (ports.limitsOf !== undefined) addLimits(api, ports.limitsOf);
  if (ports.explain !== undefined) addExplain(api, ports.explain);
  if (ports.traces !== undefined) addTrace(api, ports.traces, log);
  if (ports.orders !== undefined) addQueueOrders(api, ports.orders);
  if (ports.rules !== undefined) addQueueRules(api, ports.rules);
}
