/**
 * The values of the register's keys: JSON objects with a version, so that `etcdctl get --prefix /twinpost`
 * reads well. Whoever can write the register can write anything: a value that is not one of ours yields the
 * name of the broken rule. Fields that are not known are passed over; another version is not.
 *
 *     {"version":1,"epoch":7,"term":5,"nonce":"9f…","holder":{"gatewayId":"gw-1","incarnation":12},
 *      "members":[{"storeId":"store-a","bootId":"30…"},{"storeId":"store-b","bootId":"77…"}]}
 */
import { invariant } from '../base/invariant.js';
import { BrokenRule, fieldsOf, isWhole, parseJson, readList } from './core/shapes.js';
import type { Fields } from './core/shapes.js';
import { isName } from './keys.js';
import { VALUE_BYTES_MAX, utf8Bytes } from './limits.js';

const RECORD_VERSION = 1;
/** Members of a partition: two, and a third while one takes the place of another; with room. */
const MEMBERS_MAX = 8;
/** Addresses of one process: two paths, and its admin port. */
const ADDRESSES_MAX = 16;
/** Message ids are ordinal × 2^29 + count, below 2^53: so many incarnations a group has for ever. */
export const ORDINAL_MAX = 2 ** 24 - 1;

const ADDRESS_CHARACTERS_MAX = 300;
const GROUP_MAX = 1_024;
/** 16 bytes each, as hexadecimal digits. */
const RANDOM_ID = /^[0-9a-f]{32}$/;
const HOST = /^[\x21-\x7e]{1,255}$/;
const ADDRESS = /^[\x21-\x7e]+:\d{1,5}$/;

/** A store in one of its lives. */
export interface Member {
  readonly storeId: string;
  readonly bootId: string;
}

/** A gateway in one of its lives. */
export interface Holder {
  readonly gatewayId: string;
  readonly incarnation: number;
}

/** Who holds a partition (DESIGN, Ownership rule 1). */
export interface PartitionRecord {
  /** Raised by every change. */
  readonly epoch: number;
  /** Epoch of the change that made this holder holder. */
  readonly term: number;
  /** Drawn with the term: two terms of one number differ in it. */
  readonly nonce: string;
  readonly holder: Holder;
  readonly members: readonly Member[];
}

/** A gateway that lives. */
export interface GatewayRecord {
  readonly incarnation: number;
  readonly ordinal: number;
  /** Label of its machine, for placement. */
  readonly host: string;
  /** host:port of what others may ask it. */
  readonly addresses: readonly string[];
  /** Ids of the gateways that its configuration names as its group. */
  readonly group: readonly string[];
}

/** The last incarnation that was drawn. */
export interface IncarnationRecord {
  readonly incarnation: number;
  /** Unique in the group, for ever. */
  readonly ordinal: number;
}

/** The next ordinal nobody has. */
export interface OrdinalRecord {
  readonly next: number;
}

/** A store that lives. */
export interface StoreRecord {
  readonly bootId: string;
  /** One a path. */
  readonly addresses: readonly string[];
  readonly host: string;
  readonly weight: number;
  readonly memoryFreeBytes: number;
  readonly draining: boolean;
}

// ---- encode: fields in one order, so that equal records are equal texts ----

export function encodePartition({ epoch, term, nonce, holder, members }: PartitionRecord): string {
  const { gatewayId, incarnation } = holder;
  return encode({
    epoch,
    term,
    nonce,
    holder: { gatewayId, incarnation },
    members: members.map(({ storeId, bootId }) => ({ storeId, bootId })),
  }, readPartition);
}

export function encodeGateway({ incarnation, ordinal, host, addresses, group }: GatewayRecord): string {
  return encode({ incarnation, ordinal, host, addresses, group }, readGateway);
}

export function encodeIncarnation({ incarnation, ordinal }: IncarnationRecord): string {
  return encode({ incarnation, ordinal }, readIncarnation);
}

export function encodeOrdinal({ next }: OrdinalRecord): string {
  return encode({ next }, readOrdinal);
}

export function encodeStore(
  { bootId, addresses, host, weight, memoryFreeBytes, draining }: StoreRecord,
): string {
  return encode({ bootId, addresses, host, weight, memoryFreeBytes, draining }, readStore);
}

/** What is written can be read: a record that can't is our own bug. */
function encode(fields: Fields, read: (fields: Fields) => object): string {
  const rule = read(fields);
  invariant(
    !(rule instanceof BrokenRule),
    `a record of ours is sound: ${rule instanceof BrokenRule ? rule.rule : ''}`,
  );
  return JSON.stringify({ version: RECORD_VERSION, ...fields });
}

// ---- decode ----

export function decodePartition(text: string): PartitionRecord | BrokenRule {
  return decode(text, readPartition);
}

