/**
 * Partition records and terms as elements of control parts: FENCE, DECLINED, ASKED, TELL and BEAT carry them.
 *
 *   term    [number u53, nonce u53]
 *   member  [storeId str, bootId str]
 *   past    [number u53, nonce u53, epoch u53]
 *   given   [storeId str, bootId str, epoch u53]; flags behind it, if there are any: 1 it is gone, 2 it
 *           stands for itself alone
 *   record  [epoch u53, term, holder [gatewayId str, incarnation u53], members [member], gaveUp [given],
 *            left [member], line [past]]
 *
 * Nothing here trusts a peer: each reader takes `unknown` and yields undefined for what breaks a rule.
 */
import { GAVE_UP_MAX, LINE_MAX, MEMBERS_MAX, isIdentifier, isWhole } from './fields.js';
import { orNone, packed } from './layout.js';
import type {
  GivenUpCopy, HolderId, PartitionRecord, PastTerm, RecordedMember, Term,
} from './partition-record.js';
import { isMemberOf } from './partition-record.js';

/** Flags of a copy that was given up. */
const GONE = 1;
const ALONE = 2;
const MARKS: ReadonlyMap<unknown, Pick<GivenUpCopy, 'isGone' | 'isAlone'>> = new Map([
  [GONE, { isGone: true }], [ALONE, { isAlone: true }], [GONE + ALONE, { isGone: true, isAlone: true }],
]);

export const TERM = packed(packTerm, readTerm);
export const HOLDER = packed(packHolder, readHolder);
export const RECORD = packed(packRecord, readRecord);
/** The newest record that a store was told; [] when that is none. */
export const TOLD = orNone(RECORD);

export function packTerm(term: Term): readonly unknown[] {
  return [term.number, term.nonce];
}

function packRecord(record: PartitionRecord): readonly unknown[] {
  const { epoch, term, holder, members, gaveUp, left, line } = record;
  const copies = [members.map(packMember), gaveUp.map(packGiven), left.map(packMember)];
  return [epoch, packTerm(term), packHolder(holder), ...copies, line.map(packPast)];
}

function packHolder({ gatewayId, incarnation }: HolderId): readonly unknown[] {
  return [gatewayId, incarnation];
}

function packMember({ storeId, bootId }: RecordedMember): readonly string[] {
  return [storeId, bootId];
}

function packGiven({ storeId, bootId, epoch, isGone, isAlone }: GivenUpCopy): readonly (string | number)[] {
  const flags = (isGone === true ? GONE : 0) + (isAlone === true ? ALONE : 0);
  return flags === 0 ? [storeId, bootId, epoch] : [storeId, bootId, epoch, flags];
}

function packPast({ term, epoch }: PastTerm): readonly unknown[] {
  return [term.number, term.nonce, epoch];
}

export function readTerm(value: unknown): Term | undefined {
  const [number, nonce] = listOf(value, 2);
  return isWhole(number) && isWhole(nonce) ? { number, nonce } : undefined;
}

function readRecord(value: unknown): PartitionRecord | undefined {
  const [epoch, first, second, third, fourth, fifth, sixth] = listOf(value, 7);
  const term = readTerm(first);
  const holder = readHolder(second);
  const members = readMembers(third);
  const gaveUp = readGivenUp(fourth);
  const left = readMembers(fifth);
  const line = readLine(sixth);
  if (!isWhole(epoch) || term === undefined || holder === undefined || line === undefined) return undefined;
  if (members === undefined || gaveUp === undefined || left === undefined) return undefined;
  return term.number > epoch ? undefined : { epoch, term, holder, members, gaveUp, left, line };
}

function readHolder(value: unknown): HolderId | undefined {
  const [gatewayId, incarnation] = listOf(value, 2);
  return isIdentifier(gatewayId) && isWhole(incarnation) ? { gatewayId, incarnation } : undefined;
}

function readGivenUp(value: unknown): readonly GivenUpCopy[] | undefined {
  if (!Array.isArray(value) || value.length > GAVE_UP_MAX) return undefined;
  const copies: GivenUpCopy[] = [];
  for (const each of value as readonly unknown[]) {
    const isMarked = Array.isArray(each) && each.length === 4;
    const [storeId, bootId, epoch, flags] = listOf(each, isMarked ? 4 : 3);
    const marks = isMarked ? MARKS.get(flags) : {};
    if (!isIdentifier(storeId) || !isIdentifier(bootId) || isMemberOf(copies, storeId, bootId)) {
      return undefined;
    }
    if (!isWhole(epoch) || marks === undefined) return undefined;
    copies.push({ storeId, bootId, epoch, ...marks });
  }
  return copies;
}

function readLine(value: unknown): readonly PastTerm[] | undefined {
  if (!Array.isArray(value) || value.length > LINE_MAX) return undefined;
  const line: PastTerm[] = [];
  for (const each of value as readonly unknown[]) {
    const [number, nonce, epoch] = listOf(each, 3);
    if (!isWhole(number) || !isWhole(nonce) || !isWhole(epoch)) return undefined;
    line.push({ term: { number, nonce }, epoch });
  }
  return line;
}

function readMembers(value: unknown): readonly RecordedMember[] | undefined {
  if (!Array.isArray(value) || value.length > MEMBERS_MAX) return undefined;
  const members: RecordedMember[] = [];
  for (const each of value as readonly unknown[]) {
    const [storeId, bootId] = listOf(each, 2);
    if (!isIdentifier(storeId) || !isIdentifier(bootId) || isMemberOf(members, storeId, bootId)) {
      return undefined;
    }
    members.push({ storeId, bootId });
  }
  return members;
}

function listOf(value: unknown, length: number): readonly unknown[] {
  return Array.isArray(value) && value.length === length ? (value as readonly unknown[]) : [];
}
