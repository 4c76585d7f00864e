/**
 * Speaks to a gateway's admin HTTP for the verbs status and queue, and for `up`. Fields are those of
 * gateway/admin/rows.ts; an answer of another shape is the error "is no Twinpost gateway".
 */
import http from 'node:http';
import https from 'node:https';
import type { Argv, Options } from 'yargs';
import type { CliContext } from './context.js';
import { CliError } from './context.js';

const DEFAULT_URL = 'http://127.0.0.1:8025';
const TIMEOUT_MS = 5_000;

export interface StatusAnswer {
  readonly gateway: string;
  readonly host: string;
  readonly incarnation: number;
  readonly pid: number;
  readonly uptime_seconds: number;
  readonly ready: boolean;
  readonly not_ready_reason: string;
  readonly degraded_since: number | null;
  readonly insecure: boolean;
  readonly received: number;
  readonly delivered: number;
  readonly deferred: number;
  readonly bounced: number;
  readonly expired: number;
  readonly rejected: number;
  readonly queues: number;
  readonly queues_recovering: number;
  readonly queued_messages: number;
  readonly queued_bytes: number;
  readonly memory_used_bytes: number;
  readonly memory_limit_bytes: number;
  readonly stores: readonly StoreAnswer[];
}

export interface StoreAnswer {
  readonly store: string;
  readonly host: string;
  readonly up: boolean;
  readonly paths: readonly { readonly path: string; readonly state: string }[];
  readonly queues_sync: number;
  readonly queues_resync: number;
  readonly queues_ng: number;
  readonly lag_messages: number;
  readonly lag_bytes: number;
}

export interface TableRowAnswer {
  readonly queue_name: string;
  readonly queue_class: string;
  readonly store: string;
  readonly network_a: string;
  readonly network_s: string;
  readonly sync: string;
  readonly epoch: number;
  readonly transactions: number | null;
}

export interface QueueAnswer {
  readonly queue_name: string;
  readonly queue_class: string;
  readonly next_hop: string;
  readonly order: string;
  readonly messages: number;
  readonly bytes: number;
  readonly active: number;
  readonly deferred: number;
  readonly oldest_age_seconds: number | null;
  readonly last_error: string;
}

export interface MessageAnswer {
  readonly queue_name: string;
  readonly queue_id: string;
  readonly arrival_time: number;
  readonly message_size: number;
  readonly sender: string;
  readonly recipients: readonly { readonly address: string; readonly delay_reason?: string }[];
  readonly state: string;
}

/** Options of every verb that asks a gateway. */
const GATEWAY_OPTIONS = {
  gateway: { type: 'string', requiresArg: true, describe: `admin address of the gateway (default ${DEFAULT_URL}, or TWINPOST_ADMIN)` },
  token: { type: 'string', requiresArg: true, describe: 'bearer token (or TWINPOST_TOKEN, which other users of this machine do not see)' },
} as const satisfies Record<string, Options>;

export function withGatewayOptions(args: Argv) {
  return args.options(GATEWAY_OPTIONS);
}

export class AdminClient {
  readonly url: string;
  readonly #token: string | undefined;

  constructor(url: string, token: string | undefined) {
    this.url = url.replace(/\/+$/, '');
    this.#token = token;
  }

  status(): Promise<StatusAnswer> {
    return this.#get('/api/v1/status', (answer) => typeof answer['gateway'] === 'string' && Array.isArray(answer['stores'])) as Promise<StatusAnswer>;
  }

  async table(): Promise<readonly TableRowAnswer[]> {
    return ((await this.#get('/api/v1/table', (answer) => Array.isArray(answer['rows']))) as { rows: readonly TableRowAnswer[] }).rows;
  }

  async queues(): Promise<readonly QueueAnswer[]> {
    return ((await this.#get('/api/v1/queues', (answer) => Array.isArray(answer['queues']))) as { queues: readonly QueueAnswer[] }).queues;
  }

  messages(queue: string, queueClass: string, cursor: string, limit: number): Promise<{ readonly messages: readonly MessageAnswer[]; readonly next_cursor: string | null }> {
    const query = new URLSearchParams({ class: queueClass, cursor, limit: String(limit) });
    const path = `/api/v1/queues/${encodeURIComponent(queue)}/messages?${query.toString()}`;
    return this.#get(path, (answer) => Array.isArray(answer['messages'])) as Promise<{ messages: readonly MessageAnswer[]; next_cursor: string | null }>;
  }

  async #get(path: string, isRight: (answer: Readonly<Record<string, unknown>>) => boolean): Promise<unknown> {
    let code = 0;
    let answer: unknown;
    try {
      const response = await getText(this.url + path, this.#token === undefined ? {} : { authorization: `Bearer ${this.#token}` });
      code = response.code;
      answer = JSON.parse(response.text) as unknown;
    } catch (error) {
      throw new CliError(`no gateway answers at ${this.url}: ${whyText(error)}; is it running? --gateway URL names another`);
    }
    const object = typeof answer === 'object' && answer !== null ? (answer as Readonly<Record<string, unknown>>) : {};
    if (code === 401) throw new CliError(`${this.url} wants a bearer token: --token, or TWINPOST_TOKEN in the environment`);
    if (code !== 200 && typeof object['error'] === 'string') throw new CliError(`${this.url} refused: ${object['error']}`);
    if (code !== 200 || !isRight(object)) throw new CliError(`what answers at ${this.url} is no Twinpost gateway`);
    return answer;
  }
}

export function clientFor(args: { readonly gateway: string | undefined; readonly token: string | undefined }, context: CliContext): AdminClient {
  const given = args.gateway ?? context.environment['TWINPOST_ADMIN'] ?? DEFAULT_URL;
  const url = given.includes('://') ? given : `http://${given}`;
  if (!/^https?:\/\//.test(url) || !URL.canParse(url)) throw new CliError(`'${given}' is no admin address; an example: ${DEFAULT_URL}`);
  return new AdminClient(url, args.token ?? context.environment['TWINPOST_TOKEN']);
}

/** Not fetch(): that refuses some ports out of a browser's fears, such as 6000. */
function getText(url: string, headers: Readonly<Record<string, string>>): Promise<{ readonly code: number; readonly text: string }> {
  return new Promise((resolve, reject) => {
    const get = url.startsWith('https:') ? https.get : http.get;
    const request = get(url, { headers, agent: false, signal: AbortSignal.timeout(TIMEOUT_MS) }, (response) => {
      const chunks: Buffer[] = [];
      response.on('data', (chunk: Buffer) => { chunks.push(chunk); });
      response.once('error', reject);
      response.once('end', () => { resolve({ code: response.statusCode ?? 0, text: Buffer.concat(chunks).toString('utf8') }); });
    });
    request.once('error', reject);
  });
}

function whyText(error: unknown): string {
  const { code, name, message } = error as NodeJS.ErrnoException;
  if (code === 'ECONNREFUSED') return 'connection refused';
  if (code === 'ABORT_ERR' || name === 'TimeoutError') return `no answer within ${String(TIMEOUT_MS / 1000)} s`;
  return error instanceof SyntaxError ? 'the answer is no JSON' : (code ?? message);
}
