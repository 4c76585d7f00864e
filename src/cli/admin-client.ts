/**
 * Speaks to the admin HTTP of one gateway or store for the verbs that look inside, and for `up`. What is
 * asked and answered is in admin-api; here, and nowhere else, an answer of a stranger is read: bounded in
 * bytes and time, of the shape that was asked for, and no longer than a listing can be. Which processes
 * belong together is group.ts.
 */
import type { z } from 'zod';
import type {
  MessageAnswer, QueueAnswer, RegisterAnswer, StatusAnswer, TableRowAnswer,
} from '../admin-api/gateway-answers.js';
import type {
  AgesAnswer, AgesQuestion, ExportPart, FindAnswer, FindQuestion, ShownMessageAnswer,
} from '../admin-api/look.js';
import type {
  ConfigDiffAnswer, DrainAnswer, DrainOrder, Order, RebalanceAnswer, ReloadAnswer,
  RescueAnswer, RescueOrder, ResyncAnswer, ResyncOrder, RetireAnswer, RetireOrder, StoreConfigDiffAnswer,
  StoreReloadAnswer,
} from '../admin-api/orders.js';
import { PAGE_ROWS_MAX, refusalAnswer } from '../admin-api/pages.js';
import type { MemberAnswer, Page } from '../admin-api/pages.js';
import type {
  GoOrder, LeaveOrder, LeftOrderAnswer, LeftOrderIdAnswer, QueueOrder, QueueOrderAnswer, QueueOrdersAnswer,
} from '../admin-api/queue-orders.js';
import type { CancelRule, NewQueueRule, QueueRulesAnswer, RuleIdAnswer } from '../admin-api/queue-rules.js';
import type { ExplainAnswer, ExplainQuestion } from '../admin-api/explain.js';
import type { LimitsAnswer, LimitsQuestion } from '../admin-api/limits.js';
import type { LoggedAnswer, LoggedQuestion } from '../admin-api/logged.js';
import { addressOf } from '../admin-api/route.js';
import type { AskedLoosely, BodyOf, ParamsOf, QueryOf, Route } from '../admin-api/route.js';
import { gatewayRoutes, sinkRoutes, storeRoutes } from '../admin-api/routes.js';
import type { InboxAnswer, TallyAnswer } from '../admin-api/sink-answers.js';
import type { StorePartitionAnswer, StoreStatusAnswer } from '../admin-api/store-answers.js';
import { traceAnswer } from '../admin-api/trace.js';
import type { TraceAnswer } from '../admin-api/trace.js';
import { BrokenRule, readJson } from '../base/json-shape.js';
import { STRANGER, ask, followLines, whyNoAnswer } from '../platform/node/admin-request.js';
import type { Access, AdminResponse } from '../platform/node/admin-request.js';
import { PAGE_NEXT, decodeEntryPage } from '../protocol/entry-page.js';
import type { EntryPage } from '../protocol/entry-page.js';
import { CliError } from './context.js';

const TIMEOUT_MS = 5_000;
/** No page is 32 MiB; what is, is no Twinpost. */
const ANSWER_BYTES_MAX = 32 * 1024 * 1024;
const ENTRY_PAGE_BYTES_MAX = 128 * 1024 * 1024;
/** Ten million rows: a listing that goes on behind that never ends. */
const PAGES_MAX = 10_000;

/** The option that names an admin address; a few verbs have another one. */
const FROM = '--from';

function another(option: string, kind = 'gateway or store'): string {
  return `${option} ADDRESS names another ${kind}`;
}

/** Nobody answered, or not as a Twinpost does. */
export class NoAnswer extends CliError {
  readonly why: string;
  /** What HTTP said, when it refused; else 0. */
  readonly code: number;
  /** Of one that refused: in its own words. */
  readonly refusal: string;

  /** `other`: what to do where nobody may listen at this address; '': it is known that somebody does. */
  constructor(url: string, why: string, code = 0, refusal = why, other = another(FROM)) {
    super(code === 0 && other !== '' ? `no answer from ${url}: ${why}; is it running? ${other}`
      : `${url}: ${why}`);
    this.why = why;
    this.code = code;
    this.refusal = refusal;
  }
}

type JsonRoute = Route & { readonly answer: z.ZodType };

/** What a row of the table wants of who asks; what it may be asked without may be left out. */
type Asked<R extends Route> =
  ([keyof ParamsOf<R>] extends [never] ? object : { readonly params: ParamsOf<R> })
  & (BodyOf<R> extends undefined ? object : { readonly body: BodyOf<R> })
  & (QueryOf<R> extends undefined ? object : { readonly query?: QueryOf<R> })
  & AskedLoosely;

