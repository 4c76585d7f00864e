/**
 * THE COMMIT POINT. A submission becomes COMMITTED here and nowhere else: when every change that stores it
 * is at every copy that counts of every partition it goes to (G1). Only then is the client told 250, and only
 * then may an entry be delivered.
 *
 *   submit ─► STORING ── all stores committed ─────────────► OVER: COMMITTED   250
 *              │   └ a partition lost / WITHDRAW in others ──► OVER: NO_REPLY    closed without a reply
 *              │ commit_timeout / WITHDRAW in every queue
 *              ▼
 *          WITHDRAWING ── all withdrawals committed ─────────► OVER: REFUSED     451 4.3.0 (G9)
 *                  └ a partition lost, or commit_timeout ────► OVER: NO_REPLY    the withdrawal stays sent
 *
 * One object a message, no closures; deadlines are looked at from the oldest on, by one tick for all.
 */
import { invariant } from '../../base/invariant.js';
import type { SubmissionOutcome } from '../mail-types.js';
import { COMMITTED, NO_REPLY, REFUSED } from '../mail-types.js';
import type { MailQueue } from '../queue/mail-queue.js';
import type { Partition } from './set/partition.js';
import type { CommitWaiter } from './wait-list.js';

export const CommitState = { STORING: 0, WITHDRAWING: 1, OVER: 2 } as const;
export type CommitState = (typeof CommitState)[keyof typeof CommitState];

const NEXT: Readonly<Record<CommitState, readonly CommitState[]>> = {
  [CommitState.STORING]: [CommitState.WITHDRAWING, CommitState.OVER],
  [CommitState.WITHDRAWING]: [CommitState.OVER],
  [CommitState.OVER]: [],
};

export function isValidCommitTransition(from: CommitState, to: CommitState): boolean {
  return NEXT[from].includes(to);
}

/** Who asked for the commit, and does what follows from it. */
export interface CommitOwner {
  /** The entry in this queue is committed with the rest: it may be delivered. */
  release(queue: MailQueue, row: number): void;
  /** Takes the uncommitted entry back: WITHDRAW, entry ended. Returns the change number. */
  withdraw(queue: MailQueue, row: number): number;
  settled(pending: PendingCommit, outcome: SubmissionOutcome): void;
}

/** What waits for the outcome: the SMTP session, or a report job. */
export interface OutcomeSink {
  settle(outcome: SubmissionOutcome): void;
}

/** A message that is being stored; its own waiter in every queue it goes to. */
export class PendingCommit implements CommitWaiter {
  readonly sink: OutcomeSink;
  readonly startedMs: number;
  deadlineMs: number;
  previous: PendingCommit | undefined;
  next: PendingCommit | undefined;
  readonly queues: MailQueue[] = [];
  readonly rows: number[] = [];
  #remaining = 0;
  readonly #owner: CommitPoint;
  #state: CommitState = CommitState.STORING;

  constructor(sink: OutcomeSink, startedMs: number, deadlineMs: number, owner: CommitPoint) {
    this.sink = sink;
    this.startedMs = startedMs;
    this.deadlineMs = deadlineMs;
    this.#owner = owner;
  }

  get state(): CommitState {
    return this.#state;
  }

  /** The message stands in this queue as `row`. All are added before any is waited for. */
  add(queue: MailQueue, row: number): void {
    this.queues.push(queue);
    this.rows.push(row);
    this.#remaining += 1;
  }