export function decodeGateway(text: string): GatewayRecord | BrokenRule {
  return decode(text, readGateway);
}

export function decodeIncarnation(text: string): IncarnationRecord | BrokenRule {
  return decode(text, readIncarnation);
}

export function decodeOrdinal(text: string): OrdinalRecord | BrokenRule {
  return decode(text, readOrdinal);
}

export function decodeStore(text: string): StoreRecord | BrokenRule {
  return decode(text, readStore);
}

function decode<T>(text: string, read: (fields: Fields) => T | BrokenRule): T | BrokenRule {
  if (utf8Bytes(text) > VALUE_BYTES_MAX) return new BrokenRule('value too long');
  const fields = fieldsOf(parseJson(text));
  if (fields === undefined) return new BrokenRule('no JSON object');
  const version = fields['version'];
  if (!isWhole(version) || version === 0) return new BrokenRule('no version');
  return version === RECORD_VERSION ? read(fields) : new BrokenRule('another version');
}

function readPartition({ epoch, term, nonce, holder, members }: Fields): PartitionRecord | BrokenRule {
  if (!isCount(epoch) || !isCount(term)) return new BrokenRule('no epoch or term');
  if (term > epoch) return new BrokenRule('term above epoch');
  if (!isRandomId(nonce)) return new BrokenRule('no nonce');
  const { gatewayId, incarnation } = fieldsOf(holder) ?? {};
  if (!isName(gatewayId) || !isCount(incarnation)) return new BrokenRule('no holder');
  const list = readList(members, MEMBERS_MAX, 'members', readMember);
  if (list instanceof BrokenRule) return list;
  if (new Set(list.map(({ storeId }) => storeId)).size < list.length) {
    return new BrokenRule('a member stands twice');
  }
  return { epoch, term, nonce, holder: { gatewayId, incarnation }, members: list };
}

function readMember(value: unknown): Member | BrokenRule {
  const { storeId, bootId } = fieldsOf(value) ?? {};
  return isName(storeId) && isRandomId(bootId) ? { storeId, bootId } : new BrokenRule('no store or boot');
}

function readGateway({ incarnation, ordinal, host, addresses, group }: Fields): GatewayRecord | BrokenRule {
  const drawn = readIncarnation({ incarnation, ordinal });
  if (drawn instanceof BrokenRule) return drawn;
  if (!isHost(host)) return new BrokenRule('no host');
  const list = readList(addresses, ADDRESSES_MAX, 'addresses', readAddress);
  if (list instanceof BrokenRule) return list;
  const names = readList(
    group,
    GROUP_MAX,
    'group',
    (name) => (isName(name) ? name : new BrokenRule('no name')),
  );
  return names instanceof BrokenRule ? names : { ...drawn, host, addresses: list, group: names };
}

function readIncarnation({ incarnation, ordinal }: Fields): IncarnationRecord | BrokenRule {
  if (!isCount(incarnation)) return new BrokenRule('no incarnation');
  return isWhole(ordinal, ORDINAL_MAX) ? { incarnation, ordinal } : new BrokenRule('no ordinal');
}

function readOrdinal({ next }: Fields): OrdinalRecord | BrokenRule {
  // One past the last one says that none is left.
  return isWhole(next, ORDINAL_MAX + 1) ? { next } : new BrokenRule('no next ordinal');
}

function readStore(
  { bootId, addresses, host, weight, memoryFreeBytes, draining }: Fields,
): StoreRecord | BrokenRule {
  if (!isRandomId(bootId)) return new BrokenRule('no boot');
  const list = readList(addresses, ADDRESSES_MAX, 'addresses', readAddress);
  if (list instanceof BrokenRule) return list;
  if (!isHost(host)) return new BrokenRule('no host');
  if (!isCount(weight) || !isWhole(memoryFreeBytes)) return new BrokenRule('no weight or memory');
  if (typeof draining !== 'boolean') return new BrokenRule('draining is neither true nor false');
  return { bootId, addresses: list, host, weight, memoryFreeBytes, draining };
}

function readAddress(value: unknown): string | BrokenRule {
  if (typeof value !== 'string' || value.length > ADDRESS_CHARACTERS_MAX || !ADDRESS.test(value)) {
    return new BrokenRule('no address');
  }
  return Number(value.slice(value.lastIndexOf(':') + 1)) <= 65_535 ? value : new BrokenRule('no port');
}

/** Counted from 1. */
function isCount(value: unknown): value is number {
  return isWhole(value) && value > 0;
}

function isRandomId(value: unknown): value is string {
  return typeof value === 'string' && RANDOM_ID.test(value);
}

function isHost(value: unknown): value is string {
  return typeof value === 'string' && HOST.test(value);
}
