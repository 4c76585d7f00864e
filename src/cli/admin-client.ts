/**
 * Speaks to the admin HTTP of one gateway or store for the verbs that look inside, and for `up`. Fields are
 * those of gateway/admin/rows.ts and kvs/daemon/admin-http.ts; an answer of another shape is an error. Which
 * processes belong together is group.ts.
 */
import http from 'node:http';
import https from 'node:https';
import { CliError } from './context.js';
import type { Order } from './operator.js';

const TIMEOUT_MS = 5_000;
/** Rows in one answer: what the admin HTTP gives at most. */
export const PAGE_ROWS = 1000;
/** No page is 32 MiB; what is, is no Twinpost. */
const ANSWER_BYTES_MAX = 32 * 1024 * 1024;

export interface StatusAnswer {
  readonly gateway: string;
  readonly host: string;
  /** Gateways of release 0.1.0 don't say it. */
  readonly version?: string;
  readonly incarnation: number;
  readonly pid: number;
  readonly uptime_seconds: number;
  readonly ready: boolean;
  readonly not_ready_reason: string;
  readonly degraded_since: number | null;
  readonly degraded_cause: string;
  readonly insecure: boolean;
  readonly received: number;
  readonly delivered: number;
  readonly deferred: number;
  readonly bounced: number;
  readonly expired: number;
  readonly rejected: number;
  readonly queues: number;
  readonly queues_recovering: number;
  readonly queues_held: number;
  readonly held: readonly HeldQueueAnswer[];
  readonly queues_rescued: number;
  readonly queued_messages: number;
  readonly queued_bytes: number;
  readonly control_records: number;
  readonly control_copies_in_sync: number;
  readonly memory_used_bytes: number;
  readonly memory_limit_bytes: number;
  readonly stores: readonly StoreAnswer[];
}

/** A queue whose mail waits. */
export interface HeldQueueAnswer {
  readonly queue_name: string;
  readonly queue_class: string;
  readonly owner: string;
  readonly id: string;
  readonly state: string;
  readonly messages: number | null;
  readonly waits_for: readonly string[];
  readonly why: string;
  readonly since: number | null;
}

export interface StoreAnswer {
  readonly store: string;
  readonly host: string;
  /** Version of the protocol spoken with it; 0 before it answered. Gateways of release 0.1.0 don't say it. */
  readonly protocol?: number;
  readonly up: boolean;
  readonly drained: boolean;
  readonly drained_since: number | null;
  readonly paths: readonly { readonly path: string; readonly state: string }[];
  readonly queues_sync: number;
  readonly queues_resync: number;
  readonly queues_ng: number;
  readonly lag_messages: number;
  readonly lag_bytes: number;
  readonly lease_left_ms: number;
  readonly failovers: number;
}

export interface TableRowAnswer {
  readonly queue_name: string;
  readonly queue_class: string;
  readonly owner: string;
  readonly birth: number;
  readonly serial: number;
  readonly store: string;
  readonly network_a: string;
  readonly network_s: string;
  readonly sync: string;
  readonly progress: number | null;
  readonly member: boolean;
  readonly epoch: number;
  readonly transactions: number | null;
  readonly last_transaction: number;
  readonly digest: string | null;
  readonly messages: number;
  readonly lag_messages: number;
  readonly lag_bytes: number;
  readonly since: number;
  readonly cause: string;
}

export interface QueueAnswer {
  readonly queue_name: string;
  readonly queue_class: string;
  /** Gateways of release 0.1.0, which serve their own only, don't say it. */
  readonly owner?: string;
  readonly next_hop: string;
  readonly order: string;
  readonly messages: number;
  readonly bytes: number;
  readonly active: number;
  readonly deferred: number;
  readonly held: number;
  readonly oldest_age_seconds: number | null;
  readonly last_error: string;
}

export interface MessageAnswer {
  readonly queue_name: string;
  /** As of a queue. */
  readonly owner?: string;
  readonly queue_id: string;
  readonly arrival_time: number;
  readonly message_size: number;
  readonly sender: string;
  readonly recipients: readonly { readonly address: string; readonly delay_reason?: string }[];
  readonly state: string;
  readonly held_reason?: string;
}

/** What came of a hold, release or deletion in one queue. */
export interface HoldAnswer {
  readonly queue_name: string;
  readonly queue_class: string;
  readonly done: boolean;
  readonly why: string;
  /** The mirrors have acknowledged it. */
  readonly kept: boolean;
}

/** What an operator has done without a missing store. */
export interface RescueAsked extends Order {
  readonly queue: string | undefined;
  readonly owner: string | undefined;
  readonly missing: string;
}

/** Names of the queues concerned, by what came of them. */
export interface RescueAnswer {
  readonly queues: readonly string[];
  /** Nothing else is missing; a mirror is to be filled first. */
  readonly later: readonly string[];
  readonly waiting: readonly { readonly queue: string; readonly also_needed: readonly string[] }[];
  /** No store has a copy; another gateway may have it in memory. */
  readonly elsewhere: readonly string[];
  readonly gone: readonly { readonly queue: string; readonly export_from: readonly string[] }[];
}

