/**
 * One mirror of one partition: the row of the management table (the paper's Table I) and its sync state.
 *
 *              refused, link lost, silent / isolate: epoch raised on the survivors
 *        SYNC ──────────────────────────────────────────────────────────► NG ◄── RESYNC (same causes)
 *          ▲  ▲      claim shows it in the ring, still in the set / tail  │
 *          │  └───────────────────────────────────────────────────────────┤ reachable / CLAIM
 *          │ set acknowledged by the survivors                            ▼
 *          └───────────────────────────────────────────────────────── RESYNC   in the ring / tail
 *                                                                              else / OPEN, REFILL_BEGIN
 *
 *   state    counts for G1   gets live changes               waits for
 *   SYNC     yes             all                             –
 *   NG       no              none                            link up, retry time, CLAIMED (claimSequence)
 *   RESYNC   no              all; SKIPPED beyond the cursor  FILLING → ENDING (REFILL_END acknowledged), or
 *                                                            TAILING (tail acknowledged)
 *                                                            → CAUGHT_UP → JOINING (set acknowledged)
 *
 * Whether it is in the acknowledged set (`member`) or in a set that was sent (`wanted`) is a separate
 * fact: an NG mirror stays a member until the survivors have acknowledged the set without it.
 */
import { invariant } from '../../base/invariant.js';
import type { Declined } from './declined.js';
import { ReplicaProgress } from './replica-progress.js';
import type { StorePort } from './store-port.js';
import type { SealedSection } from './turn-section.js';

export const SyncState = { SYNC: 0, NG: 1, RESYNC: 2 } as const;
export type SyncState = (typeof SyncState)[keyof typeof SyncState];
export const SYNC_STATE_NAMES = ['SYNC', 'NG', 'RESYNC'] as const;

/** How far a RESYNC is. */
export const ResyncPhase = { NONE: 0, FILLING: 1, ENDING: 2, CAUGHT_UP: 3, JOINING: 4, TAILING: 5 } as const;
export type ResyncPhase = (typeof ResyncPhase)[keyof typeof ResyncPhase];

/** Whether a mirror is to leave its queue's set: drained, or its store stops. */
export const Leave = {
  NO: 0,
  /** When another is in sync in its place. */
  REPLACED: 1,
  /** Without one: there is no store to take its place. */
  NOW: 2,
} as const;
export type Leave = (typeof Leave)[keyof typeof Leave];

const VALID: readonly (readonly number[])[] = [
  [SyncState.NG],
  [SyncState.RESYNC, SyncState.SYNC], // NG to SYNC: only by a tail or a recovery that found it complete
  [SyncState.NG, SyncState.SYNC],
];

export function isValidSyncTransition(from: number, to: number): boolean {
  return VALID[from]?.includes(to) ?? false;
}

/** Told of every change of a replica's state, with its cause; one log line each. */
export type ReplicaTrace = (replica: Replica, from: SyncState, cause: string) => void;

export class Replica {
  readonly store: StorePort;
  readonly partitionName: string;
  /** In the acknowledged set: its acknowledgement is needed for G1. */
  member = false;
  /** In the set that was sent last. Equal to `member` when no change of the set is open. */
  wanted = false;
  /** Highest change number acknowledged. */
  acked = 0;
  /** The change that let it join: until it has that one, its copy is no member's, and a takeover would not read it. */
  joinedBy = 0;
  phase: ResyncPhase = ResyncPhase.NONE;
  /** Refill: entries up to this position have been sent; live changes beyond it and ≤ base are SKIPPED. */
  refillCursor = 0;
  refillBase = 0;
  /** How far behind, for those who look. */
  readonly progress = new ReplicaProgress();
  /** Sections that must not reach a joiner before the survivors have acknowledged its set. */
  held: SealedSection[] = [];
  /** Boot id under which the store was seen with a copy that calls itself a member's; '' once it is known to have none. */
  claimBootId = '';
  /** Boot id under which a refill was completed there: the copy is whole, though not a member's yet. */
  filledBootId = '';
  /** Change up to which a tail was sent. */
  tailUntil = 0;
  /** The copy can't be continued from the ring: it diverged, or a tail was refused. */
  mustRefill = false;
  /** Refusals since it was in sync last. */
  refusals = 0;
  /** Another process holds the queue at this store. */
  fenced = false;
  /** Why its store did not take the copy when it was asked last. */
  declined: Declined | undefined;
  /** Of our claim at this store when it had to be above the queue's (claim-again.ts); else 0. */
  token = 0;
  /**
   * No other process was granted a claim at this member before its copy was lost: our lease at that boot still ran when
   * we learned of the restart, and the one at the next boot until we learned that no file had brought the copy back; we
   * emptied it as its holder; or an operator said so.
   */
  lossWitnessed = false;
  /** Term of the lease at the boot that was seen first after the restart. */
  private witnessTerm = -1;
  /** Its store did not know the queue, and was sent an OPEN: it knows us by our incarnation only (claim-again.ts). */
  isOpenedAnew = false;
  /** An operator said that its store does not come back; until it is in sync again. */
  isGivenUp = false;
  /** Why it is to leave the set: LEAVE_… below. */
  leaving: Leave = Leave.NO;
  /** In words. */
  leavingWhy = '';
  /** Term of the lease at the store in which our right to the queue was confirmed; -1 before. */
  confirmedTerm = -1;
  /** Sequence of the attachment or the CLAIM that waits for its answer, 0 none; and the term in which the CLAIM was sent. */
  attachSequence = 0;
  claimSequence = 0;
  claimTerm = -1;
  /** Since when it is not in sync, however often that was tried, and why it was not at first. */
  awaySinceMs = 0;
  awayCause = '';
  sinceMs = 0;
  cause = '';
  /** Not before this time is a resync tried again. */
  retryAtMs = 0;
  private syncState: SyncState = SyncState.NG;
  private readonly trace: ReplicaTrace;

