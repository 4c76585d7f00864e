/**
 * Users whom somebody else knows: each password is asked for by HTTP, once in ten minutes while it is right
 * (auth/password-checks.ts).
 *
 *   POST URL   {"user": "…", "password": "…"}
 *   200        {"addresses": ["alice@example.com", "@example.org"]}: what the user may send from; without
 *              any: the name, if it is an address
 *   401, 403   wrong
 *   else, an empty 200, a key that is none of these, or no answer in time: nobody can tell now (454)
 */
import { z } from 'zod';
import { listOf } from '../../base/json-shape.js';
import { Newest } from '../../base/newest.js';
import { ACCOUNT_CHARACTERS_MAX, charactersOf } from './auth/directory.js';
import type { Account, Directory } from './auth/directory.js';
import { HttpService, answered } from './http-service.js';
import type { HttpAnswer, HttpServiceOptions, HttpServicePorts } from './http-service.js';

const CHECKS_AT_ONCE = 16;
const ADDRESSES_MAX = 1000;
/** Users who have authenticated, or sent, lately; the oldest goes. */
const KNOWN_MAX = 100_000;
const right = z.strictObject({ addresses: listOf(z.string(), ADDRESSES_MAX).optional() });
const WRONG: ReadonlySet<number> = new Set([401, 403]);

export class UsersByHttp implements Directory {
  readonly checksAtOnce = CHECKS_AT_ONCE;
  readonly mayForget = true;
  readonly scramUsers = undefined;
  readonly #service: HttpService;
  readonly #known = new Newest<Account>(KNOWN_MAX, ACCOUNT_CHARACTERS_MAX);

  constructor(options: HttpServiceOptions, ports: HttpServicePorts) {
    const { log } = ports;
    this.#service = new HttpService(options, ports, (why) => {
      if (why === '') log.info('users', 'passwords are checked by HTTP again');
      else log.error('users', 'passwords can\'t be checked by HTTP; clients are told to try later', { why });
    });
  }

  async check(user: string, password: string): Promise<Account | undefined> {
    const account = await this.#service.ask({ user, password }, (answer) => accountOf(user, answer));
    if (account !== undefined) this.#known.set(account.name, account, charactersOf(account));
    return account;
  }

  isStill(account: Account): boolean {
    return this.#known.renewed(account.name) === account;
  }

  find(name: string): Account | undefined {
    return this.#known.renewed(name);
  }
}

function accountOf(name: string, answer: HttpAnswer): Account | undefined {
  if (WRONG.has(answer.status)) return undefined;
  const { addresses } = answered(right, answer);
  // A name that is no address would be a domain, or all of them.
  const own = /^[^@*\s]+@[^@*\s]+$/.test(name) ? [name.toLowerCase()] : [];
  if (addresses === undefined) return { name, addresses: own };
  return { name, addresses: addresses.map((each) => each.toLowerCase()) };
}
