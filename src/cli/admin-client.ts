/**
 * Speaks to the admin HTTP of one gateway or store for the verbs that look inside, and for `up`. What is
 * asked and answered is in admin-api; here, and nowhere else, an answer of a stranger is read: bounded in
 * bytes and time, of the shape that was asked for, and no longer than a listing can be. Which processes
 * belong together is group.ts.
 */
import type { z } from 'zod';
import { messagePage, queuePage, statusAnswer, tablePage } from '../admin-api/gateway-answers.js';
import type {
  MessageAnswer, QueueAnswer, StatusAnswer, TableRowAnswer,
} from '../admin-api/gateway-answers.js';
import {
  drainAnswer, holdAnswer, rebalanceAnswer, rescueAnswer, resyncAnswer, retireAnswer,
} from '../admin-api/orders.js';
import type {
  DrainAnswer, DrainOrder, HoldAnswer, MessageVerb, Order, RebalanceAnswer, RescueAnswer, RescueOrder,
  ResyncAnswer, ResyncOrder, RetireAnswer, RetireOrder,
} from '../admin-api/orders.js';
import { PAGE_ROWS_MAX, groupAnswer, refusalAnswer } from '../admin-api/pages.js';
import type { MemberAnswer, Page } from '../admin-api/pages.js';
import { storePartitionPage, storeStatusAnswer } from '../admin-api/store-answers.js';
import type { StorePartitionAnswer, StoreStatusAnswer } from '../admin-api/store-answers.js';
import { BrokenRule, readShape } from '../base/json-shape.js';
import { PAGE_NEXT, decodeEntryPage } from '../protocol/entry-page.js';
import type { EntryPage } from '../protocol/entry-page.js';
import { ask, whyNoAnswer } from './admin-request.js';
import type { AdminResponse } from './admin-request.js';
import { CliError } from './context.js';

const TIMEOUT_MS = 5_000;
/** No page is 32 MiB; what is, is no Twinpost. */
const ANSWER_BYTES_MAX = 32 * 1024 * 1024;
/** A page of entries has their content, and may be one message of the largest size. */
const ENTRY_PAGE_TIMEOUT_MS = 30_000;
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

  /** Of a gateway: in each queue that has the message, what came of it. */
  holdMessage(id: string, verb: MessageVerb, order: Order): Promise<HoldAnswer> {
    return this.#json(`/api/v1/messages/${encodeURIComponent(id)}/${verb}`, holdAnswer, order);
  }

  /** Of a gateway: copies are given up. A refusal is NoAnswer with code 404 or 409. */
  rescue(order: RescueOrder): Promise<RescueAnswer> {
    return this.#json('/api/v1/rescue', rescueAnswer, order);
  }

  /** Of a gateway: has its copies spread evenly over the stores, or looks what would move. */
  rebalance(order?: Order): Promise<RebalanceAnswer> {
    return this.#json('/api/v1/rebalance', rebalanceAnswer, order);
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
    const page = code === 200 ? decodeEntryPage(body) : undefined;
    if (page === undefined) {
      throw new NoAnswer(this.url, `${STRANGER} (expected messages, found status ${String(code)})`);
    }
    const next = headers[PAGE_NEXT];
    return { page, next: typeof next === 'string' ? next : undefined };
  }

  /** With an order it is a POST. */
  async #json<T>(path: string, shape: z.ZodType<T>, order?: object): Promise<T> {
    const { code, body } = await this.#ask(
      path, ANSWER_BYTES_MAX, this.#timeoutMs, order === undefined ? undefined : JSON.stringify(order),
    );
    let parsed: unknown;
    try {
      parsed = JSON.parse(body.toString('utf8'));
    } catch {
      throw new NoAnswer(this.url, 'the answer is no JSON');
    }
    if (code !== 200) {
      const refusal = readShape(refusalAnswer, parsed);
      throw refusal instanceof BrokenRule
        ? new NoAnswer(this.url, `${STRANGER} (expected status 200, found ${String(code)})`)
        : new NoAnswer(this.url, `it refused: ${refusal.error}`, code);
    }
    const answer = readShape(shape, parsed);
    if (answer instanceof BrokenRule) throw new NoAnswer(this.url, `${STRANGER} (${answer.rule})`);
    return answer;
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
