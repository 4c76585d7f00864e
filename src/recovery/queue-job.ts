/**
 * What a recovery knows of one queue that is on its way back, and of one store that tells of queues. Plain
 * records; bulk-recovery.ts moves them through their states.
 */
import type { CensusRow } from './census.js';
import type { ListedRow } from './recovery-replies.js';

/** One store as recovery sees it. */
export interface RecoveryStore {
  readonly storeId: string;
  readonly bootId: string;
  readonly isUp: boolean;
  /** Writes what was requested, without waiting for the end of the turn. */
  flush(): void;
  request(type: number, control: Uint8Array, bodies: readonly Uint8Array[], creditBytes: number): number;
}

/** A queue whose members have all granted the claim. */
export interface ClaimedQueue {
  readonly handle: number;
  /** Gateway that the queue belongs to. */
  readonly ownerId: string;
  readonly birth: number;
  readonly serial: number;
  readonly name: string;
  readonly queueClass: string;
  readonly epoch: number;
  readonly members: readonly string[];
  /** As they stood when the claim was granted; the first is read from. */
  readonly holders: readonly CensusRow[];
  readonly number: number;
  readonly digestA: number;
  readonly digestB: number;
}

export type QueueJobState = 'waiting' | 'claiming' | 'claimed' | 'pulling' | 'stranded' | 'done';

export interface QueueJob {
  readonly key: string;
  readonly handle: number;
  state: QueueJobState;
  rows: CensusRow[];
  /** Granted claims by store; a store that restarts loses its own. */
  readonly claims: Map<string, CensusRow>;
  readonly asked: Set<string>;
  /** Stores that gave a block with a wrong checksum: read from again only when no other is left. */
  readonly damaged: Set<string>;
  epoch: number;
  members: readonly string[];
  /** Where to go on when `source` is lost. */
  sources: string[];
  source: string;
  cursor: number;
  until: number;
  toldMissing: string;
}

export function newQueueJob(key: string, handle: number): QueueJob {
  return { key, handle, state: 'waiting', rows: [], claims: new Map(), asked: new Set(), damaged: new Set(), epoch: 0, members: [], sources: [], source: '', cursor: 0, until: 0, toldMissing: '' };
}

/** One store's list of queues, as far as it has come. */
export interface StoreView {
  readonly store: RecoveryStore;
  rows: ListedRow[];
  listed: boolean;
  bootId: string;
}
