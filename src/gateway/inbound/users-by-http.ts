/**
 * Users whom somebody else knows: each password is asked for by HTTP, once in ten minutes while it is right
 * (auth/password-checks.ts).
 *
 *   POST URL   {"user": "…", "password": "…"}
 *   200        {"addresses": ["alice@example.com", "@example.org"]}: what the user may send from; without
 *              any: the name, if it is an address
 *   401, 403   wrong
 *   else, or no answer in time: nobody can tell now (454)
 */
import type { Clock, EventLog } from '../../platform/ports.js';
import type { Account, Directory } from './auth/directory.js';

export interface HttpUsersOptions {
  readonly url: string;
  readonly timeoutMs: number;
  /** For the Authorization field; '': none. */
  readonly token: string;
}

const CHECKS_AT_ONCE = 16;
const ANSWER_BYTES_MAX = 64 * 1024;
const ADDRESSES_MAX = 1000;
/** Users who have authenticated lately; the oldest goes. */
const KNOWN_MAX = 100_000;
/** A server that is away is said once in this time. */
const TOLD_EVERY_MS = 60_000;
const WRONG: ReadonlySet<number> = new Set([401, 403]);

export class UsersByHttp implements Directory {
  readonly checksAtOnce = CHECKS_AT_ONCE;
  readonly scramUsers = undefined;
  readonly #options: HttpUsersOptions;
  readonly #clock: Clock;
  readonly #log: EventLog;
  readonly #known = new Map<string, Account>();
  #toldMs = -Infinity;

  constructor(options: HttpUsersOptions, ports: { readonly clock: Clock; readonly log: EventLog }) {
    this.#options = options;
    this.#clock = ports.clock;
    this.#log = ports.log;
  }

  async check(name: string, password: string): Promise<Account | undefined> {
    try {
      const account = await this.#ask(name, password);
      if (account !== undefined) this.#remember(account);
      return account;
    } catch (error) {
      this.#tell(error instanceof Error ? error.message : String(error));
      throw error;
    }
  }

  isStill(account: Account): boolean {
    return this.#known.get(account.name) === account;
  }

  find(name: string): Account | undefined {
    return this.#known.get(name);
  }

  async #ask(user: string, password: string): Promise<Account | undefined> {
    const { url, timeoutMs, token } = this.#options;
    const answer = await fetch(url, {
      method: 'POST', redirect: 'error', signal: AbortSignal.timeout(timeoutMs),
      headers: {
        'content-type': 'application/json', ...(token === '' ? {} : { authorization: `Bearer ${token}` }),
      },
      body: JSON.stringify({ user, password }),
    });
    if (WRONG.has(answer.status)) {
      await answer.body?.cancel();
      return undefined;
    }
    if (answer.status !== 200) throw new Error(`it answered ${String(answer.status)}`);
    return accountOf(user, await textOf(answer));
  }

  #remember(account: Account): void {
    this.#known.delete(account.name);
    this.#known.set(account.name, account);
    if (this.#known.size <= KNOWN_MAX) return;
    const [oldest] = this.#known.keys();
    if (oldest !== undefined) this.#known.delete(oldest);
  }

  #tell(why: string): void {
    const nowMs = this.#clock.nowMs();
    if (nowMs - this.#toldMs < TOLD_EVERY_MS) return;
    this.#toldMs = nowMs;
    this.#log.error('users', 'passwords can\'t be checked by HTTP; clients are told to try later', { why });
  }
}

/** Bounded: the server may be anybody's. */
async function textOf(answer: Response): Promise<string> {
  let text = '';
  const decoder = new TextDecoder();
  for await (const piece of answer.body ?? []) {
    text += decoder.decode(piece as Uint8Array, { stream: true });
    if (text.length > ANSWER_BYTES_MAX) throw new Error('its answer is too long');
  }
  return text;
}

function accountOf(name: string, text: string): Account {
  const { addresses } = (text.trim() === '' ? {} : JSON.parse(text)) as { readonly addresses?: unknown };
  // A name that is no address would be a domain, or all of them.
  const own = /^[^@*\s]+@[^@*\s]+$/.test(name) ? [name.toLowerCase()] : [];
  if (addresses === undefined) return { name, addresses: own };
  const isList = Array.isArray(addresses) && addresses.length <= ADDRESSES_MAX
    && addresses.every((each) => typeof each === 'string');
  if (!isList) throw new Error('its addresses are no list of texts');
  return { name, addresses: (addresses as readonly string[]).map((each) => each.toLowerCase()) };
}
