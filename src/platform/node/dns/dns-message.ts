/**
 * Questions and answers of DNS as bytes (RFC 1035 4, by dns-packet), and what an answer means.
 *
 * An answer counts only if it is one to this very question: same id, one question, same name, type and class.
 * An attacker who does not see the question has to guess the id and the port; the name's letters are compared
 * without case. What does not decode, is longer than ANSWER_BYTES_MAX, or would take long to read
 * (dns-records.ts), is no answer.
 */
import packet from 'dns-packet';
import type { StringAnswer, TlsaData as TlsaInPacket } from 'dns-packet';
import { errorText } from '../../../base/error-text.js';
import type { DnsAnswer, DnsData, DnsType } from '../../resolver.js';
import { readParts } from './dns-records.js';
import type { AnswerParts } from './dns-records.js';

export const ANSWER_BYTES_MAX = 16 * 1024;
/** What we take by UDP: no datagram of this size is cut up on its way (DNS flag day 2020). */
const UDP_BYTES_MAX = 1232;
const HEADER_BYTES = 12;
const ALIASES_MAX = 8;
const TTL_SECONDS_MAX = 86_400;
/** RFC 2308 5 lets it be one to three hours. */
const NEGATIVE_TTL_SECONDS_MAX = 3600;
/** Flags of the second octet: AD in a question asks for it in the answer (RFC 6840 5.7). */
const FLAGS = packet.RECURSION_DESIRED | packet.AUTHENTIC_DATA;
/** QR and the opcode (RFC 1035 4.1.1): of an answer to a query the first alone is set. */
const RESPONSE = 0x8000;
const KIND = 0xf800;
const CODE = 0xf;
const NO_NAME = 3;
/** By number; others go by it. */
const CODES = ['NOERROR', 'FORMERR', 'SERVFAIL', 'NXDOMAIN', 'NOTIMP', 'REFUSED'] as const;
/** One of them stands in an answer of who can know that there is nothing. */
const KNOWS = packet.RECURSION_AVAILABLE | packet.AUTHORITATIVE_ANSWER;
/** Of a name as text, without its final dot: 255 octets in a message (RFC 1035 2.3.4). */
export const NAME_CHARACTERS_MAX = 253;
const ASCII = /^[\x20-\x7e]*$/;
const LABEL = /^[\x21-\x2d\x2f-\x7e]{1,63}$/;

export interface DnsQuestion {
  readonly id: number;
  /** Lower case, no final dot. */
  readonly name: string;
  readonly type: DnsType;
}

/** What came: an answer and how long it may be kept; or what else is to be done. */
export type DnsReading =
  | { readonly kind: 'answer'; readonly answer: DnsAnswer<DnsType>; readonly ttlSeconds: number }
  /** Ask again by TCP. */
  | { readonly kind: 'truncated' }
  /** This resolver can't tell; another may. */
  | { readonly kind: 'refused'; readonly why: string }
  /** Not an answer to this question. */
  | { readonly kind: 'foreign' };

/** Whether a name can be asked for: labels of 1 to 63 visible ASCII characters. */
export function isAskable(name: string): boolean {
  return name.length <= NAME_CHARACTERS_MAX && name.split('.').every((label) => LABEL.test(label));
}

export function questionBytes({ id, name, type }: DnsQuestion): Uint8Array {
  return packet.encode({
    id,
    type: 'query',
    flags: FLAGS,
    questions: [{ name, type, class: 'IN' }],
    additionals: [{
      type: 'OPT', name: '.', udpPayloadSize: UDP_BYTES_MAX, extendedRcode: 0, ednsVersion: 0, flags: 0,
      flag_do: false, options: [],
    }],
  });
}

