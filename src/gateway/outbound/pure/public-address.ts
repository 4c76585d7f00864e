/**
 * Whether an address from the DNS may be connected to. The DNS is in the hands of whoever owns a domain: an
 * MX that names 127.0.0.1, a neighbour in a private network, or the same behind a translator, would have us
 * bring mail to services that never offered to take it from anybody. Asked before each connection (dial.ts).
 * Pure.
 */
import ipaddr from 'ipaddr.js';

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
