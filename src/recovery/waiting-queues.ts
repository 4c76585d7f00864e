/**
 * Queues that are known and not served yet, for those who ask: new mail (is its queue about to come back?) and
 * operators (what is held, and for which store?).
 */
import { messagesTold, queueKey } from './census.js';
import { forceCommand } from './force.js';
import type { QueueJob } from './queue-job.js';
import type { SetHint, SetHints } from './set-hints.js';
import { memberText } from './set-hints.js';

/** What is known of a queue that a store has told of and that has not been adopted. */
export type Expected = '' | 'soon' | 'held';

/** A queue that waits, or is here only in part. */
export interface HeldPartition {
  /** As of queueKey(). */
  readonly key: string;
  readonly partition: string;
  readonly owner: string;
  readonly state: string;
  /** Stores that have to answer; empty when another process has the queue. */
  readonly stores: readonly string[];
  readonly why: string;
  /** 0 when that is not known. */
  readonly sinceMs: number;
  /** Those here in memory when it is served; else those of the longest copy of the newest set, as told last. Undefined when nobody told. */
  readonly messages?: number | undefined;
}

/** Whether a mail partition of our own is still to come: this one, or any. */
export function expectedOf(jobs: Iterable<QueueJob>, name?: string): Expected {
  let expected: Expected = '';
  for (const job of jobs) {
    if (!job.isOwn || !job.isPending || job.name !== (name ?? job.name)) continue;
    if (job.missing.length === 0 && job.blocked === '') return 'soon';
    expected = 'held';
  }
  return expected;
}

/** Queues of our own that are known and not whole yet. */
export function openOwn(jobs: Iterable<QueueJob>): number {
  let open = 0;
  for (const job of jobs) if (job.isOwn && (job.isPending || job.isComing)) open += 1;
  return open;
}

/** Whether a queue of our own is to come within moments: new mail for it would be put off. */
export function anySoon(jobs: Iterable<QueueJob>): boolean {
  for (const job of jobs) if (job.isOwn && job.isPending && job.missing.length === 0 && job.blocked === '') return true;
  return false;
}

/** Queues that can't come for want of a store or because another process holds them, and those that came in part. */
export function heldPartitions(jobs: Iterable<QueueJob>, hints: SetHints, untold: readonly SetHint[], silent: readonly string[]): HeldPartition[] {
  const held: HeldPartition[] = [];
  for (const hint of untold) held.push({ key: queueKey(hint.ownerId, hint.birth, hint.serial), partition: hint.name, owner: hint.ownerId, state: 'unknown', stores: hint.members.filter((member) => silent.includes(member)), why: memberText(hint), sinceMs: 0 });
  for (const { key, name, ownerId, state, missing: told, given, empty, leftAt, isElsewhere, isGivenUp, heldBy, blocked, missingSinceMs, isPending, source, isRestGone, otherMemory, rows } of jobs) {
    const messages = messagesTold(rows.values());
    const missing = told.filter((store) => !given.has(store));
    if (state === 'stranded') held.push({ key, partition: name, owner: ownerId, state, stores: [source], why: isRestGone ? `only partly back, and no store has the rest any more; if ${otherMemory} lives, it has all of it in memory, as no survivor or members silent in its status: go on there; else here, without the rest: ${forceCommand({ name, ownerId }, source)}` : 'only partly back', sinceMs: missingSinceMs, messages });
    else if (isPending && isElsewhere && !isGivenUp) {
      held.push({ key, partition: name, owner: ownerId, state: 'held elsewhere', stores: told, why: `no store has a copy any more; ${heldBy === '' ? 'another gateway' : heldBy} had it and may have its mail in memory: look there first; to give it up: ${forceCommand({ name, ownerId }, told[0] ?? '')}`, sinceMs: missingSinceMs, messages });
    } else if (isPending && (missing.length > 0 || blocked !== '')) {
      const hint = hints.get(key);
      if (leftAt !== '') {
        held.push({ key, partition: name, owner: ownerId, state: 'all gone', stores: missing, why: `every mirror came back empty; ${leftAt}, which had left before, has a copy: ${forceCommand({ name, ownerId }, missing[0] ?? '')}`, sinceMs: missingSinceMs, messages });
        continue;
      }
      if (empty !== '' && !given.has(empty)) {
        held.push({ key, partition: name, owner: ownerId, state: 'came back empty', stores: [empty], why: `${empty} came back empty: ${forceCommand({ name, ownerId }, empty)}`, sinceMs: missingSinceMs, messages });
        continue;
      }
      const of = hint !== undefined && missing.some((store) => hint.members.includes(store)) ? memberText(hint) : 'a store is missing';
      // Whether a claim is under way at this moment says nothing to an operator.
      held.push({ key, partition: name, owner: ownerId, state: 'waiting', stores: missing, why: missing.length > 0 ? of : blocked, sinceMs: missingSinceMs, messages });
    }
  }
  return held;
}
