/**
 * Counts sessions with hosts by MX for reports on TLS (RFC 8460 4.3, 4.4): by the domain whose mail they were
 * for, what it says of TLS, and what came of them. Told by the pools (connection-pool.ts) and by the policies
 * (sts/running-sts.ts); what is counted stands in tls-counts.ts.
 *
 * A session that serves several domains counts for each; one that failed, for those that had mail waiting.
 */
import type { Clock } from '../../../platform/ports.js';
import type { TlsaData } from '../../../platform/resolver.js';
import type { DaneTerms, SecuredFacts } from '../../../platform/transport.js';
import { whyNotPublic } from '../pure/public-address.js';
import { isNamedBy } from '../pure/sts-policy.js';
import type { StsPolicy } from '../pure/sts-policy.js';
import { tlsResultType } from '../pure/tls-results.js';
import type { TlsResultType } from '../pure/tls-results.js';
import type { StsFetchResult } from '../sts/sts-policies.js';
import { DAY_MS, DETAIL_CHARACTERS_MAX, NO_TEXT, STRING_WEIGHT } from './tls-counts.js';
import type { PolicyText, PolicyType, TlsCounts, TlsFailure } from './tls-counts.js';

/** A session, as whoever opened it knows it. */
export interface WatchedSession {
  readonly mxHost: string;
  /** '' where there was none. */
  readonly address: string;
  /** Of ours; '': not known. */
  readonly source: string;
  /** TLSA records judge it; without any, nobody could tell them. */
  readonly dane: DaneTerms | undefined;
}

/** Who is told. */
export interface TlsWatch {
  /** The first mail of the domain goes over it; `tls` undefined: in clear, for nothing else was offered. */
  onSession(domain: string, session: WatchedSession, tls: SecuredFacts | undefined): void;
  /** No TLS came up; or, in clear since then, its first mail goes over it. */
  onFailedSession(domain: string, session: WatchedSession, why: string): void;
}

interface Failed {
  readonly type: TlsResultType;
  readonly why: string;
}

/** What says how TLS must be: the domain, by its policy, or the name of TLSA records. */
interface Applied {
  readonly type: PolicyType;
  readonly domain: string;
  readonly text: PolicyText;
}

const REASON_CHARACTERS_MAX = 200;
/** Of TLSA records: some twenty with a digest; what is beyond is left out. Half of what a domain has. */
const RECORDS_CHARACTERS_MAX = DETAIL_CHARACTERS_MAX / 2;
const NO_SESSION: WatchedSession = { mxHost: '', address: '', source: '', dane: undefined };

const FETCH_TYPES: Readonly<Record<Exclude<StsFetchResult, 'fetched'>, TlsResultType>> = {
  unreachable: 'sts-policy-fetch-error', refused: 'sts-policy-fetch-error', untrusted: 'sts-webpki-invalid',
  invalid: 'sts-policy-invalid',
};

export class TlsTally implements TlsWatch {
  /** Nothing is counted while it is false. */
  isOn = true;
  readonly #counts: TlsCounts;
  readonly #clock: Clock;
  readonly #policyOf: (domain: string) => StsPolicy | undefined;
  /** By policies and lists of records, which sessions share. */
  readonly #texts = new WeakMap<object, PolicyText>();

  constructor(counts: TlsCounts, clock: Clock, policyOf: (domain: string) => StsPolicy | undefined) {
    this.#counts = counts;
    this.#clock = clock;
    this.#policyOf = policyOf;
  }

  onSession(domain: string, session: WatchedSession, tls: SecuredFacts | undefined): void {
    if (!this.isOn) return;
    const policy = this.#policyFor(domain, session);
    this.#count(this.#applied(domain, session, policy), domain, session, whatFailed(session, policy, tls));
  }

  onFailedSession(domain: string, session: WatchedSession, why: string): void {
    if (!this.isOn) return;
    const applied = this.#applied(domain, session, this.#policyFor(domain, session));
    this.#count(applied, domain, session, { type: tlsResultType(why), why });
  }

