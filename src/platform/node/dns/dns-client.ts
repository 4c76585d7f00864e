/**
 * The real Resolver: asks recursive resolvers, those of the system or of the configuration, off the thread
 * pool of the process.
 *
 *   ask ─ known ─► done
 *    │ being asked: waits along     │ as many as may be asked at once: waits in line, a bounded one
 *    ▼                              ─ for too long ─► failed, not asked
 *   exchange with the resolver that answered last ─ answer ─► kept by its TTL ─► done
 *    │ refused                │ silent
 *    │                        ▼
 *    │                 waits behind all others, to be asked again
 *    ▼                        ▼
 *   the next resolver, each twice at most ─ none left ─► failed, kept for FAILED_MS
 *
 * A domain whose name servers are silent costs seconds each time, and anybody has as many of those as he
 * likes: what is asked again after silence, and names of domains that were silent to the end when last asked
 * (silent-domains.ts), wait behind all others and have a part of the room. So they stop nobody. A small part
 * of it is always theirs: some are there by mistake. Of those two, each second place is for what is asked
 * again: a domain that one packet was lost of does not wait behind those that are silent.
 *
 * Where one is believed about DNSSEC, others are not asked: what one that is not believed answers in its
 * place would count as not signed, and for a name of a signed zone no answer is better (RFC 7672 2.1).
 *
 * Here are questions under way; sockets are in dns-exchange.ts, bytes in dns-message.ts.
 */
import { randomInt } from 'node:crypto';
import { getServers } from 'node:dns';
import type { Clock } from '../../ports.js';
import type { DnsAnswer, DnsType, Resolver } from '../../resolver.js';
import { isLoopback } from '../own-host.js';
import { TurnShare } from '../turn-share.js';
import { DnsCache } from './dns-cache.js';
import { DnsExchange } from './dns-exchange.js';
import type { DnsServer, DnsVerdict } from './dns-exchange.js';
import { isAskable } from './dns-message.js';
import { SilentDomains } from './silent-domains.js';

export interface DnsOptions {
  /** Resolvers; empty: those of the system. */
  readonly resolvers: readonly { readonly host: string; readonly port: number }[];
  /** What they say of DNSSEC is believed although they are not on this machine. */
  readonly trustsAd: boolean;
}

/** Who wants to know what comes of each question to a resolver. */
export interface DnsWatch {
  asked(resolver: DnsServer, verdict: DnsVerdict): void;
}

const DNS_PORT = 53;
const IDS = 0x1_0000;
/** For one resolver: the first time, and again. With three of them an answer comes within nine seconds. */
const TRIES_MS = [1000, 2000] as const;
const FAILED_MS = 5_000;
/** Unless it is said otherwise. Each has a socket; and a resolver's own socket must hold as many. */
const AT_ONCE_MAX = 128;
/** Of those, to domains that are silent; and how many they have whatever else waits. */
const SLOW_SHARE = 1 / 4;
const SLOW_KEPT_SHARE = 1 / 16;
/** In each line, unless it is said otherwise. */
const IN_LINE_MAX = 10_000;
/** Who has waited in line for longer, behind resolvers that are silent, is not asked for any more. */
const IN_LINE_MS_MAX = 10_000;
const NO_RESOLVER = 'the system names no resolver';
const TOO_MANY = { kind: 'failed', why: 'too many questions at once', isUnasked: true } as const;

type Done = (answer: DnsAnswer<DnsType>) => void;

interface Asked {
  readonly key: string;
  readonly name: string;
  readonly type: DnsType;
  readonly waiting: Done[];
  /** If it is still in line then, none of them wants it any more. */
  untilMs: number;
  /** Exchanges so far, and the resolver that the first one was with. */
  tries: number;
  first: number;
  why: string;
  /** It has, or waits for, a place of those that are left to silent domains. */
  isSlow: boolean;
  exchange: DnsExchange | undefined;
}

export class DnsClient implements Resolver {
  watch: DnsWatch | undefined;
  #servers: readonly DnsServer[] = [];
  #leftOut: readonly string[] = [];
  readonly #clock: Clock;
  readonly #atOnceMax: number;
  readonly #inLineMax: number;
  readonly #cache = new DnsCache();
  readonly #asked = new Map<string, Asked>();
  #line: Asked[] = [];
  readonly #slowLine: Asked[] = [];
  /** Of domains that were silent, as far as is known, this time only. */
  readonly #againLine: Asked[] = [];
  #silent = new SilentDomains();
  readonly #reading = new TurnShare();
  readonly #slowMax: number;
  readonly #slowKept: number;
  #underWay = 0;
  /** Of those, out of the slow line. */
  #slowUnderWay = 0;
  #isStarting = false;
  #isTurnOfAgain = true;
  /** The resolver that answered last is asked first. */
  #best = 0;

