/**
 * The record of a partition, as it stands in the register and is told to stores: who holds it, since which
 * term, and whose copies count. Values only; who may change one is decided in src/recovery/ownership.
 *
 *   epoch     one more, at least, with each change of the record. A beginning stands above the seconds of the
 *             clock, and so above what a partition had that has ended, when nobody remembers that any more
 *   term      epoch of the change that made the holder holder, with a random nonce: two changes that were
 *             made from one and the same record, before and after the register was rolled back, may bear the
 *             same number
 *   members   copies that count: a store in one boot. A restarted store is another member
 *   gaveUp    copies that an operator gave up, or whose stores had all begun another boot, and that were not
 *             adopted since (rule 16 of ownership)
 *   left      copies that there may be, which count no more and may not know it: whoever holds the partition
 *             next knows of them, and names them at its end
 *   line      the terms that led to this one, newest first, each with its last epoch: what somebody was told
 *             that lies in none of them was made, and forgotten, by a register that was put back since. A
 *             term that was forgotten so stands among them once all mail of it is in a copy that counts. The
 *             oldest of many are one entry: all terms from that of a number on, whatever their nonces. Where
 *             there is a gap between them the older are forgotten: mail of a copy from then may come again
 *
 * A partition that has ended is held by nobody: incarnation 0. Its members are copies that count for nothing
 * and are to be dropped (gateway/ownership/ended-partitions.ts).
 */

import { LINE_MAX, MEMBERS_MAX } from './fields.js';

/** Partitions of one gateway: a fixed small number. */
export const PARTITIONS_MAX = 4_096;
/** Ids of configuration have up to 63 characters; a worker's has its number behind it. */
const PARTITION = /^([A-Za-z0-9][A-Za-z0-9._:-]{0,79})\/(0|[1-9]\d{0,3})$/;

/** GATEWAY/N, as the keys of the register say it. */
export function partitionName(gatewayId: string, number: number): string {
  return `${gatewayId}/${String(number)}`;
}

export function isPartition(value: unknown): value is string {
  return typeof value === 'string' && PARTITION.test(value) && numberOf(value) < PARTITIONS_MAX;
}

/** The gateway that the partition belongs to, whoever holds it. */
export function ownerOf(partition: string): string {
  return partition.slice(0, partition.lastIndexOf('/'));
}

export function numberOf(partition: string): number {
  return Number(partition.slice(partition.lastIndexOf('/') + 1));
}

/** One process: a gateway and which of its lives. */
export interface HolderId {
  readonly gatewayId: string;
  readonly incarnation: number;
}

export interface Term {
  readonly number: number;
  readonly nonce: number;
}

export interface RecordedMember {
  readonly storeId: string;
  readonly bootId: string;
}

/**
 * A copy that was given up. Copies that counted in one record had the same committed mail: who has taken in
 * the mail of one has that of the others.
 */
export interface GivenUpCopy extends RecordedMember {
  /** Of the last record that it counted in; of one that stands alone, it may have been an older one. */
  readonly epoch: number;
  /** Its store had begun another boot: nobody waits for it, nor gave it up. It may be found all the same. */
  readonly isGone?: true;
  /** It stands for itself alone, whatever counted in its epoch: who takes it in knows of no other's mail. */
  readonly isAlone?: true;
}

/** A term that is over, and the last epoch of it. */
export interface PastTerm {
  readonly term: Term;
  readonly epoch: number;
}

export interface PartitionRecord {
  readonly epoch: number;
  readonly term: Term;
  readonly holder: HolderId;
  readonly members: readonly RecordedMember[];
  readonly gaveUp: readonly GivenUpCopy[];
  readonly left: readonly RecordedMember[];
  readonly line: readonly PastTerm[];
}

/** No term is given by this nonce. In a line it stands for all terms from a number on. */
const SPAN_NONCE = 0;
/** Below every term that is given. */
export const NO_TERM: Term = { number: 0, nonce: SPAN_NONCE };

export function isSameTerm(a: Term, b: Term): boolean {
  return a.number === b.number && a.nonce === b.nonce;
}

export function isSameHolder(a: HolderId, b: HolderId): boolean {
  return a.incarnation === b.incarnation && a.gatewayId === b.gatewayId;
}

/** Who holds a partition that has ended. Incarnations of processes are counted from 1. */
export function nobody(partition: string): HolderId {
  return { gatewayId: ownerOf(partition), incarnation: 0 };
}

/**
 * It was empty and is given up for good: whoever begins it anew begins above its epoch, with nothing in it.
 */
export function isEnded({ holder }: PartitionRecord): boolean {
  return holder.incarnation === 0;
}

/** Of a record that gives the partition another term. */
export function lineAfter({ term, epoch, line }: PartitionRecord): readonly PastTerm[] {
  const left = { term, epoch };
  return within([left, ...line], left);
}

/**
 * Of a record that begins the partition anew with this term, above the clock: nothing was made in the term of
 * its end after that. In one of which all copies were lost there may have been, if the register was put back.
 */
export function lineUpTo({ number }: Term, line: readonly PastTerm[]): readonly PastTerm[] {
  const [newest, ...older] = line;
  if (newest === undefined || isSpan(newest)) return line;
  return [{ ...newest, epoch: number - 1 }, ...older];
}

