/**
 * The addresses of a host that a configuration names, as a connection to its name finds them: by the system,
 * with its hosts file. Hosts that the DNS names are asked for by dns/dns-client.ts.
 *
 * The system is asked in a thread of libuv, which gives two of its four to that, and what was asked can't be
 * taken back: a name whose servers are silent keeps one for ten seconds and more. Links to stores, the client
 * of etcd, and hooks and directories by HTTP need them, too. So a gateway asks for its next hops one name
 * after the other, each once for all who wait for it (HostLookups): they never have both.
 *
 *   wanted ─► in line ─ no other is asked for ─► asked for ─ answered/all who wait are told ─► (none)
 *     ▲                                            │ STUCK_AFTER_MS/they are told that it failed
 *     │ wanted/told so at once                     ▼
 *     └──────── it comes back after all ◄──────── stuck
 *
 *   in line, asked for ─ KNOWN_AFTER_MS/told what was found within KNOWN_MS; it is asked for all the same
 *
 * So whatever a name waits for, one that was found within the hour waits a moment; and what nobody can tell
 * just now is told of it as it was found then.
 *
 * A lookup that is stuck keeps its thread, maybe until the process ends. None is begun before it comes back:
 * the other thread is all that links to stores have then. Meanwhile names that were ever found are told as
 * they were last, those that were not wait here, and status says for what.
 *
 * Names that took long the last time are behind all others in line, but for one of them after each PASSED_MAX
 * others. Who gives up is forgotten; the name keeps its place, or one that is well again might never get its
 * turn, unless nobody waits for any.
 */
import { ADDRCONFIG } from 'node:dns';
import { lookup } from 'node:dns/promises';
import { isIP } from 'node:net';
import { formatCount, formatDuration } from '../../base/units.js';
import type { Clock } from '../ports.js';
import type { HostAddresses, LookUpHost, LookupWait } from '../resolver.js';

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
/** A resolver nearby answers sooner, and a new connection may take so long. */
const KNOWN_AFTER_MS = 250;
/** Three silent resolvers cost 30 s, 5 s each and asked twice: what takes twice that is no matter of them. */
const STUCK_AFTER_MS = 60_000;
/** In line; the system is on to its second resolver. */
const HELD_MS = 5_000;
/** Who comes again within so long has waited all the time: a connection is put off for half a second. */
const COMES_BACK_MS = 5_000;

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

/** Of one that is stuck. */
const UNTOLD: HostAddresses = {
  addresses: [], why: `no answer on its address within ${String(STUCK_AFTER_MS / 1000)} s`, isFailed: true,
};

interface Waiting {
  readonly done: (found: HostAddresses) => void;
  /** Until it is told what is known. */
  readonly timer?: NodeJS.Timeout | undefined;
}

interface Wanted {
  /** Since then somebody has waited. */
  sinceMs: number;
  readonly waiting: Set<Waiting>;
  /** When the last of those went; that is for COMES_BACK_MS as if he had not. */
  leftMs: number;
  /** Somebody was told what is known: the name is asked for all the same. */
  isOwed: boolean;
}

interface Asked {
  readonly host: string;
  readonly sinceMs: number;
  /** Nobody waits for it any more, and it is not in line. */
  isStuck: boolean;
}

export class HostLookups {
  readonly #look: LookUpHost;
  readonly #clock: Pick<Clock, 'nowMs'>;
  /** The line, and who waits for each name; as many as a configuration has, and `explain` is asked for. */
  readonly #names = new Map<string, Wanted>();
  /** Names that took long the last time, in the order in which they did. */
  readonly #slow = new Set<string>();
  /** Names that went before a slow one since the last of those. */
  #passed = 0;
  /** It stands in line still, until it is stuck: who comes meanwhile is told, too. */
  #asking: Asked | undefined;
  /** What was found last, in that order; also that nothing was, which is over at once. */
  readonly #known = new Map<string, { readonly found: HostAddresses; readonly untilMs: number }>();

  constructor(look: LookUpHost, clock: Pick<Clock, 'nowMs'>) {
    this.#look = look;
    this.#clock = clock;
  }

  /**
   * Never calls back from inside. What is returned is called by who does not want it any more, and says
   * whether the name was asked for, and that for SLOW_MS: one that had no time to answer is not silent.
   */
  ask(host: string, done: (found: HostAddresses) => void): () => boolean {
    const isAddress = isIP(host) !== 0;
    const isStuck = this.#asking?.host === host && this.#asking.isStuck;
    if (!isAddress && !isStuck) return this.#wait(host, done);
    const at = isAddress ? { addresses: [host], why: '', isFailed: false } : this.#knownOf(host) ?? UNTOLD;
    const immediate = setImmediate(done, at);
    return () => {
      clearImmediate(immediate);
      return true;
    };
  }

  /** Given up when `over` is done. */
  lookUp(host: string, over: Promise<void>): Promise<HostAddresses> {
    return new Promise((resolve) => { void over.then(this.ask(host, resolve)); });
  }

