/**
 * What is on this machine, by its name or address, and as whom others reach it.
 *
 * isLoopback() decides where nobody can stand between: what a resolver there says of DNSSEC is believed
 * (dns/dns-client.ts), a fallback there may have mail in clear that must have TLS elsewhere
 * (gateway/outbound/site-hosts.ts), and what needs a token or TLS elsewhere may go without. By name that is
 * "localhost" alone.
 *
 * namesThisMachine() tells whether an HTTP request was meant for it, by its Host header. An admin port
 * without a token is loopback only, but a web page in an operator's browser can point a name of its own at
 * 127.0.0.1 (DNS rebinding) and read what answers there; its requests still carry that name.
 */
import ipaddr from 'ipaddr.js';
import { addressText } from '../../base/address-text.js';

const OWN_NAMES = /^(localhost|127(\.\d{1,3}){3}|\[::1\])(:\d+)?$/i;

export function namesThisMachine(hostHeader: string | undefined): boolean {
  return OWN_NAMES.test(hostHeader ?? '');
}

export function isLoopback(host: string): boolean {
  if (host === 'localhost') return true;
  return ipaddr.isValid(host) && ipaddr.process(host).range() === 'loopback';
}

/** It listens on all addresses: which of them others may use, nobody can tell. */
export function isWildcard(host: string): boolean {
  return host === '0.0.0.0' || host === '::';
}

/** host:port for others to connect to; undefined when it listens on all addresses. */
export function reachableAddress(host: string, port: number): string | undefined {
  if (isWildcard(host)) return undefined;
  return addressText(host, port);
}
