/**
 * The record of a partition, as it stands in the register and is told to stores: who holds it, since which
 * term,
 * and whose copies count. Values only; who may change one is decided in src/recovery/ownership.
 *
 *   epoch     one more, at least, with each change of the record
 *   term      epoch of the change that made the holder holder, with a random nonce: two changes that were
 * made from
 *             one and the same record, before and after the register was rolled back, may bear the same
 * number
 *   members   copies that count: a store in one boot. A restarted store is another member
 *   gaveUp    copies that an operator gave up and that were not adopted since (rule 16 of ownership)
 */

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

export interface PartitionRecord {
  readonly epoch: number;
  readonly term: Term;
  readonly holder: HolderId;
  readonly members: readonly RecordedMember[];
  readonly gaveUp: readonly RecordedMember[];
}

/** Below every term that is given. */
export const NO_TERM: Term = { number: 0, nonce: 0 };

export function isSameTerm(a: Term, b: Term): boolean {
  return a.number === b.number && a.nonce === b.nonce;
}

export function isSameHolder(a: HolderId, b: HolderId): boolean {
  return a.incarnation === b.incarnation && a.gatewayId === b.gatewayId;
}

/** For tables and traces. */
export function holderKey(holder: HolderId): string {
  return `${holder.gatewayId}.${String(holder.incarnation)}`;
}

export function isMemberOf(members: readonly RecordedMember[], storeId: string, bootId: string): boolean {
  for (const member of members) if (member.storeId === storeId && member.bootId === bootId) return true;
  return false;
}

/** The same copies, in whatever order. No set has a member twice. */
export function isSameSet(a: readonly RecordedMember[], b: readonly RecordedMember[]): boolean {
  if (a.length !== b.length) return false;
  for (const member of a) if (!isMemberOf(b, member.storeId, member.bootId)) return false;
  return true;
}
