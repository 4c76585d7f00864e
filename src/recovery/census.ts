/**
 * What the stores of a group say of a gateway's queues, and which of it is the truth (docs/GUARANTEES.md "Recovery").
 *
 * Of each queue the newest epoch that any store shows counts; older ones hold nothing acknowledged that it
 * lacks. The queue may be taken when every member of that epoch has answered. A member that answered but
 * does not know the queue has come back empty: then the queue may be taken only when every store of the
 * group has answered, because no newer epoch can be hidden any more.
 */
import { ROLE_MEMBER } from '../protocol/reasons.js';

/** One store's view of one queue. */
export interface CensusRow {
  readonly storeId: string;
  readonly birth: number;
  readonly serial: number;
  readonly name: string;
  readonly queueClass: string;
  readonly role: number;
  readonly epoch: number;
  readonly members: readonly string[];
  readonly number: number;
  readonly digestA: number;
  readonly digestB: number;
  readonly count: number;
}

export type CensusVerdict =
  | { readonly kind: 'take'; readonly epoch: number; readonly members: readonly string[]; readonly holders: readonly CensusRow[]; readonly emptyMembers: readonly string[] }
  | { readonly kind: 'wait'; readonly missing: readonly string[]; readonly why: 'unreachable' | 'came back empty' }
  | { readonly kind: 'nothing' };

/** Key of a queue among those of one gateway. */
export function queueKey(birth: number, serial: number): string {
  return `${String(birth)}/${String(serial)}`;
}

/**
 * Judges the rows of one queue. `answered` holds the stores whose whole list is known; `all` every store
 * of the group.
 */
export function judgeQueue(rows: readonly CensusRow[], answered: ReadonlySet<string>, all: readonly string[]): CensusVerdict {
  let newest: CensusRow | undefined;
  for (const row of rows) {
    if (row.role === ROLE_MEMBER && (newest === undefined || row.epoch > newest.epoch)) newest = row;
  }
  if (newest === undefined) return { kind: 'nothing' };
  const { epoch, members } = newest;
  const holders = rows.filter((row) => row.role === ROLE_MEMBER && members.includes(row.storeId));
  const unreachable = members.filter((member) => !answered.has(member));
  if (unreachable.length > 0) return { kind: 'wait', missing: unreachable, why: 'unreachable' };
  const emptyMembers = members.filter((member) => !holders.some((row) => row.storeId === member));
  const unasked = all.filter((store) => !answered.has(store));
  if (emptyMembers.length > 0 && unasked.length > 0) return { kind: 'wait', missing: unasked, why: 'came back empty' };
  return { kind: 'take', epoch, members, holders, emptyMembers };
}

/** The members that may be read from: at the newest epoch themselves, the longest first. */
export function sourcesOf(holders: readonly CensusRow[], epoch: number): CensusRow[] {
  return holders.filter((row) => row.epoch === epoch).sort((a, b) => b.number - a.number);
}