/** With a term that was undone, up to this epoch, nothing of which is missing here: its copies may go. */
export function lineWith(line: readonly PastTerm[], undone: PastTerm): readonly PastTerm[] {
  const others = line.filter(({ term }) => !isSameTerm(term, undone.term));
  return within([...others, undone], undone);
}

/**
 * Of a record that does not know of these copies any more: terms in which they counted last are not in its
 * line, so that one that is back is found to have what this record does not know. Of many in one entry those
 * stay that began later. Who took a term and made no change in it may have told nobody: a copy that counted
 * last in that one was perhaps told of the one before, and no more.
 */
export function lineWithout(
  line: readonly PastTerm[], copies: readonly GivenUpCopy[],
): readonly PastTerm[] {
  let wasTakenOnly = false;
  return line.flatMap((past) => {
    const { term, epoch } = past;
    const theirs = copies.filter((copy) => term.number <= copy.epoch && copy.epoch <= epoch);
    if (theirs.length === 0 && !wasTakenOnly) return [past];
    wasTakenOnly = term.number === epoch;
    const number = Math.max(...theirs.map((copy) => copy.epoch)) + 1;
    const isOneLater = theirs.length > 0 && isSpan(past) && number <= epoch;
    return isOneLater ? [{ term: { number, nonce: SPAN_NONCE }, epoch }] : [];
  });
}

/**
 * A record that an end did not know, as it goes on after that: nothing is missing of what led to the end, and
 * its copies are still to be dropped; but not what the record has given up, which may have more.
 */
export function behindEnd(record: PartitionRecord, end: PartitionRecord): PartitionRecord {
  const named = [...record.members, ...record.gaveUp, ...record.left];
  const toDrop = end.members.filter(({ storeId, bootId }) => !isMemberOf(named, storeId, bootId));
  const left = [...record.left, ...toDrop].slice(0, MEMBERS_MAX);
  const all = [{ term: end.term, epoch: end.epoch }, ...end.line, ...record.line];
  const terms = all.filter((past, at) =>
    !all.some((other, i) => isSameTerm(other.term, past.term) && isLater(other, i, past, at)));
  return { ...record, left, line: newestFirst(terms).slice(0, LINE_MAX) };
}

/** Of one term in two lines; `i` and `at` are their places. */
function isLater(other: PastTerm, i: number, past: PastTerm, at: number): boolean {
  return other.epoch > past.epoch || (other.epoch === past.epoch && i < at);
}

/**
 * Was the record that was told made on the way to this one? Not what is older than the line: the partition
 * had ended, or the register was lost, and whoever began it anew knew nothing of that.
 */
export function isOfLine({ term, line }: Pick<PartitionRecord, 'term' | 'line'>, told: PastTerm): boolean {
  if (isSameTerm(told.term, term)) return true;
  return line.some((past) => told.epoch <= past.epoch
    && (isSpan(past) ? past.term.number <= told.term.number : isSameTerm(told.term, past.term)));
}

/** All terms from this number on, up to the epoch; else one term. */
function isSpan({ term }: PastTerm): boolean {
  return term.nonce === SPAN_NONCE;
}

/**
 * Of one too many the two oldest become one, if there is no gap between them: an end may have left out a term
 * of which copies may have more, and a record of another history has gone on behind an end. Else the oldest
 * is forgotten; or, in the place of the one that is added, that before it.
 */
function within(terms: readonly PastTerm[], added: PastTerm): readonly PastTerm[] {
  const line = newestFirst(terms);
  const [before, oldest] = line.slice(LINE_MAX - 1);
  if (before === undefined || oldest === undefined) return line;
  const newer = line.slice(0, LINE_MAX - 1);
  if (before.term.number > oldest.epoch + 1) return [...newer, oldest === added ? oldest : before];
  const number = Math.min(before.term.number, oldest.term.number);
  return [...newer, { term: { number, nonce: SPAN_NONCE }, epoch: Math.max(before.epoch, oldest.epoch) }];
}

/** By their last epochs: who has gone on behind an end was made before that. */
function newestFirst(terms: readonly PastTerm[]): readonly PastTerm[] {
  return [...terms].sort((a, b) => b.epoch - a.epoch);
}

/** The same of copies that had the same mail: who has taken in that of one has that of the others. */
export function mailOf({ storeId, bootId, epoch, isAlone }: GivenUpCopy): string {
  return isAlone === true ? `${storeId}/${bootId}` : String(epoch);
}

/** For tables and traces. */
export function holderKey(holder: HolderId): string {
  return `${holder.gatewayId}.${String(holder.incarnation)}`;
}

/** What a record says of a copy, without what else its holder knows. */
export function bareMember({ storeId, bootId }: RecordedMember): RecordedMember {
  return { storeId, bootId };
}

export function isMemberOf(members: readonly RecordedMember[], storeId: string, bootId: string): boolean {
  for (const member of members) if (member.storeId === storeId && member.bootId === bootId) return true;
  return false;
}

/** The same copies, in whatever order. No set has a member twice. */
export function isSameSet(a: readonly RecordedMember[], b: readonly RecordedMember[]): boolean {
  if (a === b) return true;
  if (a.length !== b.length) return false;
  for (const member of a) if (!isMemberOf(b, member.storeId, member.bootId)) return false;
  return true;
}