  constructor(store: StorePort, partitionName: string, trace: ReplicaTrace) {
    this.store = store;
    this.partitionName = partitionName;
    this.trace = trace;
  }

  get sync(): SyncState {
    return this.syncState;
  }

  /** Gets live changes at all. */
  get isFed(): boolean {
    return this.syncState === SyncState.SYNC || (this.syncState === SyncState.RESYNC && this.phase !== ResyncPhase.NONE);
  }

  /** Its store has not said that the copy is gone, nor have we emptied it. After a restart it may come back out of a file. */
  get mayHoldCopy(): boolean {
    return this.claimBootId !== '';
  }

  /** The store granted our claim in the present term of our lease. */
  get obeys(): boolean {
    return this.stillClaims && this.store.isUp && !this.fenced && this.confirmedTerm === this.store.leaseTerm;
  }

  /** The store would tell a recovery that it is a member: it has not restarted, nor been emptied for a refill. */
  get stillClaims(): boolean {
    return this.claimBootId !== '' && this.claimBootId === this.store.bootId;
  }

  /** Its refill has not ended. */
  get isFilling(): boolean {
    return this.phase === ResyncPhase.FILLING || this.phase === ResyncPhase.ENDING;
  }

  /** A member in sync of the acknowledged set. */
  get inSync(): boolean {
    return this.member && this.syncState === SyncState.SYNC;
  }

  /** Its store is there under another boot id. Its file may have brought the copy back. */
  onRestart(isInTime: boolean): void {
    this.lossWitnessed = isInTime;
    this.witnessTerm = this.store.leaseTerm;
  }

  /** What the store answers says that it has no copy of the set. With our lease there interrupted since, another may have had the one in its file. */
  onGone(nowMs: number): void {
    if (this.mayHoldCopy && (this.witnessTerm !== this.store.leaseTerm || nowMs >= this.store.leaseEndsMs)) this.lossWitnessed = false;
    this.claimBootId = '';
  }

  /** A refill of ours began there: we emptied it as its holder, so that nobody else can have the queue from it. */
  onEmptied(): void {
    this.lossWitnessed ||= this.stillClaims;
    this.claimBootId = '';
  }

  /** What was asked on a connection that is gone has no answer. */
  forgetRequests(): void {
    this.attachSequence = 0;
    this.claimSequence = 0;
  }

  /** The only writer of the sync state. */
  transition(to: SyncState, cause: string, nowMs: number): void {
    const from = this.syncState;
    if (from === to) return;
    invariant(isValidSyncTransition(from, to), `a mirror goes from ${SYNC_STATE_NAMES[from]} to ${SYNC_STATE_NAMES[to]}, which no arrow allows`);
    this.syncState = to;
    if (from === SyncState.SYNC) {
      this.awaySinceMs = nowMs;
      this.awayCause = cause;
    }
    this.phase = ResyncPhase.NONE;
    this.progress.endRefill();
    this.held = [];
    this.sinceMs = nowMs;
    this.cause = cause;
    if (to === SyncState.SYNC) {
      this.claimBootId = this.store.bootId;
      this.lossWitnessed = false;
      this.isGivenUp = false;
      this.mustRefill = false;
      this.fenced = false;
      this.declined = undefined;
    }
    this.trace(this, from, cause);
  }
}
