/**
 * What the stores of a group say of a queue, and which of it is the truth (docs/GUARANTEES.md "Recovery").
 *
 * Of each queue the newest epoch that any store shows counts; older ones hold nothing acknowledged that it
 * lacks. The queue may be claimed when every member of that epoch can be asked. Whether a member that does not
 * know the queue may be missed is decided when it has been asked (claim-machine.ts, `mayMiss`).
 */
import type { Writer } from '../protocol/messages/claimed.js';
import { ROLE_MEMBER, ROLE_NONE, ROLE_SPILLED } from '../protocol/reasons.js';

/** One store's view of one queue. */
export interface CensusRow {
  readonly storeId: string;
  readonly ownerId: string;
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
  /** Content and envelopes of these. */
  readonly bytes: number;
  /** Who may write to it there, and since which claim. */
  readonly holder: string;
  readonly holderToken: number;
  /**
   * The process that wrote its set, or fills it, as an answer to a claim tells; its gatewayId is '' when that is not known, or
   * may be of no account any more. Undefined: a store of version 1 answered, or none yet.
   */
  readonly writer?: Writer | undefined;
}

/** A set that is known from before. `wasTold`: a store showed it since this process started, so one that answers and shows it no more has lost it. */
export interface KnownSet {
  readonly epoch: number;
  readonly members: readonly string[];
  readonly wasTold?: boolean;
}

export type CensusVerdict =
  | {
    readonly kind: 'take';
    readonly epoch: number;
    /** Stores to claim at. */
    readonly members: readonly string[];
    readonly without: readonly string[];
    /** The operator has given up every member: the store that is read instead, though it had left the set; '' else. */
    readonly outside: string;
  }
  | { readonly kind: 'wait'; readonly missing: readonly string[] }
  | { readonly kind: 'nothing' };

/** Key of a queue among all. */
export function queueKey(ownerId: string, birth: number, serial: number): string {
  return `${ownerId}/${String(birth)}/${String(serial)}`;
}

/** The newest epoch that a member shows, and its members; undefined when no store is a member. */
export function newestOf(rows: Iterable<CensusRow>): CensusRow | undefined {
  let newest: CensusRow | undefined;
  for (const row of rows) {
    if (isOfSet(row) && (newest === undefined || row.epoch > newest.epoch)) newest = row;
  }
  return newest;
}

/** Messages of the longest copy of the newest epoch; undefined when no store is a member. */
export function messagesTold(rows: Iterable<CensusRow>): number | undefined {
  let longest: CensusRow | undefined;
  for (const row of rows) {
    if (isOfSet(row) && (longest === undefined || row.epoch > longest.epoch || (row.epoch === longest.epoch && row.number > longest.number))) longest = row;
  }
  return longest?.count;
}

/**
 * Judges the rows of one queue. `answering` holds the stores that can be asked and whose whole list is known;
 * `given` those that the operator has given up for this queue: it is taken without them, and what one of them told
 * before it fell silent does not count. `hint` is the last set that the process before us knew (set-hints.ts): when it
 * is newer than all that is told, its members have to answer too; of one that was told before, to show it.
 */
export function judgeQueue(rows: Iterable<CensusRow>, answering: ReadonlySet<string>, given: ReadonlySet<string>, hint?: KnownSet): CensusVerdict {
  const counted = [...rows].filter(({ storeId }) => answering.has(storeId) || !given.has(storeId));
  const newest = newestOf(counted);
  if (newest === undefined) return { kind: 'nothing' };
  const wanted = newest.members.filter((member) => answering.has(member) || !given.has(member));
  const hidden = hint !== undefined && hint.epoch > newest.epoch ? hint.members.filter((member) => !given.has(member) && !wanted.includes(member)) : [];
  const missing = [...wanted.filter((member) => !answering.has(member)), ...hidden.filter((member) => hint?.wasTold === true || !answering.has(member))];
  if (missing.length > 0) return { kind: 'wait', missing };
  const without = newest.members.filter((member) => !wanted.includes(member));
  const isLast = newest.members.every((member) => given.has(member)) && sourcesOf(counted, newest.epoch, newest.members).length === 0;
  if (!isLast) return { kind: 'take', epoch: newest.epoch, members: wanted, without, outside: '' };
  const outside = leaverOf(counted, newest.epoch, newest.members)?.storeId ?? newest.storeId;
  if (!answering.has(outside)) return { kind: 'wait', missing: [outside] };
  // Who answers is asked too: it may be empty, or have a holder whose lease runs.
  return { kind: 'take', epoch: newest.epoch, members: [...wanted, outside], without: newest.members, outside };
}

