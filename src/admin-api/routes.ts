/**
 * All addresses of the admin HTTP, each once: method, path, role, shapes. What is not here can't be served
 * (platform/node/admin-server.ts). Bodies of orders say why, and who (orders.ts).
 */
import { z } from 'zod';
import { explainAnswer, explainQuestion } from './explain.js';
import { messagePage, queuePage, registerAnswer, statusAnswer, tablePage } from './gateway-answers.js';
import { groupRoutesOf } from './group.js';
import { limitsAnswer, limitsQuestion } from './limits.js';
import { loggedAnswer, loggedQuestion } from './logged.js';
import {
  agesAnswer, agesQuestion, exportPart, findAnswer, findQuestion, shownMessageAnswer,
} from './look.js';
import {
  configDiffAnswer, drainAnswer, drainOrder, ordered, rebalanceAnswer, reloadAnswer, rescueAnswer,
  rescueOrder, resyncAnswer, resyncOrder, retireAnswer, retireOrder, storeConfigDiffAnswer,
  storeReloadAnswer,
} from './orders.js';
import { PAGE_ROWS_MAX, groupAnswer, pageCursor, rowCount } from './pages.js';
import {
  goOrder, leaveOrder, leftOrderAnswer, leftOrderIdAnswer, queueOrder, queueOrderAnswer, queueOrdersAnswer,
} from './queue-orders.js';
import { cancelRule, newQueueRule, queueRulesAnswer, ruleIdAnswer } from './queue-rules.js';
import type { Route } from './route.js';
import { inboxAnswer, tallyAnswer } from './sink-answers.js';
import { storePartitionPage, storeStatusAnswer } from './store-answers.js';
import { TRACE_SECONDS_DEFAULT, TRACE_SECONDS_MAX } from './trace.js';

/** Names of the partitions of 500 gateways, of some 30 characters each: more than others post. */
const LEAVE_BYTES_MAX = 256 * 1024;
const TABLE_ROWS = 100;
/** A gateway walks through millions of messages in a turn's share at a time. */
const WALK_MS = 30_000;
/** A page of entries has their content, and may be one message of the largest size. */
const ENTRY_PAGE_MS = 30_000;
/** Modules of hooks are loaded, addresses tried. */
const RELOAD_MS = 60_000;
/** The register keeps what has ended. */
const RESCUE_MS = 10_000;
/** A register that falls silent is given up after 5 s (register/client): then it is said what is known. */
const REGISTER_MS = 8_000;
/** A disk that hangs is given up after 3 s (gateway/admin/drained-stores.ts), and that is said. */
const DISK_MS = 5_000;

function pages<Rest extends z.core.$ZodLooseShape>(rowsDefault: number, rest: Rest) {
  return z.object({ limit: rowCount.default(rowsDefault), cursor: pageCursor.default(''), ...rest });
}

const queueClass = z.string('class is given once').default('mail');
const position = z.coerce.number<number>().int().min(0, 'it is the position that the page before gave');
const justOrder = ordered({});
const traceSeconds = z.coerce.number<number>('seconds is a whole number').int('seconds is a whole number')
  .min(1).max(TRACE_SECONDS_MAX).default(TRACE_SECONDS_DEFAULT);
/** Of a host that is traced, and of a queue. */
const NAME_CHARACTERS_MAX = 1_024;

/** Of every process; without a token. */
export const probeRoutes = {
  healthz: {
    method: 'GET', path: '/healthz', role: 'probe', answer: 'text', summary: '200 while the process answers',
  },
  readyz: {
    method: 'GET', path: '/readyz', role: 'probe', answer: 'text',
    summary: '200 when it takes new mail, or a store changes; else 503 and why',
  },
  metrics: { method: 'GET', path: '/metrics', role: 'probe', answer: 'text', summary: 'Prometheus text' },
} as const satisfies Record<string, Route>;

/** Of gateways and stores alike. */
const sharedRoutes = {
  group: {
    method: 'GET', path: '/api/v1/group', role: 'read', answer: groupAnswer,
    summary: 'who belongs together, and where their admin HTTP is',
  },
  document: {
    method: 'GET', path: '/api/v1/openapi.json', role: 'read', answer: 'document',
    summary: 'this table, as OpenAPI has it',
  },
} as const satisfies Record<string, Route>;

