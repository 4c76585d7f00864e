/**
 * What a store knows of who may write to one partition: the highest term seen in this boot, whose it is,
 * until when leases of older terms may still be used, and the last record told.
 *
 *                 FENCE of a higher term / older lease frozen, its process hears of it
 *   UNKNOWN ─────────────────────────────────────────► FENCED(term) ⟲ a higher term, likewise
 *                                                         │ TELL of a record / kept; it says whether our copy
 *                                                         ▼ is out, or that a term never came to be
 *                                                      FENCED(term), told
 *
 *   request of                     answer
 *   the term known                 accepted
 *   a lower term                   LOWER: changes, leases, filling alike, on open connections too (rule 10)
 *   an equal number, other nonce   OTHER_NONCE (rule 1): the register was rolled back, or two founded at once
 *   a term not above the epoch     STALE (rule 15): the register is older than what was told here
 *   told, but not the term told
 *   to found, and a record was     STALE: it would empty what has been founded and recorded since
 *   told that the asker lacks
 *
 * Not here: entries and numbers of the copy (mirrored-partition.ts), leases by process (process-leases.ts).
 */
import type { HolderId, PartitionRecord, Term } from '../../../protocol/partition-record.js';
import {
  NO_TERM, holderKey, isEnded, isMemberOf, isOfLine, isSameHolder, isSameTerm,
} from '../../../protocol/partition-record.js';
import type { ProcessLeases } from './process-leases.js';

export const FenceVerdict = { ACCEPTED: 0, LOWER: 1, OTHER_NONCE: 2, STALE: 3 } as const;
export type FenceVerdictValue = (typeof FenceVerdict)[keyof typeof FenceVerdict];

/** A lease that a process may still use by a term which was fenced since. */
interface OlderLease {
  readonly process: string;
  /** The last one by which it held the partition here. */
  term: Term;
  endsMs: number;
}

/** What is left of a partition's ownership in the file of a stopped store. */
export interface CarriedFence {
  readonly term: Term;
  readonly holder: HolderId | undefined;
  readonly told: PartitionRecord | undefined;
}

export class PartitionFence {
  readonly partition: string;
  readonly #leases: ProcessLeases;
  #term: Term = NO_TERM;
  #holder: HolderId | undefined;
  #told: PartitionRecord | undefined;
  /** Who gave its lease back: it lives, and holds nothing. */
  #released: HolderId | undefined;
  #older: OlderLease[] = [];
  /**
   * A boot carried on by file does not know whose leases its predecessor granted:
   * nobody's is over before this.
   */
  readonly #inheritedEndsMs: number;

  constructor(partition: string, leases: ProcessLeases, inheritedEndsMs = -Infinity) {
    this.partition = partition;
    this.#leases = leases;
    this.#inheritedEndsMs = inheritedEndsMs;
  }

  get term(): Term {
    return this.#term;
  }

  get holder(): HolderId | undefined {
    return this.#holder;
  }

  get told(): PartitionRecord | undefined {
    return this.#told;
  }

  /** On the way of every change: no allocation. */
  admits(term: Term): boolean {
    return term.number === this.#term.number && term.nonce === this.#term.nonce;
  }

