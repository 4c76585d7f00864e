/**
 * Asks DNS blocklists (RFC 5782) about clients that nobody knows. A list answers with an address out of
 * 127.0.0.0/8 for who is on it; out of 127.255.255.0/24 when it will not say, for it was asked through a
 * resolver of everybody's or too often: that is no listing. What can't be asked is no listing either: mail
 * comes in, and the log tells.
 *
 *   192.0.2.7 ─► 7.2.0.192.zen.example.org ─► 127.0.0.2: listed;  none: not;  127.255.255.254: told
 */
import { Resolver } from 'node:dns/promises';
import ipaddr from 'ipaddr.js';
import { OnceInAWhile } from '../../base/once-in-a-while.js';
import type { BlocklistPort } from './options.js';
import type { Clock, EventLog } from '../../platform/ports.js';

export interface BlocklistOptions {
  /** Resolvers, as HOST:PORT; empty: those of the system. */
  readonly resolvers: readonly string[];
}

type OnListing = (list: string) => void;

const ANSWER_MS = 3000;
const KNOWN_MS = 600_000;
const KNOWN_MAX = 100_000;
/** Asked about at a time: more clients are taken as they are. */
const ASKED_MAX = 2000;
const TOLD_EVERY_MS = 60_000;
const NOT_LISTED: ReadonlySet<string> = new Set(['ENOTFOUND', 'ENODATA']);
const NO_ANSWER = '127.255.255.';

interface Known {
  readonly list: string;
  readonly untilMs: number;
}

export class Blocklists implements BlocklistPort {
  readonly #clock: Clock;
  readonly #log: EventLog;
  readonly #resolver = new Resolver({ timeout: ANSWER_MS, tries: 1 });
  /** By address and lists; the oldest goes. */
  readonly #known = new Map<string, Known>();
  readonly #asked = new Map<string, OnListing[]>();
  readonly #telling = new OnceInAWhile(TOLD_EVERY_MS);

  constructor({ resolvers }: BlocklistOptions, ports: { readonly clock: Clock; readonly log: EventLog }) {
    this.#clock = ports.clock;
    this.#log = ports.log;
    if (resolvers.length > 0) this.#resolver.setServers(resolvers);
  }

  look(address: string, lists: readonly string[], done: OnListing): void {
    const key = `${address} ${lists.join(' ')}`;
    const known = this.#known.get(key);
    if (known !== undefined && known.untilMs > this.#clock.nowMs()) return done(known.list);
    const asked = this.#asked.get(key);
    if (asked !== undefined) return void asked.push(done);
    if (this.#asked.size >= ASKED_MAX || !ipaddr.isValid(address)) return done('');
    this.#asked.set(key, [done]);
    void Promise.all(lists.map((list) => this.#ask(nameOf(address, list), list))).then((found) => {
      this.#remember(key, found.find((list) => list !== '') ?? '');
    });
  }

  /** Never rejects. '': it is not on the list, or nobody can tell. */
  async #ask(name: string, list: string): Promise<string> {
    try {
      const answers = await this.#resolver.resolve4(name);
      if (answers.some((answer) => answer.startsWith('127.') && !answer.startsWith(NO_ANSWER))) return list;
      this.#tell(list, `it answered ${answers.join(', ')}`);
    } catch (error) {
      const { code = String(error) } = error as NodeJS.ErrnoException;
      if (!NOT_LISTED.has(code)) this.#tell(list, code);
    }
    return '';
  }

  #remember(key: string, list: string): void {
    this.#known.delete(key);
    this.#known.set(key, { list, untilMs: this.#clock.nowMs() + KNOWN_MS });
    const [oldest] = this.#known.keys();
    if (this.#known.size > KNOWN_MAX && oldest !== undefined) this.#known.delete(oldest);
    const asked = this.#asked.get(key) ?? [];
    this.#asked.delete(key);
    for (const done of asked) done(list);
  }

  #tell(list: string, why: string): void {
    if (!this.#telling.isDue(this.#clock.nowMs())) return;
    const text = 'a DNS blocklist can\'t be asked; clients are taken as if they were not on it';
    this.#log.error('blocklist', text, { list, why });
  }
}

/** RFC 5782 2.1 and 2.4: octets, or nibbles, in reverse. */
function nameOf(address: string, list: string): string {
  const parsed = ipaddr.process(address);
  const parts = parsed.kind() === 'ipv4'
    ? parsed.toByteArray().map(String)
    : parsed.toByteArray().flatMap((byte) => [(byte >> 4).toString(16), (byte & 15).toString(16)]);
  return `${parts.reverse().join('.')}.${list}`;
}
