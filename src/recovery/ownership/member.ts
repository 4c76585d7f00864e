/**
 * A store's part in a partition: one copy, in one boot of the store. A row of the management table.
 * A store that restarts without its file is another copy: it gets a row of its own.
 *
 *   NG       ─ link up / FENCE of our term ─► ALIGNING
 *   NG       ─ in no possible record, up, and not refused / FILL ─► FILLING
 *   ALIGNING ─ its last change is in our history, and is our last ─► IN_STEP
 *   ALIGNING ─ it is in our history, and the ring reaches back to it / TAIL ─► TAIL
 *   ALIGNING ─ else, in no possible record ─► NG / FILL ─► FILLING
 *   ALIGNING ─ else: diverged; it is dropped from the record before it is filled ─► NG
 *   TAIL     ─ acknowledged up to where we were ─► IN_STEP
 *   FILLING  ─ all of it; count and digest agree ─► IN_STEP
 *   any      ─ link lost, refused, new boot ─► NG
 *
 *   shown as   state and record                               its acknowledgements
 *   SYNC       IN_STEP, recorded; LEAVING while a change      count
 *              without it has been sent
 *   NG         NG                                             what it acknowledged it still holds; while it
 *                                                             may be recorded it counts, and holds commits up
 *   RESYNC     ALIGNING, TAIL, FILLING, CAUGHT_UP (in step,   count from the moment when a change with it
 *              not recorded), JOINING (that change sent)      has been sent
 *
 * Who is dropped and who joins is decided for the whole set: partition-set.ts.
 */
import { invariant } from '../../base/invariant.js';
import type { RecordedMember } from '../../protocol/partition-record.js';
import type { LeaseView } from './link-lease.js';

export const MemberState = {
  /** Not fed: away, refused, or of another history. */
  NG: 0,
  /** Our term was sent to it; where it stands is not known yet. */
  ALIGNING: 1,
  /** Gets the changes it lacks. */
  TAIL: 2,
  /** Was emptied and gets everything. */
  FILLING: 3,
  /** Has every change but those under way. */
  IN_STEP: 4,
} as const;
export type MemberStateValue = (typeof MemberState)[keyof typeof MemberState];
export const MEMBER_STATE_NAMES = ['NG', 'ALIGNING', 'TAIL', 'FILLING', 'IN_STEP'] as const;

/** From any state to any but itself, and: what was filled or fed a tail was aligned before. */
const VALID: readonly (readonly number[])[] = [
  [MemberState.ALIGNING, MemberState.FILLING],
  [MemberState.NG, MemberState.TAIL, MemberState.FILLING, MemberState.IN_STEP],
  [MemberState.NG, MemberState.IN_STEP],
  [MemberState.NG, MemberState.IN_STEP],
  [MemberState.NG],
];

export function isValidMemberTransition(from: number, to: number): boolean {
  return VALID[from]?.includes(to) ?? false;
}

export type MemberTrace = (member: PartitionMember, from: MemberStateValue, to: MemberStateValue) => void;

