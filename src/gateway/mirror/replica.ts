/**
 * One mirror of one queue: the row of the management table (the paper's Table I) and its sync state.
 *
 *              refused, link lost, silent / isolate: epoch raised on the survivors
 *        SYNC ──────────────────────────────────────────────────────────► NG
 *          ▲                                                              │ reachable / OPEN, REFILL_BEGIN
 *          │ set acknowledged by the survivors                            ▼
 *          └───────────────────────────────────────────────────────── RESYNC ──► NG (same causes)
 *
 *   state    counts for G1   gets live changes               waits for
 *   SYNC     yes             all                             –
 *   NG       no              none                            link up, retry time
 *   RESYNC   no              all; SKIPPED beyond the cursor  FILLING → ENDING (REFILL_END acknowledged)
 *                                                            → CAUGHT_UP → JOINING (set acknowledged)
 *
 * Whether it is in the acknowledged set (`member`) or in a set that was sent (`wanted`) is a separate
 * fact: an NG mirror stays a member until the survivors have acknowledged the set without it.
 */
import { invariant } from '../../base/invariant.js';
import { ReplicaProgress } from './replica-progress.js';
import type { StorePort } from './store-port.js';
import type { SealedSection } from './turn-section.js';

export const SyncState = { SYNC: 0, NG: 1, RESYNC: 2 } as const;
export type SyncStateValue = (typeof SyncState)[keyof typeof SyncState];
export const SYNC_STATE_NAMES = ['SYNC', 'NG', 'RESYNC'] as const;

/** How far a RESYNC is. */
export const ResyncPhase = { NONE: 0, FILLING: 1, ENDING: 2, CAUGHT_UP: 3, JOINING: 4 } as const;
export type ResyncPhaseValue = (typeof ResyncPhase)[keyof typeof ResyncPhase];

const VALID: readonly (readonly number[])[] = [
  [SyncState.NG],
  [SyncState.RESYNC, SyncState.SYNC], // NG to SYNC: only by a tail or a recovery that found it complete
  [SyncState.NG, SyncState.SYNC],
];

export function isValidSyncTransition(from: number, to: number): boolean {
  return VALID[from]?.includes(to) ?? false;
}

/** Told of every change of a replica's state, with its cause; one log line each. */
export type ReplicaTrace = (replica: Replica, from: SyncStateValue, cause: string) => void;

export class Replica {
  readonly store: StorePort;
  readonly queueName: string;
  /** In the acknowledged set: its acknowledgement is needed for G1. */
  member = false;
  /** In the set that was sent last. Equal to `member` when no change of the set is open. */
  wanted = false;
  /** Highest change number acknowledged. */
  acked = 0;
  phase: ResyncPhaseValue = ResyncPhase.NONE;
  /** Refill: entries up to this position have been sent; live changes beyond it and ≤ base are SKIPPED. */
  refillCursor = 0;
  refillBase = 0;
  /** How far behind, for those who look. */
  readonly progress = new ReplicaProgress();
  /** Sections that must not reach a joiner before the survivors have acknowledged its set. */
  held: SealedSection[] = [];
  /** Boot id under which the store holds a copy that calls itself a member's; '' when it holds none. */
  claimBootId = '';
  sinceMs = 0;
  cause = '';
  /** Not before this time is a resync tried again. */
  retryAtMs = 0;
  private syncState: SyncStateValue = SyncState.NG;
  private readonly trace: ReplicaTrace;

  constructor(store: StorePort, queueName: string, trace: ReplicaTrace) {
    this.store = store;
    this.queueName = queueName;
    this.trace = trace;
  }

  get sync(): SyncStateValue {
    return this.syncState;
  }

  /** Gets live changes at all. */
  get isFed(): boolean {
    return this.syncState === SyncState.SYNC || (this.syncState === SyncState.RESYNC && this.phase !== ResyncPhase.NONE);
  }

  /** The store would tell a recovery that it is a member: it has not restarted, nor been emptied for a refill. */
  get stillClaims(): boolean {
    return this.claimBootId !== '' && this.claimBootId === this.store.bootId;
  }

  /** The only writer of the sync state. */
  transition(to: SyncStateValue, cause: string, nowMs: number): void {
    const from = this.syncState;
    if (from === to) return;
    invariant(isValidSyncTransition(from, to), `a mirror goes from ${SYNC_STATE_NAMES[from]} to ${SYNC_STATE_NAMES[to]}, which no arrow allows`);
    this.syncState = to;
    this.phase = ResyncPhase.NONE;
    this.progress.endRefill();
    this.held = [];
    this.sinceMs = nowMs;
    this.cause = cause;
    if (to === SyncState.SYNC) this.claimBootId = this.store.bootId;
    this.trace(this, from, cause);
  }
}
