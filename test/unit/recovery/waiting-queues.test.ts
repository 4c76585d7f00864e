/** The state of a queue that waits, in words that docs/GUARANTEES.md has for operators: not what recovery is about at this moment. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { EventLog } from '../../../src/platform/ports.js';
import { ClaimMachine } from '../../../src/recovery/claim-machine.js';
import type { QueueJobState } from '../../../src/recovery/queue-job.js';
import { QueueJob } from '../../../src/recovery/queue-job.js';
import { SetHints } from '../../../src/recovery/set-hints.js';
import { heldPartitions } from '../../../src/recovery/waiting-queues.js';

const LOG: EventLog = { debug: () => undefined, info: () => undefined, warn: () => undefined, error: () => undefined };

function stateAfter(...states: readonly QueueJobState[]): string | undefined {
  const machine = new ClaimMachine(1, { nowMs: () => 0, random: () => 0, ask: () => true, release: () => undefined, bootIdOf: () => 'boot', mayMiss: () => false, doesNotCount: () => '', onHeld: () => undefined, onBackedOff: () => undefined });
  const job = new QueueJob({ ownerId: 'gw-1', birth: 1, serial: 1, name: 'q1', queueClass: 'mail' }, true, 'gw-1/1/1', 7, machine);
  for (const state of states) job.transition(state);
  job.blocked = 'another process has it';
  return heldPartitions([job], new SetHints([], LOG), [], [])[0]?.state;
}

test('a queue that is held waits, whether or not it is claimed or its tail is fetched just now', () => {
  assert.deepEqual([stateAfter(), stateAfter('claiming'), stateAfter('claiming', 'tailing')], ['waiting', 'waiting', 'waiting']);
});
