/**
 * What the DNS says of a domain as a way for its mail (RFC 5321 5.1): hosts in their order, or why there are
 * none. The questions are asked in mx-lookup.ts, the hosts tried in connection-pool.ts.
 *
 * | answer to MX                          | the way                                                         |
 * |---------------------------------------|-----------------------------------------------------------------|
 * | hosts                                 | by preference; those not preferred to us are left out (5.1)     |
 * | hosts, we are the most preferred      | none, failed 5.4.6: mail for it would come back to us           |
 * | one without a name                    | none, failed 5.1.10: it takes no mail (RFC 7505 3)              |
 * | only what can't be a host             | none, deferred 4.4.4: that is mended there                      |
 * | no MX record, but an address          | the domain itself (5.1)                                         |
 * | the same, of IPv6 alone, and we have  | none, deferred 4.4.1: that is ours                              |
 * | no source of that                     |                                                                 |
 * | no MX record, no address; no such name| none, failed 5.1.2                                              |
 * | not asked: longer than a name can be  | the same: reception takes more (RFC 5321 4.5.3.1.2)             |
 * | no answer                             | none, deferred 4.4.3                                            |
 *
 * Pure.
 */
import type { DnsAnswer, DnsFailure, MxData } from '../../../platform/resolver.js';
import { DEFERRED, FAILED } from '../../mail-types.js';
import type { RecipientResult, RecipientStatus } from '../../mail-types.js';

export interface MailHost {
  readonly name: string;
  /** The lowest first. */
  readonly preference: number;
  /** The policy of the domain does not name it (sts-policy.ts): TLSA records alone let mail go there. */
  readonly isUnnamed?: boolean;
}

/** Where mail for a domain goes, or what becomes of it. */
export type MailWay = HostsWay | {
  readonly why: RecipientResult;
  /** Though it is deferred: a way that was known before must not be used. */
  readonly isVerdict?: boolean;
  /** The DNS was not asked: nothing is known of the domain. */
  readonly isUnasked?: boolean;
};

export interface HostsWay {
  readonly hosts: readonly MailHost[];
  /** That it leads to these hosts is proved by DNSSEC: TLSA records of theirs count (host-tlsa.ts). */
  readonly isAuthentic: boolean;
  /** What the domain's own policy asks for (sts-policy.ts). */
  readonly sts?: 'enforce' | 'testing';
}

/** No domain needs more; the rest is what nobody would come to. */
const HOSTS_MAX = 32;
/** As lenient as reception is with domains (smtp/address.ts). */
const LABEL = /^[a-z0-9_-]{1,63}$/;
const ADDRESS_LIKE = /^[\d.]+$/;

/** `undefined`: there is no MX record, and the domain's own addresses decide. */
export function wayByMx(
  domain: string, answer: DnsAnswer<'MX'>, isOwnName: (name: string) => boolean,
): MailWay | undefined {
  if (answer.kind === 'failed') return noAnswer(`no answer on MX of ${domain}`, answer);
  if (answer.kind !== 'found') {
    return answer.kind === 'no-records' ? undefined
      : no(FAILED, '5.1.2', `the domain ${domain} does not exist`);
  }
  const { records, isAuthentic } = answer;
  if (records.every(({ exchange }) => exchange === '')) {
    return no(FAILED, '5.1.10', `the domain ${domain} takes no mail (null MX)`);
  }
  const hosts = records.filter(({ exchange }) => isHostName(exchange)).map(hostOf)
    .sort((one, other) => one.preference - other.preference || (one.name < other.name ? -1 : 1));
  if (hosts.length === 0) return no(DEFERRED, '4.4.4', `no MX record of ${domain} names a host`);
  const own = hosts.find(({ name }) => isOwnName(name));
  const better = own === undefined ? hosts : hosts.filter(({ preference }) => preference < own.preference);
  if (better.length > 0) return { hosts: better.slice(0, HOSTS_MAX), isAuthentic };
  return no(FAILED, '5.4.6', `mail for ${domain} loops back to ${own?.name ?? ''}`);
}

/**
 * Of a domain without MX records, by its addresses: the answers to A, and to AAAA where that was asked.
 * `isAuthentic`: that it has no MX record is.
 */
export function wayByAddress(
  domain: string, answers: readonly DnsAnswer<'A' | 'AAAA'>[], isOwn: boolean, isAuthentic: boolean,
): MailWay {
  if (answers.some(({ kind }) => kind === 'found')) {
    return isOwn ? no(FAILED, '5.4.6', `mail for ${domain} loops back to us`)
      : { hosts: [{ name: domain, preference: 0 }], isAuthentic };
  }
  for (const answer of answers) {
    if (answer.kind === 'failed') return noAnswer(`no answer on the addresses of ${domain}`, answer);
  }
  return no(FAILED, '5.1.2', `the domain ${domain} has no mail host`);
}

/** What keeps a host from being connected to that has addresses of IPv6 alone, where we leave by IPv4. */
export const IPV6_ONLY = 'has IPv6 addresses only, and no source of IPv6 is configured';

/** Of an address that is none of the Internet (public-address.ts), with the key that lets it be. */
export const NOT_CONNECTED = 'which is not connected to (delivery.mx.allow_private_addresses)';

/** Of a domain without MX records: it takes mail, and we can't come there. */
export function wayOfIpv6Only(domain: string): MailWay {
  return no(DEFERRED, '4.4.1', `${domain} ${IPV6_ONLY}`);
}

/** What a queue has that was made when its route led to one host: of its mail no single domain is known. */
export function wayOfNoDomain(): MailWay {
  const why = 'its queue was made when its route led to one host: give the route by MX another name, '
    + 'and this name to one that leads there';
  return no(DEFERRED, '4.3.5', why);
}

/** No answer would ever come: mail for it would wait all its life. */
export function wayOfNoName(): MailWay {
  return no(FAILED, '5.1.2', 'its domain is no name that the DNS can hold');
}

/** RFC 5321 4.1.3, of a domain in brackets: "[192.0.2.1]", "[IPv6:2001:db8::1]"; undefined for any other. */
export function addressOfLiteral(domain: string): string | undefined {
  if (!domain.startsWith('[') || !domain.endsWith(']')) return undefined;
  return domain.slice(1, -1).replace(/^ipv6:/i, '');
}

/** Domains with the same one have the same hosts, and share connections to them. */
export function siteKey(hosts: readonly MailHost[]): string {
  return hosts.map(({ name, preference, isUnnamed }) =>
    `${String(preference)} ${name}${isUnnamed === true ? ' unnamed' : ''}`).sort().join(',');
}

function isHostName(name: string): boolean {
  return !ADDRESS_LIKE.test(name) && name.split('.').every((label) => LABEL.test(label));
}

function hostOf({ exchange, preference }: MxData): MailHost {
  return { name: exchange, preference };
}

function noAnswer(what: string, { why, isUnasked }: DnsFailure): MailWay {
  const way = no(DEFERRED, '4.4.3', `${what}: ${why}`);
  return isUnasked === true ? { ...way, isUnasked } : way;
}

function no(status: RecipientStatus, enhanced: string, text: string): { readonly why: RecipientResult } {
  return { why: { status, code: 0, enhanced, text } };
}
