/**
 * An operator goes on without a store, for one queue or all of an owner: what only that store knew is lost, or comes
 * twice. What came of it is told of each queue: several stores may be missing, and each is given up by its own order.
 *
 *   queues that are served, without a mirror in sync ─► lost-sets.ts
 *   queues that wait to be taken                     ─► given up for the job ─► judged anew
 */
import type { EventLog } from '../platform/ports.js';
import { judgeQueue, leftCopies, newestOf } from './census.js';
import type { ForceRequest, ForcedPartition } from './force.js';
import type { Pulls } from './pulls.js';
import type { QueueJob } from './queue-job.js';
import type { SetHints } from './set-hints.js';
import type { StoreViews } from './store-views.js';

export interface ForcingPorts {
  readonly log: EventLog;
  readonly views: StoreViews;
  readonly hints: SetHints;
  readonly pulls: Pulls;
  readonly lostSets: { force(request: ForceRequest): ForcedPartition[] };
  nowMs(): number;
  jobs(): Iterable<QueueJob>;
  /** Takes up what can be taken up. */
  startJobs(): void;
}

export function forceQueues(request: ForceRequest, ports: ForcingPorts): ForcedPartition[] {
  const forced = ports.lostSets.force(request);
  const waiting: QueueJob[] = [];
  for (const job of ports.jobs()) {
    if (!isMeant(job, request, ports)) continue;
    // What of it is here is served.
    if (job.state === 'stranded') forced.push({ partition: job.name, owner: job.ownerId, outcome: 'taken', needed: [], exportable: [] });
    else waiting.push(job);
    giveUp(job, request, ports);
  }
  ports.startJobs();
  return [...forced, ...waiting.map((job) => outcomeOf(job, ports))];
}

/** Nothing happens to a queue whose members all answer, unless it is told to wait. */
function isMeant(job: QueueJob, { partition: queue, owner, missing }: ForceRequest, { hints, views }: ForcingPorts): boolean {
  if (queue !== undefined && job.name !== queue) return false;
  if (owner !== undefined && job.ownerId !== owner) return false;
  // Those that have the rest of it.
  if (job.state === 'stranded') return job.source === missing || job.claims.has(missing);
  // That a queue is nowhere any more is said of that queue, not of a store.
  if (job.isElsewhere && queue === undefined) return false;
  if (views.answering().has(missing) && (!job.isPending || job.missing.length === 0)) return false;
  return (job.isPending || job.state === 'elsewhere') && job.waitsFor(missing, hints.get(job.key)?.members);
}

function giveUp(job: QueueJob, { missing, reason, who }: ForceRequest, { log, pulls, hints, nowMs }: ForcingPorts): void {
  const newest = newestKnown(job, hints);
  if (newest > job.givenEpoch) job.given.clear();
  job.given.add(missing);
  job.givenEpoch = newest;
  if (job.isElsewhere) job.isGivenUp = true;
  log.warn('takeover', 'an operator goes on without a store: mail that only it had is lost, mail that it knew the end of is repeated', { partition: job.name, owner: job.ownerId, missing, reason, who });
  if (job.state === 'stranded') pulls.giveUpRest(job, reason);
  else if (job.state === 'elsewhere') job.restart('waiting', 0);
  else job.notBeforeMs = Math.min(job.notBeforeMs, nowMs());
}

/** The newest set that the operator may know of, as a store told or the process before us left it; Infinity: of none yet. */
function newestKnown(job: QueueJob, hints: SetHints): number {
  const told = newestOf(job.rows.values())?.epoch ?? 0;
  const hinted = hints.get(job.key)?.epoch ?? 0;
  return Math.max(told, hinted) || Infinity;
}

/** As it stands now: claims may still find that another has the queue. */
function outcomeOf(job: QueueJob, { views, hints }: ForcingPorts): ForcedPartition {
  const { name: queue, ownerId: owner, given, state } = job;
  const isLookedAt = state !== 'waiting' && state !== 'elsewhere';
  const needed = isLookedAt ? [] : missingOf(job, views, hints).filter((store) => !given.has(store));
  if (needed.length > 0) return { partition: queue, owner, outcome: 'waiting', needed, exportable: [] };
  if (job.isElsewhere && !job.isGivenUp) return { partition: queue, owner, outcome: 'elsewhere', needed: [], exportable: [] };
  if (state !== 'done' && state !== 'elsewhere') return { partition: queue, owner, outcome: 'taken', needed: [], exportable: [] };
  return { partition: queue, owner, outcome: 'gone', needed: [], exportable: leftCopies(job.rows.values()).map(({ storeId }) => storeId) };
}

function missingOf(job: QueueJob, views: StoreViews, hints: SetHints): readonly string[] {
  const verdict = judgeQueue(job.rows.values(), views.answering(), job.given, hints.get(job.key));
  if (verdict.kind === 'wait') return verdict.missing;
  if (verdict.kind === 'nothing') return views.silent();
  return job.leftAt === '' ? [] : job.missing;
}
