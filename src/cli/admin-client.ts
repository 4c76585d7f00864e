/**
 * Speaks to the admin HTTP of one gateway or store for the verbs that look inside, and for `up`. What is
 * asked and answered is in admin-api; here, and nowhere else, an answer of a stranger is read: bounded in
 * bytes and time, of the shape that was asked for, and no longer than a listing can be. Which processes
 * belong together is group.ts.
 */
import type { z } from 'zod';
import {
  messagePage, queuePage, registerAnswer, statusAnswer, tablePage,
} from '../admin-api/gateway-answers.js';
import type {
  MessageAnswer, QueueAnswer, RegisterAnswer, StatusAnswer, TableRowAnswer,
} from '../admin-api/gateway-answers.js';
import {
  configDiffAnswer, drainAnswer, rebalanceAnswer, reloadAnswer, rescueAnswer, resyncAnswer,
  retireAnswer,
} from '../admin-api/orders.js';
import type {
  ConfigDiffAnswer, DrainAnswer, DrainOrder, Order, RebalanceAnswer, ReloadAnswer,
  RescueAnswer, RescueOrder, ResyncAnswer, ResyncOrder, RetireAnswer, RetireOrder,
} from '../admin-api/orders.js';
import {
  leftOrderAnswer, leftOrderIdAnswer, queueOrderAnswer, queueOrdersAnswer,
} from '../admin-api/queue-orders.js';
import type {
  GoOrder, LeaveOrder, LeftOrderAnswer, LeftOrderIdAnswer, QueueOrder, QueueOrderAnswer, QueueOrdersAnswer,
} from '../admin-api/queue-orders.js';
import { queueRulesAnswer, ruleIdAnswer } from '../admin-api/queue-rules.js';
import type { CancelRule, NewQueueRule, QueueRulesAnswer, RuleIdAnswer } from '../admin-api/queue-rules.js';
import { limitsAnswer } from '../admin-api/limits.js';
import type { LimitsAnswer } from '../admin-api/limits.js';
import { agesAnswer, findAnswer, shownMessageAnswer } from '../admin-api/look.js';
import type {
  AgesAnswer, AgesQuestion, FindAnswer, FindQuestion, ShownMessageAnswer,
} from '../admin-api/look.js';
import { PAGE_ROWS_MAX, groupAnswer, refusalAnswer } from '../admin-api/pages.js';
import type { MemberAnswer, Page } from '../admin-api/pages.js';
import { inboxAnswer, tallyAnswer } from '../admin-api/sink-answers.js';
import type { InboxAnswer, TallyAnswer } from '../admin-api/sink-answers.js';
import { storePartitionPage, storeStatusAnswer } from '../admin-api/store-answers.js';
import type { StorePartitionAnswer, StoreStatusAnswer } from '../admin-api/store-answers.js';
import { traceAnswer } from '../admin-api/trace.js';
import type { TraceAnswer } from '../admin-api/trace.js';
import { BrokenRule, readJson } from '../base/json-shape.js';
import { PAGE_NEXT, decodeEntryPage } from '../protocol/entry-page.js';
import type { EntryPage } from '../protocol/entry-page.js';
import { ask, followLines, whyNoAnswer } from './admin-request.js';
import type { AdminResponse } from './admin-request.js';
import { CliError } from './context.js';

const TIMEOUT_MS = 5_000;
/** No page is 32 MiB; what is, is no Twinpost. */
const ANSWER_BYTES_MAX = 32 * 1024 * 1024;
/** A page of entries has their content, and may be one message of the largest size. */
const ENTRY_PAGE_TIMEOUT_MS = 30_000;
/** A gateway walks through millions of messages in a turn's share at a time. */
const WALK_TIMEOUT_MS = 30_000;
const ENTRY_PAGE_BYTES_MAX = 128 * 1024 * 1024;
/** Ten million rows: a listing that goes on behind that never ends. */
const PAGES_MAX = 10_000;
const STRANGER = 'what answers is no Twinpost, or another release';

