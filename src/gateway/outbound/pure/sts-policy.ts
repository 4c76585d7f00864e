/**
 * What a domain says of TLS with its hosts by MTA-STS (RFC 8461): its TXT record, the text of its policy, and
 * what the policy makes of the hosts that the DNS names. Who asks and fetches: sts/sts-policies.ts.
 *
 * | policy           | hosts that it names                     | hosts that it does not name               |
 * |------------------|-----------------------------------------|-------------------------------------------|
 * | none of any kind | as the route says                       | as the route says                         |
 * | mode none        | as the route says                       | as the route says                         |
 * | mode testing     | as the route says; what enforce would   | as the route says, likewise               |
 * |                  | have refused is counted                 |                                           |
 * | mode enforce     | TLS, never in clear; a certificate for  | not connected to; where the DNS has       |
 * |                  | the host, from whom the platform trusts | proved the way, by TLSA records alone     |
 *
 * TLSA records of a host judge it in place of all this (RFC 8461 2; host-tlsa.ts). A domain of which no host
 * is left is deferred, 4.7.5: the policy, or its MX records, may be mended.
 *
 * A policy (RFC 8461 3.2): "key: value" on lines that end with LF or CRLF. Of a key that stands twice the
 * first counts, but for mx; keys that are not known are passed over. Pure.
 */
import { copyOfText } from '../../../base/text-copy.js';
import type { DnsAnswer } from '../../../platform/resolver.js';
import { DEFERRED, FAILED } from '../../mail-types.js';
import type { NextHopTls } from '../../mail-types.js';
import type { HostsWay, MailWay } from './mail-exchangers.js';

export type StsMode = 'enforce' | 'testing' | 'none';

export interface StsPolicy {
  readonly mode: StsMode;
  /** Lower case; "*." in front stands for one label. */
  readonly mx: readonly string[];
  readonly maxAgeS: number;
}

/** RFC 8461 3.3: more than that is no policy. */
export const POLICY_BYTES_MAX = 64 * 1024;
/** RFC 8461 3.2: a year. */
const MAX_AGE_S_MAX = 31_557_600;
const NAME_CHARACTERS_MAX = 253;
/** RFC 8461 has no bound; who takes mail for millions names fewer than twenty. */
const NAMES_MAX = 100;
const NAMES_CHARACTERS_MAX = 4096;

const RECORD = /^v=STSv1[ \t]*;/;
/** Meant as one. */
const LIKE_RECORD = /^\s*v\s*=\s*sts/i;
const ID = /^[A-Za-z0-9]{1,32}$/;
const LABEL = /^[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9_])?$/;
const MAX_AGE = /^\d{1,10}$/;

/** Why a host is not connected to. */
export const NOT_NAMED = 'the MTA-STS policy of the domain does not name it';
/** The same, where the DNS has proved the way. */
export const UNNAMED = `${NOT_NAMED}, and it has no usable TLSA records`;
/** Why mail does not go to a host in clear. */
export const BY_STS = 'so says the MTA-STS policy of the domain';

/** Where the record stands, and the policy. */
export function stsRecordName(domain: string): string { return `_mta-sts.${domain}`; }
export function stsHost(domain: string): string { return `mta-sts.${domain}`; }

/**
 * The id of the policy, of a domain that says it has one; '' where it has none, undefined where nobody could
 * tell. Not exactly one record that begins as it must is none (RFC 8461 3.1).
 */
export function stsId(answer: DnsAnswer<'TXT'>): string | undefined {
  if (answer.kind === 'failed') return undefined;
  if (answer.kind !== 'found') return '';
  const [record, ...more] = recordsOf(answer.records);
  if (record === undefined || more.length > 0) return '';
  for (const field of record.split(';')) {
    const at = field.indexOf('=');
    if (at < 0 || field.slice(0, at).trim() !== 'id') continue;
    const id = field.slice(at + 1).trim();
    return ID.test(id) ? copyOfText(id) : '';
  }
  return '';
}

/** Why a domain has no policy though it says something of one; '' where it says nothing, or has one. */
export function stsRecordFault(domain: string, answer: DnsAnswer<'TXT'>): string {
  if (answer.kind !== 'found' || stsId(answer) !== '') return '';
  const { length } = recordsOf(answer.records);
  const name = stsRecordName(domain);
  if (length > 1) return `${name} has ${String(length)} records of it: none of them counts`;
  if (length === 1) return `the record at ${name} has no id of 1 to 32 letters and digits`;
  return answer.records.some((text) => LIKE_RECORD.test(text))
    ? `the record at ${name} does not begin with "v=STSv1;"` : '';
}

function recordsOf(texts: readonly string[]): readonly string[] {
  return texts.filter((text) => RECORD.test(text));
}

