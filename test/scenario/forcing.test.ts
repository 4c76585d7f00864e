/**
 * What an operator's word about a store is good for (src/recovery/forcing.ts): queues that wait, as they stood then. A queue
 * that is served is not touched, and what was said once gives nobody a right later on.
 */
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { Group } from './group.js';

const WORD = { missing: 'store-b', reason: 'burnt', who: 'ann' };

/** gw-1 is alone with store-b, gw-2 with store-a: longer than any lease. */
function neverServedTwice(group: Group): void {
  group.network.cut('gw-1', 'store-a');
  group.network.cut('gw-2', 'store-b');
  const end = group.scheduler.nowMs + 6 * group.leaseMs;
  while (group.scheduler.nowMs < end) {
    group.run(100);
    assert.deepEqual(group.served('gw-2', 'gw-1'), [], 'gw-2 takes a queue over that its owner may serve');
  }
}

function loaded(): Group {
  const group = Group.started();
  group.hops.script = () => 'defer';
  for (let i = 0; i < 5; i++) group.submit('gw-1', ['q1']);
  group.run(2 * group.leaseMs);
  return group;
}

describe('an operator who goes on without a store', () => {
  test('does nothing to a queue of another gateway whose mirrors all answer', () => {
    const group = loaded();
    assert.deepEqual(group.gateway('gw-2').core?.recovery.force({ queue: 'q1', ...WORD }), []);
    assert.deepEqual(group.gateway('gw-2').core?.recovery.force({ owner: 'gw-1', ...WORD }), []);
    neverServedTwice(group);
  });

  test('said so for the set of that moment: a later one waits for all its members', () => {
    const group = loaded();
    const b = group.store('b');
    b.kill();
    group.until(() => group.gateway('gw-2').core?.recovery.silentStores.includes('store-b') === true, 'the loss');
    assert.deepEqual(group.gateway('gw-2').core?.recovery.force({ queue: 'q1', ...WORD }).map(({ queue }) => queue), ['q1']);
    b.start();
    group.until(() => group.served('gw-1', 'gw-1')[0]?.inSyncCount === 2, 'both mirrors of its owner');
    group.run(2 * group.leaseMs);
    neverServedTwice(group);
  });
});