  /** The store in one queue is committed. */
  onCommitted(): void {
    if (this.#state !== CommitState.STORING) return;
    this.#remaining -= 1;
    if (this.#remaining > 0) return;
    for (const { partition } of this.queues) {
      if (partition.mayCommit) continue;
      // Its copies had the message and were lost while another partition's were waited for: what is committed
      // next there says that enough of them have it again.
      this.#remaining += 1;
      partition.awaitCommit(partition.lastNumber + 1, this);
    }
    if (this.#remaining === 0) this.#owner.committed(this);
  }

  transition(to: CommitState): void {
    invariant(isValidCommitTransition(this.#state, to), 'a commit ends once');
    this.#state = to;
  }
}

/** The same, for the withdrawals of a message: every copy that counts must have them, few or many. */
class Withdrawal implements CommitWaiter {
  #remaining: number;
  readonly #pending: PendingCommit;
  readonly #owner: CommitPoint;

  constructor(pending: PendingCommit, owner: CommitPoint) {
    this.#pending = pending;
    this.#owner = owner;
    this.#remaining = pending.rows.length;
  }

  onCommitted(): void {
    this.#remaining -= 1;
    const isWithdrawing = this.#pending.state === CommitState.WITHDRAWING;
    if (this.#remaining === 0 && isWithdrawing) this.#owner.withdrawn(this.#pending);
  }
}

export class CommitPoint {
  /** Messages whose outcome is open. */
  openCount = 0;
  #oldest: PendingCommit | undefined;
  #newest: PendingCommit | undefined;
  readonly #owner: CommitOwner;
  readonly #timeoutMs: number;

  constructor(options: { timeoutMs: number }, owner: CommitOwner) {
    this.#timeoutMs = options.timeoutMs;
    this.#owner = owner;
  }

  begin(sink: OutcomeSink, nowMs: number): PendingCommit {
    const pending = new PendingCommit(sink, nowMs, nowMs + this.#timeoutMs, this);
    this.#append(pending);
    this.openCount += 1;
    return pending;
  }

  /** Called by the last queue in whose partition it is committed. */
  committed(pending: PendingCommit): void {
    this.#end(pending);
    for (let i = 0; i < pending.rows.length; i++) {
      const queue = pending.queues[i];
      const row = pending.rows[i];
      if (queue !== undefined && row !== undefined) this.#owner.release(queue, row);
    }
    this.#owner.settled(pending, COMMITTED);
  }

  withdrawn(pending: PendingCommit): void {
    this.#end(pending);
    this.#owner.settled(pending, REFUSED);
  }

  /**
   * The partition is lost to another process: what waits for it ends without a reply, and is withdrawn from
   * other queues.
   */
  abandon(partition: Partition): void {
    for (let pending = this.#oldest; pending !== undefined;) {
      const { next } = pending;
      if (pending.queues.some((queue) => queue.partition === partition)) {
        const isStored = pending.state === CommitState.STORING;
        this.#end(pending);
        for (let i = 0; isStored && i < pending.rows.length; i++) {
          const queue = pending.queues[i];
          const row = pending.rows[i];
          if (queue === undefined || row === undefined || queue.partition === partition) continue;
          this.#owner.withdraw(queue, row);
        }
        this.#owner.settled(pending, NO_REPLY);
      }
      pending = next;
    }
  }

  /** Looks at deadlines, oldest first. */
  tick(nowMs: number): void {
    for (;;) {
      const pending = this.#oldest;
      if (pending === undefined || pending.deadlineMs > nowMs) return;
      if (pending.state === CommitState.STORING) this.#beginWithdrawal(pending, nowMs);
      else {
        this.#end(pending);
        this.#owner.settled(pending, NO_REPLY);
      }
    }
  }

  #beginWithdrawal(pending: PendingCommit, nowMs: number): void {
    pending.transition(CommitState.WITHDRAWING);
    this.#remove(pending);
    pending.deadlineMs = nowMs + this.#timeoutMs;
    this.#append(pending);
    const withdrawal = new Withdrawal(pending, this);
    const numbers: number[] = [];
    for (let i = 0; i < pending.rows.length; i++) {
      const queue = pending.queues[i];
      const row = pending.rows[i];
      invariant(queue !== undefined && row !== undefined, 'a pending commit knows its entries');
      numbers.push(this.#owner.withdraw(queue, row));
    }
    for (let i = 0; i < numbers.length; i++) {
      pending.queues[i]?.partition.awaitEnd(numbers[i] ?? 0, withdrawal);
    }
  }

  #end(pending: PendingCommit): void {
    pending.transition(CommitState.OVER);
    this.#remove(pending);
    this.openCount -= 1;
  }

  #append(pending: PendingCommit): void {
    pending.previous = this.#newest;
    pending.next = undefined;
    if (this.#newest === undefined) this.#oldest = pending;
    else this.#newest.next = pending;
    this.#newest = pending;
  }

  #remove(pending: PendingCommit): void {
    if (pending.previous === undefined) this.#oldest = pending.next;
    else pending.previous.next = pending.next;
    if (pending.next === undefined) this.#newest = pending.previous;
    else pending.next.previous = pending.previous;
    pending.previous = undefined;
    pending.next = undefined;
  }
}