const lookRoutes = {
  status: {
    method: 'GET', path: '/api/v1/status', role: 'read', group: 'asked',
    answer: statusAnswer, summary: 'how it is',
  },
  mirrors: {
    method: 'GET', path: '/api/v1/mirrors', role: 'read', group: 'asked', answer: tablePage,
    query: pages(TABLE_ROWS, { troubled: rowCount.exactOptional() }),
    summary: 'management table, whole partitions; troubled: those that need a look first',
  },
  table: {
    method: 'GET', path: '/api/v1/table', role: 'read', answer: tablePage, query: pages(PAGE_ROWS_MAX, {}),
    summary: 'management table, in larger pages',
  },
  queues: {
    method: 'GET', path: '/api/v1/queues', role: 'read', group: 'asked', answer: queuePage,
    query: pages(PAGE_ROWS_MAX, {}), summary: 'one row a queue',
  },
  messages: {
    method: 'GET', path: '/api/v1/queues/:name/messages', role: 'read', answer: messagePage,
    query: pages(TABLE_ROWS, { class: queueClass }), summary: 'messages of a queue, in its order',
  },
  message: {
    method: 'GET', path: '/api/v1/messages/:id', role: 'read', group: 'asked', answer: shownMessageAnswer,
    summary: 'one message, wherever it is here',
  },
  register: {
    method: 'GET', path: '/api/v1/register', role: 'read', answer: registerAnswer,
    summary: 'endpoints of etcd, each asked now',
  },
  ages: {
    method: 'POST', path: '/api/v1/ages', role: 'read', answerMs: WALK_MS, group: 'asked',
    body: agesQuestion, answer: agesAnswer, summary: 'how old the mail is, by destination',
  },
  find: {
    method: 'POST', path: '/api/v1/find', role: 'read', answerMs: WALK_MS, group: 'asked',
    body: findQuestion, answer: findAnswer, summary: 'the first messages that a selector means',
  },
  logged: {
    method: 'POST', path: '/api/v1/logged', role: 'read', answerMs: WALK_MS, group: 'asked',
    body: loggedQuestion, answer: loggedAnswer,
    summary: 'what the log of a gateway tells of messages, those that have left among them',
  },
  limits: {
    method: 'GET', path: '/api/v1/limits', role: 'read', group: 'asked', answer: limitsAnswer,
    query: limitsQuestion, summary: 'what limits mail of a queue now, what binds first',
  },
  explain: {
    method: 'GET', path: '/api/v1/explain', role: 'read', answerMs: WALK_MS, group: 'asked',
    query: explainQuestion, answer: explainAnswer,
    summary: 'where mail to an address, a domain or a queue would go, by what is in force',
  },
  traceClients: {
    method: 'GET', path: '/api/v1/trace/clients', role: 'read', answer: 'lines',
    query: z.object({ network: z.string('network is an address or a network'), seconds: traceSeconds }),
    summary: 'what clients and we say on SMTP, live',
  },
  traceServers: {
    method: 'GET', path: '/api/v1/trace/servers', role: 'read', answer: 'lines',
    query: z.object({
      host: z.string('host is a name or *').min(1, 'host is a name or *').max(NAME_CHARACTERS_MAX),
      seconds: traceSeconds,
    }),
    summary: 'what we and next hops say on SMTP, live',
  },
  exportQueue: {
    method: 'GET', path: '/api/v1/queues/:name/export', role: 'content', answerMs: ENTRY_PAGE_MS,
    answer: 'entries', query: z.object({ class: queueClass, cursor: pageCursor.default('') }),
    summary: 'a page of a queue, with content',
  },
  exportMessage: {
    method: 'GET', path: '/api/v1/messages/:id/export', role: 'content', answerMs: ENTRY_PAGE_MS,
    answer: 'entries', query: z.object({ part: exportPart.default('all') }),
    summary: 'one message, with content, or its header',
  },
} as const satisfies Record<string, Route>;

const queueOrderRoutes = {
  beginOrder: {
    method: 'POST', path: '/api/v1/orders', role: 'operate', group: 'named', body: ordered(queueOrder.shape),
    answer: queueOrderAnswer, summary: 'an order over all the messages of a selector: it begins to look',
  },
  orders: {
    method: 'GET', path: '/api/v1/orders', role: 'read', group: 'asked', answer: queueOrdersAnswer,
    summary: 'orders of the last minutes, and those that are left in the register',
  },
  order: {
    method: 'GET', path: '/api/v1/orders/:id', role: 'read', group: 'asked', answer: queueOrderAnswer,
    summary: 'how far an order is',
  },
  goOrder: {
    method: 'POST', path: '/api/v1/orders/:id/go', role: 'operate', group: 'asked',
    body: ordered(goOrder.shape), answer: queueOrderAnswer, summary: 'what it found is dealt with',
  },
  cancelOrder: {
    method: 'POST', path: '/api/v1/orders/:id/cancel', role: 'operate', group: 'asked', body: justOrder,
    answer: queueOrderAnswer, summary: 'nothing more is done by it',
  },
  leaveOrder: {
    method: 'POST', path: '/api/v1/orders/:id/leave', role: 'operate', answerMs: REGISTER_MS,
    body: ordered(leaveOrder.shape), bodyBytesMax: LEAVE_BYTES_MAX, answer: leftOrderAnswer,
    summary: 'it is left in the register for mail that nobody had who was asked',
  },
  withdrawOrder: {
    method: 'POST', path: '/api/v1/orders/:id/withdraw', role: 'operate', answerMs: REGISTER_MS,
    body: justOrder, answer: leftOrderIdAnswer, summary: 'it is deleted there',
  },
  rules: {
    method: 'GET', path: '/api/v1/rules', role: 'read', group: 'asked', answer: queueRulesAnswer,
    summary: 'standing rules that this gateway obeys',
  },
  addRule: {
    method: 'POST', path: '/api/v1/rules', role: 'operate', answerMs: REGISTER_MS,
    body: ordered(newQueueRule.shape), answer: ruleIdAnswer,
    summary: 'a standing rule, written into the register',
  },
  cancelRule: {
    method: 'POST', path: '/api/v1/rules/:id/cancel', role: 'operate', answerMs: REGISTER_MS,
    body: ordered(cancelRule.shape), answer: ruleIdAnswer, summary: 'it is deleted there',
  },
} as const satisfies Record<string, Route>;

