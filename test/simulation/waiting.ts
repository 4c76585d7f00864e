/**
 * The states in which a healed world may wait for its operator instead of draining, recognised from what the
 * gateways themselves say, never from the faults that were made. While every machine can be started again there
 * is none: docs/GUARANTEES.md "Recovery" lets every queue go on once all stores have answered.
 */
import type { World } from './world.js';

/** Name of the state, or ''. */
export function waitingState(_world: World): string {
  return '';
}