/** `isTrusted`: what this resolver says of DNSSEC is believed. */
export function readAnswer(bytes: Uint8Array, question: DnsQuestion, isTrusted: boolean): DnsReading {
  const [high = 0, low = 0] = bytes;
  if (bytes.length < HEADER_BYTES || (high << 8 | low) !== question.id) return { kind: 'foreign' };
  if (bytes.length > ANSWER_BYTES_MAX) {
    return { kind: 'refused', why: `an answer of ${String(bytes.length)} bytes` };
  }
  const buffer = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  const flags = buffer.readUInt16BE(2);
  if ((flags & KIND) !== RESPONSE) return { kind: 'foreign' };
  // One that says it is cut off may be so within a record: it is asked for by TCP (RFC 2181 9).
  const isCutOff = (flags & packet.TRUNCATED_RESPONSE) !== 0;
  let parts: AnswerParts;
  try {
    parts = readParts(buffer, question.type);
  } catch (error) {
    if (isCutOff) return { kind: 'truncated' };
    return { kind: 'refused', why: `a malformed answer: ${errorText(error)}` };
  }
  if (parts.asked === undefined || lowerCase(parts.asked) !== question.name) return { kind: 'foreign' };
  if (isCutOff) return { kind: 'truncated' };
  const code = parts.extendedCode << 4 | flags & CODE;
  if (code !== 0 && code !== NO_NAME) return { kind: 'refused', why: CODES[code] ?? `RCODE_${String(code)}` };
  const isAuthentic = isTrusted && (flags & packet.AUTHENTIC_DATA) !== 0;
  const reading = meaningOf(parts, question, code === NO_NAME, isAuthentic);
  const isNone = reading.kind === 'answer' && reading.answer.kind !== 'found';
  // Of who neither resolves, nor has the zone, nor shows its SOA: that says nothing of the name.
  if (isNone && parts.soa === undefined && (flags & KNOWS) === 0) {
    return { kind: 'refused', why: 'it does not resolve names of others' };
  }
  return reading;
}

function meaningOf(
  { answers, hasServers, soa }: AnswerParts, question: DnsQuestion, isNoName: boolean, isAuthentic: boolean,
): DnsReading {
  // Once, for they are looked through for each alias.
  const owners = answers.map(({ name }) => lowerCase(name));
  let owner = question.name;
  let ttlSeconds = TTL_SECONDS_MAX;
  for (let aliases = 0; ; aliases++) {
    const own = answers.filter((_, at) => owners[at] === owner);
    const records = own.filter((each) => each.type === question.type);
    if (records.length > 0) {
      for (const each of records) ttlSeconds = Math.min(ttlSeconds, ttlOf(each));
      const data = records.map((each) => dataOf(question.type, (each as { readonly data: unknown }).data));
      const alias = owner === question.name ? {} : { aliasOf: owner };
      return { kind: 'answer', answer: { kind: 'found', records: data, ...alias, isAuthentic }, ttlSeconds };
    }
    const alias = own.find((each): each is StringAnswer => each.type === 'CNAME');
    if (alias === undefined) break;
    if (aliases === ALIASES_MAX) return { kind: 'refused', why: `more than ${String(ALIASES_MAX)} aliases` };
    ttlSeconds = Math.min(ttlSeconds, ttlOf(alias));
    owner = lowerCase(alias.data);
  }
  // RFC 2308 2.2: servers of a zone below, and no SOA: it says nothing of the name.
  const isReferral = !isNoName && hasServers && soa === undefined;
  if (isReferral) return { kind: 'refused', why: 'a referral to other servers' };
  const none = { kind: isNoName ? 'no-name' : 'no-records', isAuthentic } as const;
  // RFC 2308 5: as the zone's SOA says; an answer without one is not kept.
  const soaSeconds = soa === undefined ? 0 : Math.min(ttlOf(soa), soa.minimum, NEGATIVE_TTL_SECONDS_MAX);
  return { kind: 'answer', answer: none, ttlSeconds: Math.min(ttlSeconds, soaSeconds) };
}

/** RFC 2181 8: a TTL with its top bit set counts as 0. */
function ttlOf(record: object): number {
  const { ttl } = record as { readonly ttl?: number };
  return ttl === undefined || ttl > 0x7fff_ffff ? 0 : ttl;
}

function dataOf(type: DnsType, data: unknown): DnsData[DnsType] {
  switch (type) {
    case 'A':
    case 'AAAA':
      return data as string;
    case 'CNAME':
    case 'PTR':
      return lowerCase(data as string);
    case 'MX': {
      const { preference, exchange } = data as { readonly preference: number; readonly exchange: string };
      return { preference, exchange: lowerCase(exchange) };
    }
    case 'TLSA': {
      const { usage, selector, matchingType: matching, certificate } = data as TlsaInPacket;
      // A view would keep the whole answer.
      return { usage, selector, matching, association: Uint8Array.from(certificate) };
    }
    case 'TXT':
      return (data as readonly Buffer[]).map((each) => each.toString('latin1')).join('');
  }
}

/** Letters of ASCII alone (RFC 4343); the root is ''. */
function lowerCase(name: string): string {
  if (name === '.') return '';
  // A callback for each second letter of aAaA took longer than all else.
  return ASCII.test(name) ? name.toLowerCase()
    : name.replace(/[A-Z]+/g, (letters) => letters.toLowerCase());
}
