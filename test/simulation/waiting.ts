/**
 * The states in which a queue of a healed world may wait for its operator instead of draining, recognised from what
 * the gateways themselves hold and say, never from the faults that were made.
 *
 *   no survivor   the gateway lives, every member of the acknowledged set has restarted empty, and it learned of none of
 *                 these restarts while its lease there lasted: another process may have been granted claims in between
 *                 (THE RULE OF FOUNDING, src/gateway/mirror/replica-set.ts)
 *
 * Two more states of docs/GUARANTEES.md can't last here, where every machine is started again: "member missing" and
 * "all gone" end when all stores have answered.
 */
import type { QueueMirror } from '../../src/gateway/mirror/queue-mirror.js';
import { hasSurvivor, mayFound } from '../../src/gateway/mirror/replica-set.js';

/** Name of the state in which the queue waits, or ''. */
export function waitingState(mirror: QueueMirror): string {
  if (hasSurvivor(mirror) || mayFound(mirror)) return '';
  const members = mirror.replicas.filter((replica) => replica.member);
  const areGone = members.length > 0 && members.every((replica) => replica.store.isUp && !replica.stillClaims);
  return areGone ? 'no survivor' : '';
}
