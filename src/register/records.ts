/**
 * The values of the register's keys: JSON objects with a version, so that `etcdctl get --prefix /twinpost`
 * reads well. Whoever can write the register can write anything: a value that is not one of ours yields the
 * name of the broken rule. Fields that are not known are passed over; another version is not.
 *
 *     {"version":1,"epoch":7,"term":{"number":5,"nonce":3141592653},
 *      "holder":{"gatewayId":"gw-1","incarnation":12},
 *      "members":[{"storeId":"store-a","bootId":"30…"},{"storeId":"store-b","bootId":"77…"}],"gaveUp":[],
 *      "left":[]}
 *
 * What a partition's record means is protocol/partition-record.ts.
 */
import { invariant } from '../base/invariant.js';
import { MEMBERS_MAX } from '../protocol/fields.js';
import { isMemberOf, isPartition } from '../protocol/partition-record.js';
import type {
  GivenUpCopy, HolderId, PartitionRecord, RecordedMember, Term,
} from '../protocol/partition-record.js';
import { BrokenRule, fieldsOf, isWhole, parseJson, readList } from './core/shapes.js';
import type { Fields } from './core/shapes.js';
import { isName } from './keys.js';
import { VALUE_BYTES_MAX, utf8Bytes } from './limits.js';

const RECORD_VERSION = 1;
/** Copies that were given up and are not adopted yet: as many as a message to a store may carry. */
const GAVE_UP_MAX = 64;
/** Addresses of one process: two paths, and its admin port. */
const ADDRESSES_MAX = 16;
/** Message ids are ordinal × 2^29 + count, below 2^53: so many incarnations a group has for ever. */
export const ORDINAL_MAX = 2 ** 24 - 1;

/** Some 150 bytes each at most: they fit into one value. */
export const ENDED_COPIES_MAX = 256;

const ADDRESS_CHARACTERS_MAX = 300;
const GROUP_MAX = 1_024;
/** 16 bytes each, as hexadecimal digits. */
const RANDOM_ID = /^[0-9a-f]{32}$/;
const HOST = /^[\x21-\x7e]{1,255}$/;
const ADDRESS = /^[\x21-\x7e]+:\d{1,5}$/;

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
  /** What new mail may use; told now and then. */
  readonly memoryFreeBytes: number;
  /** It is about to stop. */
  readonly draining: boolean;
  /** host:port of its admin HTTP; '' when it listens on all addresses. */
  readonly admin: string;
}

/** What says that a gateway is retired. */
export interface RetiredRule {
  readonly who: string;
  readonly reason: string;
  readonly wallMs: number;
}

/** A partition that has ended, at a store that may have a copy of it: by the term that ended it. */
export interface EndedCopy {
  readonly partition: string;
  readonly epoch: number;
  readonly nonce: number;
}

/** Of a store that an operator gave up: what it is told when it is back. */
export interface GivenUpRule {
  readonly who: string;
  readonly reason: string;
  readonly wallMs: number;
  readonly copies: readonly EndedCopy[];
}

// ---- encode: fields in one order, so that equal records are equal texts ----

export function encodePartition({ epoch, term, holder, members, gaveUp, left }: PartitionRecord): string {
  const { number, nonce } = term;
  const { gatewayId, incarnation } = holder;
  return encode({
    epoch,
    term: { number, nonce },
    holder: { gatewayId, incarnation },
    members: members.map(plainMember),
    gaveUp: gaveUp.map(plainGiven),
    left: left.map(plainMember),
  }, readPartition);
}

function plainMember({ storeId, bootId }: RecordedMember): RecordedMember {
  return { storeId, bootId };
}

function plainGiven({ storeId, bootId, epoch }: GivenUpCopy): GivenUpCopy {
  return { storeId, bootId, epoch };
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
  { bootId, addresses, host, weight, memoryFreeBytes, draining, admin }: StoreRecord,
): string {
  return encode({ bootId, addresses, host, weight, memoryFreeBytes, draining, admin }, readStore);
}

export function encodeRetired({ who, reason, wallMs }: RetiredRule): string {
  return encode({ who, reason, wallMs }, readRetired);
}