/** A store of itself. */
export interface StoreStatusAnswer {
  readonly store_id: string;
  readonly host: string;
  /** Empty for stores of release 0.1.0. */
  readonly version: string;
  readonly pid: number;
  readonly uptime_seconds: number;
  readonly ready: boolean;
  readonly insecure: boolean;
  readonly queues: number;
  readonly messages: number;
  readonly memory: { readonly used_bytes: number; readonly limit_bytes: number };
  readonly gateways: readonly { readonly id: string; readonly active: boolean }[];
}

/** A queue as a store holds it. */
export interface StoreQueueAnswer {
  readonly queue_name: string;
  readonly class: string;
  readonly owner: string;
  readonly birth: number;
  readonly serial: number;
  readonly holder: string;
  readonly role: string;
  readonly epoch: number;
  readonly number: number;
  readonly digest: string;
  readonly messages: number;
  readonly bytes: number;
}

export interface MemberAnswer {
  readonly id: string;
  readonly kind: 'gateway' | 'store';
  readonly admin: string | null;
  readonly self: boolean;
}

/** One page of rows, and where the next begins. */
export interface Page<T> {
  readonly rows: readonly T[];
  readonly next: string | null;
}

/** Nobody answered, or not as a Twinpost does. */
export class NoAnswer extends CliError {
  readonly why: string;
  /** What HTTP said, when it refused; else 0. */
  readonly code: number;

  constructor(url: string, why: string, code = 0) {
    super(code === 0 ? `no answer from ${url}: ${why}; is it running? --from ADDRESS names another gateway or store` : `${url}: ${why}`);
    this.why = why;
    this.code = code;
  }
}

/** What a gateway has at a store that is to be emptied. */
export interface DrainAnswer {
  readonly draining: boolean;
  readonly mirrors: number;
  /** Of those, copies that have nowhere to go and are needed. */
  readonly stuck: number;
  /** Queues that have fewer copies than configured. */
  readonly copies_missing: number;
  /** The stores have acknowledged the order. A gateway of release 0.1.0 leaves it out. */
  readonly kept?: boolean;
}

