/**
 * MTA-STS policies of domains (RFC 8461): asked for by the way of each queue by MX (mx-destination.ts),
 * before any of its mail leaves. What a policy means is in pure/sts-policy.ts, their file in
 * policy-journal.ts.
 *
 *   ask ─ TXT record ─ its id is that of the policy kept ──────────────────────────► that one
 *    │          │ ─ none, or nobody could tell ──────────────────────────► the one kept, if any
 *    │          ├─ the DNS had no room ──────────────────────────────────► the one kept, if any; else mail
 *    │          │                                                          waits, and asks again
 *    │          └─ another id ─► fetched by HTTPS; mail waits ─ a policy ─► kept, that one
 *    │                                        ├─ none to be had ─────────► the one kept, if any; not
 *    │                                        │                           tried again for AGAIN_MS
 *    │                                        └─ the DNS had no room ────► as above, and not counted
 *    └ tick ─ half of its life is over, or a day ─► fetched anew, while mail goes there now and then
 *      onFailure ─ mail could not go by it ─► fetched anew, once in AGAIN_MS (RFC 8461 5.1)
 *      hasten ─ an operator flushes its mail ─► fetched by the next mail, which waits, whatever its id is,
 *                                               or when it failed; once in HASTENED_MS
 *
 * A policy is kept until max_age is over, whatever the DNS says since (RFC 8461 5.1): who can take the
 * record away, or the server, can't end it. Mode none ends it (8.3).
 *
 * Bounded: AT_ONCE_MAX fetches at once of domains whose policy is kept, and as many of others, so that who
 * makes up domains with silent servers lets no policy run out; the rest in a line, each for the wait of a
 * fetch; POLICIES_MAX kept, past which the one longest not fetched leaves; PATTERN_CHARACTERS_MAX in all,
 * past which the one with the longest list does.
 */
import { markedCut } from '../../../base/cut-text.js';
import { copyOfText } from '../../../base/text-copy.js';
import type { Clock, EventLog } from '../../../platform/ports.js';
import type { Https, HttpsAnswer } from '../../../platform/https.js';
import type { Resolver } from '../../../platform/resolver.js';
import type { MxLookup } from '../mx-lookup.js';
import { inTurns } from '../pure/address-turns.js';
import { judgedHost } from '../pure/public-address.js';
import {
  POLICY_BYTES_MAX, charactersOf, readPolicy, stsHost, stsId, stsRecordName,
} from '../pure/sts-policy.js';
import type { StsPolicy } from '../pure/sts-policy.js';
import { PolicyJournal } from './policy-journal.js';
import type { FetchedPolicy } from './policy-journal.js';

/** `unreachable`: its server; `untrusted`: its certificate; `refused`: not 200, or no plain text. */
export type StsFetchResult = 'fetched' | 'unreachable' | 'untrusted' | 'refused' | 'invalid';

export interface StsPorts {
  readonly clock: Clock;
  readonly log: EventLog;
  readonly resolver: Resolver;
  readonly lookup: MxLookup;
  readonly https: Https;
  onFetched(domain: string, result: StsFetchResult): void;
}

/**
 * `isUnknown`: there may be a policy, and it can't be had now.
 * `isUnasked`: that is so for want of room at the DNS alone.
 */
export type PolicyTold = (policy: StsPolicy | undefined, isUnknown: boolean, isUnasked?: boolean) => void;

/** What the way of a queue needs of it. */
export interface PolicySource {
  /** `done` is called once, maybe before this returns. */
  ask(domain: string, done: PolicyTold): void;
  /** Mail for the domain could not go by its policy: for its hosts, or for TLS with one. */
  onFailure(domain: string, what: 'hosts' | 'tls'): void;
  /** An operator has mail for the domain tried now: it may have mended its policy. */
  hasten(domain: string): void;
  tick(): void;
}

/** Why a policy could not be had, and when that was. */
export interface StsFailure {
  readonly result: StsFetchResult;
  readonly why: string;
  readonly wallMs: number;
  /** It is left alone until then. */
  readonly untilWallMs: number;
}

