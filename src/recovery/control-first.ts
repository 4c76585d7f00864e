/**
 * The control queue of an owner comes back before its mail, which it may speak of (gateway/control): the claims of
 * the others wait until it is whole, or known not to exist.
 *
 * They wait for a bounded time only: a control queue that is held for want of a store, or by another process, must
 * not keep the mail. What it says is then applied when it comes. Pure.
 */
import type { QueueJob } from './queue-job.js';

/** Longer than a claim that was put off once (claim-machine.ts), shorter than an operator's patience. */
const WAIT_MS = 2000;

/** Owners whose control queue may be here at once. */
export function comingControls(jobs: Iterable<QueueJob>): Set<string> {
  const owners = new Set<string>();
  for (const job of jobs) if (isControlJob(job) && job.state !== 'done' && job.state !== 'stranded' && job.missing.length === 0) owners.add(job.ownerId);
  return owners;
}

/** Whether a queue may be claimed now. `allKnown`: the stores have told of all our queues, or had their time to. */
export function mayGoFirst(job: QueueJob, coming: ReadonlySet<string>, allKnown: boolean, nowMs: number): boolean {
  if (isControlJob(job) || (!coming.has(job.ownerId) && (allKnown || !job.isOwn))) return true;
  if (job.controlWaitMs < 0) job.controlWaitMs = nowMs;
  return nowMs - job.controlWaitMs >= WAIT_MS;
}

export function isControlJob(job: QueueJob): boolean {
  return job.queueClass === 'control';
}
