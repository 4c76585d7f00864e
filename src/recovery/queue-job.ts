/**
 * What is known of one queue that the stores tell of and that this process does not serve whole yet. Plain
 * records and the table of their states; claim-machine.ts, pulls.ts and bulk-recovery.ts move them.
 *
 *   ELSEWHERE ◄──► WAITING ◄──► CLAIMING ──► TAILING ──► CLAIMED ◄──► PULLING ──► DONE ──► ELSEWHERE (handed back, lost)
 *                     │                                     ▲            │
 *                     └──► DONE (nothing of it counts)      └── STRANDED ◄┘
 *
 *   state      leaves it when                                    waits for
 *   (a queue that this process founded for another gateway is DONE from the first)
 *   ELSEWHERE  its holder is silent and we are of its group      rescue-watch.ts; queues of others only
 *   WAITING    every member of the newest epoch can be asked     a store that is down, or the time of a back-off
 *   CLAIMING   the claims stand                                  claim-machine.ts
 *   TAILING    the longest member told what the others lack      TAILED; given up when a member restarts
 *   CLAIMED    few enough others are being pulled                a turn; new mail of its route is taken behind it already
 *   PULLING    the block with `end`                              BLOCK, or memory for it; a lost source is replaced
 *   STRANDED   a member that still has the rest is back          a store; when all have answered and none has it: an own
 *                                                                one ends, another's waits for an operator
 *   DONE       –
 */
import { invariant } from '../base/invariant.js';
import { ToldClock } from '../base/told-clock.js';
import type { CensusRow } from './census.js';
import { newestOf } from './census.js';
import type { ClaimMachine } from './claim-machine.js';

/** One store as recovery sees it. */
export interface RecoveryStore {
  readonly storeId: string;
  readonly bootId: string;
  readonly isUp: boolean;
  /** Of the protocol that it speaks with us. */
  readonly version: number;
  /** Length of the leases that it grants. */
  readonly leaseMs: number;
  /** What was left of its first lease period at the last handshake. */
  readonly graceMs: number;
  /** Writes what was requested, without waiting for the end of the turn. */
  flush(): void;
  /** Returns the sequence number that the answer will carry. */
  request(type: number, control: Uint8Array, bodies: readonly Uint8Array[], creditBytes: number): number;
}

/** What members with a lower number lack of the longest one. */
export interface RecoveredTail {
  readonly firstNumber: number;
  /** Digest at the number before the first. */
  readonly digestA: number;
  readonly digestB: number;
  readonly rows: Uint8Array;
  readonly bodies: Uint8Array;
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
  /** Token of the claims. */
  readonly token: number;
  /** Members that granted the claim and have a copy, in memory or out of a file. */
  readonly copies: readonly string[];
  /** The copy is none of a member: an operator gave up all of them, and the next set is founded without a survivor. */
  readonly isOutside: boolean;
  /** Stores that an operator gave up for this queue. */
  readonly given: readonly string[];
  /** The newest epoch told or hinted at when that was said. */
  readonly givenEpoch: number;
  /** As they stood when the claim was granted; the first is read from. */
  readonly holders: readonly CensusRow[];
  readonly number: number;
  readonly digestA: number;
  readonly digestB: number;
  /** Wall clock of the process that wrote it last, as a member told it. */
  readonly holderClock: ToldClock;
  /** Valid during the call only; undefined when no member lacks anything, or the longest has forgotten it. */
  readonly tail: RecoveredTail | undefined;
}

/** Identity and name of a queue. */
export type QueueName = Pick<CensusRow, 'ownerId' | 'birth' | 'serial' | 'name' | 'queueClass'>;

export type QueueJobState = 'elsewhere' | 'waiting' | 'claiming' | 'tailing' | 'claimed' | 'pulling' | 'stranded' | 'done';

const VALID: Readonly<Record<QueueJobState, readonly QueueJobState[]>> = {
  elsewhere: ['waiting', 'done'],
  waiting: ['claiming', 'elsewhere', 'done'],
  claiming: ['waiting', 'tailing', 'elsewhere'],
  tailing: ['claimed', 'waiting', 'elsewhere'],
  claimed: ['pulling', 'elsewhere', 'waiting'],
  pulling: ['done', 'stranded', 'elsewhere', 'waiting'],
  stranded: ['claimed', 'done', 'elsewhere', 'waiting'],
  done: ['elsewhere', 'waiting'],
};

function isValidJobTransition(from: QueueJobState, to: QueueJobState): boolean {
  return VALID[from].includes(to);
}

