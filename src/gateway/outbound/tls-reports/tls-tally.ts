/**
 * Sessions with hosts by MX, counted for one day by the domain whose mail they were for, what it says of TLS,
 * and what came of them (RFC 8460 4.3, 4.4). Told by the pools (connection-pool.ts) and by the policies
 * (sts/running-sts.ts), taken once a day by tls-reporter.ts.
 *
 * A session that serves several domains counts for each; one that failed, for those that had mail waiting.
 * Bounded: DOMAINS_MAX a day, DETAILS_MAX of each and policy; what is beyond counts in the sums alone, or not
 * at all. In memory: what a process has not reported when it ends is not reported.
 */
import type { SecuredFacts } from '../../../platform/transport.js';
import { isNamedBy } from '../pure/sts-policy.js';
import type { StsPolicy } from '../pure/sts-policy.js';
import { tlsResultType } from '../pure/tls-results.js';
import type { TlsResultType } from '../pure/tls-results.js';
import type { StsFetchResult } from '../sts/sts-policies.js';

export type PolicyType = 'tlsa' | 'sts' | 'no-policy-found';

/** A session, as whoever opened it knows it. */
export interface WatchedSession {
  readonly mxHost: string;
  /** '' where there was none. */
  readonly address: string;
  /** Judged by TLSA records. */
  readonly isByDane: boolean;
}

/** Who is told. */
export interface TlsWatch {
  /** The first mail of the domain goes over it; `tls` undefined: in clear, for nothing else was offered. */
  onSession(domain: string, session: WatchedSession, tls: SecuredFacts | undefined): void;
  /** No TLS came up; or, in clear since then, its first mail goes over it. */
  onFailedSession(domain: string, session: WatchedSession, why: string): void;
}

export interface TlsFailure {
  readonly type: TlsResultType;
  readonly mxHost: string;
  readonly address: string;
  /** Short; '' where the type says all. */
  readonly reason: string;
  count: number;
}

export interface PolicyTally {
  readonly type: PolicyType;
  /** As it counted last. */
  policy: StsPolicy | undefined;
  successes: number;
  failures: number;
  readonly mxHosts: Set<string>;
  readonly details: Map<string, TlsFailure>;
}

export type DomainTally = ReadonlyMap<PolicyType, PolicyTally>;

const DOMAINS_MAX = 10_000;
const DETAILS_MAX = 32;
const REASON_CHARACTERS_MAX = 200;

const FETCH_TYPES: Readonly<Record<Exclude<StsFetchResult, 'fetched'>, TlsResultType>> = {
  unreachable: 'sts-policy-fetch-error', refused: 'sts-policy-fetch-error', untrusted: 'sts-webpki-invalid',
  invalid: 'sts-policy-invalid',
};

export class TlsTally implements TlsWatch {
  readonly #policyOf: (domain: string) => StsPolicy | undefined;
  #domains = new Map<string, Map<PolicyType, PolicyTally>>();

  constructor(policyOf: (domain: string) => StsPolicy | undefined) {
    this.#policyOf = policyOf;
  }

  /** All of it; what comes from now on is another day's. */
  take(): ReadonlyMap<string, DomainTally> {
    const taken = this.#domains;
    this.#domains = new Map();
    return taken;
  }

  onSession(domain: string, session: WatchedSession, tls: SecuredFacts | undefined): void {
    const tally = this.#of(domain, session);
    if (tally === undefined) return;
    const { policy } = tally;
    if (tls === undefined) fail(tally, session, 'starttls-not-supported', '');
    else if (policy !== undefined && !tls.isVerified) {
      fail(tally, session, tlsResultType(tls.whyNot ?? ''), tls.whyNot ?? '');
    } else if (policy !== undefined && !isNamedBy(policy, session.mxHost)) {
      fail(tally, session, 'validation-failure', 'the policy does not name the host');
    } else tally.successes++;
  }

  onFailedSession(domain: string, session: WatchedSession, why: string): void {
    const tally = this.#of(domain, session);
    if (tally !== undefined) fail(tally, session, tlsResultType(why), why);
  }

  /** The policy names no host that there is. */
  onUnnamed(domain: string): void {
    this.onFailedSession(domain, NO_SESSION, 'the policy names no MX host');
  }

  onFetched(domain: string, result: StsFetchResult): void {
    if (result === 'fetched') return;
    const tally = this.#tally(domain, 'sts');
    if (tally !== undefined) fail(tally, NO_SESSION, FETCH_TYPES[result], result);
  }

  #of(domain: string, { mxHost, isByDane }: WatchedSession): PolicyTally | undefined {
    const policy = isByDane ? undefined : this.#policyOf(domain);
    const isPolicy = policy !== undefined && policy.mode !== 'none';
    const tally = this.#tally(domain, isByDane ? 'tlsa' : isPolicy ? 'sts' : 'no-policy-found');
    if (tally === undefined) return undefined;
    if (isPolicy) tally.policy = policy;
    if (mxHost !== '' && tally.mxHosts.size < DETAILS_MAX) tally.mxHosts.add(mxHost);
    return tally;
  }

  #tally(domain: string, type: PolicyType): PolicyTally | undefined {
    let ofDomain = this.#domains.get(domain);
    if (ofDomain === undefined) {
      if (this.#domains.size >= DOMAINS_MAX) return undefined;
      ofDomain = new Map();
      this.#domains.set(domain, ofDomain);
    }
    const known = ofDomain.get(type);
    if (known !== undefined) return known;
    const made: PolicyTally = {
      type, policy: undefined, successes: 0, failures: 0, mxHosts: new Set(), details: new Map(),
    };
    ofDomain.set(type, made);
    return made;
  }
}

const NO_SESSION: WatchedSession = { mxHost: '', address: '', isByDane: false };

function fail(tally: PolicyTally, session: WatchedSession, type: TlsResultType, why: string): void {
  const { mxHost, address } = session;
  const reason = why.slice(0, REASON_CHARACTERS_MAX);
  tally.failures++;
  const key = `${type} ${mxHost} ${address}`;
  const known = tally.details.get(key);
  if (known !== undefined) known.count++;
  else if (tally.details.size < DETAILS_MAX) {
    tally.details.set(key, { type, mxHost, address, reason, count: 1 });
  }
}
