/**
 * What a store said when it did not take a queue's copy: what there is to tell when no store does (lost-sets.ts).
 *
 *   CLAIM not granted, change or refill refused ─► declined ─► asked again ─► declined anew
 *                                                                         ├─► granted, unknown: it is nobody else's there
 *                                                                         └─► in sync
 *
 * A word about a claim counts until the store is asked again, and while that has no answer for replace_after at most: who
 * waits for a turn to be filled is not declined. What a store refused counts until it has taken a copy whole: a full one
 * takes each copy at first, and may take longer to say no than any bound. No word says anything of another boot.
 */
import { ResyncPhase, SyncState } from './replica.js';
import type { Replica } from './replica.js';

export const Decline = {
  /** Another gateway holds the queue there, by a lease that runs. */
  HELD: 0,
  /** The store has just started: a lease of before may run. */
  GRACE: 1,
  /** Another process has taken the queue by a newer claim, or has a newer set there. */
  TAKEN: 2,
  /** From here on: asked to take a copy, it refused. No memory is left. */
  FULL: 3,
  /** It has as many queues as it takes. */
  TABLE_FULL: 4,
  /** Something else, in words. */
  REFUSED: 5,
} as const;
export type Decline = (typeof Decline)[keyof typeof Decline];

export interface Declined {
  readonly why: Decline;
  readonly text: string;
  readonly bootId: string;
}

export function decline(replica: Replica, why: Decline, text = ''): void {
  replica.declined = { why, text, bootId: replica.store.bootId };
}

/** Another process holds the queue at this store: what was asked for by our right there has no answer. */
export function fenceOff(replica: Replica): void {
  replica.fenced = true;
  replica.attachSequence = 0;
  decline(replica, Decline.TAKEN);
}

/** The store says that nobody else holds the queue there. */
export function unfence(replica: Replica): void {
  replica.fenced = false;
  if (replica.declined !== undefined && replica.declined.why <= Decline.TAKEN) replica.declined = undefined;
}

/** It has been asked and has not answered, is being filled, or waits for its turn. */
export function isAsked(replica: Replica, nowMs: number): boolean {
  return replica.store.isUp && (replica.claimSequence !== 0 || replica.sync !== SyncState.NG || replica.retryAtMs <= nowMs);
}

/** What its store said in this boot when it did not take the copy, while that counts. */
export function wordOf({ declined, store }: Replica): Declined | undefined {
  return store.isUp && declined?.bootId === store.bootId ? declined : undefined;
}

/** It was asked to take a copy, did not, and has not taken one whole since; also while it is tried again. */
export function hasRefused(replica: Replica): boolean {
  if (replica.phase === ResyncPhase.CAUGHT_UP || replica.phase === ResyncPhase.JOINING) return false;
  return (wordOf(replica)?.why ?? Decline.HELD) >= Decline.FULL;
}

/** Its store is silent, or does not take the copy. */
export function takesNone(replica: Replica, nowMs: number, afterMs: number): boolean {
  if (!replica.store.isUp || hasRefused(replica)) return true;
  return wordOf(replica) !== undefined && (!isAsked(replica, nowMs) || nowMs - replica.retryAtMs < afterMs);
}