export class QueueJob {
  readonly key: string;
  readonly handle: number;
  readonly ownerId: string;
  readonly birth: number;
  readonly serial: number;
  readonly name: string;
  readonly queueClass: string;
  readonly isOwn: boolean;
  readonly machine: ClaimMachine;
  /** What each store said last, in its list or in answer to a claim. */
  readonly rows = new Map<string, CensusRow>();
  /** Members read from or, once damaged, kept for the last resort: those that still have what they had at the claim. */
  readonly claims = new Map<string, CensusRow>();
  readonly holderClock = new ToldClock();
  /** Stores that gave a block with a wrong checksum: read from again only when no other is left. */
  readonly damaged = new Set<string>();
  /** Stores that the operator has given up for this queue, while `givenEpoch` was the newest told or hinted at; Infinity: none was. */
  readonly given = new Set<string>();
  givenEpoch = Infinity;
  /** It left this process: stores that have not told since whether they have it. Until then it stands, told by none. */
  readonly unheard = new Set<string>();
  /** It was served here before, and another process took it. */
  wasLost = false;
  /** Another gateway of the group may have it in memory. */
  mayBeOthers = false;
  /** Another process has our queue, or had it last: its memory may be all that is left of it. */
  mayBeElsewhere = false;
  /** The newest set in which it was seen there. */
  elsewhereEpoch = 0;
  /** The other gateway that was seen last to hold it; '' none. */
  heldBy = '';
  epoch = 0;
  members: readonly string[] = [];
  /** Where to go on when `source` is lost. */
  sources: string[] = [];
  /** Members that are still being filled: whether they count, the longest one says. */
  joining: CensusRow[] = [];
  /** Members that lack something of the longest one, the farthest first. */
  behind: CensusRow[] = [];
  source = '';
  cursor = 0;
  until = 0;
  /** A block is on its way; without it a PULLING job waits for memory. */
  asked = false;
  /** Only partly here, and no store has the rest any more. */
  isRestGone = false;
  /** That it waits for memory was told, once for all its blocks. */
  shortTold = false;
  /** A member that came back empty, and that only an operator may have this queue go on without; '' none. */
  empty = '';
  /** Every member of the newest set came back empty: the store that has a copy of before it left that set; '' else. */
  leftAt = '';
  /** No store has a copy any more; another gateway, which had our queue, may have its mail in memory. */
  isElsewhere = false;
  /** The operator says that nobody has it in memory. */
  isGivenUp = false;
  /** Members of the newest set when a store showed it last; of our own queues. */
  shownAt: readonly string[] = [];
  /** The copy that is read is the one of `leftAt`, because an operator gave up every member. */
  isOutside = false;
  /** The stores whose absence was told, and since when. */
  missing: readonly string[] = [];
  missingSinceMs = 0;
  /** Why the claims were put off last; told once. */
  blocked = '';
  notBeforeMs = 0;
  /** Since when it waits for the lists of all stores (claiming.ts); -1: it does not. */
  listsFromMs = -1;
  private current: QueueJobState;

  constructor(first: QueueName, isOwn: boolean, key: string, handle: number, machine: ClaimMachine) {
    this.key = key;
    this.handle = handle;
    this.ownerId = first.ownerId;
    this.birth = first.birth;
    this.serial = first.serial;
    this.name = first.name;
    this.queueClass = first.queueClass;
    this.isOwn = isOwn;
    this.machine = machine;
    this.current = isOwn ? 'waiting' : 'elsewhere';
  }

  get state(): QueueJobState {
    return this.current;
  }

  /** Not served at all yet, and wanted. */
  get isPending(): boolean {
    return this.current === 'waiting' || this.current === 'claiming' || this.current === 'tailing';
  }

  /** Its claims stand and it is served in part. */
  get isComing(): boolean {
    return this.current === 'claimed' || this.current === 'pulling' || this.current === 'stranded';
  }

  /** The gateway that may have it in memory, too, if any does. */
  get otherMemory(): string {
    return this.isOwn ? this.heldBy || 'another gateway that had it' : this.ownerId;
  }

  /** Why it is taken over, for the log. */
  get cause(): string {
    if (this.given.size > 0) return 'forced by an operator';
    if (!this.isOwn) return 'its gateway is silent';
    if (this.heldBy !== '') return `own queue back from ${this.heldBy}`;
    return this.wasLost ? 'own queue back from another process' : 'own queue after a restart';
  }

  /** Whether the store is a member of the newest set told, or of the one hinted at, or was told to be missing. */
  waitsFor(storeId: string, hinted: readonly string[] = []): boolean {
    return newestOf(this.rows.values())?.members.includes(storeId) === true || hinted.includes(storeId) || this.missing.includes(storeId);
  }

  /** The store has restarted: what it said is gone. */
  forgetStore(storeId: string): void {
    if (this.current === 'waiting' || this.current === 'elsewhere') this.rows.delete(storeId);
  }

  /** What is claimed is not served before the tail is here: till then a claim of the store's former boot counts for nothing. */
  onStoreRestarted(storeId: string): void {
    this.machine.onStoreRestarted(storeId);
    if (this.current === 'tailing' && this.machine.holds(storeId)) this.machine.giveUp('store restarted', storeId);
  }

  /** Another process has it, in a set of this epoch. */
  noteElsewhere(epoch: number): void {
    this.mayBeElsewhere = true;
    this.elsewhereEpoch = Math.max(this.elsewhereEpoch, epoch);
  }

  /** The only writer of the state. */
  transition(to: QueueJobState): void {
    invariant(isValidJobTransition(this.current, to), `recovery of a queue goes from ${this.current} to ${to}, which no arrow allows`);
    this.current = to;
  }

  /** Begins anew: what was claimed and read before says nothing any more. */
  restart(to: 'waiting' | 'elsewhere', notBeforeMs: number): void {
    if (this.current !== to) this.transition(to);
    // What it waited for was of the time when it was wanted.
    if (to === 'elsewhere') {
      this.missing = [];
      this.empty = '';
      this.leftAt = '';
    }
    this.machine.reset();
    this.claims.clear();
    this.damaged.clear();
    this.sources = [];
    this.source = '';
    this.cursor = 0;
    this.asked = false;
    this.shortTold = false;
    this.isRestGone = false;
    this.notBeforeMs = notBeforeMs;
    this.listsFromMs = -1;
  }
}
