/**
 * Reads a path out of a MAIL or RCPT line: "<" [source route] local-part "@" domain ">" (RFC 5321 4.1.2),
 * quoted local parts and address literals included. It keeps every octet of the address, as two mailboxes may
 * differ in case (2.4), and gives the domain beside it, lower-case and in A-labels, for routing.
 *
 * Limits are above those of RFC 5321 4.5.3.1: local part and domain 255, path with its brackets 512 octets.
 * A source route is accepted and ignored (RFC 5321 C). Non-ASCII is for SMTPUTF8 only (RFC 6531 3.3).
 *
 * Not here: who may send where (relay-policy.ts), parameters behind the path (parameters.ts).
 */

import ipaddr from 'ipaddr.js';
import { utf8Octets } from '../base/utf8.js';
import type { ToAscii } from '../platform/ports.js';

/**
 * More than the 64 of the RFC: some mailbox providers have longer ones, and a next hop says so if it minds.
 */
const LOCAL_PART_OCTETS_MAX = 255;
const DOMAIN_OCTETS_MAX = 255;
const PATH_OCTETS_MAX = 512;
const LABEL_OCTETS_MAX = 63;

const QUOTE = 0x22;
const AT = 0x40;
const BACKSLASH = 0x5c;
const DOT = 0x2e;
const HYPHEN = 0x2d;
const UNDERSCORE = 0x5f;
const OPEN = 0x3c;
const CLOSE = 0x3e;

export interface Path {
  /** Without brackets and source route, as received; '' for the null reverse-path. */
  readonly address: string;
  /** Lower-case A-labels, or an address literal; '' for the null path and for <postmaster>. */
  readonly domain: string;
  readonly ascii: boolean;
  /** Index of the first character behind ">". */
  readonly end: number;
}

/** The name of the broken rule, for the reply. */
export type BrokenPath = string;

/** Reads the path that starts at `from` in a line already free of control characters. */
export function parsePath(line: string, from: number, toAscii: ToAscii): Path | BrokenPath {
  if (line.charCodeAt(from) !== OPEN) return 'angle brackets are missing';
  const start = skipSourceRoute(line, from + 1, toAscii);
  if (start < 0) return 'source route';
  // A source route leads to a mailbox: neither to the null path nor to <postmaster> (RFC 5321 4.1.2).
  const isRouted = start > from + 1;
  if (line.charCodeAt(start) === CLOSE) {
    return isRouted ? 'local part' : { address: '', domain: '', ascii: true, end: start + 1 };
  }
  const localEnd = line.charCodeAt(start) === QUOTE ? quotedEnd(line, start) : dotStringEnd(line, start);
  if (localEnd < 0) return 'local part';
  if (line.charCodeAt(localEnd) === CLOSE) {
    // RFC 5321 4.1.1.3: postmaster needs no domain; nothing else may do without.
    const address = line.slice(start, localEnd);
    return address.toLowerCase() === 'postmaster' && !isRouted
      ? { address, domain: '', ascii: true, end: localEnd + 1 } : 'domain is missing';
  }
  const close = line.indexOf('>', localEnd);
  if (line.charCodeAt(localEnd) !== AT || close < 0) return 'local part';
  return checkedPath(line.slice(start, close), localEnd - start, close + 1, toAscii);
}

/** `at`: where the "@" before the domain is. */
function checkedPath(address: string, at: number, end: number, toAscii: ToAscii): Path | BrokenPath {
  const ascii = isAscii(address);
  const domain = address.slice(at + 1);
  const domainOctets = ascii ? domain.length : utf8Octets(domain);
  const localOctets = ascii ? at : utf8Octets(address) - domainOctets - 1;
  if (localOctets > LOCAL_PART_OCTETS_MAX) return 'local part longer than 255 octets';
  if (domainOctets > DOMAIN_OCTETS_MAX) return 'domain longer than 255 octets';
  if (localOctets + domainOctets + 3 > PATH_OCTETS_MAX) return 'path longer than 512 octets';
  const routed = normalizeDomain(domain, toAscii);
  if (routed === '') return 'domain';
  return { address, domain: routed, ascii, end };
}

