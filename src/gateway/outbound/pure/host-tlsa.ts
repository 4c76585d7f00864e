/**
 * Whether a host of the DNS has TLSA records that bind us, and what TLS it must have then (RFC 7672 2). Dial
 * (dial.ts) asks the questions before it connects, the session goes by what comes out, and whether the
 * server's certificate is right is seen in the handshake (platform/node/dane.ts).
 *
 * | answers                                          | the host                                            |
 * |--------------------------------------------------|-----------------------------------------------------|
 * | MX not authentic, or `tls: none`                 | as the route says; nothing more is asked            |
 * | its addresses not authentic, and it is no        | as the route says; its name servers may not answer  |
 * | authentic alias                                  | on TLSA at all (2.1.2)                              |
 * | TLSA: authentic records, one of them usable      | TLS, judged by them alone, whatever level it has    |
 * | TLSA: authentic records, none usable             | TLS, never in clear; with `verify` judged by CAs    |
 * | TLSA: none, or not authentic                     | as the route says                                   |
 * | no address, by proof                             | as the route says: it binds nobody                  |
 * | TLSA: no answer, or a bogus one                  | not connected to: deferred (2.1.2), 4.7.5           |
 *
 * A host that is an alias has its records under the name that it leads to, or else under its own; under its
 * own only where its addresses are not authentic (2.2). Pure.
 */
import type { DnsAnswer, TlsaData } from '../../../platform/resolver.js';
import type { NextHop, NextHopTls } from '../../mail-types.js';

/** What binds a host. */
export interface HostTlsa {
  /** That the records stand under: the server is told it, and is to have it (RFC 7672 3.2.2, 8.1). */
  readonly base: string;
  /** Authentic; at least one. */
  readonly records: readonly TlsaData[];
}

/** What one answer says; `next`: nothing under this name. */
export type TlsaVerdict = { readonly found: HostTlsa } | TlsaFailure | 'next';

export interface TlsaFailure {
  readonly failed: string;
  /** The DNS was not asked. */
  readonly isUnasked?: boolean;
}

type AddressAnswers = readonly DnsAnswer<'A' | 'AAAA'>[];

/**
 * Whether what domains say of TLS counts, by TLSA records or a policy (sts-policy.ts). Mail with
 * `TLS-Required: No` goes whatever they say (RFC 8689 3).
 */
export function isTlsJudged({ tls, tlsNeed }: NextHop): boolean {
  return tls !== undefined && tlsNeed !== 'optional';
}

export function tlsaName(base: string, port: number): string {
  return `_${String(port)}._tcp.${base}`;
}

/** Names whose records count, one after the other; empty: none do. */
export function tlsaBases(host: string, answers: AddressAnswers): readonly string[] {
  const found = answers.filter((answer) => answer.kind === 'found');
  if (found.length === 0 || !found.every(({ isAuthentic }) => isAuthentic)) return [];
  const target = found.find(({ aliasOf }) => aliasOf !== undefined)?.aliasOf;
  return target === undefined ? [host] : [target, host];
}

/** What is said of its addresses, or that it has none, nobody who stands between has made up. */
export function areProved(answers: AddressAnswers): boolean {
  return answers.every((answer) => answer.kind !== 'failed' && answer.isAuthentic);
}

/** Whether the alias itself may be authentic though what it leads to is not. */
export function isAliasInDoubt(answers: AddressAnswers): boolean {
  const found = answers.filter((answer) => answer.kind === 'found');
  return found.some(({ isAuthentic, aliasOf }) => !isAuthentic && aliasOf !== undefined);
}

export function tlsaVerdict(base: string, port: number, answer: DnsAnswer<'TLSA'>): TlsaVerdict {
  if (answer.kind === 'failed') {
    const name = tlsaName(base, port);
    const failed = `no answer on TLSA of ${name}, a name of a signed zone: ${answer.why}`;
    return { failed, isUnasked: answer.isUnasked === true };
  }
  if (answer.kind !== 'found' || !answer.isAuthentic) return 'next';
  return { found: { base, records: answer.records } };
}

/** `domain`: whose mail alone goes there, so that a certificate may be for it, too. */
export function raisedByTlsa(tls: NextHopTls | undefined, tlsa: HostTlsa, domain: string): NextHopTls {
  const names = domain === '' || domain === tlsa.base ? [tlsa.base] : [tlsa.base, domain];
  const dane = { records: tlsa.records, names };
  // In clear for now, after TLS has failed where it may: not any more.
  const terms = tls?.terms ?? { serverName: tlsa.base, mustVerify: false, caFile: undefined };
  const level = tls?.level === 'verify' ? 'verify' : 'encrypt';
  const isFirst = tls?.isFirst === true;
  return { ...tls, level, isFirst, why: 'it has TLSA records', terms: { ...terms, dane } };
}
