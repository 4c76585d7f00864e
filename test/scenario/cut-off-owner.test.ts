/**
 * A process that was cut off for longer than a lease, and remembers that it heard of a store's restart in time: it may
 * found the next set beside nobody (src/gateway/mirror/replica-set.ts, THE RULE OF FOUNDING).
 */
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { ROLE_FILLING, ROLE_NONE } from '../../src/protocol/reasons.js';
import type { Loaded } from './one-owner.js';
import { LETTERS, deliverAll, loaded, oneDeliversAtMost, queueAt, restart, servedAt, stateAt } from './one-owner.js';

/** One mirror of gw-1 is left. Its store comes back with its file, which gw-1 hears, and no more; gw-2 has the queue by the file, and moves on to the third. */
function movedOn(isFrozen = false): Loaded {
  const story = loaded();
  const { group, own, first, second, third } = story;
  third.kill();
  second.kill();
  group.until(() => own.memberCount === 1 && own.setChangeNumber === 0, 'the set of one');
  first.leave(0, true, () => { first.kill(); });
  group.until(() => !first.isAlive, 'the end of its store');
  first.start();
  group.until(() => group.gateway('gw-1').link(first.id)?.bootId === first.bootId, 'its next process is heard');
  for (const store of group.stores) if (!isFrozen || store !== first) group.network.cut('gw-1', store.id);
  if (isFrozen) group.freeze('gw-1');
  const replica = own.replicas.find(({ store }) => store.storeId === first.id);
  assert.deepEqual([replica?.lossWitnessed, replica?.mayHoldCopy], [true, true]);
  third.start();
  group.until(() => servedAt(group, 'gw-2')?.inSyncCount === 2, 'the takeover, and a second mirror', 120_000);
  group.gateway('gw-2').core?.mirrors.moves.drain(first.id);
  group.until(() => queueAt(first) === undefined, 'the end of the copy');
  return story;
}

describe('a store that was heard to restart in time, and not asked what it came back with, is no witness later on', () => {
  test('when it does not know the queue: another had it by the file, and moved on', () => {
    const { group, first } = movedOn();
    group.network.cut('gw-2', first.id);
    group.network.heal('gw-1', first.id);
    oneDeliversAtMost(group, 20_000);
    assert.equal(stateAt(group, 'gw-1'), 'no survivor');
    assert.equal(servedAt(group, 'gw-2')?.length, LETTERS);
    deliverAll(group);
  });

  test('nor when it says so to a process that stood still, and has not heard yet that its lease is over', () => {
    const { group, first, third } = movedOn(true);
    group.network.cut('gw-2', first.id);
    group.thaw('gw-1');
    oneDeliversAtMost(group, 20_000);
    assert.equal(stateAt(group, 'gw-1'), 'no survivor');
    assert.deepEqual(servedAt(group, 'gw-2')?.replicas.filter(({ inSync }) => inSync).map(({ store }) => store.storeId), [third.id]);
    deliverAll(group);
  });

  for (const [leases, what] of [[0, 'is filling it again'], [2, 'was filling it again, when it was cut off']] as const) {
    test(`when another, that had the queue by the file, ${what}`, () => {
      const { group, first } = movedOn();
      group.network.slow('gw-2', first.id, 1);
      group.gateway('gw-2').core?.mirrors.moves.undrain(first.id);
      group.until(() => queueAt(first)?.role === ROLE_FILLING, 'the refill');
      group.network.cut('gw-2', first.id);
      group.network.slow('gw-2', first.id, 0);
      group.run(leases * group.leaseMs);
      group.network.heal('gw-1', first.id);
      oneDeliversAtMost(group, 20_000);
      assert.equal(stateAt(group, 'gw-1'), 'no survivor');
      assert.equal(servedAt(group, 'gw-2')?.length, LETTERS);
      deliverAll(group);
    });
  }
});

describe('a member that came back empty, and knows the queue', () => {
  test('is not one that is to join when another fills it than who named it: that one may live, and found the next set', () => {
    const { group, own, first, second, third } = loaded();
    third.kill();
    first.kill();
    group.until(() => own.memberCount === 1 && own.setChangeNumber === 0, 'the set of the second');
    for (const store of group.stores) group.network.cut('gw-1', store.id);
    first.start();
    // The rescuer goes on with both, then with the first alone.
    group.until(() => servedAt(group, 'gw-2')?.inSyncCount === 2, 'the takeover, and a second mirror', 120_000);
    const rescued = servedAt(group, 'gw-2');
    assert.ok(rescued !== undefined);
    group.network.cut('gw-2', second.id);
    group.until(() => rescued.memberCount === 1 && rescued.setChangeNumber === 0, 'the set of the first');
    // It hears in time that this one restarts, and begins to fill it.
    restart(first);
    group.until(() => queueAt(first)?.role === ROLE_FILLING, 'the refill by the rescuer');
    group.network.cut('gw-2', first.id);
    // Once more, and the owner fills it with what it remembers.
    restart(first);
    group.network.heal('gw-1', first.id);
    group.until(() => queueAt(first)?.role === ROLE_FILLING, 'the refill by the owner');
    group.run(500);
    assert.deepEqual([queueAt(first)?.holder, queueAt(second)?.holder, queueAt(second)?.members.length], ['gw-1', 'gw-2', 2]);
    group.network.heal('gw-1', second.id);
    third.start();
    oneDeliversAtMost(group, 90_000);
    assert.equal(stateAt(group, 'gw-1'), 'waiting');
    assert.deepEqual(rescued.replicas.filter(({ inSync }) => inSync).map(({ store }) => store.storeId), [third.id]);
    deliverAll(group);
  });

  test('is not one that is to join when it was opened only: its owner lives, and founds the next set', () => {
    const { group, own, first, second, third } = loaded();
    third.kill();
    group.network.cut('gw-1', first.id);
    group.until(() => own.memberCount === 1 && own.setChangeNumber === 0, 'the set of the second');
    group.network.heal('gw-1', first.id);
    group.until(() => own.memberCount === 2 && own.setChangeNumber === 0 && queueAt(first)?.epoch === 3, 'the set of both');
    group.network.cut('gw-1', second.id);
    group.until(() => own.memberCount === 1 && own.setChangeNumber === 0, 'the set of the first');
    group.network.slow('gw-1', first.id, 1);
    group.network.split('gw-1', first.id, 8);
    restart(first);
    group.until(() => queueAt(first) !== undefined, 'the OPEN at the first');
    for (const store of group.stores) group.network.cut('gw-1', store.id);
    group.network.slow('gw-1', first.id, 0);
    assert.equal(queueAt(first)?.role, ROLE_NONE);
    group.network.cut('gw-2', third.id);
    group.network.heal('gw-1', third.id);
    third.start();
    oneDeliversAtMost(group, 90_000);
    assert.equal(stateAt(group, 'gw-2'), 'waiting');
    assert.deepEqual(own.replicas.filter(({ inSync }) => inSync).map(({ store }) => store.storeId), [third.id]);
    deliverAll(group);
  });
});
