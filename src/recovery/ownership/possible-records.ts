/**
 * Which records the register may hold now, as far as the holder can know (rule 2).
 *
 *   settled / known = what was read; nothing else is possible
 *   sent    / known, and each record that was sent
 *   no answer, or a read that shows the old revision / still all of them: what was sent may be applied at
 *             any later time, also long after it was sent. Only a moved revision settles it, and another
 *             change forces one
 *
 * Records with the same members are one possibility: it makes no difference which of them was applied.
 */
import { invariant } from '../../base/invariant.js';
import type { PartitionRecord, RecordedMember } from '../../protocol/partition-record.js';
import { isMemberOf, isSameSet } from '../../protocol/partition-record.js';

/** Sets that may be unknown at once; a further change repeats one of them. */
const SENT_MAX = 3;

export class PossibleRecords {
  #known: PartitionRecord;
  #sent: PartitionRecord[] = [];

  constructor(known: PartitionRecord) {
    this.#known = known;
  }

  get known(): PartitionRecord {
    return this.#known;
  }

  get isSettled(): boolean {
    return this.#sent.length === 0;
  }

  maySend(members: readonly RecordedMember[]): boolean {
    return this.#sent.length < SENT_MAX || this.#sent.some((record) => isSameSet(record.members, members));
  }

  /** From this moment on it counts. */
  send(record: PartitionRecord): void {
    invariant(record.epoch > this.#known.epoch, 'every change of a record raises its epoch');
    invariant(this.maySend(record.members), 'only so many outcomes are unknown at once');
    const same = this.#sent.findIndex((each) => isSameSet(each.members, record.members));
    if (same >= 0) this.#sent[same] = record;
    else this.#sent.push(record);
  }

  settle(record: PartitionRecord): void {
    this.#known = record;
    this.#sent = [];
  }

  /** Is the copy a member of any of them? */
  mayCount(storeId: string, bootId: string): boolean {
    if (isMemberOf(this.#known.members, storeId, bootId)) return true;
    for (const record of this.#sent) if (isMemberOf(record.members, storeId, bootId)) return true;
    return false;
  }

  /** Does one of them lack it? */
  mayLeave(storeId: string, bootId: string): boolean {
    for (const record of this.#sent) if (!isMemberOf(record.members, storeId, bootId)) return true;
    return false;
  }

  /** Fewest members of any of them: below min_replicas nothing is answered 250. */
  get fewestMembers(): number {
    let fewest = this.#known.members.length;
    for (const record of this.#sent) if (record.members.length < fewest) fewest = record.members.length;
    return fewest;
  }
}
