/**
 * The states in which a queue of a healed world may wait for its operator instead of draining, recognised from what
 * the gateways themselves hold and say, never from the faults that were made.
 *
 *   no survivor       the gateway lives, every member that counts is back without its copy, and it learned of none of
 *                     these restarts while its lease there lasted: another process may have been granted claims in
 *                     between (THE RULE OF FOUNDING, src/gateway/mirror/replica-set.ts)
 *   came back empty   nobody serves the queue, a member of its newest epoch is back without its copy, and another process
 *                     may have begun a newer set there (docs/decisions/0008)
 *   all gone          nobody serves the queue, every member of its newest epoch is back without its copy, and what is left
 *                     is the file of a store that had left that set before it stopped
 *   held elsewhere    no store has a copy any more of a queue of ours that another gateway had taken over: that one may have
 *                     it in memory and wait for its operator itself (no survivor)
 *   stranded          a queue of another gateway is only partly here, and no store has the rest any more: its gateway may
 *                     have all of it in memory
 *
 *   members silent    the gateway lives, and a member of its queue that it can't do without answers, under a claim of another
 *                     process since
 *
 * Three more states of docs/GUARANTEES.md can't last here: "member missing", and "members silent" for want of an answer, end when all stores have
 * answered, and the operator goes on without those that are lost for good, and ends "no store free" (operator.ts).
 */
import type { GatewayCore } from '../../src/gateway/core.js';
import type { Partition } from '../../src/gateway/mirror/partition.js';
import { hasSurvivor, isWithoutSurvivor, mayFound, toGiveUp } from '../../src/gateway/mirror/replica-set.js';

/** Name of the state in which the queue waits, or ''. */
export function waitingState(mirror: Partition): string {
  if (isWithoutSurvivor(mirror)) return 'no survivor';
  const needed = hasSurvivor(mirror) || mayFound(mirror) ? [] : toGiveUp(mirror);
  return needed.length > 0 && needed.every(({ store, fenced, mayHoldCopy }) => store.isUp && fenced && mayHoldCopy) ? 'members silent' : '';
}

/** Keys of the queues that a gateway knows of and does not serve, with the state in which they wait. */
export function waitingJobs(core: GatewayCore): ReadonlyMap<string, string> {
  return new Map(core.recovery.held().filter(({ state }) => state === 'came back empty' || state === 'all gone' || state === 'held elsewhere' || state === 'stranded').map(({ key, state }) => [key, state]));
}
