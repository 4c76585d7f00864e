/**
 * One connection at a time to whoever keeps the map: what client/ stands on, and all that etcd, file and the
 * simulated register have to be. No queue, deadline, repeat or batch in here: those are the client's.
 *
 *     DOWN ── reached, signed in, a linearizable read answered / onUp ──► UP
 *     UP ── lost, or reset(why) / onDown(why) ──► DOWN, trying the next endpoint, with growing waits
 *
 * - Calls are made only while it is UP. Each is answered at most once, never from inside the call, and never
 *   after the onDown that ended it: then the client takes it for unanswered.
 * - No deadlines here: a call that is not answered makes the client call reset().
 */
import type { PlainWrite } from './limits.js';
import type { Entry, Range, RefusalReason } from './port.js';

export interface LineWrite extends PlainWrite {
  /** '' for a key that stays. */
  readonly session: string;
}

export type WriteResult =
  | { readonly kind: 'done'; readonly revision: number; }
  | { readonly kind: 'stale'; readonly entry: Entry | undefined; readonly guard: string; }
  | { readonly kind: 'refused'; readonly reason: RefusalReason; readonly why: string; };

/** The answer to a transaction: each write by itself; or all of them not applied; or nobody knows. */
export type TransactionAnswer =
  | { readonly kind: 'settled'; readonly results: readonly WriteResult[]; }
  | { readonly kind: 'refused'; readonly reason: RefusalReason; readonly why: string; }
  | { readonly kind: 'unknown'; readonly why: string; };

export type RangeAnswer =
  | { readonly kind: 'entries'; readonly entries: readonly Entry[]; readonly revision: number; }
  | { readonly kind: 'failed'; readonly why: string; };

export type LeaseAnswer =
  /** Granted or renewed for so long, counted by the register from a moment after this was sent. */
  | { readonly kind: 'granted'; readonly ttlMs: number; }
  /** No such session: it is over, and its keys are deleted. */
  | { readonly kind: 'gone'; }
  | { readonly kind: 'failed'; readonly why: string; };

export interface Change {
  readonly key: string;
  readonly revision: number;
  /** Undefined: deleted. */
  readonly entry: Entry | undefined;
}

export interface ChangesHandler {
  onChanges(changes: readonly Change[]): void;
  /** Nothing more comes: compacted, cancelled, too slow. The line itself may be well. */
  onBroken(why: string): void;
}

export interface LineHandlers {
  onUp(endpoint: string): void;
  onDown(why: string): void;
}

export interface Line {
  /** Begins to connect; once. */
  open(handlers: LineHandlers): void;
  /**
   * Applied as a whole at one moment; keys are all different, and no guard is on a key written
   * here (client/batches.ts).
   */
  transact(writes: readonly LineWrite[], done: (answer: TransactionAnswer) => void): void;
  /** Linearizable, all at one revision. */
  range(ranges: readonly Range[], done: (answer: RangeAnswer) => void): void;
  /** Changes of keys with one of the prefixes after `afterRevision`. */
  watch(prefixes: readonly string[], afterRevision: number, handler: ChangesHandler): { close(): void; };
  grant(session: string, ttlMs: number, done: (answer: LeaseAnswer) => void): void;
  renew(session: string, done: (answer: LeaseAnswer) => void): void;
  revoke(session: string, done: (answer: LeaseAnswer) => void): void;
  /**
   * Gives the connection up, as one that does not answer, and goes on with the next endpoint. onDown comes.
   */
  reset(why: string): void;
  /** Lets go of everything; nothing is called any more. */
  close(): void;
}
