/**
 * The MTA-STS policy of a domain, for `explain`, and what it makes of the hosts that the DNS names: who may
 * not be connected to for it is not (outbound/pure/sts-policy.ts, outbound/dial.ts).
 */
import type { ExplainedHost } from '../../admin-api/explain.js';
import { formatDuration } from '../../base/units.js';
import type { Https } from '../../platform/https.js';
import { isLoopback } from '../../platform/node/own-host.js';
import type { Clock, EventLog } from '../../platform/ports.js';
import type { DnsAnswer } from '../../platform/resolver.js';
import type { MxLookup } from '../outbound/mx-lookup.js';
import {
  NOT_NAMED, UNNAMED, isNamedBy, stsRecordFault, stsRecordName,
} from '../outbound/pure/sts-policy.js';
import type { StsPolicy } from '../outbound/pure/sts-policy.js';
import { StsPolicies } from '../outbound/sts/sts-policies.js';
import type { ExplainedPolicies, StsFailure } from '../outbound/sts/sts-policies.js';
import type { AnswerTime } from './answer-time.js';

export interface ExplainedPolicy {
  readonly policy: StsPolicy | undefined;
  readonly text: string;
  /** Whether there is one could not be told, or it can't be had. */
  readonly isUnknown: boolean;
}

interface PolicyPorts {
  readonly clock: Clock;
  readonly https: Https;
  readonly time: AnswerTime;
  readonly policies: ExplainedPolicies | undefined;
}

/** One by MX, before the policy is looked at. */
export interface AskedHost {
  readonly host: ExplainedHost;
  /** It has TLSA records that judge it. */
  readonly isBound: boolean;
  /** It has none at all, or none are asked for. */
  readonly isFree: boolean;
}

export interface HostsUnderPolicy {
  readonly hosts: readonly ExplainedHost[];
  /** Of one that is not connected to for the policy alone, and why; '': there is none. */
  readonly refused: string;
}

const FALLBACK_TERMS = 'not while a host fails by its TLSA records or the policy';

/** What is to be said of a policy stands in the answer. */
const unsaid = (): void => undefined;
const SILENT: EventLog = { debug: unsaid, info: unsaid, warn: unsaid, error: unsaid };

/**
 * As the gateway that runs goes by it. What it has not asked for mail's sake, or where none runs, is fetched
 * for the answer alone: nobody keeps, renews or counts it, and no report to the domain tells of it.
 */
export async function policyOf(
  domain: string, lookup: MxLookup, { clock, https, time, policies: running }: PolicyPorts,
): Promise<ExplainedPolicy> {
  const policies = running?.knows(domain) === true ? running
    : new StsPolicies(undefined, { clock, log: SILENT, resolver: time, lookup, https, onFetched: unsaid });
  const told = new Promise<Omit<ExplainedPolicy, 'text'>>((resolve) => {
    policies.ask(domain, (found, isUntold) => { resolve({ policy: found, isUnknown: isUntold }); });
  });
  const before = policies.kept(domain)?.policy;
  const { policy, isUnknown } = await time.within(told, { policy: before, isUnknown: before === undefined });
  const failed = policies.failureOf(domain);
  if (policy === undefined) {
    if (time.isOver) return { policy, text: `no answer yet: ${time.whyLate}`, isUnknown };
    if (failed !== undefined) {
      return { policy, text: `none to be had: ${failureText(failed, policies === running)}`, isUnknown };
    }
    const record = await new Promise<DnsAnswer<'TXT'>>((resolve) => {
      time.ask(stsRecordName(domain), 'TXT', resolve);
    });
    const fault = stsRecordFault(domain, record);
    const none = fault === '' ? '' : `none: ${fault}`;
    return { policy, text: record.kind === 'failed' ? `no answer: ${record.why}` : none, isUnknown };
  }
  const { mode, mx, maxAgeS } = policy;
  const names = mx.length > 0 ? `: ${mx.join(' ')}` : '';
  const text = `${mode} for ${formatDuration(maxAgeS * 1000)}${names}`;
  const kept = running?.kept(domain);
  if (kept === undefined) return { policy, text, isUnknown };
  const since = `kept, fetched at ${timeText(kept.fetchedWallMs)}`;
  const still = failed === undefined ? '' : `, none to be had since: ${failureText(failed, true)}`;
  return { policy, text: `${text}; ${since}${still}`, isUnknown };
}

/** `isKept`: by the gateway that runs, which does not ask again at once. */
function failureText({ result, why, wallMs, untilWallMs }: StsFailure, isKept: boolean): string {
  const times = `asked at ${timeText(wallMs)}, and not again before ${timeText(untilWallMs)} but for a flush`;
  return isKept ? `${result}: ${why} (${times})` : `${result}: ${why}`;
}

function timeText(wallMs: number): string {
  return `${new Date(wallMs).toISOString().slice(0, 19)}Z`;
}

/** `isAuthentic`: the DNS has proved that these are the hosts. */
export function hostsUnder(
  policy: StsPolicy | undefined, asked: readonly AskedHost[], isAuthentic: boolean,
): HostsUnderPolicy {
  let refused = '';
  const hosts = asked.map(({ host, isBound }) => {
    if (policy === undefined || policy.mode === 'none' || isNamedBy(policy, host.host)) return host;
    if (isBound) return { ...host, why: joined(host.why, NOT_NAMED) };
    const said = isAuthentic ? UNNAMED : NOT_NAMED;
    if (policy.mode === 'testing') {
      return { ...host, why: joined(host.why, `${said}: enforced, it would not be connected to`) };
    }
    if (refused === '' && host.addresses.length > 0) refused = `${host.host}: ${said}`;
    return { ...host, addresses: [], why: joined(host.why, said) };
  });
  return { hosts, refused };
}

/**
 * Hosts of the route behind those of the DNS, and on what terms mail goes there (outbound/site-hosts.ts).
 */
export function fallbackUnder(
  policy: StsPolicy | undefined, asked: readonly AskedHost[], others: readonly ExplainedHost[],
): readonly ExplainedHost[] {
  if (policy?.mode !== 'enforce' && asked.every(({ isFree }) => isFree)) return others;
  return others.map((host) => {
    const terms = isLoopback(host.host) ? FALLBACK_TERMS : `over TLS alone, and ${FALLBACK_TERMS}`;
    return { ...host, why: joined(host.why, terms) };
  });
}

function joined(...whys: readonly string[]): string {
  return whys.filter((text) => text !== '').join('; ');
}