export class PartitionMember implements RecordedMember {
  readonly storeId: string;
  readonly bootId: string;
  /** Ours at this store; counts only in the boot of this row. */
  readonly lease: LeaseView;
  /** It is known to hold everything of our history up to here. */
  acked = 0;
  /** In the last record known. */
  isRecorded = false;
  /**
   * Of the last record known that it stood in; a copy that was filled since has what that one's have. 0: of
   * one before us, not known which.
   */
  countedEpoch = 0;
  /** In some possible record: it counts for commits and for the right to deliver. */
  isPossible = false;
  /** Some possible record lacks it. */
  mayLeave = false;
  /** It has processed our term: only from then on does a taker who fences it wait for our lease there. */
  isFenced = false;
  /** Its store has been seen in another boot: this copy is surely gone. */
  isGone = false;
  /** It passed for gone, and its store is in that boot again: whether the copy is there has to be asked. */
  isBack = false;
  /** It has to be filled anew: another history than ours, or the ring does not reach back to it. */
  isDiverged = false;
  /** Diverged, it is whole as far as it goes: what it has may be had nowhere else. */
  isWholeOther = false;
  /** A fill has begun there and has not ended: there is no copy. */
  isEmptied = false;
  /** It was founded here, or a fill has begun there: what it had of its own is gone. */
  isRefilled = false;
  /** Where a tail ends, at the moment it was begun. */
  tailEnd = 0;
  /** Since when it is not in step. */
  weakSinceMs: number;
  /** Epoch of the last record that it acknowledged. */
  toldEpoch = 0;
  /** Since when it is in its present state. */
  sinceMs: number;
  /**
   * It refused us by a term or a record of this epoch: it is filled when it was told a younger one.
   * 0: nothing.
   */
  refusedBy = 0;
  readonly #trace: MemberTrace;
  #state: MemberStateValue = MemberState.NG;
  #isUnwanted = false;
  #isStopping = false;

  constructor(storeId: string, bootId: string, lease: LeaseView, nowMs: number, trace: MemberTrace) {
    this.storeId = storeId;
    this.bootId = bootId;
    this.lease = lease;
    this.weakSinceMs = nowMs;
    this.sinceMs = nowMs;
    this.#trace = trace;
  }

  get state(): MemberStateValue {
    return this.#state;
  }

  /** To be replaced: its store is drained, or the set is moved. */
  get isUnwanted(): boolean {
    return this.#isUnwanted;
  }

  /** Its store has said that it stops. */
  get isStopping(): boolean {
    return this.#isStopping;
  }

  get isInStep(): boolean {
    return this.#state === MemberState.IN_STEP;
  }

  /** It has what counts, gets what it lacks, or is to be filled. */
  get isFed(): boolean {
    return this.#state >= MemberState.TAIL;
  }

  /** For the management table. */
  get shown(): 'SYNC' | 'NG' | 'RESYNC' {
    if (this.#state === MemberState.NG) return 'NG';
    return this.isInStep && this.isRecorded ? 'SYNC' : 'RESYNC';
  }

  get phase(): string {
    if (this.isInStep && !this.isRecorded) return this.isPossible ? 'joining' : 'caught up';
    if (this.isInStep) return this.mayLeave ? 'leaving' : '';
    return ['', 'aligning', 'tail', 'filling', ''][this.#state] ?? '';
  }

  /** Why it is not SYNC, in words; '' when it is. */
  get cause(): string {
    if (this.#state !== MemberState.NG) return this.phase;
    if (this.isGone) return 'its store has restarted: the copy is gone';
    return this.isDiverged
      ? 'it lacks too much, or has another history: it is filled anew'
      : 'its store can not be reached';
  }

  /** True while a lease in this boot runs and a later taker would wait for it. */
  isLeased(nowMs: number): boolean {
    return this.isFenced && this.lease.bootId === this.bootId && nowMs < this.lease.endsMs;
  }

  /** The set's to say (PartitionSet.relocate()). */
  relocate(isStopping: boolean): void {
    this.#isUnwanted = true;
    this.#isStopping = isStopping;
  }

  /** The set's to say (PartitionSet.stay()). */
  stay(): void {
    this.#isUnwanted = false;
    this.#isStopping = false;
  }

  enter(to: MemberStateValue, nowMs: number): void {
    if (to === this.#state) return;
    if (this.isInStep) this.weakSinceMs = nowMs;
    this.sinceMs = nowMs;
    this.#transition(to);
  }

  #transition(to: MemberStateValue): void {
    const from = this.#state;
    invariant(isValidMemberTransition(from, to),
      `a member goes from ${MEMBER_STATE_NAMES[from]} to ${MEMBER_STATE_NAMES[to]}`);
    this.#state = to;
    this.#trace(this, from, to);
  }
}
