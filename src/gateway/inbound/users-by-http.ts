/**
 * Users whom somebody else knows: each password is asked for by HTTP, once in ten minutes while it is right
 * (auth/password-checks.ts).
 *
 *   POST URL   {"user": "…", "password": "…"}
 *   200        {"addresses": ["alice@example.com", "@example.org"]}: what the user may send from; without
 *              any: the name, if it is an address. {"user": "…"}: the one name of who has several, by which
 *              he is logged and limited
 *   401, 403   wrong
 *   else, an empty 200, a key that is none of these, or no answer in time: nobody can tell now (454)
 *
 * An answer holds for ACCOUNT_MS, in sessions too: then they send nothing more, unless the same password was
 * asked for again meanwhile. Sessions have no addresses: those are kept here, bounded.
 */
import { z } from 'zod';
import { listOf } from '../../base/json-shape.js';
import { Newest } from '../../base/newest.js';
import { ACCOUNT_CHARACTERS_MAX, charactersOf } from './auth/directory.js';
import type { Account, Directory } from './auth/directory.js';
import { ADDRESSES_MAX, senderKeyOf } from './auth/users.js';
import { toAscii } from '../../platform/node/idna.js';
import type { Clock } from '../../platform/ports.js';
import { HttpService, answered } from './http-service.js';
import type { HttpAnswer, HttpServiceOptions, HttpServicePorts } from './http-service.js';

const CHECKS_AT_ONCE = 16;
const ACCOUNT_MS = 600_000;
/** Before that: who has just authenticated by what is remembered has time to send. */
const KEPT_MS = ACCOUNT_MS - 60_000;
/** Users who have authenticated, or sent, lately; the oldest goes. */
const KNOWN_MAX = 100_000;
const NAME_CHARACTERS_MAX = 255;
const right = z.strictObject({
  user: z.string().min(1).max(NAME_CHARACTERS_MAX).regex(/^[^\s\0-\x1f\x7f]+$/).optional(),
  addresses: listOf(z.string(), ADDRESSES_MAX).optional(),
});
const WRONG: ReadonlySet<number> = new Set([401, 403]);

interface Answer {
  readonly name: string;
  readonly addresses: readonly string[];
}

interface Known {
  readonly addresses: readonly string[];
  readonly untilMs: number;
}

class HttpAccount implements Account {
  readonly name: string;
  /** What is known of it stands under that. */
  readonly key: string;

  constructor(name: string, key: string) {
    this.name = name;
    this.key = key;
  }
}

export class UsersByHttp implements Directory {
  readonly checksAtOnce = CHECKS_AT_ONCE;
  readonly keptMs = KEPT_MS;
  readonly scramUsers = undefined;
  readonly #service: HttpService;
  readonly #clock: Clock;
  readonly #known = new Newest<Known>(KNOWN_MAX, ACCOUNT_CHARACTERS_MAX);
  #accounts = 0;

  constructor(options: HttpServiceOptions, ports: HttpServicePorts) {
    const { log, clock } = ports;
    this.#clock = clock;
    this.#service = new HttpService(options, ports, (why) => {
      if (why === '') log.info('users', 'passwords are checked by HTTP again');
      else log.error('users', 'passwords can\'t be checked by HTTP; clients are told to try later', { why });
    });
  }

  async check(
    user: string, password: string, before: Account | undefined,
  ): Promise<Account | undefined> {
    const answer = await this.#service.ask({ user, password }, (said) => answerOf(user, said));
    const known = before instanceof HttpAccount ? before : undefined;
    if (known !== undefined && known.name !== answer?.name) this.#known.delete(known.key);
    if (answer === undefined) return undefined;
    const { name, addresses } = answer;
    const account = known?.name === name ? known : new HttpAccount(name, String(this.#accounts++));
    const untilMs = this.#clock.nowMs() + ACCOUNT_MS;
    this.#known.set(account.key, { addresses, untilMs }, charactersOf(answer));
    return account;
  }

  addressesOf(account: Account): readonly string[] | undefined {
    if (!(account instanceof HttpAccount)) return undefined;
    const known = this.#known.renewed(account.key);
    if (known === undefined || known.untilMs > this.#clock.nowMs()) return known?.addresses;
    this.#known.delete(account.key);
    return undefined;
  }

  /** Who vouches for a name needs users of a file: of another's none is known without a password. */
  find(): undefined {
    return undefined;
  }
}

function answerOf(said: string, answer: HttpAnswer): Answer | undefined {
  if (WRONG.has(answer.status)) return undefined;
  const { user: name = said, addresses } = answered(right, answer);
  // A name that is no address would be a domain, or all of them.
  const own = /^[^@*\s]+@[^@*\s]+$/.test(name) ? [name] : [];
  return { name, addresses: (addresses ?? own).map((address) => senderKeyOf(address, toAscii)) };
}