/** What is wrong with the text, in a few words, when it is no policy. */
export function readPolicy(text: string): StsPolicy | { readonly wrong: string } {
  const said = new Map<string, string>();
  const mx: string[] = [];
  for (const line of text.split(/\r?\n/)) {
    const colon = line.indexOf(':');
    if (colon < 0) {
      if (line.trim() !== '') return { wrong: 'a line of it has no colon' };
      continue;
    }
    const key = line.slice(0, colon).trim();
    const value = line.slice(colon + 1).trim();
    if (key === 'mx') mx.push(value.toLowerCase());
    else if (!said.has(key)) said.set(key, value);
  }
  if (said.get('version') !== 'STSv1') return { wrong: 'its version is not STSv1' };
  const mode = said.get('mode');
  if (mode !== 'enforce' && mode !== 'testing' && mode !== 'none') {
    return { wrong: mode === undefined ? 'it has no mode' : 'its mode is none of enforce, testing, none' };
  }
  const maxAge = said.get('max_age');
  if (maxAge === undefined) return { wrong: 'it has no max_age' };
  if (!MAX_AGE.test(maxAge)) return { wrong: 'its max_age is no number of seconds' };
  const maxAgeS = Math.min(Number(maxAge), MAX_AGE_S_MAX);
  // Whatever hosts it names, they mean nothing.
  if (mode === 'none') return { mode, mx: [], maxAgeS };
  if (mx.length === 0) return { wrong: 'it names no mx' };
  const isTooMuch = mx.length > NAMES_MAX || charactersOf(mx) > NAMES_CHARACTERS_MAX;
  if (isTooMuch) return { wrong: 'it names too many mx' };
  if (!mx.every(isPattern)) return { wrong: 'an mx of it is no name of a host' };
  return { mode, mx: mx.map(copyOfText), maxAgeS };
}

export function charactersOf(mx: readonly string[]): number {
  return mx.reduce((sum, pattern) => sum + pattern.length, 0);
}

/** RFC 8461 4.1. `host` is lower case. */
export function isNamedBy({ mx }: StsPolicy, host: string): boolean {
  const dot = host.indexOf('.');
  const wild = dot < 1 ? '' : `*${host.slice(dot)}`;
  return mx.some((pattern) => pattern === host || (wild !== '' && pattern === wild));
}

/** Of the hosts of a domain, those that its policy leaves. */
export function underPolicy(way: HostsWay, policy: StsPolicy | undefined, domain: string): MailWay {
  if (policy === undefined || policy.mode === 'none') return way;
  if (policy.mode === 'testing') return { ...way, sts: 'testing' };
  const judged = way.hosts.map((host) =>
    (isNamedBy(policy, host.name) ? host : { ...host, isUnnamed: true }));
  const hosts = way.isAuthentic ? judged : judged.filter(({ isUnnamed }) => isUnnamed !== true);
  if (hosts.length > 0) return { ...way, hosts, sts: 'enforce' };
  const text = `the MTA-STS policy of ${domain} names none of its MX hosts`;
  return { why: { status: DEFERRED, code: 0, enhanced: '4.7.5', text }, isVerdict: true };
}

/** For want of room at the DNS nobody could tell: who floods it takes no policy off the mail of others. */
export function wayUnasked(domain: string): MailWay {
  const text = `whether ${domain} has an MTA-STS policy could not be asked: too many questions at once`;
  return { why: { status: DEFERRED, code: 0, enhanced: '4.4.3', text }, isUnasked: true };
}

/**
 * For mail that must have TLS all the way (RFC 8689 4.2.1): that these are the hosts of the domain must be
 * proved, by DNSSEC or by a policy that is enforced. `isUnknown`: whether there is a policy could not be
 * told, or it can't be had: that passes.
 */
export function provedWay(way: HostsWay, domain: string, isUnknown: boolean): MailWay {
  if (way.isAuthentic || way.sts === 'enforce') return way;
  if (isUnknown) {
    const why = `mail to ${domain} must have TLS, and whether a policy proves its hosts is not known now`;
    return { why: { status: DEFERRED, code: 0, enhanced: '4.7.5', text: why }, isVerdict: true };
  }
  const text = `mail to ${domain} must have TLS, and neither DNSSEC nor a policy proves its hosts`;
  return { why: { status: FAILED, code: 0, enhanced: '5.7.10', text } };
}

/** What TLS a host must have whose domain enforces its policy: whatever name and CAs its route means. */
export function raisedBySts(tls: NextHopTls, serverName: string): NextHopTls {
  const terms = { ...tls.terms, serverName, caFile: undefined, mustVerify: true, isBySts: true };
  return { ...tls, level: 'verify', why: BY_STS, terms };
}

function isPattern(text: string): boolean {
  const name = text.startsWith('*.') ? text.slice(2) : text;
  return name.length <= NAME_CHARACTERS_MAX && name.split('.').every((label) => LABEL.test(label));
}
