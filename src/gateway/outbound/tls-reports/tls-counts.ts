/**
 * What came of TLS with hosts of domains, by day (UTC), until it is reported (RFC 8460 4.3, 4.4). Who counts:
 * tls-tally.ts. Plain data, as the file (counts-file.ts) and workers (handover.ts) have it.
 *
 *   day ─► domain of mail ─► policies that counted for it ─► sessions that were well, that failed, and how
 *
 * Bounded: DOMAINS_MAX a day, POLICIES_MAX of each, and DETAIL_CHARACTERS_MAX of what a domain has beside its
 * sums: what is beyond counts in the sums alone. No domain has less room for what another one does.
 */
import type { TlsResultType } from '../pure/tls-results.js';

export const POLICY_TYPES = ['tlsa', 'sts', 'no-policy-found'] as const;
export type PolicyType = typeof POLICY_TYPES[number];

export interface TlsFailure {
  readonly type: TlsResultType;
  readonly mxHost: string;
  /** '' where there was none. */
  readonly address: string;
  /** Of ours; '': not known. */
  readonly source: string;
  /** Short; '' where the type says all. */
  readonly reason: string;
  count: number;
}

/** A policy as reports have it; empty: it was not to be had. */
export interface PolicyText {
  readonly strings: readonly string[];
  /** Of MTA-STS alone. */
  readonly mxHosts: readonly string[];
}

export interface PolicyCounts {
  readonly type: PolicyType;
  /** Whose it is: the domain itself, or the name that TLSA records stand under (RFC 8460 1.1). */
  readonly domain: string;
  /** As it counted last. */
  text: PolicyText;
  successes: number;
  failures: number;
  readonly details: TlsFailure[];
}

export interface DomainCounts {
  readonly domain: string;
  readonly policies: PolicyCounts[];
}

/** What nobody was told yet, as the file has it. */
export interface UntoldCounts {
  readonly day: number;
  /** Who does not have it yet; '': the domain was not asked yet. */
  readonly to: string;
  readonly counts: DomainCounts;
}

export const DAY_MS = 86_400_000;
const DOMAINS_MAX = 10_000;
/** A domain may have as many hosts with TLSA records of their own. */
export const POLICIES_MAX = 8;
/** A name of the DNS of which each octet is escaped. */
export const NAME_CHARACTERS_MAX = 1024;
/** Texts of policies and kinds of failure of a domain in a day, with their weights: 40 MB of all domains. */
export const DETAIL_CHARACTERS_MAX = 4096;
/** What it takes beside its characters. */
export const STRING_WEIGHT = 32;
export const FAILURE_WEIGHT = 150;
export const NO_TEXT: PolicyText = { strings: [], mxHosts: [] };

interface Held {
  readonly counts: DomainCounts;
  /** Of its texts and failures. */
  weight: number;
}

export class TlsCounts {
  readonly #days = new Map<number, Map<string, Held>>();

  days(): readonly number[] { return [...this.#days.keys()]; }

  domains(day: number): readonly string[] { return [...this.#days.get(day)?.keys() ?? []]; }

  untold(): readonly UntoldCounts[] {
    return [...this.#days].flatMap(([day, domains]) =>
      [...domains.values()].map(({ counts }) => ({ day, to: '', counts })));
  }

  /** Adds it to what there is. */
  add(day: number, { domain, policies }: DomainCounts): void {
    const held = this.#held(day, domain);
    if (held !== undefined) for (const policy of policies) addPolicy(held, policy);
  }

  /** It is another's from now on. */
  take(day: number, domain: string): DomainCounts | undefined {
    const domains = this.#days.get(day);
    const held = domains?.get(domain);
    if (domains === undefined || held === undefined) return undefined;
    domains.delete(domain);
    if (domains.size === 0) this.#days.delete(day);
    return held.counts;
  }

  #held(day: number, domain: string): Held | undefined {
    const domains = this.#days.get(day) ?? new Map<string, Held>();
    const known = domains.get(domain);
    if (known !== undefined) return known;
    if (domains.size >= DOMAINS_MAX || domain.length > NAME_CHARACTERS_MAX) return undefined;
    const held: Held = { counts: { domain, policies: [] }, weight: 0 };
    this.#days.set(day, domains.set(domain, held));
    return held;
  }
}

function addPolicy(held: Held, { type, domain, text, successes, failures, details }: PolicyCounts): void {
  const { policies } = held.counts;
  let own = policies.find((each) => each.type === type && each.domain === domain);
  if (own === undefined) {
    if (policies.length >= POLICIES_MAX || domain.length > NAME_CHARACTERS_MAX) return;
    own = { type, domain, text: NO_TEXT, successes: 0, failures: 0, details: [] };
    policies.push(own);
  }
  own.successes += successes;
  own.failures += failures;
  if (text !== own.text && text.strings.length > 0 && hasRoom(held, weightOf(text) - weightOf(own.text))) {
    own.text = text;
  }
  for (const failure of details) addFailure(held, own, failure);
}

function addFailure(held: Held, { details }: PolicyCounts, failure: TlsFailure): void {
  const { type, mxHost, address, source, reason, count } = failure;
  const known = details.find((each) => each.type === type && each.mxHost === mxHost
    && each.address === address && each.source === source);
  if (known !== undefined) {
    known.count += count;
    return;
  }
  const { length } = mxHost + address + source + reason;
  if (hasRoom(held, FAILURE_WEIGHT + length)) details.push({ ...failure });
}

/** If so, it is taken. */
function hasRoom(held: Held, more: number): boolean {
  const has = held.weight + more <= DETAIL_CHARACTERS_MAX;
  if (has) held.weight += more;
  return has;
}

function weightOf({ strings, mxHosts }: PolicyText): number {
  return [...strings, ...mxHosts].reduce((sum, { length }) => sum + STRING_WEIGHT + length, 0);
}