/** Nobody answered, or not as a Twinpost does. */
export class NoAnswer extends CliError {
  readonly why: string;
  /** What HTTP said, when it refused; else 0. */
  readonly code: number;

  constructor(url: string, why: string, code = 0) {
    super(code === 0
      ? `no answer from ${url}: ${why}; is it running? --from ADDRESS names another gateway or store`
      : `${url}: ${why}`);
    this.why = why;
    this.code = code;
  }
}

/** A page of entries with content, and where the next begins. */
export interface FoundEntries {
  readonly page: EntryPage;
  readonly next: string | undefined;
}

export class AdminClient {
  readonly url: string;
  readonly #token: string | undefined;
  readonly #timeoutMs: number;

  constructor(url: string, token: string | undefined, timeoutMs = TIMEOUT_MS) {
    this.url = url.replace(/\/+$/, '');
    this.#token = token;
    this.#timeoutMs = timeoutMs;
  }

  async group(): Promise<readonly MemberAnswer[]> {
    return (await this.#json('/api/v1/group', groupAnswer)).members;
  }

  /** Of a gateway. */
  status(): Promise<StatusAnswer> {
    return this.#json('/api/v1/status', statusAnswer);
  }

  /** Of a gateway: who of the register answers it now. */
  async register(): Promise<RegisterAnswer['members']> {
    return (await this.#json('/api/v1/register', registerAnswer)).members;
  }

  /** Of a store. */
  storeStatus(): Promise<StoreStatusAnswer> {
    return this.#json('/api/v1/status', storeStatusAnswer);
  }

  /** The management table, whole partitions. */
  mirrors(cursor: string): Promise<Page<TableRowAnswer>> {
    return this.#json(`/api/v1/mirrors?${paging(cursor)}`, tablePage);
  }

  async troubled(most: number): Promise<readonly TableRowAnswer[]> {
    return (await this.#json(`/api/v1/mirrors?troubled=${String(most)}`, tablePage)).rows;
  }

  queues(cursor: string): Promise<Page<QueueAnswer>> {
    return this.#json(`/api/v1/queues?${paging(cursor)}`, queuePage);
  }

  storePartitions(cursor: string): Promise<Page<StorePartitionAnswer>> {
    return this.#json(`/api/v1/partitions?${paging(cursor)}`, storePartitionPage);
  }

  messages(queue: string, queueClass: string, cursor: string, limit: number): Promise<Page<MessageAnswer>> {
    const query = new URLSearchParams({ class: queueClass, cursor, limit: String(limit) });
    return this.#json(
      `/api/v1/queues/${encodeURIComponent(queue)}/messages?${query.toString()}`, messagePage,
    );
  }

  /** Of a sink: the last messages that it took. */
  inbox(limit: number): Promise<InboxAnswer> {
    return this.#json(`/inbox?limit=${String(limit)}`, inboxAnswer);
  }

  /** Of a sink: the content of one; undefined when it has none such. */
  async inboxContent(n: number): Promise<Uint8Array | undefined> {
    const { code, body } = await this.#ask(`/inbox/${String(n)}`, ANSWER_BYTES_MAX, this.#timeoutMs);
    return code === 200 ? body : undefined;
  }

  /** Of a sink: what of the marked messages has come. */
  tally(): Promise<TallyAnswer> {
    return this.#json('/tally', tallyAnswer);
  }

  /** Of a gateway: what limits mail of a queue now. */
  limits(queue: string): Promise<LimitsAnswer> {
    return this.#json(`/api/v1/limits?queue=${encodeURIComponent(queue)}`, limitsAnswer);
  }

  /** Of a gateway: what it tells line after line, until it ends or `signal` is given. */
  async follow(path: string, signal: AbortSignal, tell: (line: TraceAnswer) => void): Promise<void> {
    const heard = (line: string): void => {
      const answer = readJson(traceAnswer, line);
      if (answer instanceof BrokenRule) throw new NoAnswer(this.url, STRANGER);
      tell(answer);
    };
    let response: AdminResponse | undefined;
    try {
      response = await followLines({ url: this.url + path, token: this.#token, signal }, heard);
    } catch (error) {
      if (error instanceof NoAnswer) throw error;
      throw new NoAnswer(this.url, whyNoAnswer(error, this.#timeoutMs));
    }
    if (response !== undefined) throw this.#refusal(response.code, response.body);
  }

  /** Of a gateway: one message, wherever it is there. */
  message(id: string): Promise<ShownMessageAnswer> {
    return this.#json(`/api/v1/messages/${encodeURIComponent(id)}`, shownMessageAnswer);
  }

  /** Of a gateway: one entry of a message with content; undefined when it has none. */
  content(id: string): Promise<FoundEntries | undefined> {
    return this.entries(`/api/v1/messages/${encodeURIComponent(id)}/export`);
  }

  /** Of a gateway: counts over all of its mail. */
  ages(question: AgesQuestion): Promise<AgesAnswer> {
    return this.#json('/api/v1/ages', agesAnswer, question, Math.max(this.#timeoutMs, WALK_TIMEOUT_MS));
  }

  /** Of a gateway: the first messages that a selector means. */
  find(question: FindQuestion): Promise<FindAnswer> {
    return this.#json('/api/v1/find', findAnswer, question, Math.max(this.#timeoutMs, WALK_TIMEOUT_MS));
  }

  /** Of a gateway: has its partitions moved away from a store, or looks how far that is. */
  drain(store: string, order?: DrainOrder): Promise<DrainAnswer> {
    return this.#json(`/api/v1/stores/${encodeURIComponent(store)}/drain`, drainAnswer, order);
  }

  /**
   * Of a gateway: has its copy of a partition at a store filled anew. A refusal is NoAnswer with code 404 or
   * 409.
   */
  resync(partition: string, order: ResyncOrder): Promise<ResyncAnswer> {
    return this.#json(`/api/v1/partitions/${encodeURIComponent(partition)}/resync`, resyncAnswer, order);
  }

  /** Of a gateway: it begins to look for what an order means. */
  beginOrder(order: QueueOrder): Promise<QueueOrderAnswer> {
    return this.#json('/api/v1/orders', queueOrderAnswer, order);
  }

  queueOrder(id: string): Promise<QueueOrderAnswer> {
    return this.#json(`/api/v1/orders/${encodeURIComponent(id)}`, queueOrderAnswer);
  }

  queueOrders(): Promise<QueueOrdersAnswer> {
    return this.#json('/api/v1/orders', queueOrdersAnswer);
  }

  goOrder(id: string, go: GoOrder): Promise<QueueOrderAnswer> {
    return this.#json(`/api/v1/orders/${encodeURIComponent(id)}/go`, queueOrderAnswer, go);
  }

  cancelOrder(id: string, order: Order): Promise<QueueOrderAnswer> {
    return this.#json(`/api/v1/orders/${encodeURIComponent(id)}/cancel`, queueOrderAnswer, order);
  }

  /** It is left in the register; a refusal is NoAnswer with code 409 or 503. */
  leaveOrder(id: string, leave: LeaveOrder): Promise<LeftOrderAnswer> {
    return this.#json(`/api/v1/orders/${encodeURIComponent(id)}/leave`, leftOrderAnswer, leave);
  }

  withdrawOrder(id: string, order: Order): Promise<LeftOrderIdAnswer> {
    return this.#json(`/api/v1/orders/${encodeURIComponent(id)}/withdraw`, leftOrderIdAnswer, order);
  }

  /** Of a gateway: the standing rules that it obeys. */
  rules(): Promise<QueueRulesAnswer> {
    return this.#json('/api/v1/rules', queueRulesAnswer);
  }

  /** Written into the register; a refusal is NoAnswer with code 409 or 503. */
  addRule(rule: NewQueueRule): Promise<RuleIdAnswer> {
    return this.#json('/api/v1/rules', ruleIdAnswer, rule);
  }

  cancelRule(id: string, order: CancelRule): Promise<RuleIdAnswer> {
    return this.#json(`/api/v1/rules/${encodeURIComponent(id)}/cancel`, ruleIdAnswer, order);
  }

  /** Of a gateway: copies are given up. A refusal is NoAnswer with code 404 or 409. */
  rescue(order: RescueOrder): Promise<RescueAnswer> {
    return this.#json('/api/v1/rescue', rescueAnswer, order);
  }

  /** Of a gateway: has its copies spread evenly over the stores, or looks what would move. */
  rebalance(order?: Order): Promise<RebalanceAnswer> {
    return this.#json('/api/v1/rebalance', rebalanceAnswer, order);
  }

  /** Of a gateway: it reads its file again. A refusal is NoAnswer with code 409. */
  reload(order: Order): Promise<ReloadAnswer> {
    return this.#json('/api/v1/config/reload', reloadAnswer, order);
  }

  /** Of a gateway: what that would do. */
  configDiff(): Promise<ConfigDiffAnswer> {
    return this.#json('/api/v1/config/diff', configDiffAnswer);
  }

  /** Of a gateway: has one retired, or looks how far that is. A refusal is NoAnswer with code 404 or 503. */
  retire(gateway: string, order?: RetireOrder): Promise<RetireAnswer> {
    return this.#json(`/api/v1/gateways/${encodeURIComponent(gateway)}/retire`, retireAnswer, order);
  }

  /** Entries with content, of a gateway or a store; undefined when the queue has gone meanwhile. */
  async entries(path: string): Promise<FoundEntries | undefined> {
    const { code, headers, body } =
      await this.#ask(path, ENTRY_PAGE_BYTES_MAX, Math.max(this.#timeoutMs, ENTRY_PAGE_TIMEOUT_MS));
    if (code === 404) return undefined;
    if (code !== 200) throw this.#refusal(code, body);
    const page = decodeEntryPage(body);
    if (page === undefined) throw new NoAnswer(this.url, `${STRANGER} (expected messages)`);
    const next = headers[PAGE_NEXT];
    return { page, next: typeof next === 'string' ? next : undefined };
  }

  /** With an order it is a POST. */
  async #json<T>(
    path: string, shape: z.ZodType<T>, order?: object, timeoutMs = this.#timeoutMs,
  ): Promise<T> {
    const { code, body } = await this.#ask(
      path, ANSWER_BYTES_MAX, timeoutMs, order === undefined ? undefined : JSON.stringify(order),
    );
    if (code !== 200) throw this.#refusal(code, body);
    const answer = readJson(shape, body.toString('utf8'));
    if (answer instanceof BrokenRule) throw new NoAnswer(this.url, `${STRANGER} (${answer.rule})`);
    return answer;
  }

  #refusal(code: number, body: Buffer): NoAnswer {
    const refusal = readJson(refusalAnswer, body.toString('utf8'));
    return refusal instanceof BrokenRule
      ? new NoAnswer(this.url, `${STRANGER} (expected status 200, found ${String(code)})`)
      : new NoAnswer(this.url, `it refused: ${refusal.error}`, code);
  }

  async #ask(path: string, bytesMax: number, timeoutMs: number, body?: string): Promise<AdminResponse> {
    let response: AdminResponse;
    try {
      response = await ask({ url: this.url + path, token: this.#token, timeoutMs, bytesMax, body });
    } catch (error) {
      throw new NoAnswer(this.url, whyNoAnswer(error, timeoutMs));
    }
    if (response.code === 401) {
      throw new NoAnswer(
        this.url, 'it wants a bearer token (--token, or TWINPOST_TOKEN in the environment)', 401,
      );
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
  throw new NoAnswer(client.url, `${STRANGER} (its listing has no end)`);
}

function paging(cursor: string): string {
  return new URLSearchParams({ cursor, limit: String(PAGE_ROWS_MAX) }).toString();
}
