/** An address in names of the DNS: for blocklists (RFC 5782 2.1, 2.4) and for PTR (RFC 1035 3.5). Pure. */
import ipaddr from 'ipaddr.js';

/** Octets of IPv4, or nibbles, in reverse: "1.2.0.192". Throws on what is no address. */
export function reversedAddress(address: string): string {
  const parsed = ipaddr.process(address);
  const parts = parsed.kind() === 'ipv4'
    ? parsed.toByteArray().map(String)
    : parsed.toByteArray().flatMap((byte) => [(byte >> 4).toString(16), (byte & 15).toString(16)]);
  return parts.reverse().join('.');
}

/** The name of its PTR record. */
export function pointerName(address: string): string {
  const zone = ipaddr.process(address).kind() === 'ipv4' ? 'in-addr.arpa' : 'ip6.arpa';
  return `${reversedAddress(address)}.${zone}`;
}