  constructor(options: DnsOptions, clock: Clock, atOnceMax = AT_ONCE_MAX, inLineMax = IN_LINE_MAX) {
    this.#clock = clock;
    this.#atOnceMax = atOnceMax;
    this.#inLineMax = inLineMax;
    this.#slowMax = Math.max(1, Math.floor(atOnceMax * SLOW_SHARE));
    this.#slowKept = Math.floor(atOnceMax * SLOW_KEPT_SHARE);
    this.renew(options);
  }

  /** Others are asked from now on, for everything anew, also for what is being asked. */
  renew({ resolvers, trustsAd }: DnsOptions): void {
    const servers = resolvers.length > 0 ? resolvers : getServers().map(serverOf);
    const all = servers.map((each) => ({ ...each, isTrusted: isBelieved(each.host, trustsAd) }));
    const believed = all.filter(({ isTrusted }) => isTrusted);
    this.#servers = believed.length > 0 ? believed : all;
    this.#leftOut = all.filter((each) => !this.#servers.includes(each)).map(({ host }) => host);
    this.#best = 0;
    this.#cache.forgetAll();
    this.#silent = new SilentDomains();
    this.#beginAnew();
  }

  /** Each is as one that is asked now. */
  #beginAnew(): void {
    for (const asked of this.#asked.values()) {
      const untilMs = this.#clock.nowMs() + IN_LINE_MS_MAX;
      asked.exchange?.abandon();
      Object.assign(asked, { untilMs, tries: 0, why: NO_RESOLVER, isSlow: false, exchange: undefined });
    }
    this.#line = [...this.#asked.values()];
    this.#slowLine.length = 0;
    this.#againLine.length = 0;
    this.#underWay = 0;
    this.#slowUnderWay = 0;
    this.#startNext();
  }

  /** Hosts that are not asked, as others are believed: of the system, for a file that mixes is refused. */
  get leftOut(): readonly string[] {
    return this.#leftOut;
  }

  /** What it is told of DNSSEC counts. */
  get believesAd(): boolean {
    return this.#servers.some(({ isTrusted }) => isTrusted);
  }

  ask<T extends DnsType>(
    name: string, type: T, done: (answer: DnsAnswer<T>) => void, withinMs = IN_LINE_MS_MAX,
  ): void {
    this.#ask(name.toLowerCase(), type, done as Done, withinMs);
  }

  forgetMissing(name: string): void {
    this.#cache.forgetMissing(`MX ${name.toLowerCase()}`);
  }

  forgetAll(): void {
    this.#cache.forgetAll();
  }

  /** Ends what is under way; nobody is told. */
  close(): void {
    for (const asked of this.#asked.values()) asked.exchange?.abandon();
    this.#asked.clear();
    this.#line.length = 0;
    this.#slowLine.length = 0;
    this.#againLine.length = 0;
  }

  #ask(name: string, type: DnsType, done: Done, withinMs: number): void {
    if (!isAskable(name)) return done({ kind: 'failed', why: 'not a name that the DNS can hold' });
    const key = `${type} ${name}`;
    const nowMs = this.#clock.nowMs();
    const known = this.#cache.get(key, nowMs);
    if (known !== undefined) return done(known);
    const before = this.#asked.get(key);
    const untilMs = nowMs + Math.min(withinMs, IN_LINE_MS_MAX);
    if (before !== undefined) {
      before.untilMs = Math.max(before.untilMs, untilMs);
      return void before.waiting.push(done);
    }
    if (this.#servers.length === 0) return done({ kind: 'failed', why: NO_RESOLVER });
    const isSlow = this.#silent.has(name);
    const line = isSlow ? this.#slowLine : this.#line;
    if (line.length >= this.#inLineMax) return done(TOO_MANY);
    const asked: Asked = {
      key, name, type, waiting: [done], untilMs, tries: 0, first: 0, why: NO_RESOLVER, isSlow,
      exchange: undefined,
    };
    this.#asked.set(key, asked);
    line.push(asked);
    this.#startNext();
  }

  /**
   * Who is told may ask for more, and comes here again: the loop that runs goes on. One inside the other
   * would be as deep as the line is long.
   */
  #startNext(): void {
    if (this.#isStarting) return;
    this.#isStarting = true;
    this.#endOverdue(this.#slowLine);
    this.#endOverdue(this.#againLine);
    while (this.#underWay < this.#atOnceMax) {
      const next = this.#next();
      if (next === undefined) break;
      if (this.#clock.nowMs() > next.untilMs) {
        this.#giveUp(next);
        continue;
      }
      if (!next.isSlow && this.#silent.has(next.name)) {
        next.isSlow = true;
        this.#wait(next, this.#slowLine);
        continue;
      }
      next.isSlow ||= next.tries > 0;
      this.#underWay++;
      if (next.isSlow) this.#slowUnderWay++;
      if (next.tries === 0) next.first = this.#best;
      this.#try(next);
    }
    this.#isStarting = false;
  }

  #wait(asked: Asked, line: Asked[]): void {
    if (line.length >= this.#inLineMax) this.#giveUp(asked);
    else line.push(asked);
  }

  #next(): Asked | undefined {
    if (this.#slowUnderWay >= this.#slowMax) return this.#line.shift();
    if (this.#slowUnderWay < this.#slowKept) return this.#nextSlow() ?? this.#line.shift();
    return this.#line.shift() ?? this.#nextSlow();
  }

  #nextSlow(): Asked | undefined {
    const isTurn = this.#isTurnOfAgain;
    this.#isTurnOfAgain = !isTurn;
    const [first, other] = isTurn ? [this.#againLine, this.#slowLine] : [this.#slowLine, this.#againLine];
    return first.shift() ?? other.shift();
  }

  /** Also while none of them is asked, for there is always something that is. */
  #endOverdue(line: Asked[]): void {
    for (let [first] = line; first !== undefined && this.#clock.nowMs() > first.untilMs; [first] = line) {
      line.shift();
      this.#giveUp(first);
    }
  }

  /** It is not asked any more. */
  #giveUp(asked: Asked): void {
    if (asked.tries === 0) this.#tell(asked, TOO_MANY);
    else this.#fail(asked);
  }

  /** It needs its place no more. */
  #leave({ isSlow }: Asked): void {
    this.#underWay--;
    if (isSlow) this.#slowUnderWay--;
  }

  #try(asked: Asked): void {
    const { name, type } = asked;
    const at = (asked.first + asked.tries) % this.#servers.length;
    const server = this.#servers[at];
    const withinMs = TRIES_MS[Math.floor(asked.tries / this.#servers.length)];
    if (server === undefined || withinMs === undefined) {
      this.#leave(asked);
      this.#fail(asked);
      return this.#startNext();
    }
    asked.tries++;
    const question = { id: randomInt(IDS), name, type };
    asked.exchange = new DnsExchange(server, question, withinMs, this.#reading, (verdict) => {
      this.#onVerdict(asked, at, server, verdict);
    });
  }

  #onVerdict(asked: Asked, at: number, server: DnsServer, verdict: DnsVerdict): void {
    this.watch?.asked(server, verdict);
    if (verdict.kind === 'refused') {
      asked.why = `${server.host}: ${verdict.why}`;
      if (verdict.isSilent !== true) return this.#try(asked);
      if (asked.tries === TRIES_MS.length * this.#servers.length) this.#silent.note(asked.name);
      if (asked.isSlow) return this.#try(asked);
      this.#leave(asked);
      this.#wait(asked, this.#againLine);
      return this.#startNext();
    }
    this.#silent.noteAnswer(asked.name);
    this.#leave(asked);
    this.#best = at;
    this.#keep(asked, verdict.answer, verdict.ttlSeconds * 1000);
    this.#tell(asked, verdict.answer);
    this.#startNext();
  }

  #fail(asked: Asked): void {
    const answer = { kind: 'failed', why: asked.why } as const;
    this.#keep(asked, answer, FAILED_MS);
    this.#tell(asked, answer);
  }

  #keep({ key }: Asked, answer: DnsAnswer<DnsType>, forMs: number): void {
    if (forMs > 0) this.#cache.put(key, answer, this.#clock.nowMs() + forMs);
  }

  #tell(asked: Asked, answer: DnsAnswer<DnsType>): void {
    this.#asked.delete(asked.key);
    for (const done of asked.waiting) done(answer);
  }
}

/** Of the system: an address, or one with a port. */
function serverOf(text: string): { host: string; port: number } {
  const [, host, port] = /^\[(.*)\]:(\d+)$/.exec(text) ?? /^([^:]*):(\d+)$/.exec(text) ?? [];
  return { host: host ?? text, port: port === undefined ? DNS_PORT : Number(port) };
}

/** Whether what it says of DNSSEC counts: on the way to another machine anyone can set that flag. */
export function isBelieved(host: string, trustsAd: boolean): boolean {
  return trustsAd || isLoopback(host);
}