  /** The policy names no host that there is. */
  onUnnamed(domain: string): void {
    this.onFailedSession(domain, NO_SESSION, 'the policy names no MX host');
  }

  onFetched(domain: string, result: StsFetchResult): void {
    if (!this.isOn || result === 'fetched') return;
    const failed = { type: FETCH_TYPES[result], why: result };
    this.#count({ type: 'sts', domain, text: NO_TEXT }, domain, NO_SESSION, failed);
  }

  /** Of MTA-STS; undefined where it has no say. */
  #policyFor(domain: string, { dane }: WatchedSession): StsPolicy | undefined {
    const policy = dane === undefined ? this.#policyOf(domain) : undefined;
    return policy?.mode === 'none' ? undefined : policy;
  }

  #applied(domain: string, { dane }: WatchedSession, policy: StsPolicy | undefined): Applied {
    if (dane !== undefined) {
      const { records, names: [base = ''] } = dane;
      return { type: 'tlsa', domain: base, text: this.#text(records, () => tlsaText(records)) };
    }
    if (policy === undefined) return { type: 'no-policy-found', domain, text: NO_TEXT };
    return { type: 'sts', domain, text: this.#text(policy, () => stsText(policy)) };
  }

  #text(of: object, make: () => PolicyText): PolicyText {
    const known = this.#texts.get(of);
    if (known !== undefined) return known;
    const text = make();
    this.#texts.set(of, text);
    return text;
  }

  #count(
    applied: Applied, domain: string, { mxHost, address, source }: WatchedSession, failed: Failed | undefined,
  ): void {
    const details: TlsFailure[] = failed === undefined ? [] : [{
      type: failed.type, mxHost, address,
      // Strangers have no business with addresses of our own network.
      source: whyNotPublic(source) === '' ? source : '',
      reason: printable(failed.why.slice(0, REASON_CHARACTERS_MAX)), count: 1,
    }];
    const failures = details.length;
    const policy = { ...applied, successes: 1 - failures, failures, details };
    this.#counts.add(Math.floor(this.#clock.wallMs() / DAY_MS), { domain, policies: [policy] });
  }
}

/** Of a session that takes mail. */
function whatFailed(
  { mxHost, dane }: WatchedSession, policy: StsPolicy | undefined, tls: SecuredFacts | undefined,
): Failed | undefined {
  if (tls === undefined) return { type: 'starttls-not-supported', why: '' };
  if (dane !== undefined && tls.by !== 'dane') {
    return { type: 'tlsa-invalid', why: 'none of the records can be used' };
  }
  if (policy === undefined) return undefined;
  if (!tls.isVerified) return { type: tlsResultType(tls.whyNot ?? ''), why: tls.whyNot ?? '' };
  if (isNamedBy(policy, mxHost)) return undefined;
  return { type: 'validation-failure', why: 'the policy does not name the host' };
}

/** RFC 8460 4.5: lines of the policy. */
function stsText({ mode, mx, maxAgeS }: StsPolicy): PolicyText {
  const strings = ['version: STSv1', `mode: ${mode}`, ...mx.map((host) => `mx: ${host}`)];
  return { strings: [...strings, `max_age: ${String(maxAgeS)}`].map(printable), mxHosts: mx.map(printable) };
}

/** RFC 8460 4.5, RFC 6698 2.2: as a zone file has them; also those that can't be used. */
function tlsaText(records: readonly TlsaData[]): PolicyText {
  let left = RECORDS_CHARACTERS_MAX;
  const strings: string[] = [];
  for (const { usage, selector, matching, association } of records) {
    if (2 * association.length > left) continue;
    const hex = Buffer.from(association).toString('hex').toUpperCase();
    const text = [usage, selector, matching, hex].join(' ');
    if (text.length + STRING_WEIGHT > left) continue;
    left -= text.length + STRING_WEIGHT;
    strings.push(text);
  }
  return { strings, mxHosts: [] };
}

function printable(text: string): string {
  return text.replace(/[^ -~]+/g, '?');
}