type Answer = Readonly<Record<string, unknown>>;

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
    return ((await this.#get('/api/v1/group', (answer) => Array.isArray(answer['members']))) as { members: readonly MemberAnswer[] }).members;
  }

  /** Of a gateway. */
  status(): Promise<StatusAnswer> {
    return this.#get('/api/v1/status', (answer) => typeof answer['gateway'] === 'string' && Array.isArray(answer['stores'])) as Promise<StatusAnswer>;
  }

  /** Of a store. */
  storeStatus(): Promise<StoreStatusAnswer> {
    return this.#get('/api/v1/status', (answer) => typeof answer['store_id'] === 'string') as Promise<StoreStatusAnswer>;
  }

  /** The management table, whole queues. */
  mirrors(cursor: string): Promise<Page<TableRowAnswer>> {
    return this.#page('mirrors', 'rows', cursor);
  }

  async troubled(most: number): Promise<readonly TableRowAnswer[]> {
    return ((await this.#get(`/api/v1/mirrors?troubled=${String(most)}`, (answer) => Array.isArray(answer['rows']))) as { rows: readonly TableRowAnswer[] }).rows;
  }

  queues(cursor: string): Promise<Page<QueueAnswer>> {
    return this.#page('queues', 'queues', cursor);
  }

  storeQueues(cursor: string): Promise<Page<StoreQueueAnswer>> {
    return this.#page('queues', 'queues', cursor === '' ? '0' : cursor);
  }

  messages(queue: string, queueClass: string, cursor: string, limit: number): Promise<{ readonly messages: readonly MessageAnswer[]; readonly next_cursor: string | null }> {
    const query = new URLSearchParams({ class: queueClass, cursor, limit: String(limit) });
    const path = `/api/v1/queues/${encodeURIComponent(queue)}/messages?${query.toString()}`;
    return this.#get(path, (answer) => Array.isArray(answer['messages'])) as Promise<{ messages: readonly MessageAnswer[]; next_cursor: string | null }>;
  }

  /** Of a gateway: has its queues moved away from a store, or looks how far that is. */
  drain(store: string, what: 'start' | 'undo' | 'look', order?: Order): Promise<DrainAnswer> {
    const body = what === 'look' ? undefined : JSON.stringify({ ...(what === 'undo' ? { undo: true } : {}), ...order });
    return this.#get(`/api/v1/stores/${encodeURIComponent(store)}/drain`, (answer) => typeof answer['mirrors'] === 'number' && typeof answer['stuck'] === 'number', body) as Promise<DrainAnswer>;
  }

  /** Of a gateway: has its mirror of a queue at a store filled anew. A refusal is NoAnswer with code 404 or 409. */
  resync(queue: string, store: string, order: Order): Promise<unknown> {
    return this.#get(`/api/v1/queues/${encodeURIComponent(queue)}/resync`, (answer) => typeof answer['queues'] === 'number', JSON.stringify({ store, ...order }));
  }

  /** Of a gateway: in each queue that has the message, what came of it. */
  holdMessage(id: string, verb: 'hold' | 'release' | 'delete', order: Order): Promise<{ readonly queue_id: string; readonly queues: readonly HoldAnswer[] }> {
    return this.#get(`/api/v1/messages/${encodeURIComponent(id)}/${verb}`, (answer) => Array.isArray(answer['queues']), JSON.stringify(order)) as Promise<{ queue_id: string; queues: readonly HoldAnswer[] }>;
  }

  /** Of a gateway: has queues taken without a store; what came of those concerned. A refusal is NoAnswer with code 404 or 409. */
  async rescue(request: RescueAsked): Promise<RescueAnswer> {
    const answer = await this.#get('/api/v1/rescue', (one) => Array.isArray(one['queues']), JSON.stringify(request));
    // An older gateway names the first only.
    return { later: [], waiting: [], elsewhere: [], gone: [], ...(answer as Pick<RescueAnswer, 'queues'>) };
  }

  async #page<T>(path: string, key: string, cursor: string): Promise<Page<T>> {
    const query = new URLSearchParams({ cursor, limit: String(PAGE_ROWS) });
    const answer = (await this.#get(`/api/v1/${path}?${query.toString()}`, (one) => Array.isArray(one[key]))) as Answer;
    const next = answer['next_cursor'] ?? answer['next'];
    return { rows: answer[key] as readonly T[], next: typeof next === 'string' || typeof next === 'number' ? String(next) : null };
  }

  /** With a body it is a POST. */
  async #get(path: string, isRight: (answer: Answer) => boolean, body?: string): Promise<unknown> {
    let code = 0;
    let parsed: unknown;
    try {
      const response = await getText(this.url + path, this.#token === undefined ? {} : { authorization: `Bearer ${this.#token}` }, this.#timeoutMs, body);
      code = response.code;
      parsed = JSON.parse(response.text) as unknown;
    } catch (error) {
      throw new NoAnswer(this.url, whyText(error, this.#timeoutMs));
    }
    const answer = typeof parsed === 'object' && parsed !== null ? (parsed as Answer) : {};
    if (code === 401) throw new NoAnswer(this.url, 'it wants a bearer token (--token, or TWINPOST_TOKEN in the environment)', code);
    if (code !== 200 && typeof answer['error'] === 'string') throw new NoAnswer(this.url, `it refused: ${answer['error']}`, code);
    if (code !== 200 || !isRight(answer)) throw new NoAnswer(this.url, 'what answers is no Twinpost, or another release');
    return answer;
  }
}

/** All pages of a listing, one after the other. */
export async function* allRows<T>(page: (cursor: string) => Promise<Page<T>>): AsyncGenerator<T> {
  for (let cursor: string | null = ''; cursor !== null;) {
    const { rows, next }: Page<T> = await page(cursor);
    yield* rows;
    cursor = next;
  }
}

/** Not fetch(): that refuses some ports out of a browser's fears, such as 6000. */
function getText(url: string, headers: Readonly<Record<string, string>>, timeoutMs: number, body: string | undefined): Promise<{ readonly code: number; readonly text: string }> {
  return new Promise((resolve, reject) => {
    const ask = url.startsWith('https:') ? https.request : http.request;
    const extra = body === undefined ? {} : { 'content-type': 'application/json', 'content-length': String(Buffer.byteLength(body)) };
    const request = ask(url, { method: body === undefined ? 'GET' : 'POST', headers: { ...headers, ...extra }, agent: false, signal: AbortSignal.timeout(timeoutMs) }, (response) => {
      const chunks: Buffer[] = [];
      let bytes = 0;
      response.on('data', (chunk: Buffer) => {
        bytes += chunk.length;
        if (bytes > ANSWER_BYTES_MAX) response.destroy(new Error('the answer is too long'));
        else chunks.push(chunk);
      });
      response.once('error', reject);
      response.once('end', () => { resolve({ code: response.statusCode ?? 0, text: Buffer.concat(chunks).toString('utf8') }); });
    });
    request.once('error', reject);
    request.end(body);
  });
}

function whyText(error: unknown, timeoutMs: number): string {
  const { code, name, message } = error as NodeJS.ErrnoException;
  if (code === 'ECONNREFUSED') return 'connection refused';
  if (code === 'ABORT_ERR' || name === 'TimeoutError') return `nothing within ${String(timeoutMs / 1000)} s`;
  return error instanceof SyntaxError ? 'the answer is no JSON' : (code ?? message);
}