  /** What a request under this term is answered, before anything is changed. */
  judge(term: Term): FenceVerdictValue {
    if (term.number < this.#term.number) return FenceVerdict.LOWER;
    if (term.number === this.#term.number) {
      return term.nonce === this.#term.nonce ? FenceVerdict.ACCEPTED : FenceVerdict.OTHER_NONCE;
    }
    if (this.#told !== undefined && term.number <= this.#told.epoch && !isSameTerm(term, this.#told.term)) {
      return FenceVerdict.STALE;
    }
    return FenceVerdict.ACCEPTED;
  }

  /** FENCE, to join, found or fill: from here on lower terms are refused. */
  raise(term: Term, holder: HolderId, nowMs: number): FenceVerdictValue {
    const verdict = this.judge(term);
    if (verdict !== FenceVerdict.ACCEPTED || this.admits(term)) return verdict;
    this.#freeze(holder, term, nowMs);
    this.#term = term;
    this.#holder = holder;
    this.#released = undefined;
    return FenceVerdict.ACCEPTED;
  }

  /**
   * How long leases of older terms may still be used, but for those of a process that is proven dead; 0: all
   * are out. Who is dead stays so: a later term does not wait for it either.
   */
  olderLeaseMs(nowMs: number, provenDead: HolderId | undefined): number {
    if (provenDead !== undefined) {
      const dead = holderKey(provenDead);
      this.#older = this.#older.filter((lease) => lease.process !== dead);
    }
    let endsMs = this.#inheritedEndsMs;
    for (const lease of this.#older) if (lease.endsMs > endsMs) endsMs = lease.endsMs;
    return Math.max(0, endsMs - nowMs);
  }

  /** Has the lease of the holder of the record run out here? What is asked before a takeover. */
  leaseLeftMs(holder: HolderId, nowMs: number): number {
    if (this.#released !== undefined && isSameHolder(this.#released, holder)) return 0;
    return Math.max(0, Math.max(this.#leases.endsMs(holderKey(holder)), this.#inheritedEndsMs) - nowMs);
  }

  /**
   * FOUND by who does not know the newest record: two gateways had found that every copy is lost, one of them
   * has founded the partition, and the other, cut off meanwhile, counts on. It would empty what is held (7).
   */
  isNewsTo(knownEpoch: number): boolean {
    return this.#told !== undefined && this.#told.epoch > knownEpoch;
  }

  /**
   * FOUND makes a copy anew under a term that no record has yet. One that a living holder has just filled may
   * be recorded at this moment: it is not founded over while that holder's lease runs.
   */
  mayFound(asker: HolderId, nowMs: number): boolean {
    return this.isUnserved(nowMs) || (this.#holder !== undefined && isSameHolder(this.#holder, asker));
  }

  /** Nobody has a lease here. */
  isUnserved(nowMs: number): boolean {
    return this.#holder === undefined || this.leaseLeftMs(this.#holder, nowMs) === 0;
  }

  /**
   * The holder has handed back: it has stopped, nobody has to wait for what it was granted (rule 13). Whom it
   * was given to may have fenced it here before it learned so.
   */
  release(term: Term): void {
    if (this.admits(term)) {
      this.#released = this.#holder;
      this.#holder = undefined;
    } else this.#older = this.#older.filter((lease) => !isSameTerm(lease.term, term));
  }

  /**
   * A settled record. False when it is older than what is known here, or of the same epoch and another term:
   * the register was put back, and which of them stands only a later one shows. Until then the term here is
   * not taken back, and its fence counts.
   */
  tell(record: PartitionRecord): boolean {
    const told = this.#told;
    if (told !== undefined && record.epoch <= told.epoch
      && (record.epoch < told.epoch || !isSameTerm(record.term, told.term))) return false;
    this.#told = record;
    return true;
  }

  /**
   * The copy here counts by what was told, and who tells this record does not know of that: the register was
   * put back in between. It is not out by the record; its mail is taken in, like that of one that was given
   * up (15).
   */
  isUnknownTo(record: PartitionRecord, storeId: string, bootId: string): boolean {
    const told = this.#told;
    if (told === undefined || isEnded(told) || isMemberOf(record.gaveUp, storeId, bootId)) return false;
    return isMemberOf(told.members, storeId, bootId) && !isOfLine(record, told);
  }

  /** The term here never came to be: the record is as young as it, and of another. */
  isNeverSettled(record: PartitionRecord): boolean {
    // Who tells something older than is known here knows nothing of this term.
    const told = this.#told;
    const isOlder = told !== undefined && told.epoch >= record.epoch && !isSameTerm(told.term, record.term);
    return !isOlder && isUndoneBy(record, this.#term);
  }

  /**
   * Can the record say that the copy here is out? Not of one that has been filled or
   * founded under a later term.
   */
  isOutBy(record: PartitionRecord): boolean {
    return this.#term.number <= record.epoch;
  }

  /** Gives up a term that never came to be; leases by it were never used. */
  dropTerm(record: PartitionRecord): void {
    this.#term = record.term;
    this.#holder = record.holder;
  }

  carried(): CarriedFence {
    return { term: this.#term, holder: this.#holder, told: this.#told };
  }

  carryOn(carried: CarriedFence): void {
    this.#term = carried.term;
    this.#holder = carried.holder;
    this.#told = carried.told;
  }

  /**
   * What the holder so far was granted here may be used until it ends: it grows no more,
   * whatever heartbeats come.
   */
  #freeze(by: HolderId, term: Term, nowMs: number): void {
    this.#older = this.#older.filter((lease) => lease.endsMs > nowMs);
    const holder = this.#holder;
    if (holder === undefined || isSameHolder(holder, by)) return;
    const process = holderKey(holder);
    const endsMs = this.#leases.endsMs(process);
    this.#leases.noteFence(process, this.partition, term);
    if (endsMs <= nowMs) return;
    const known = this.#older.find((lease) => lease.process === process);
    if (known === undefined) {
      this.#older.push({ process, term: this.#term, endsMs });
      return;
    }
    known.term = this.#term;
    known.endsMs = Math.max(known.endsMs, endsMs);
  }
}

/** No record has this term: one is as young as it, and of another. */
export function isUndoneBy(record: PartitionRecord, term: Term): boolean {
  return term.number !== 0 && !isSameTerm(term, record.term)
    && term.number >= record.term.number && term.number <= record.epoch;
}