/** Of gateways and stores alike, but for who answers. */
const reloadRow = {
  method: 'POST', path: '/api/v1/config/reload', role: 'operate', answerMs: RELOAD_MS, body: justOrder,
  summary: 'the configuration is read again, and in force when that is answered',
} as const;
const configDiffRow = {
  method: 'GET', path: '/api/v1/config/diff', role: 'read', answerMs: RELOAD_MS,
  summary: 'what that would do',
} as const;

const placeRoutes = {
  drain: {
    method: 'GET', path: '/api/v1/stores/:id/drain', role: 'read', group: 'asked', answer: drainAnswer,
    summary: 'what this gateway still has at a store',
  },
  orderDrain: {
    method: 'POST', path: '/api/v1/stores/:id/drain', role: 'operate', answerMs: DISK_MS, group: 'asked',
    body: drainOrder, answer: drainAnswer,
    summary: 'all its partitions move away from a store, or it is used again',
  },
  resync: {
    method: 'POST', path: '/api/v1/partitions/:name/resync', role: 'operate', body: resyncOrder,
    answer: resyncAnswer, summary: 'one copy is emptied and filled again',
  },
  rescue: {
    method: 'POST', path: '/api/v1/rescue', role: 'operate', answerMs: RESCUE_MS, group: 'asked',
    body: rescueOrder, answer: rescueAnswer,
    summary: 'partitions go on without lost copies: mail may be lost',
  },
  rebalance: {
    method: 'GET', path: '/api/v1/rebalance', role: 'read', group: 'asked', answer: rebalanceAnswer,
    summary: 'copies that move, and would',
  },
  orderRebalance: {
    method: 'POST', path: '/api/v1/rebalance', role: 'operate', group: 'asked',
    body: justOrder, answer: rebalanceAnswer, summary: 'copies are spread evenly over the stores',
  },
  retire: {
    method: 'GET', path: '/api/v1/gateways/:id/retire', role: 'read', group: 'asked', answer: retireAnswer,
    summary: 'how far a gateway is retired',
  },
  orderRetire: {
    method: 'POST', path: '/api/v1/gateways/:id/retire', role: 'operate', answerMs: REGISTER_MS,
    body: retireOrder, answer: retireAnswer,
    summary: 'a gateway is taken out for good, or that is taken back',
  },
  reload: { ...reloadRow, group: 'asked', answer: reloadAnswer },
  configDiff: { ...configDiffRow, group: 'asked', answer: configDiffAnswer },
} as const satisfies Record<string, Route>;

/** Of a gateway, beside the probes. */
export const gatewayRoutes = {
  ...sharedRoutes, ...lookRoutes, ...queueOrderRoutes, ...placeRoutes,
} as const satisfies Record<string, Route>;

/** Beside those: what one gateway asks all. */
export const groupRoutes = groupRoutesOf(gatewayRoutes);

/** Of a store, beside the probes. */
export const storeRoutes = {
  ...sharedRoutes,
  status: {
    method: 'GET', path: '/api/v1/status', role: 'read', answer: storeStatusAnswer, summary: 'how it is',
  },
  partitions: {
    method: 'GET', path: '/api/v1/partitions', role: 'read', answer: storePartitionPage,
    query: pages(PAGE_ROWS_MAX, {}), summary: 'copies that it holds',
  },
  exportPartition: {
    method: 'GET', path: '/api/v1/export', role: 'content', answerMs: ENTRY_PAGE_MS, answer: 'entries',
    query: z.object({
      partition: z.string('partition is given once').default(''), after: position.default(0),
    }),
    summary: 'a page of one partition, with content',
  },
  reload: { ...reloadRow, answer: storeReloadAnswer },
  configDiff: { ...configDiffRow, answer: storeConfigDiffAnswer },
} as const satisfies Record<string, Route>;

/** Of a sink that keeps an inbox. */
export const sinkRoutes = {
  inbox: {
    method: 'GET', path: '/inbox', role: 'probe', answer: inboxAnswer,
    query: z.object({ limit: rowCount.exactOptional(), after: position.exactOptional() }),
    summary: 'messages that arrived',
  },
  inboxContent: {
    method: 'GET', path: '/inbox/:n', role: 'probe', answer: 'text', summary: 'the content of one',
  },
  tally: {
    method: 'GET', path: '/tally', role: 'probe', answer: tallyAnswer,
    summary: 'what of the marked messages has come',
  },
} as const satisfies Record<string, Route>;
