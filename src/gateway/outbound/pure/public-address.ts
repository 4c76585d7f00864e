/**
 * Which addresses that the DNS has of a host may be connected to. The DNS is in the hands of whoever owns a
 * domain: an MX that names 127.0.0.1, a neighbour in a private network, or the same behind a translator,
 * would have us bring mail to services that never offered to take it from anybody. Asked before each
 * connection (dial.ts, sts/sts-policies.ts, tls-reports/tls-reporter.ts), and by `explain` and
 * `config check --dns`; reports tell of no address of ours that is none of the Internet
 * (tls-reports/tls-tally.ts). Pure.
 */
import ipaddr from 'ipaddr.js';
import type { DnsAnswer } from '../../../platform/resolver.js';
import { IPV6_ONLY, NOT_CONNECTED } from './mail-exchangers.js';

export interface HostVerdict {
  /** Addresses to connect to, by family. */
  readonly open: readonly (readonly string[])[];
  /** What is wrong with others, and that the DNS did not tell; or that there are none. */
  readonly whys: readonly string[];
  /** An answer is missing: where none of these can be used, nobody could tell whether there is one. */
  readonly isUntold: boolean;
  /** None is open, and the DNS was not asked about all, for want of room. */
  readonly isUnasked: boolean;
}

/** `answers` and `isIpv6Only` as mx-lookup.ts tells them. */
export function judgedHost(
  answers: readonly DnsAnswer<'A' | 'AAAA'>[], isIpv6Only: boolean, allowsPrivate: boolean,
): HostVerdict {
  const whys: string[] = [];
  const open = answers.map((answer) => {
    if (answer.kind === 'failed') whys.push(`no answer on its address: ${answer.why}`);
    if (answer.kind !== 'found') return [];
    return answer.records.filter((address) => {
      const why = allowsPrivate ? '' : whyNotPublic(address);
      if (why !== '') whys.push(`${address} is ${why}, ${NOT_CONNECTED}`);
      return why === '';
    });
  });
  if (isIpv6Only) return { open: [], whys: [`it ${IPV6_ONLY}`], isUntold: false, isUnasked: false };
  const isNone = open.every(({ length }) => length === 0);
  if (isNone && whys.length === 0) {
    const isNoHost = answers.every(({ kind }) => kind === 'no-name');
    whys.push(isNoHost ? 'there is no such host' : 'it has no address');
  }
  const failed = answers.filter((answer) => answer.kind === 'failed');
  const isUnasked = isNone && failed.some((answer) => answer.isUnasked === true);
  return { open, whys, isUntold: failed.length > 0, isUnasked };
}

/** What kind of address it is that is no host's of the Internet; '' if it may be one. IPv4 in IPv6 counts. */
export function whyNotPublic(address: string): string {
  if (!ipaddr.isValid(address)) return 'no address';
  const parsed = ipaddr.process(address);
  const range = parsed.range();
  if (range !== 'unicast') return RANGES[range] ?? range;
  const isElsewhere = parsed instanceof ipaddr.IPv6 && !parsed.match(GLOBAL);
  return isElsewhere ? 'an IPv6 address outside 2000::/3' : '';
}

/** Of IPv6 hosts of the Internet have these alone; the rest is not given out, or stands for IPv4. */
const GLOBAL = ipaddr.IPv6.parseCIDR('2000::/3');

/** In words, by ipaddr.js' names of the special-purpose registries (RFC 6890 and those after it). */
const RANGES: Readonly<Record<string, string>> = {
  unspecified: 'the unspecified address',
  broadcast: 'a broadcast address',
  multicast: 'a multicast address',
  linkLocal: 'a link-local address',
  loopback: 'a loopback address',
  carrierGradeNat: 'a carrier\'s shared address',
  private: 'a private address',
  reserved: 'a reserved address',
  uniqueLocal: 'a unique local address',
  rfc6145: 'a translated address',
  rfc6052: 'a NAT64 address',
  '6to4': 'a 6to4 address',
  teredo: 'a Teredo address',
};