/** A page of entries with content, and where the next begins. */
export interface FoundEntries {
  readonly page: EntryPage;
  readonly next: string | undefined;
}

export class AdminClient {
  readonly url: string;
  readonly #access: Access;
  readonly #timeoutMs: number;
  /** What to do where nobody may listen at the address. */
  readonly #other: string;

  /** `option`: by which another address is named; `kind`: of what. */
  constructor(url: string, access: Access, timeoutMs = TIMEOUT_MS, option = FROM, kind?: string) {
    this.url = url.replace(/\/+$/, '');
    this.#other = another(option, kind);
    this.#access = access;
    this.#timeoutMs = timeoutMs;
  }

  async group(): Promise<readonly MemberAnswer[]> {
    return (await this.#ask(gatewayRoutes.group, {})).members;
  }

  /** Of a gateway. */
  status(): Promise<StatusAnswer> {
    return this.#ask(gatewayRoutes.status, {});
  }

  /** Of a gateway: who of the register answers it now. */
  async register(): Promise<RegisterAnswer['members']> {
    return (await this.#ask(gatewayRoutes.register, {})).members;
  }

  /** Of a store. */
  storeStatus(): Promise<StoreStatusAnswer> {
    return this.#ask(storeRoutes.status, {});
  }

  /** The management table, whole partitions. */
  mirrors(cursor: string): Promise<Page<TableRowAnswer>> {
    return this.#ask(gatewayRoutes.mirrors, { query: { cursor, limit: PAGE_ROWS_MAX } });
  }

  async troubled(most: number): Promise<readonly TableRowAnswer[]> {
    return (await this.#ask(gatewayRoutes.mirrors, { query: { troubled: most } })).rows;
  }

  queues(cursor: string): Promise<Page<QueueAnswer>> {
    return this.#ask(gatewayRoutes.queues, { query: { cursor, limit: PAGE_ROWS_MAX } });
  }

  storePartitions(cursor: string): Promise<Page<StorePartitionAnswer>> {
    return this.#ask(storeRoutes.partitions, { query: { cursor, limit: PAGE_ROWS_MAX } });
  }

  messages(name: string, queueClass: string, cursor: string, limit: number): Promise<Page<MessageAnswer>> {
    return this.#ask(
      gatewayRoutes.messages, { params: { name }, query: { class: queueClass, cursor, limit } },
    );
  }

  /** Of a sink: the last messages that it took. */
  inbox(limit: number): Promise<InboxAnswer> {
    return this.#ask(sinkRoutes.inbox, { query: { limit } });
  }

  /** Of a sink: the content of one; undefined when it has none such. */
  async inboxContent(n: number): Promise<Uint8Array | undefined> {
    const asked = { params: { n: String(n) } };
    const { code, body } = await this.#send(sinkRoutes.inboxContent, asked, ANSWER_BYTES_MAX);
    return code === 200 ? body : undefined;
  }

  /** Of a sink: what of the marked messages has come. */
  tally(): Promise<TallyAnswer> {
    return this.#ask(sinkRoutes.tally, {});
  }

  /** Of a gateway: what limits mail of a queue now. */
  limits(question: LimitsQuestion): Promise<LimitsAnswer> {
    return this.#ask(gatewayRoutes.limits, { query: question });
  }

  /** Of a gateway: what it tells line after line, until it ends or `signal` is given. */
  async follow<R extends Route>(
    route: R, asked: Asked<R>, signal: AbortSignal, tell: (line: TraceAnswer) => void,
  ): Promise<void> {
    const heard = (line: string): void => {
      const answer = readJson(traceAnswer, line);
      if (answer instanceof BrokenRule) throw this.stranger();
      tell(answer);
    };
    const url = this.url + addressOf(route, asked);
    let response: AdminResponse | undefined;
    try {
      response = await followLines({ url, access: this.#access, signal }, heard);
    } catch (error) {
      if (error instanceof NoAnswer) throw error;
      throw this.#noAnswer(error, this.#timeoutMs);
    }
    if (response !== undefined) throw this.#refusal(response.code, response.body);
  }

  /** Of a gateway: one message, wherever it is there. */
  message(id: string): Promise<ShownMessageAnswer> {
    return this.#ask(gatewayRoutes.message, { params: { id } });
  }

  /** Of a gateway: one entry of a message with content, or its header; undefined when it has none. */
  content(id: string, part: ExportPart): Promise<FoundEntries | undefined> {
    return this.#entries(gatewayRoutes.exportMessage, { params: { id }, query: { part } });
  }

  /** Of a gateway: entries of a queue with content, a page; undefined when the queue has gone meanwhile. */
  queueEntries(name: string, queueClass: string, cursor: string): Promise<FoundEntries | undefined> {
    return this.#entries(
      gatewayRoutes.exportQueue, { params: { name }, query: { class: queueClass, cursor } },
    );
  }

  /** Of a store: entries of a partition with content, a page; undefined when it holds none of it. */
  partitionEntries(partition: string, next: string): Promise<FoundEntries | undefined> {
    return this.#entries(storeRoutes.exportPartition, { query: { partition, after: Number(next) } });
  }

  /** Of a gateway: counts over all of its mail. */
  ages(question: AgesQuestion): Promise<AgesAnswer> {
    return this.#ask(gatewayRoutes.ages, { body: question });
  }

  /** Of a gateway: the first messages that a selector means. */
  find(question: FindQuestion): Promise<FindAnswer> {
    return this.#ask(gatewayRoutes.find, { body: question });
  }

  /** Of a gateway: what its log tells of messages. */
  logged(question: LoggedQuestion): Promise<LoggedAnswer> {
    return this.#ask(gatewayRoutes.logged, { body: question });
  }

  /** Of a gateway: has its partitions moved away from a store, or looks how far that is. */
  drain(store: string, order?: DrainOrder): Promise<DrainAnswer> {
    const params = { id: store };
    if (order === undefined) return this.#ask(gatewayRoutes.drain, { params });
    return this.#ask(gatewayRoutes.orderDrain, { params, body: order });
  }

  /**
   * Of a gateway: has its copy of a partition at a store filled anew. A refusal is NoAnswer with code 404 or
   * 409.
   */
  resync(partition: string, order: ResyncOrder): Promise<ResyncAnswer> {
    return this.#ask(gatewayRoutes.resync, { params: { name: partition }, body: order });
  }

  /** Of a gateway: it begins to look for what an order means. */
  beginOrder(order: QueueOrder): Promise<QueueOrderAnswer> {
    return this.#ask(gatewayRoutes.beginOrder, { body: order });
  }

  queueOrder(id: string): Promise<QueueOrderAnswer> {
    return this.#ask(gatewayRoutes.order, { params: { id } });
  }

  queueOrders(): Promise<QueueOrdersAnswer> {
    return this.#ask(gatewayRoutes.orders, {});
  }

  goOrder(id: string, go: GoOrder & Order): Promise<QueueOrderAnswer> {
    return this.#ask(gatewayRoutes.goOrder, { params: { id }, body: go });
  }

  cancelOrder(id: string, order: Order): Promise<QueueOrderAnswer> {
    return this.#ask(gatewayRoutes.cancelOrder, { params: { id }, body: order });
  }

  /** It is left in the register; a refusal is NoAnswer with code 409 or 503. */
  leaveOrder(id: string, leave: LeaveOrder & Order): Promise<LeftOrderAnswer> {
    return this.#ask(gatewayRoutes.leaveOrder, { params: { id }, body: leave });
  }

  withdrawOrder(id: string, order: Order): Promise<LeftOrderIdAnswer> {
    return this.#ask(gatewayRoutes.withdrawOrder, { params: { id }, body: order });
  }

  /** Of a gateway: the standing rules that it obeys. */
  rules(): Promise<QueueRulesAnswer> {
    return this.#ask(gatewayRoutes.rules, {});
  }

  /** Of a gateway: where mail would go. A refusal is NoAnswer with code 400 or 409. */
  explain(question: ExplainQuestion): Promise<ExplainAnswer> {
    return this.#ask(gatewayRoutes.explain, { query: question });
  }

  /** Written into the register; a refusal is NoAnswer with code 409 or 503. */
  addRule(rule: NewQueueRule): Promise<RuleIdAnswer> {
    return this.#ask(gatewayRoutes.addRule, { body: rule });
  }

  cancelRule(id: string, order: CancelRule): Promise<RuleIdAnswer> {
    return this.#ask(gatewayRoutes.cancelRule, { params: { id }, body: order });
  }

  /** Of a gateway: copies are given up. A refusal is NoAnswer with code 404 or 409. */
  rescue(order: RescueOrder): Promise<RescueAnswer> {
    return this.#ask(gatewayRoutes.rescue, { body: order });
  }

  /** Of a gateway: has its copies spread evenly over the stores, or looks what would move. */
  rebalance(order?: Order): Promise<RebalanceAnswer> {
    if (order === undefined) return this.#ask(gatewayRoutes.rebalance, {});
    return this.#ask(gatewayRoutes.orderRebalance, { body: order });
  }

  /** Of a gateway: it reads its file again. A refusal is NoAnswer with code 409. */
  reload(order: Order): Promise<ReloadAnswer> {
    return this.#ask(gatewayRoutes.reload, { body: order });
  }

  /** Of a store, likewise. */
  reloadStore(order: Order): Promise<StoreReloadAnswer> {
    return this.#ask(storeRoutes.reload, { body: order });
  }

  /** Of a gateway: what that would do. */
  configDiff(): Promise<ConfigDiffAnswer> {
    return this.#ask(gatewayRoutes.configDiff, {});
  }

  storeConfigDiff(): Promise<StoreConfigDiffAnswer> {
    return this.#ask(storeRoutes.configDiff, {});
  }

  /** Of a gateway: has one retired, or looks how far that is. A refusal is NoAnswer with code 404 or 503. */
  retire(gateway: string, order?: RetireOrder): Promise<RetireAnswer> {
    const params = { id: gateway };
    if (order === undefined) return this.#ask(gatewayRoutes.retire, { params });
    return this.#ask(gatewayRoutes.orderRetire, { params, body: order });
  }

  async #ask<R extends JsonRoute>(route: R, asked: Asked<R>): Promise<z.output<R['answer']>> {
    const { code, body } = await this.#send(route, asked, ANSWER_BYTES_MAX);
    if (code !== 200) throw this.#refusal(code, body);
    const shape = route.answer as z.ZodType<z.output<R['answer']>>;
    const answer = readJson(shape, body.toString('utf8'));
    if (answer instanceof BrokenRule) throw this.stranger(` (${answer.rule})`);
    return answer;
  }

  async #entries<R extends Route>(route: R, asked: Asked<R>): Promise<FoundEntries | undefined> {
    const { code, headers, body } = await this.#send(route, asked, ENTRY_PAGE_BYTES_MAX);
    if (code === 404) return undefined;
    if (code !== 200) throw this.#refusal(code, body);
    const page = decodeEntryPage(body);
    if (page === undefined) throw this.stranger(' (expected messages)');
    const next = headers[PAGE_NEXT];
    return { page, next: typeof next === 'string' ? next : undefined };
  }

  /** What answers is no Twinpost; `how` that is seen. */
  stranger(how = ''): NoAnswer {
    const why = STRANGER + how;
    return new NoAnswer(this.url, why, 0, why, this.#other);
  }

  #noAnswer(error: unknown, timeoutMs: number): NoAnswer {
    const { why, isThere } = whyNoAnswer(error, this.url, timeoutMs);
    return new NoAnswer(this.url, why, 0, why, isThere ? '' : this.#other);
  }

  #refusal(code: number, body: Buffer): NoAnswer {
    const refusal = readJson(refusalAnswer, body.toString('utf8'));
    return refusal instanceof BrokenRule
      ? this.stranger(` (expected status 200, found ${String(code)})`)
      : new NoAnswer(this.url, `it refused: ${refusal.error}`, code, refusal.error);
  }

  async #send(route: Route, asked: AskedLoosely, bytesMax: number): Promise<AdminResponse> {
    const timeoutMs = Math.max(this.#timeoutMs, route.answerMs ?? 0);
    let response: AdminResponse;
    try {
      response = await ask({
        method: route.method, url: this.url + addressOf(route, asked), access: this.#access, timeoutMs,
        bytesMax,
        body: route.method === 'POST' ? JSON.stringify(asked.body) : undefined,
      });
    } catch (error) {
      throw this.#noAnswer(error, timeoutMs);
    }
    if (response.code === 401) {
      const wish = this.#access.token === undefined ? 'it wants a token' : 'it does not know this token';
      throw new NoAnswer(this.url, `${wish} (--token-file, or TWINPOST_TOKEN_FILE)`, 401);
    }
    return response;
  }
}

/** All rows of a listing, page after page. One that leads nowhere ends with an error, not never. */
export async function* allRows<T>(
  client: AdminClient, page: (cursor: string) => Promise<Page<T>>,
): AsyncGenerator<T> {
  let cursor = '';
  for (let pages = 0; pages < PAGES_MAX; pages++) {
    const { rows, next_cursor: next } = await page(cursor);
    yield* rows;
    if (next === null) return;
    if (next === cursor) break;
    cursor = next;
  }
  throw client.stranger(' (its listing has no end)');
}
