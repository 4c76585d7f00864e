/**
 * Which record of one partition this process knows of, and which of them it believes (15): the register may
 * have been put back to an older one, or lost, and then what stores were told counts.
 *
 *   read       the register's, as it was read last; the base of what is sent
 *   newest     of all that were read, made or told
 *   overtaken  such a newest one, when the register has gone on by another line since, and no copy of it is
 *              left
 *   unended    the newest one has ended, but a copy counts by this one, which was undone before that: its
 *              mail was never taken in
 *
 * What is believed is `unended`, or else `newest`, or `read` where that is newer or has overtaken it.
 */
import type { PartitionRecord, RecordedMember } from '../../protocol/partition-record.js';
import {
  isEnded, isMemberOf, isOfLine, isSameHolder, isSameSet, isSameTerm,
} from '../../protocol/partition-record.js';
import type { Stamped } from './ports.js';

export class KnownRecords {
  #read: Stamped | undefined;
  #newest: PartitionRecord | undefined;
  #overtaken: PartitionRecord | undefined;
  #unended: PartitionRecord | undefined;
  /** Above every epoch met. */
  #highestEpoch = 0;
  /** Members of the newest record that say that they hold nothing of it. */
  #apart: RecordedMember[] = [];

  get read(): Stamped | undefined {
    return this.#read;
  }

  get newest(): PartitionRecord | undefined {
    return this.#newest;
  }

  /** The record that counts. */
  get believed(): PartitionRecord | undefined {
    const newest = this.#newestBelieved();
    return newest !== undefined && isEnded(newest) ? this.#unended ?? newest : newest;
  }

  /** The end that did not know of the record that counts. */
  get endBehind(): PartitionRecord | undefined {
    const newest = this.#newestBelieved();
    return this.#unended !== undefined && newest !== undefined && isEnded(newest) ? newest : undefined;
  }

  /** Of the record that counts. */
  get members(): readonly RecordedMember[] {
    return this.believed?.members ?? [];
  }

  #newestBelieved(): PartitionRecord | undefined {
    const read = this.#read?.record;
    const newest = this.#newest;
    if (newest === undefined || (read !== undefined && !isNewer(newest, read))) return read;
    return read !== undefined && newest === this.#overtaken && !isOfLine(newest, read) ? read : newest;
  }

  /** The register was put back, and has gone on by another line than what is believed. */
  get isOffLine(): boolean {
    const { believed } = this;
    const read = this.#read?.record;
    return believed !== undefined && read !== undefined && believed !== read && !isOfLine(believed, read);
  }

  /** The register tells of the session of the holder that is believed. */
  get hasSession(): boolean {
    const { believed } = this;
    const read = this.#read?.record;
    return this.#read?.hasSession === true && believed !== undefined && read !== undefined
      && isSameHolder(believed.holder, read.holder);
  }

  /**
   * Incarnations are drawn from the register: one that only stores tell of may be another process, which drew
   * the same number from another register.
   */
  isInRegister(record: PartitionRecord): boolean {
    const read = this.#read?.record;
    return read?.epoch === record.epoch && isSameTerm(read.term, record.term);
  }

  /** As the register was read, or we have changed it. Is that news? */
  learn(stamped: Stamped): boolean {
    const { record } = stamped;
    this.#read = stamped;
    if (record === undefined) return false;
    const isNews = this.#newest === undefined || record.epoch > this.#newest.epoch;
    if (isNews) this.#noteNewest(record);
    this.noteEpoch(record.epoch);
    return isNews;
  }

  /** A store was told this. Is that news? */
  noteTold(told: PartitionRecord): boolean {
    this.noteEpoch(told.epoch);
    if (this.#newest !== undefined && !isNewer(told, this.#newest)) return false;
    this.#noteNewest(told);
    return true;
  }

  #noteNewest(record: PartitionRecord): void {
    this.#newest = record;
    this.#apart = [];
  }

  noteOvertaken(): void {
    this.#overtaken = this.#newest;
  }

  noteUnended(record: PartitionRecord | undefined): void {
    this.#unended = record;
  }

  /** True the first time. */
  noteApart(storeId: string, bootId: string): boolean {
    if (isMemberOf(this.#apart, storeId, bootId)) return false;
    this.#apart.push({ storeId, bootId });
    return true;
  }

  get apart(): readonly RecordedMember[] {
    return this.#apart;
  }

  noteEpoch(epoch: number): void {
    if (epoch > this.#highestEpoch) this.#highestEpoch = epoch;
  }

  nextEpoch(): number {
    this.#highestEpoch += 1;
    return this.#highestEpoch;
  }
}

/**
 * What a store was told against what the register says: of two in one epoch, the register's was
 * made after a rollback (15).
 */
function isNewer(told: PartitionRecord, read: PartitionRecord): boolean {
  if (told.epoch !== read.epoch) return told.epoch > read.epoch;
  // What is left of one that has ended names no member any more.
  return !isSameTerm(told.term, read.term) || (!isEnded(read) && !isSameSet(told.members, read.members));
}
