/**
 * FOUNDING a partition (7): stores make an empty copy of it under a first term, which no record has yet.
 * Those that did are members of the record that holder.ts then claims. One is begun for one record; what
 * another one asks for is another founding.
 *
 *   what happens                                        what follows
 *   as many stores as are wanted have the term, or      its record, to be claimed
 *   some, once found_wait is over
 *   a newer record is known                             over: that one is looked at
 *   a copy of its record is back                        over: it is taken, and nothing is given up
 *   the register has moved                              over (holder.ts, which hears of it)
 *   a store has no room, or a copy of a process that    others are asked as before; status names the latter,
 *   lives                                               and asks for a person once that has lasted
 *   a store knows a higher term, or another one         it begins again, above that
 *   no store takes it for a while                       shown as unbegun, and asked for on and on; or a copy
 *                                                       that was set aside, and is back, or is of a record
 *                                                       that the register lost, is read (holder.ts)
 *
 *   not asked, for what it has is not to be emptied     because
 *   a copy that was given up, and is back               its mail is taken in first (16)
 *   a copy by a record that is not in our line          so is that of what the register lost (15)
 *   a store that has not said what it has               it may be one of these
 *
 * Where it came to nothing, its term stands at stores: the next record above it, told there, takes it back
 * (partition-set.ts), and a copy that it had emptied is none (isFoundedApart).
 */
import type {
  GivenUpCopy, HolderId, PartitionRecord, PastTerm, RecordedMember, Term,
} from '../../protocol/partition-record.js';
import {
  NO_TERM, isEnded, isMemberOf, isOfLine, isSameHolder, isSameTerm, lineUpTo,
} from '../../protocol/partition-record.js';
import { DECLINED_FULL, DECLINED_NO_COPY } from '../../protocol/reasons.js';
import type { AskAnswer, CopyPosition, DeclinedAnswer, HolderOptions, HolderPorts } from './ports.js';

/** What a founding starts from. */
export interface FoundBase {
  /** Somebody had mail in it, and nobody has it any more, or it was given up. */
  readonly isLoss: boolean;
  readonly gaveUp: readonly GivenUpCopy[];
  /** Copies that there may still be. */
  readonly left: readonly RecordedMember[];
  readonly line: readonly PastTerm[];
  readonly unlessSessionOf: HolderId | undefined;
}

export interface FoundingPorts extends Pick<HolderPorts, 'members' | 'stores'> {
  /** Above every term and epoch that was met. */
  nextTerm(): Term;
  /** Its store is up, in the boot that counts. */
  isUp(copy: RecordedMember): boolean;
  /** Its store has said that it has it no more, though it is up. */
  isGone(copy: RecordedMember): boolean;
}

export class Founding {
  readonly base: FoundBase;
  readonly #options: HolderOptions;
  readonly #ports: FoundingPorts;
  /** The newest record known when it was begun. */
  readonly #before: PartitionRecord | undefined;
  #term: Term = NO_TERM;
  #sinceMs = 0;
  #askedMs = -Infinity;
  /** Those that have the term. */
  #founded: RecordedMember[] = [];
  /** Where it was declined, for a process that lives has a copy there, and in which boot. */
  readonly #refusing = new Map<string, string>();
  /** Since when it was declined so somewhere, and no store has taken it; Infinity while none refuses. */
  #refusedSinceMs = Infinity;

  constructor(
    options: HolderOptions, ports: FoundingPorts, base: FoundBase, before: PartitionRecord | undefined,
    nowMs: number,
  ) {
    this.#options = options;
    this.#ports = ports;
    this.base = base;
    this.#before = before;
    this.#begin(nowMs);
  }

  /** No store has taken it for a while. */
  isUnbegun(nowMs: number): boolean {
    return this.#founded.length === 0 && nowMs - this.#sinceMs >= this.#options.awayAfterMs;
  }

  /** No store takes it for long, for a process lives that has copies: it is for that one to go on. */
  isRefusedForLong(nowMs: number): boolean {
    return this.#founded.length === 0 && nowMs - this.#refusedSinceMs >= this.#options.replaceAfterMs;
  }