export function encodeGivenUp({ who, reason, wallMs, copies }: GivenUpRule): string {
  const plain = copies.map(({ partition, epoch, nonce }) => ({ partition, epoch, nonce }));
  return encode({ who, reason, wallMs, copies: plain }, readGivenUp);
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

export function decodeRetired(text: string): RetiredRule | BrokenRule {
  return decode(text, readRetired);
}

export function decodeGivenUp(text: string): GivenUpRule | BrokenRule {
  return decode(text, readGivenUp);
}

function decode<T>(text: string, read: (fields: Fields) => T | BrokenRule): T | BrokenRule {
  if (utf8Bytes(text) > VALUE_BYTES_MAX) return new BrokenRule('value too long');
  const fields = fieldsOf(parseJson(text));
  if (fields === undefined) return new BrokenRule('no JSON object');
  const version = fields['version'];
  if (!isWhole(version) || version === 0) return new BrokenRule('no version');
  return version === RECORD_VERSION ? read(fields) : new BrokenRule('another version');
}

function readPartition(
  { epoch, term, holder, members, gaveUp, left }: Fields,
): PartitionRecord | BrokenRule {
  const since = readTerm(term);
  const who = readHolder(holder);
  if (!isCount(epoch) || since === undefined) return new BrokenRule('no epoch or term');
  if (since.number > epoch) return new BrokenRule('term above epoch');
  if (who === undefined) return new BrokenRule('no holder');
  const list = readMembers(members, MEMBERS_MAX, 'members', readMember);
  if (list instanceof BrokenRule) return list;
  // One store may have two boots: while its new boot takes the place of the old one.
  const given = readMembers(gaveUp, GAVE_UP_MAX, 'gaveUp', readGiven);
  if (given instanceof BrokenRule) return given;
  if (who.incarnation === 0 && given.length > 0) return new BrokenRule('copies that nobody gave up');
  const out = readMembers(left, MEMBERS_MAX, 'left', readMember);
  if (out instanceof BrokenRule) return out;
  return { epoch, term: since, holder: who, members: list, gaveUp: given, left: out };
}

function readTerm(value: unknown): Term | undefined {
  const { number, nonce } = fieldsOf(value) ?? {};
  return isCount(number) && isWhole(nonce) ? { number, nonce } : undefined;
}

function readHolder(value: unknown): HolderId | undefined {
  const { gatewayId, incarnation } = fieldsOf(value) ?? {};
  return isName(gatewayId) && isWhole(incarnation) ? { gatewayId, incarnation } : undefined;
}

function readMembers<T extends RecordedMember>(
  value: unknown, max: number, what: string, read: (each: unknown) => T | BrokenRule,
): readonly T[] | BrokenRule {
  const list = readList(value, max, what, read);
  if (list instanceof BrokenRule) return list;
  const isTwice = list.some(({ storeId, bootId }, at) => isMemberOf(list.slice(0, at), storeId, bootId));
  return isTwice ? new BrokenRule(`${what}: one stands twice`) : list;
}

function readMember(value: unknown): RecordedMember | BrokenRule {
  const { storeId, bootId } = fieldsOf(value) ?? {};
  return isName(storeId) && isName(bootId) ? { storeId, bootId } : new BrokenRule('no store or boot');
}

function readGiven(value: unknown): GivenUpCopy | BrokenRule {
  const member = readMember(value);
  const { epoch } = fieldsOf(value) ?? {};
  if (member instanceof BrokenRule) return member;
  return isCount(epoch) ? { ...member, epoch } : new BrokenRule('no epoch');
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
  { bootId, addresses, host, weight, memoryFreeBytes, draining, admin }: Fields,
): StoreRecord | BrokenRule {
  if (!isRandomId(bootId)) return new BrokenRule('no boot');
  const list = readList(addresses, ADDRESSES_MAX, 'addresses', readAddress);
  if (list instanceof BrokenRule) return list;
  if (list.length === 0) return new BrokenRule('no address');
  if (!isHost(host)) return new BrokenRule('no host');
  if (!isCount(weight) || !isWhole(memoryFreeBytes)) return new BrokenRule('no weight or memory');
  if (typeof draining !== 'boolean') return new BrokenRule('draining is neither true nor false');
  const http = admin === '' ? '' : readAddress(admin);
  if (http instanceof BrokenRule) return http;
  return { bootId, addresses: list, host, weight, memoryFreeBytes, draining, admin: http };
}

function readRetired({ who, reason, wallMs }: Fields): RetiredRule | BrokenRule {
  if (typeof who !== 'string' || typeof reason !== 'string') return new BrokenRule('no reason');
  return isWhole(wallMs) ? { who, reason, wallMs } : new BrokenRule('no time');
}

function readGivenUp(fields: Fields): GivenUpRule | BrokenRule {
  const by = readRetired(fields);
  if (by instanceof BrokenRule) return by;
  const copies = readList(fields['copies'], ENDED_COPIES_MAX, 'copies', readEndedCopy);
  return copies instanceof BrokenRule ? copies : { ...by, copies };
}

function readEndedCopy(value: unknown): EndedCopy | BrokenRule {
  const { partition, epoch, nonce } = fieldsOf(value) ?? {};
  if (!isPartition(partition)) return new BrokenRule('no partition');
  return isCount(epoch) && isWhole(nonce) ? { partition, epoch, nonce } : new BrokenRule('no epoch or nonce');
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