/** What there is to be said of a domain (explain/explanation.ts). */
export interface ExplainedPolicies extends Pick<PolicySource, 'ask'> {
  /** Asked for mail's sake: it is kept, fetched at this moment, or could not be had. */
  knows(domain: string): boolean;
  /** As it is kept. */
  kept(domain: string): FetchedPolicy | undefined;
  /** While it is not tried again for that. */
  failureOf(domain: string): StsFailure | undefined;
}

const POLICY_PATH = '/.well-known/mta-sts.txt';
/** RFC 8461 3.3. */
const FETCH_MS = 60_000;
const AGAIN_MS = 300_000;
/** Who flushes again and again is no load for it. */
const HASTENED_MS = 10_000;
/** Whatever max_age says: a server is not asked for each message. */
const LIFE_MS_MIN = AGAIN_MS;
const RENEW_MS_MAX = 86_400_000;
const RENEW_AGAIN_MS = 3_600_000;
/** Of domains to which no mail went for so long nothing is renewed. */
const USED_MS_MAX = 30 * 86_400_000;
const AT_ONCE_MAX = 50;
const IN_LINE_MAX = 10_000;
const POLICIES_MAX = 100_000;
const PATTERN_CHARACTERS_MAX = 64 * 1024 * 1024;
/** So many stay once they are too many. */
const PATTERN_CHARACTERS_ROOM = (PATTERN_CHARACTERS_MAX * 15) / 16;
const FAILED_MAX = 100_000;
/** Of what a stranger's server calls its answer. */
const TYPE_BYTES_MAX = 100;
/** A certificate has names of strangers. */
const WHY_BYTES_MAX = 200;
const UNFIT = /[\x00-\x1f\x7f-\x9f]/g;
/** What the domain has published is told again when it is wrong in another way; a server fails in many. */
const PUBLISHED: readonly StsFetchResult[] = ['refused', 'invalid'];
/** Looked at in one tick: all of them in a minute. */
const SWEPT_AT_ONCE = 500;

interface Kept extends FetchedPolicy {
  /** Of its names. */
  readonly characters: number;
  usedWallMs: number;
  renewFromWallMs: number;
  /** The next that asks has it fetched. */
  isDoubted: boolean;
}

interface Failed extends StsFailure {
  readonly atMs: number;
  /** It is left alone until then. */
  readonly untilMs: number;
}

/** Those that are fetched one behind another. */
class FetchLine {
  readonly waiting: Fetching[] = [];
  underWay = 0;
  isStarting = false;

  get hasRoom(): boolean { return this.underWay < AT_ONCE_MAX; }
}

/** `isUnasked`: the DNS had no room for a question on its server. */
type FetchTold = (isUnasked: boolean) => void;

interface Fetching {
  readonly line: FetchLine;
  readonly domain: string;
  readonly id: string;
  readonly sinceMs: number;
  readonly waiting: FetchTold[];
}

export class StsPolicies implements PolicySource, ExplainedPolicies {
  readonly #ports: StsPorts;
  readonly #journal: PolicyJournal | undefined;
  /** The one longest not fetched first. */
  readonly #kept = new Map<string, Kept>();
  #patternCharacters = 0;
  readonly #fetching = new Map<string, Fetching>();
  /** Of domains whose policy is kept, and of all others. */
  readonly #known = new FetchLine();
  readonly #others = new FetchLine();
  /** Domains whose policy could not be had; the first noted first. */
  readonly #lastFailed = new Map<string, Failed>();
  #sweep: Iterator<Kept> | undefined;

  /** Without a folder nothing outlives the process. */
  constructor(stateDir: string | undefined, ports: StsPorts) {
    this.#ports = ports;
    const { clock, log } = ports;
    if (stateDir !== undefined) {
      this.#journal = new PolicyJournal(stateDir, { clock, log, all: () => this.#kept.values() });
    }
  }

