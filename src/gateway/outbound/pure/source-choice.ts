/**
 * From which of our addresses a host is connected to (`gateway.sources`).
 *
 * - A source serves addresses of its own family; one of loopback those of loopback alone, any other never
 *   those: no packet would come back.
 * - An IPv6 address that the DNS names (MX) is connected to from a confirmed source only (source-check.ts):
 *   many refuse mail from others. What a route names is the operator's word.
 * - Addresses for which there is a source come alone: mail that is to leave from one address does not leave
 *   from another because a host has both families. Where there is none for any of them, the system chooses.
 * - Of several sources the destination says which one, by a rendezvous hash: a retry comes from the address
 *   that was told to wait (greylisting), also after a restart, and one source more or less moves few others.
 *
 * Pure.
 */
import ipaddr from 'ipaddr.js';

export interface MailSource {
  /** As ipaddr.js writes it. */
  readonly address: string;
  /** In EHLO. */
  readonly name: string;
}

/** What we are called by those we connect to, in lower case: an MX of such a name is this host. */
export function ownNames(hostName: string, sources: readonly MailSource[]): readonly string[] {
  const names = [hostName, ...sources.map(({ name }) => name)];
  return [...new Set(names.map((name) => name.toLowerCase()))];
}

export interface KnownSource extends MailSource {
  /** By the DNS; counts for IPv6 only. */
  readonly isConfirmed: boolean;
}

/** Whom it leads to. */
export interface SourcedHost {
  /** One for all hosts that may take the same mail. */
  readonly site: string;
  readonly isByMx: boolean;
}

export interface Way {
  readonly address: string;
  /** Undefined: the system chooses. */
  readonly from: MailSource | undefined;
}

export interface Ways {
  readonly ways: readonly Way[];
  /** Why addresses are not connected to. */
  readonly whys: readonly string[];
}

export function isIpv6(address: string): boolean {
  return address.includes(':');
}

/** Addresses keep their order. */
export function waysTo(
  addresses: readonly string[], { site, isByMx }: SourcedHost, sources: readonly KnownSource[],
): Ways {
  const ways: Way[] = [];
  const whys: string[] = [];
  for (const address of addresses) {
    const mustBeConfirmed = isByMx && isIpv6(address);
    const from = best(site, sources.filter((source) =>
      serves(source.address, address) && (source.isConfirmed || !mustBeConfirmed)));
    if (from === undefined && mustBeConfirmed) whys.push(`${address}: no IPv6 source is confirmed for it`);
    else ways.push({ address, from });
  }
  const sourced = ways.filter(({ from }) => from !== undefined);
  return { ways: sourced.length > 0 ? sourced : ways, whys };
}

function serves(source: string, address: string): boolean {
  return isIpv6(source) === isIpv6(address) && isLoopbackAddress(source) === isLoopbackAddress(address);
}

/** Addresses are connected to here: "localhost" is none. */
function isLoopbackAddress(address: string): boolean {
  return ipaddr.isValid(address) && ipaddr.process(address).range() === 'loopback';
}

function best(site: string, sources: readonly MailSource[]): MailSource | undefined {
  let found: MailSource | undefined;
  let most = -1;
  for (const source of sources) {
    const weight = sources.length === 1 ? 0 : hash(`${source.address} ${site}`);
    if (weight > most) [found, most] = [source, weight];
  }
  return found;
}

/** FNV-1a, then the last steps of MurmurHash3: sites that differ in one letter share no order of sources. */
function hash(text: string): number {
  let bits = 0x811c9dc5;
  for (let i = 0; i < text.length; i++) bits = Math.imul(bits ^ text.charCodeAt(i), 0x01000193);
  bits = Math.imul(bits ^ (bits >>> 16), 0x85ebca6b);
  bits = Math.imul(bits ^ (bits >>> 13), 0xc2b2ae35);
  return (bits ^ (bits >>> 16)) >>> 0;
}
