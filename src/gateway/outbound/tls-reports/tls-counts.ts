/**
 * What came of TLS with hosts of domains, by day (UTC), until it is reported (RFC 8460 4.3, 4.4). Who counts:
 * tls-tally.ts. Plain data, as the file (counts-file.ts) and workers (handover.ts) have it.
 *
 *   day ─► domain of mail ─► policies that counted for it ─► sessions that were well, that failed, and how
 *
 * Bounded: DOMAINS_MAX a day, POLICIES_MAX of each, DETAILS_MAX of each policy, and WEIGHT_MAX in all; what
 * is beyond counts in the sums alone, or not at all.
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

export const DAY_MS = 86_400_000;
const DOMAINS_MAX = 10_000;
/** A domain may have as many hosts with TLSA records of their own. */
export const POLICIES_MAX = 16;
export const DETAILS_MAX = 32;
export const NO_TEXT: PolicyText = { strings: [], mxHosts: [] };
/** Characters, about: 10,000 domains with a few failures each have half of it. */
const WEIGHT_MAX = 16 * 1024 * 1024;
/** Of names of fields, numbers and objects beside the text. */
const OBJECT_WEIGHT = 150;

interface Held {
  readonly counts: DomainCounts;
  weight: number;
}

export class TlsCounts {
  /** Goes up with each change, also of what was taken and is still to be kept: a file of before is stale. */
  changes = 0;
  readonly #days = new Map<number, Map<string, Held>>();
  #weight = 0;

  days(): readonly number[] { return [...this.#days.keys()]; }

  domains(day: number): readonly string[] { return [...this.#days.get(day)?.keys() ?? []]; }

  * all(): Generator<readonly [day: number, counts: DomainCounts]> {
    for (const [day, domains] of this.#days) for (const { counts } of domains.values()) yield [day, counts];
  }

  /** Adds it to what there is. */
  add(day: number, { domain, policies }: DomainCounts): void {
    const held = this.#held(day, domain);
    if (held === undefined) return;
    this.changes++;
    for (const policy of policies) this.#addPolicy(held, policy);
  }

  /** It is another's from now on. */
  take(day: number, domain: string): DomainCounts | undefined {
    const domains = this.#days.get(day);
    const held = domains?.get(domain);
    if (domains === undefined || held === undefined) return undefined;
    this.changes++;
    this.#weight -= held.weight;
    domains.delete(domain);
    if (domains.size === 0) this.#days.delete(day);
    return held.counts;
  }

  get #isFull(): boolean { return this.#weight >= WEIGHT_MAX; }

  #held(day: number, domain: string): Held | undefined {
    const domains = this.#days.get(day) ?? new Map<string, Held>();
    const known = domains.get(domain);
    if (known !== undefined) return known;
    if (this.#isFull || domains.size >= DOMAINS_MAX) return undefined;
    const held: Held = { counts: { domain, policies: [] }, weight: 0 };
    this.#days.set(day, domains.set(domain, held));
    this.#weigh(held, OBJECT_WEIGHT + domain.length);
    return held;
  }

  #addPolicy(held: Held, { type, domain, text, successes, failures, details }: PolicyCounts): void {
    const { policies } = held.counts;
    let own = policies.find((each) => each.type === type && each.domain === domain);
    if (own === undefined) {
      if (this.#isFull || policies.length >= POLICIES_MAX) return;
      own = { type, domain, text: NO_TEXT, successes: 0, failures: 0, details: [] };
      policies.push(own);
      this.#weigh(held, OBJECT_WEIGHT + domain.length);
    }
    own.successes += successes;
    own.failures += failures;
    if (text !== own.text && text.strings.length > 0 && !this.#isFull) {
      this.#weigh(held, weightOf(text) - weightOf(own.text));
      own.text = text;
    }
    for (const failure of details) this.#addFailure(held, own, failure);
  }

  #addFailure(held: Held, { details }: PolicyCounts, failure: TlsFailure): void {
    const { type, mxHost, address, source, reason, count } = failure;
    const known = details.find((each) => each.type === type && each.mxHost === mxHost
      && each.address === address && each.source === source);
    if (known !== undefined) known.count += count;
    else if (details.length < DETAILS_MAX && !this.#isFull) {
      details.push({ ...failure });
      const { length } = mxHost + address + source + reason;
      this.#weigh(held, OBJECT_WEIGHT + length);
    }
  }

  #weigh(held: Held, more: number): void {
    held.weight += more;
    this.#weight += more;
  }
}

function weightOf({ strings, mxHosts }: PolicyText): number {
  return [...strings, ...mxHosts].reduce((sum, { length }) => sum + length, 0);
}
