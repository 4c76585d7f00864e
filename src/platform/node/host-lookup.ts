/**
 * The addresses of a host that a configuration names, as a connection to its name finds them: by the system,
 * with its hosts file. Hosts that the DNS names are asked for by dns/dns-client.ts.
 *
 * The system is asked in a thread of libuv, which gives two of its four to that, and what was asked can't be
 * taken back: a name whose servers are silent keeps one for ten seconds and more. Links to stores and the
 * client of etcd need them, too. So a gateway asks for its next hops one name after the other, each once for
 * all who wait for it (HostLookups).
 *
 *   wanted ─► in line ─ no other is being asked for ─► being asked for ─► answered: all who wait are told
 *
 * Names that took long the last time are behind all others in line, but for one of them after each PASSED_MAX
 * others. Who gives up is forgotten; the name keeps its place, or one that is well again might never get its
 * turn, unless nobody waits for any.
 *
 * Whoever is first in line, a lookup that takes long holds up all others. So while one does, or did the last
 * time, a name that was found within KNOWN_MS is answered with what was found then, and asked for all the
 * same, before the next slow one: what is old is so for one lookup of another name.
 */
import { ADDRCONFIG } from 'node:dns';
import { lookup } from 'node:dns/promises';
import { isIP } from 'node:net';
import type { Clock } from '../ports.js';
import type { HostAddresses, LookUpHost } from '../resolver.js';

/** What getaddrinfo says of a name that is not there, or has no address. */
const NONE: readonly string[] = ['ENOTFOUND', 'ENODATA'];

/** All addresses, as net.connect() asks for them: of no family that this machine has no address of. */
const LOOKUP = { all: true, hints: ADDRCONFIG } as const;

/** The system waits 5 s for the first of its resolvers, unless resolv.conf says otherwise. */
const SLOW_MS = 1_000;
/** So many that answer soon are sooner done than a slow one. */
const PASSED_MAX = 100;
/** Names that a configuration had before are among them. */
const SLOW_NAMES_MAX = 1_000;
/** As long as many a zone lets its addresses be kept. */
const KNOWN_MS = 3_600_000;
/** As for the slow ones; the oldest is forgotten first, which costs a wait. */
const KNOWN_MAX = 10_000;

export async function lookUpHost(host: string): Promise<HostAddresses> {
  try {
    const found = await lookup(host, LOOKUP);
    return { addresses: found.map(({ address }) => address), why: '', isFailed: false };
  } catch (error) {
    const { code = 'no code' } = error as NodeJS.ErrnoException;
    return NONE.includes(code) ? { addresses: [], why: 'it has no address', isFailed: false }
      : { addresses: [], why: `no answer on its address: ${code}`, isFailed: true };
  }
}

interface Waiting {
  readonly done: (found: HostAddresses) => void;
}

/** Has its answer already, an older one. */
const ANSWERED: Waiting = { done: () => undefined };

export class HostLookups {
  readonly #look: LookUpHost;
  readonly #clock: Pick<Clock, 'nowMs'>;
  /** The line, and who waits for each name; as many as a configuration has, and `explain` is asked for. */
  readonly #names = new Map<string, Set<Waiting>>();
  /** Names that took long the last time, in the order in which they did. */
  readonly #slow = new Set<string>();
  /** Names that went before a slow one since the last of those. */
  #passed = 0;
  #asking: { readonly host: string; readonly sinceMs: number } | undefined;
  /** What was found last, in that order. */
  readonly #known = new Map<string, { readonly found: HostAddresses; readonly untilMs: number }>();

  constructor(look: LookUpHost, clock: Pick<Clock, 'nowMs'>) {
    this.#look = look;
    this.#clock = clock;
  }

  /**
   * Never calls back from inside. What is returned is called by who does not want it any more, and says
   * whether the name was asked for.
   */
  ask(host: string, done: (found: HostAddresses) => void): () => boolean {
    const isAddress = isIP(host) !== 0;
    const at = isAddress ? { addresses: [host], why: '', isFailed: false } : this.#knownOf(host);
    if (!isAddress && at !== undefined) this.#wait(host, ANSWERED);
    if (at === undefined) return this.#wait(host, { done });
    const immediate = setImmediate(done, at);
    return () => {
      clearImmediate(immediate);
      return true;
    };
  }

  #wait(host: string, waiting: Waiting): () => boolean {
    const all = this.#names.get(host) ?? new Set();
    this.#names.set(host, all);
    all.add(waiting);
    if (this.#asking === undefined) this.#askNext();
    return () => {
      const isInLine = this.#names.get(host) === all && this.#asking?.host !== host;
      all.delete(waiting);
      return !isInLine;
    };
  }

  /** Undefined where nothing is, or nobody holds up the line: it is waited for. */
  #knownOf(host: string): HostAddresses | undefined {
    if (this.#asking === undefined) return undefined;
    const nowMs = this.#clock.nowMs();
    const isHeldUp = this.#slow.has(this.#asking.host) || nowMs - this.#asking.sinceMs >= SLOW_MS;
    const known = this.#known.get(host);
    return isHeldUp && known !== undefined && nowMs < known.untilMs ? known.found : undefined;
  }

  #askNext(): void {
    const host = this.#takeNext();
    const sinceMs = this.#clock.nowMs();
    this.#asking = host === undefined ? undefined : { host, sinceMs };
    if (host === undefined) return;
    void this.#look(host).then((found) => {
      this.#noteTime(host, this.#clock.nowMs() - sinceMs);
      this.#noteFound(host, found);
      const all = this.#names.get(host) ?? [];
      this.#names.delete(host);
      this.#askNext();
      for (const { done } of all) done(found);
    });
  }

  /** It stays in line while it is asked for: who comes meanwhile is told, too. */
  #takeNext(): string | undefined {
    if ([...this.#names.values()].every(({ size }) => size === 0)) this.#names.clear();
    const names = [...this.#names.keys()];
    const slow = names.find((name) => this.#slow.has(name));
    const soon = names.find((name) => !this.#slow.has(name));
    const isPassed = slow !== undefined && soon !== undefined && this.#passed < PASSED_MAX;
    this.#passed = isPassed ? this.#passed + 1 : 0;
    return isPassed ? soon : slow ?? soon;
  }

  #noteFound(host: string, found: HostAddresses): void {
    // That nobody could tell says nothing of it.
    if (found.isFailed) return;
    this.#known.delete(host);
    if (found.addresses.length === 0) return;
    this.#known.set(host, { found, untilMs: this.#clock.nowMs() + KNOWN_MS });
    const [oldest = ''] = this.#known.keys();
    if (this.#known.size > KNOWN_MAX) this.#known.delete(oldest);
  }

  #noteTime(host: string, tookMs: number): void {
    this.#slow.delete(host);
    if (tookMs < SLOW_MS) return;
    this.#slow.add(host);
    const [oldest = ''] = this.#slow;
    if (this.#slow.size > SLOW_NAMES_MAX) this.#slow.delete(oldest);
  }
}
