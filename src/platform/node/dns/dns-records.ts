/**
 * The parts of an answer of DNS (RFC 1035 4), at a bounded cost.
 *
 *   header   12   id, flags, how many of each that follows
 *   question      name, type (2), class (2)
 *   record        name, type (2), class (2), TTL (4), length (2), data: answers, authorities, additional
 *
 * dns-packet reads each name anew, label by label along its pointers, and some data further than their
 * length: 650 records of one name of 115 labels held it for 40 ms. So records are found here by their
 * lengths, labels are counted before they are read, and dns-packet reads only what was asked for.
 */
import packet from 'dns-packet';
import type { Answer } from 'dns-packet';
import type { DnsType } from '../../resolver.js';

declare module 'dns-packet' {
  interface Reads<T> {
    /** `bytes`: of what was read last. */
    decode: ((message: Buffer, at: number) => T) & { readonly bytes: number };
  }
  const name: Reads<string>;
  const answer: Reads<Answer>;
}

/** The largest sets of an honest zone have less than half of it. */
export const RECORDS_MAX = 512;
/** Of names and strings that are read, all together: it takes some 2 ms. */
export const NAMES_COST_MAX = 48 * 1024;
/** An octet of them costs one, and each label, pointer or string as much as this many octets more. */
export const LABEL_COST = 8;
const HEADER_BYTES = 12;
/** Of a record, behind its name and before its data. */
const FIXED_BYTES = 10;
const TYPE = {
  A: 1, NS: 2, CNAME: 5, SOA: 6, PTR: 12, MX: 15, TXT: 16, AAAA: 28, OPT: 41, TLSA: 52,
} as const;
/** Where in the data a name is. */
const NAME_AT: ReadonlyMap<number, number> = new Map([[TYPE.CNAME, 0], [TYPE.PTR, 0], [TYPE.MX, 2]]);
const IN = 1;
/** RFC 1035 4.1.4: two bits, then where in the message the name goes on. */
const POINTER = 0xc0;
const POINTER_TO = 0x3fff;
const NOT_ASKED = {
  asked: undefined, answers: [], hasServers: false, soa: undefined, extendedCode: 0,
} as const satisfies AnswerParts;

/** What there is, of which the rest is not read. */
export interface AnswerParts {
  /** The name; undefined: not one question, or not of this type and of the Internet. */
  readonly asked: string | undefined;
  /** Of the type that was asked for, and aliases. */
  readonly answers: readonly Answer[];
  readonly hasServers: boolean;
  /** Of the zone's SOA: how long it may be kept, and that there is nothing. */
  readonly soa: { readonly ttl: number; readonly minimum: number } | undefined;
  /** The upper bits of the code (RFC 6891 6.1.3). */
  readonly extendedCode: number;
}

interface RawRecord {
  /** Where in the message it begins. */
  readonly at: number;
  readonly type: number;
  readonly class: number;
  readonly ttl: number;
  readonly dataAt: number;
  readonly end: number;
}

/** Throws what is wrong with the message. */
export function readParts(message: Buffer, type: DnsType): AnswerParts {
  if (message.readUInt16BE(4) !== 1) return NOT_ASKED;
  const counts = [message.readUInt16BE(6), message.readUInt16BE(8), message.readUInt16BE(10)] as const;
  const all = counts[0] + counts[1] + counts[2];
  if (all > RECORDS_MAX) throw new Error(`${String(all)} records in ${String(message.length)} bytes`);
  const typeAt = endOfName(message, HEADER_BYTES);
  const [askedType, askedClass] = [message.readUInt16BE(typeAt), message.readUInt16BE(typeAt + 2)];
  if (askedType !== TYPE[type] || askedClass !== IN) return NOT_ASKED;
  const records = recordsFrom(message, typeAt + 4, all);
  const wanted = records.slice(0, counts[0])
    .filter((each) => each.class === IN && (each.type === TYPE[type] || each.type === TYPE.CNAME));
  boundNames(message, wanted);
  const authorities = records.slice(counts[0], counts[0] + counts[1]);
  const soa = authorities.find((each) => each.type === TYPE.SOA);
  const options = records.slice(counts[0] + counts[1]).find((each) => each.type === TYPE.OPT);
  return {
    asked: packet.name.decode(message, HEADER_BYTES),
    answers: wanted.map((each) => readRecord(message, each)),
    hasServers: authorities.some((each) => each.type === TYPE.NS),
    soa: soa && { ttl: soa.ttl, minimum: message.readUInt32BE(soa.end - 4) },
    extendedCode: options === undefined ? 0 : options.ttl >>> 24,
  };
}

function recordsFrom(message: Buffer, from: number, count: number): readonly RawRecord[] {
  const records: RawRecord[] = [];
  for (let at = from; records.length < count;) {
    const typeAt = endOfName(message, at);
    const dataAt = typeAt + FIXED_BYTES;
    const end = dataAt + message.readUInt16BE(typeAt + 8);
    if (end > message.length) throw new Error('it ends within a record');
    records.push({
      at, type: message.readUInt16BE(typeAt), class: message.readUInt16BE(typeAt + 2),
      ttl: message.readUInt32BE(typeAt + 4), dataAt, end,
    });
    at = end;
  }
  return records;
}

/** Where what follows a name begins: behind its root or its pointer. */
function endOfName(message: Buffer, at: number): number {
  for (;;) {
    const octet = message.readUInt8(at);
    if (octet >= POINTER) return at + 2;
    at += 1 + octet;
    if (octet === 0) return at;
  }
}

/** Before they are read. */
function boundNames(message: Buffer, records: readonly RawRecord[]): void {
  let cost = costOfName(message, HEADER_BYTES, 0);
  for (const { at, type, dataAt, end } of records) {
    cost = costOfName(message, at, cost);
    const nameAt = NAME_AT.get(type);
    if (nameAt !== undefined) cost = costOfName(message, dataAt + nameAt, cost);
    if (type !== TYPE.TXT) continue;
    for (let stringAt = dataAt; stringAt < end;) {
      const octets = message.readUInt8(stringAt);
      cost = withLabel(cost, octets);
      stringAt += 1 + octets;
    }
  }
}

/** With what was before. A circle of pointers ends at the bound. */
function costOfName(message: Buffer, from: number, before: number): number {
  let cost = before;
  for (let at = from; ;) {
    const octet = message.readUInt8(at);
    if (octet === 0) return cost;
    const isPointer = octet >= POINTER;
    cost = withLabel(cost, isPointer ? 0 : octet);
    at = isPointer ? message.readUInt16BE(at) & POINTER_TO : at + 1 + octet;
  }
}

function withLabel(before: number, octets: number): number {
  const cost = before + LABEL_COST + octets;
  if (cost > NAMES_COST_MAX) throw new Error('its names take too long to read');
  return cost;
}

function readRecord(message: Buffer, { at, end }: RawRecord): Answer {
  const record = packet.answer.decode(message, at);
  if (at + packet.answer.decode.bytes !== end) throw new Error('a record of another length than it says');
  return record;
}
