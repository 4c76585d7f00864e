/**
 * What a store said when it did not take a queue's copy: what there is to tell when no store does (lost-sets.ts).
 *
 *   CLAIM not granted, change or refill refused ─► declined ─► asked again ─► declined anew
 *                                                                         ├─► granted, unknown: it is nobody else's there
 *                                                                         └─► in sync
 *
 * A word counts until the store is asked again, and while that has no answer for replace_after at most: who waits for a turn
 * to be filled is not declined. It says nothing of another boot.
 */
import { SyncState } from './replica.js';
import type { Replica } from './replica.js';

export const Decline = {
  /** Another gateway holds the queue there, by a lease that runs. */
  HELD: 0,
  /** The store has just started: a lease of before may run. */
  GRACE: 1,
  /** Another process has taken the queue by a newer claim, or has a newer set there. */
  TAKEN: 2,
  FULL: 3,
  /** Something else, in words. */
  REFUSED: 4,
} as const;
export type DeclineValue = (typeof Decline)[keyof typeof Decline];

export interface Declined {
  readonly why: DeclineValue;
  readonly text: string;
  readonly bootId: string;
}

export function decline(replica: Replica, why: DeclineValue, text = ''): void {
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

/** Its store is silent, or does not take the copy. */
export function takesNone(replica: Replica, nowMs: number, afterMs: number): boolean {
  const { store, declined } = replica;
  if (!store.isUp) return true;
  if (declined === undefined || declined.bootId !== store.bootId) return false;
  return !isAsked(replica, nowMs) || nowMs - replica.retryAtMs < afterMs;
}