  #wait(host: string, done: (found: HostAddresses) => void): () => boolean {
    const wanted = this.#names.get(host)
      ?? { sinceMs: 0, waiting: new Set(), leftMs: -Infinity, isOwed: false };
    this.#names.set(host, wanted);
    if (!this.#isWaitedFor(wanted)) wanted.sinceMs = this.#clock.nowMs();
    const known = this.#knownOf(host);
    const timer = known === undefined ? undefined : setTimeout(() => {
      this.#leave(wanted, one);
      wanted.isOwed = true;
      done(known);
    }, KNOWN_AFTER_MS);
    const one: Waiting = { done, timer };
    wanted.waiting.add(one);
    this.#askNext();
    return () => {
      clearTimeout(timer);
      const isWanted = this.#names.get(host) === wanted;
      const wasTold = !this.#leave(wanted, one);
      return wasTold || !isWanted || this.#isAskedLong(host);
    };
  }

  /** False: he had gone. */
  #leave(wanted: Wanted, one: Waiting): boolean {
    const wasWaiting = wanted.waiting.delete(one);
    if (wasWaiting && wanted.waiting.size === 0) wanted.leftMs = this.#clock.nowMs();
    return wasWaiting;
  }

  #isWaitedFor({ waiting, leftMs }: Wanted): boolean {
    return waiting.size > 0 || this.#clock.nowMs() - leftMs < COMES_BACK_MS;
  }

  #isAskedLong(host: string): boolean {
    const asked = this.#asking?.host === host ? this.#asking : undefined;
    return asked !== undefined && this.#clock.nowMs() - asked.sinceMs >= SLOW_MS;
  }

  /** Undefined: nobody waits for it, or what is known of it will do. */
  waitOf(host: string): LookupWait | undefined {
    const wanted = this.#names.get(host);
    if (wanted === undefined || !this.#isWaitedFor(wanted)) return undefined;
    if (this.#knownOf(host) !== undefined) return undefined;
    const inLine = `one of ${formatCount(this.#names.size)} in line; ${this.#whatIsAsked}`;
    const doing = host === this.#asking?.host ? 'waiting for the system to look up its name'
      : `waiting for the lookup of its name, ${inLine}`;
    return { forMs: this.#clock.nowMs() - wanted.sinceMs, doing };
  }

  /**
   * Of how many names mail has waited in line for HELD_MS, and for what; '': of none. Those that were not
   * found the last time are told of as next hops that can't be reached.
   */
  get held(): string {
    const isHeldFrom = this.#clock.nowMs() - HELD_MS;
    const held = [...this.#names].filter(([host, wanted]) => wanted.sinceMs <= isHeldFrom
      && this.#isWaitedFor(wanted) && host !== this.#asking?.host
      && this.#knownOf(host) === undefined && !this.#isToldOf(host));
    return held.length === 0 ? '' : `${formatCount(held.length)} in line; ${this.#whatIsAsked}`;
  }

  /** While there is a line. */
  get #whatIsAsked(): string {
    const { host = '', sinceMs = 0 } = this.#asking ?? {};
    return `the system has been looking up ${host} for ${formatDuration(this.#clock.nowMs() - sinceMs)}`;
  }

  #isToldOf(host: string): boolean {
    return this.#known.get(host)?.found.addresses.length === 0;
  }

  #knownOf(host: string): HostAddresses | undefined {
    const known = this.#known.get(host);
    if (known === undefined) return undefined;
    const mayBeOld = this.#asking?.isStuck === true && known.found.addresses.length > 0;
    return mayBeOld || this.#clock.nowMs() < known.untilMs ? known.found : undefined;
  }

  #askNext(): void {
    const host = this.#asking === undefined ? this.#takeNext() : undefined;
    if (host === undefined) return;
    const asked: Asked = { host, sinceMs: this.#clock.nowMs(), isStuck: false };
    this.#asking = asked;
    const bound = setTimeout(() => {
      asked.isStuck = true;
      this.#tell(host, UNTOLD);
    }, STUCK_AFTER_MS);
    void this.#look(host).then((found) => {
      clearTimeout(bound);
      this.#asking = undefined;
      this.#noteFound(host, found);
      this.#noteTime(host, this.#clock.nowMs() - asked.sinceMs);
      this.#tell(host, found);
    });
  }

  #tell(host: string, found: HostAddresses): void {
    const told = found.isFailed ? this.#knownOf(host) ?? found : found;
    const { waiting = [] } = this.#names.get(host) ?? {};
    this.#names.delete(host);
    this.#askNext();
    for (const { done, timer } of waiting) {
      clearTimeout(timer);
      done(told);
    }
  }

  #takeNext(): string | undefined {
    const isAny = [...this.#names.values()].some(({ waiting, isOwed }) => waiting.size > 0 || isOwed);
    if (!isAny) this.#names.clear();
    const names = [...this.#names.keys()];
    const slow = names.find((name) => this.#slow.has(name));
    const soon = names.find((name) => !this.#slow.has(name));
    const isPassed = slow !== undefined && soon !== undefined && this.#passed < PASSED_MAX;
    this.#passed = isPassed ? this.#passed + 1 : 0;
    return isPassed ? soon : slow ?? soon;
  }

  #noteFound(host: string, found: HostAddresses): void {
    // That nobody could tell says nothing of it.
    if (found.isFailed && this.#knownOf(host) !== undefined) return;
    this.#known.delete(host);
    const forMs = found.addresses.length === 0 ? 0 : KNOWN_MS;
    this.#known.set(host, { found, untilMs: this.#clock.nowMs() + forMs });
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