  get count(): number { return this.#kept.size; }

  /** Before anything is asked; false: what is kept can't be read. */
  async load(): Promise<boolean> {
    return await this.#journal?.load((domain, fetched) => {
      this.#forget(domain);
      if (fetched !== undefined) this.#keep(fetched);
    }) ?? true;
  }

  /** When what is kept is written. */
  flushed(): Promise<void> {
    return this.#journal?.flushed() ?? Promise.resolve();
  }

  ask(domain: string, done: PolicyTold): void {
    if (domain.startsWith('[')) return done(undefined, false);
    this.#ports.resolver.ask(stsRecordName(domain), 'TXT', (answer) => {
      const id = stsId(answer);
      const kept = this.#find(domain);
      const isSame = id === undefined || id === '' || kept?.id === id;
      const isKnown = isSame && kept?.isDoubted !== true;
      const tell = (policy: StsPolicy | undefined, isUnasked: boolean): void => {
        done(policy, policy === undefined && id !== '', policy === undefined && isUnasked);
      };
      const isUnasked = answer.kind === 'failed' && answer.isUnasked === true;
      if (isKnown || this.#isLeftAlone(domain)) return tell(kept?.policy, isUnasked);
      this.#fetch(domain, isSame ? kept?.id ?? '' : id, (isUnfetched) => {
        tell(this.#find(domain)?.policy, isUnfetched);
      });
    });
  }

  onFailure(domain: string): void {
    const kept = this.#find(domain);
    if (kept === undefined || this.#isLeftAlone(domain)) return;
    if (this.#ports.clock.wallMs() - kept.fetchedWallMs >= AGAIN_MS) this.#renew(kept);
  }

  hasten(domain: string): void {
    const { clock } = this.#ports;
    const nowMs = clock.nowMs();
    const failed = this.#lastFailed.get(domain);
    if (failed !== undefined && nowMs - failed.atMs < HASTENED_MS) return;
    if (failed !== undefined) this.#lastFailed.set(domain, { ...failed, untilMs: nowMs });
    const kept = this.#kept.get(domain);
    if (kept !== undefined && clock.wallMs() - kept.fetchedWallMs >= HASTENED_MS) kept.isDoubted = true;
  }

  knows(domain: string): boolean {
    return this.#kept.has(domain) || this.#fetching.has(domain) || this.#isLeftAlone(domain);
  }

  kept(domain: string): FetchedPolicy | undefined { return this.#kept.get(domain); }

  failureOf(domain: string): StsFailure | undefined {
    const failed = this.#lastFailed.get(domain);
    return failed !== undefined && this.#ports.clock.nowMs() < failed.untilMs ? failed : undefined;
  }

  tick(): void {
    if (this.#kept.size === 0) return;
    const nowMs = this.#ports.clock.wallMs();
    this.#sweep ??= this.#kept.values();
    for (let swept = 0; swept < SWEPT_AT_ONCE; swept++) {
      const { value, done } = this.#sweep.next();
      if (done === true) {
        this.#sweep = undefined;
        return;
      }
      this.#look(value, nowMs);
    }
  }

  #look(kept: Kept, nowMs: number): void {
    if (isOver(kept, nowMs)) return this.#drop(kept.domain);
    const isUsed = nowMs - kept.usedWallMs < USED_MS_MAX;
    if (!isUsed || nowMs < kept.renewFromWallMs || !this.#known.hasRoom) return;
    kept.renewFromWallMs = nowMs + RENEW_AGAIN_MS;
    this.#renew(kept);
  }

  #renew({ domain, id: before }: Kept): void {
    this.#ports.resolver.ask(stsRecordName(domain), 'TXT', (answer) => {
      const id = stsId(answer);
      this.#fetch(domain, id === undefined || id === '' ? before : id, () => undefined);
    });
  }

  #find(domain: string): Kept | undefined {
    const kept = this.#kept.get(domain);
    if (kept === undefined) return undefined;
    const nowMs = this.#ports.clock.wallMs();
    if (isOver(kept, nowMs)) {
      this.#drop(domain);
      return undefined;
    }
    kept.usedWallMs = nowMs;
    return kept;
  }

  #fetch(domain: string, id: string, done: FetchTold): void {
    const before = this.#fetching.get(domain);
    if (before !== undefined) return void before.waiting.push(done);
    const kept = this.#kept.get(domain);
    const line = kept === undefined ? this.#others : this.#known;
    if (kept !== undefined) kept.isDoubted = false;
    if (line.waiting.length >= IN_LINE_MAX) return done(false);
    const fetching: Fetching = { line, domain, id, sinceMs: this.#ports.clock.nowMs(), waiting: [done] };
    this.#fetching.set(domain, fetching);
    line.waiting.push(fetching);
    this.#fetchNext(line);
  }

  /**
   * What it starts may end at once, and who is told may ask for more: both come here again, and the loop that
   * runs goes on. One inside the other would be as deep as the line is long.
   */
  #fetchNext(line: FetchLine): void {
    if (line.isStarting) return;
    line.isStarting = true;
    while (line.hasRoom) {
      const next = line.waiting.shift();
      if (next === undefined) break;
      if (this.#ports.clock.nowMs() - next.sinceMs > FETCH_MS) {
        this.#tell(next, false);
        continue;
      }
      line.underWay++;
      this.#connect(next);
    }
    line.isStarting = false;
  }

  #connect(fetching: Fetching): void {
    const { lookup, https } = this.#ports;
    const host = stsHost(fetching.domain);
    lookup.addresses(host, (answers, isIpv6Only) => {
      const { open, isUnasked } = judgedHost(answers, isIpv6Only, lookup.allowsPrivate);
      // It says nothing of the domain.
      if (isUnasked) return this.#leave(fetching, isUnasked);
      const addresses = inTurns(open);
      if (addresses.length === 0) {
        const failed = answers.find((answer) => answer.kind === 'failed');
        const why = failed === undefined ? `${host} has no public address`
          : `no answer on its addresses: ${failed.why}`;
        return this.#failed(fetching, 'unreachable', why);
      }
      const waitedMs = this.#ports.clock.nowMs() - fetching.sinceMs;
      const withinMs = Math.max(1, FETCH_MS - waitedMs);
      const bounds = { answerBytesMax: POLICY_BYTES_MAX, withinMs };
      const question = { host, path: POLICY_PATH, addresses, ...bounds };
      https.ask(question, (answer) => { this.#onAnswer(fetching, answer); });
    });
  }

  #onAnswer(fetching: Fetching, answer: HttpsAnswer): void {
    if (answer.kind === 'failed') {
      return this.#failed(fetching, answer.isUntrusted ? 'untrusted' : 'unreachable', answer.why);
    }
    const { status, type, text } = answer;
    if (status !== 200) return this.#failed(fetching, 'refused', `its server answers ${String(status)}`);
    if (type !== 'text/plain') {
      const named = markedCut(type, TYPE_BYTES_MAX);
      const why = type === '' ? 'it has no Content-Type' : `it is ${named}, and no text/plain`;
      return this.#failed(fetching, 'refused', why);
    }
    const policy = readPolicy(text);
    if ('wrong' in policy) return this.#failed(fetching, 'invalid', policy.wrong);
    const { domain, id } = fetching;
    const { clock, log } = this.#ports;
    const usedWallMs = this.#kept.get(domain)?.usedWallMs ?? clock.wallMs();
    this.#forget(domain);
    const fetched = { domain, id, policy, fetchedWallMs: clock.wallMs() };
    this.#journal?.put(fetched, this.#kept.size + 1);
    this.#keep(fetched, usedWallMs);
    this.#lastFailed.delete(domain);
    log.debug('mta-sts', 'a policy was fetched', { domain, id, mode: policy.mode, max_age: policy.maxAgeS });
    this.#ended(fetching, 'fetched');
  }

  #failed(fetching: Fetching, result: StsFetchResult, what: string): void {
    const { domain } = fetching;
    const { clock, log } = this.#ports;
    const why = copyOfText(markedCut(what, WHY_BYTES_MAX).replace(UNFIT, '?'));
    const before = this.#lastFailed.get(domain);
    // Strangers' domains are many: each is told once of the same.
    const isSame = before?.result === result && (before.why === why || !PUBLISHED.includes(result));
    const level = isSame ? 'debug' : 'warn';
    log[level]('mta-sts', 'the policy of a domain can not be had; one that is kept counts', {
      domain, why, kept: this.#kept.get(domain)?.policy.mode ?? 'none',
    });
    this.#lastFailed.delete(domain);
    const [atMs, wallMs] = [clock.nowMs(), clock.wallMs()];
    this.#lastFailed.set(domain, {
      result, why, wallMs, untilWallMs: wallMs + AGAIN_MS, atMs, untilMs: atMs + AGAIN_MS,
    });
    if (this.#lastFailed.size > FAILED_MAX) this.#lastFailed.delete(firstOf(this.#lastFailed.keys()));
    this.#ended(fetching, result);
  }

  #ended(fetching: Fetching, result: StsFetchResult): void {
    this.#ports.onFetched(fetching.domain, result);
    this.#leave(fetching, false);
  }

  #leave(fetching: Fetching, isUnasked: boolean): void {
    fetching.line.underWay--;
    this.#tell(fetching, isUnasked);
    this.#fetchNext(fetching.line);
  }

  #tell({ domain, waiting }: Fetching, isUnasked: boolean): void {
    this.#fetching.delete(domain);
    for (const done of waiting) done(isUnasked);
  }

  #isLeftAlone(domain: string): boolean {
    return this.failureOf(domain) !== undefined;
  }

  #keep(fetched: FetchedPolicy, usedWallMs = fetched.fetchedWallMs): void {
    const fetchedWallMs = Math.min(fetched.fetchedWallMs, this.#ports.clock.wallMs());
    const renewFromWallMs = fetchedWallMs + Math.min(RENEW_MS_MAX, lifeMs(fetched) / 2);
    const characters = charactersOf(fetched.policy.mx);
    this.#kept.set(fetched.domain, {
      ...fetched, characters, fetchedWallMs, usedWallMs, renewFromWallMs, isDoubted: false,
    });
    this.#patternCharacters += characters;
    while (this.#patternCharacters > PATTERN_CHARACTERS_MAX) this.#dropLongest();
    while (this.#kept.size > POLICIES_MAX) this.#drop(firstOf(this.#kept.keys()));
  }

  /**
   * Who fills the memory with names pushes out his own policies, not those of others. A part of them at once:
   * it is a walk over all.
   */
  #dropLongest(): void {
    let most = 0;
    for (const { characters } of this.#kept.values()) if (characters > most) most = characters;
    for (const [domain, { characters }] of this.#kept) {
      if (this.#patternCharacters <= PATTERN_CHARACTERS_ROOM) return;
      if (2 * characters >= most) this.#drop(domain);
    }
  }

  #drop(domain: string): void {
    this.#forget(domain);
    this.#journal?.drop(domain, this.#kept.size);
  }

  #forget(domain: string): void {
    const kept = this.#kept.get(domain);
    if (kept === undefined) return;
    this.#kept.delete(domain);
    this.#patternCharacters -= kept.characters;
  }
}

function lifeMs({ policy: { maxAgeS } }: FetchedPolicy): number {
  return Math.max(LIFE_MS_MIN, maxAgeS * 1000);
}

function isOver(fetched: FetchedPolicy, nowMs: number): boolean {
  return nowMs >= fetched.fetchedWallMs + lifeMs(fetched);
}

function firstOf(keys: Iterator<string, unknown>): string {
  const { value, done } = keys.next();
  return done === true ? '' : value;
}