  /** Stores with a copy of another process that lives. */
  get refusingStores(): readonly string[] {
    return [...this.#refusing.keys()].sort();
  }

  /** Why nothing comes of it; '' while it goes on. */
  overFor(newest: PartitionRecord | undefined): string {
    const before = this.#before;
    if (newest !== before) return 'a newer record is known';
    const isBack = before !== undefined && !isEnded(before)
      && before.members.some((each) => this.#ports.isUp(each) && !this.#ports.isGone(each));
    return isBack ? 'a copy is back before it was given up' : '';
  }

  /** What is to be claimed, once stores enough have the term. */
  record(holder: HolderId, nowMs: number): PartitionRecord | undefined {
    const { replicas, foundWaitMs } = this.#options;
    const isLate = nowMs - this.#sinceMs >= foundWaitMs;
    if (this.#founded.length < replicas && !(isLate && this.#founded.length > 0)) return undefined;
    const { isLoss, gaveUp, left, line } = this.base;
    return {
      epoch: this.#term.number, term: this.#term, holder, members: this.#founded, gaveUp,
      left: left.filter((each) => !isMemberOf(this.#founded, each.storeId, each.bootId)),
      line: isLoss ? line : lineUpTo(this.#term, line),
    };
  }

  /**
   * Others may still use leases that no living member could tell of. Who is proven dead may have been named,
   * and never have begun: then leases of the one before may run.
   */
  mustWaitOut(provenDead: HolderId | undefined): boolean {
    const before = this.#before;
    const isProvenDead = provenDead !== undefined && before !== undefined
      && isSameHolder(provenDead, before.holder);
    const hasBegun = before !== undefined
      && (before.line.length === 0 || before.epoch > before.term.number);
    return this.base.isLoss && (!isProvenDead || !hasBegun);
  }

  /** `unheard`: stores of which nobody knows what they have. */
  ask(
    answers: ReadonlyMap<string, Pick<AskAnswer, 'told' | 'hasCopy'>>, unheard: readonly string[],
    nowMs: number,
  ): void {
    const { replicas, retryMs } = this.#options;
    if (nowMs - this.#askedMs < retryMs) return;
    this.#askedMs = nowMs;
    const { gaveUp, line } = this.base;
    // Its store in another boot has none.
    const back = gaveUp.filter((each) => this.#ports.isUp(each)).map(({ storeId }) => storeId);
    const taken = [...back, ...unheard];
    const founded = { term: this.#term, line };
    for (const [storeId, { told, hasCopy }] of answers) {
      if (hasCopy && told !== undefined && !isEnded(told) && !isOfLine(founded, told)) taken.push(storeId);
    }
    for (let i = 0; i < replicas; i++) {
      const choice = this.#ports.members.chooseStore(taken, '');
      if (choice === undefined) return;
      taken.push(choice.storeId);
      this.#ports.stores.found(choice.storeId, choice.bootId, this.#term, this.#before?.epoch ?? 0);
    }
  }

  onFounded(storeId: string, bootId: string, term: Term): void {
    if (!isSameTerm(term, this.#term)) return;
    this.#noteRefusesNot(storeId);
    this.#refusedSinceMs = Infinity;
    if (!isMemberOf(this.#founded, storeId, bootId)) this.#founded.push({ storeId, bootId });
  }

  onDeclined(storeId: string, bootId: string, { asked, reason }: DeclinedAnswer, nowMs: number): void {
    if (isSameTerm(asked, this.#term) && !lacksCopy(reason)) this.#begin(nowMs);
    else if (reason === DECLINED_NO_COPY) {
      this.#refusing.set(storeId, bootId);
      this.#refusedSinceMs = Math.min(this.#refusedSinceMs, nowMs);
    } else if (reason === DECLINED_FULL) this.#noteRefusesNot(storeId);
  }

  /** In another boot it has forgotten the term, and has no copy. */
  onLinkUp(storeId: string, bootId: string): void {
    this.#founded = this.#founded.filter((each) => each.storeId !== storeId || each.bootId === bootId);
    if (this.#refusing.get(storeId) !== bootId) this.#noteRefusesNot(storeId);
  }

  /** What it has is not known any more: a person would be told of a copy that may be gone. */
  onLinkDown(storeId: string): void {
    this.#noteRefusesNot(storeId);
  }

  #noteRefusesNot(storeId: string): void {
    this.#refusing.delete(storeId);
    if (this.#refusing.size === 0) this.#refusedSinceMs = Infinity;
  }

  #begin(nowMs: number): void {
    this.#term = this.#ports.nextTerm();
    this.#founded = [];
    this.#refusing.clear();
    this.#refusedSinceMs = Infinity;
    this.#askedMs = -Infinity;
    this.#sinceMs = nowMs;
  }
}

/** It has no copy, or can't take one. */
export function lacksCopy(reason: number): boolean {
  return reason === DECLINED_NO_COPY || reason === DECLINED_FULL;
}

/**
 * A founding empties a copy before its record is made. When another change came first, and names that copy,
 * it is none: it stands at its beginning, under a term that did not lead to the record.
 */
export function isFoundedApart({ number, term }: CopyPosition, record: PartitionRecord): boolean {
  return number === 0 && !isSameTerm(term, NO_TERM) && !isOfLine(record, { term, epoch: term.number });
}