/** The domain as policy and routing compare it: lower-case A-labels or a literal; '' when it is none. */
export function normalizeDomain(domain: string, toAscii: ToAscii): string {
  if (domain.startsWith('[')) return isLiteral(domain) ? domain.toLowerCase() : '';
  if (isAscii(domain)) return isHostName(domain) ? domain.toLowerCase() : '';
  // toAscii() reads names as they stand in a URL: "ours.example/x" would be our domain, and "%6furs" too.
  const converted = hasForeignAscii(domain) ? '' : toAscii(domain);
  return converted.length <= DOMAIN_OCTETS_MAX && isHostName(converted) ? converted : '';
}

function isLiteral(domain: string): boolean {
  if (!domain.endsWith(']')) return false;
  const inside = domain.slice(1, -1);
  return inside.toLowerCase().startsWith('ipv6:')
    ? ipaddr.IPv6.isValid(inside.slice(5)) && !inside.includes('%')
    : ipaddr.IPv4.isValidFourPartDecimal(inside);
}

/**
 * RFC 5321 4.1.2 Domain; with underscores and outer hyphens, which some hosts have in their names (RFC 2181
 * 11).
 */
function isHostName(domain: string): boolean {
  let labelStart = 0;
  for (let at = 0; at <= domain.length; at++) {
    const code = at < domain.length ? domain.charCodeAt(at) : DOT;
    if (code === DOT) {
      const octets = at - labelStart;
      if (octets === 0 || octets > LABEL_OCTETS_MAX) return false;
      labelStart = at + 1;
    } else if (!isLetterOrDigit(code) && code !== HYPHEN && code !== UNDERSCORE) {
      return false;
    }
  }
  return true;
}

/** ASCII that stands in no name of a host. */
function hasForeignAscii(domain: string): boolean {
  return /[^\x80-\uffff\w.-]/.test(domain);
}

/** Index behind "@a,@b:", the same index when there is none, -1 when it is broken. */
function skipSourceRoute(line: string, from: number, toAscii: ToAscii): number {
  if (line.charCodeAt(from) !== AT) return from;
  const colon = line.indexOf(':', from);
  if (colon < 0 || colon - from > PATH_OCTETS_MAX) return -1;
  for (const hop of line.slice(from, colon).split(',')) {
    if (!hop.startsWith('@') || normalizeDomain(hop.slice(1), toAscii) === '') return -1;
  }
  return colon + 1;
}

/** Index behind the closing quote, or -1. */
function quotedEnd(line: string, from: number): number {
  for (let at = from + 1; at < line.length; at++) {
    const code = line.charCodeAt(at);
    if (code === QUOTE) return at + 1;
    // A quoted pair hides ASCII only (RFC 5321 quoted-pairSMTP; RFC 6531 leaves it so).
    if (code === BACKSLASH && !(line.charCodeAt(++at) < 0x7f)) return -1;
  }
  return -1;
}

/** Index of the "@" or ">" behind atoms joined by single dots, or -1. */
function dotStringEnd(line: string, from: number): number {
  let afterDot = true;
  for (let at = from; at < line.length; at++) {
    const code = line.charCodeAt(at);
    if (code === AT || code === CLOSE) return afterDot ? -1 : at;
    if (code === DOT) {
      if (afterDot) return -1;
      afterDot = true;
    } else {
      if (!isAtomText(code)) return -1;
      afterDot = false;
    }
  }
  return -1;
}

function isLetterOrDigit(code: number): boolean {
  return (code >= 0x61 && code <= 0x7a) || (code >= 0x30 && code <= 0x39) || (code >= 0x41 && code <= 0x5a);
}

/** RFC 5322 atext, with RFC 6532 non-ASCII. */
function isAtomText(code: number): boolean {
  return isLetterOrDigit(code) || code > 0x9f || ATOM_SPECIALS.includes(String.fromCharCode(code));
}
const ATOM_SPECIALS = "!#$%&'*+-/=?^_`{|}~";

/** <postmaster> is ours (RFC 5321 4.1.1.3); some take an address without a domain for broken. */
export function withDomain(address: string, hostName: string): string {
  return address.includes('@') ? address : `${address}@${hostName}`;
}

export function isAscii(text: string): boolean {
  for (let at = 0; at < text.length; at++) {
    if (text.charCodeAt(at) > 0x7f) return false;
  }
  return true;
}