/**
 * The longest copy of the newest epoch at a store that had left that set before it stopped: out of its file. It has what
 * was acknowledged until it left, and may lack what the set took and ended after that.
 */
export function leaverOf(rows: Iterable<CensusRow>, epoch: number, members: readonly string[]): CensusRow | undefined {
  let longest: CensusRow | undefined;
  for (const row of rows) {
    if (isOfSet(row) && row.epoch === epoch && !members.includes(row.storeId) && (longest === undefined || row.number > longest.number)) longest = row;
  }
  return longest;
}

/**
 * The members that may be read from: at the newest epoch themselves, the longest first, copies out of a file behind
 * those in memory. Asked when every member of the epoch has granted its claim or may be missed. A member that shows an
 * older epoch, in memory or out of a file, has acknowledged nothing that these lack. A store that left the set before
 * it stopped is no source.
 */
export function sourcesOf(rows: readonly CensusRow[], epoch: number, members: readonly string[]): CensusRow[] {
  return rows
    .filter((row) => isOfSet(row) && row.epoch === epoch && members.includes(row.storeId))
    .sort((a, b) => (a.role === b.role ? b.number - a.number : a.role === ROLE_MEMBER ? -1 : 1));
}

/**
 * Whether a store of this row is in the last set, for sure: a newer one was written at a member of this one first, and
 * each of them has told; or at any store, and `allTold`.
 */
export function isOfLastSet(row: CensusRow, rows: ReadonlyMap<string, CensusRow>, allTold: boolean): boolean {
  const newest = newestOf(rows.values());
  if (newest === undefined || row.epoch !== newest.epoch || !newest.members.includes(row.storeId)) return false;
  return allTold || newest.members.every((member) => {
    const told = rows.get(member);
    return told !== undefined && isOfSet(told);
  });
}

/** Of the set of mirrors, in memory or as it was when its store stopped. */
export function isOfSet(row: CensusRow): boolean {
  return row.role === ROLE_MEMBER || row.role === ROLE_SPILLED;
}

/** Members that know the queue and are none by their own account, each with the copy that is to be read. */
export function joinersOf(rows: readonly CensusRow[], epoch: number, members: readonly string[]): (readonly [CensusRow, CensusRow])[] {
  const source = sourcesOf(rows, epoch, members)[0];
  if (source === undefined) return [];
  return rows.filter((row) => !isOfSet(row) && members.includes(row.storeId)).map((row) => [row, source]);
}

/**
 * Whether such a one may be on its way to be a member; else it came back empty. On its way it is filled by the very process
 * that named it: another, of the same gateway too, may fill it from what it remembers, which is the beginning of the same
 * history, while who named it lives, and went on with it alone (docs/model, ONLY_COPIES_COUNT, FILLED_BY_PROCESS). Nor is it when anybody may
 * have taken the queue over since, by a claim of the copy to be read: who did counted on this one, and may have gone on with it
 * alone. One that was opened only, nobody has filled. A store of version 1 does not tell; its holder must do, if the copy was not released.
 */
export function isOnItsWay(row: CensusRow, source: CensusRow): boolean {
  if (row.role === ROLE_NONE && row.number === 0) return false;
  if (row.writer === undefined || source.writer === undefined) return row.holder === source.holder && source.holderToken > 0;
  return row.writer.gatewayId !== '' && row.writer.gatewayId === source.writer.gatewayId && row.writer.incarnation === source.writer.incarnation;
}

/** Copies at stores that are in no set: one that a dead process was filling, or had filled. They count for nothing, and can be exported. */
export function leftCopies(rows: Iterable<CensusRow>): CensusRow[] {
  return [...rows].filter((row) => !isOfSet(row) && row.count > 0);
}
