/**
 * What an operator's word about a store is good for (src/recovery/forcing.ts): queues that wait, as they stood then. A queue
 * that is served is not touched, and what was said once gives nobody a right later on.
 */
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import type { Partition } from '../../src/gateway/mirror/partition.js';
import { COMMITTED } from '../../src/gateway/queue/types.js';
import { checkNoLoss } from './checks.js';
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
    assert.deepEqual(group.gateway('gw-2').core?.recovery.force({ partition: 'p1', ...WORD }), []);
    assert.deepEqual(group.gateway('gw-2').core?.recovery.force({ owner: 'gw-1', ...WORD }), []);
    neverServedTwice(group);
  });

  test('said so for the set of that moment: a later one waits for all its members', () => {
    const group = loaded();
    const b = group.store('b');
    b.kill();
    group.until(() => group.gateway('gw-2').core?.recovery.silentStores.includes('store-b') === true, 'the loss');
    assert.deepEqual(group.gateway('gw-2').core?.recovery.force({ partition: 'p1', ...WORD }).map(({ partition }) => partition), ['p1']);
    b.start();
    group.until(() => group.served('gw-1', 'gw-1')[0]?.inSyncCount === 2, 'both mirrors of its owner');
    group.run(2 * group.leaseMs);
    neverServedTwice(group);
  });

  test('said so of a store that is back with its copy: it counts again, though the set is the same', () => {
    const group = loaded();
    group.network.cut('gw-2', 'store-b');
    group.until(() => group.gateway('gw-2').core?.recovery.silentStores.includes('store-b') === true, 'the loss of the path');
    assert.equal(group.gateway('gw-2').core?.recovery.force({ partition: 'p1', ...WORD }).length, 1);
    group.run(2 * group.leaseMs);
    group.network.heal('gw-2', 'store-b');
    group.run(4 * group.leaseMs);
    neverServedTwice(group);
  });

  test('does nothing to a queue of another gateway that once waited, when all answer again', () => {
    const group = loaded();
    const core = group.gateway('gw-2').core;
    for (const store of group.stores) group.network.cut('gw-2', store.id);
    group.until(() => core?.recovery.silentStores.length === 2, 'the loss of both');
    assert.equal(core?.recovery.force({ partition: 'p1', missing: 'store-a', reason: 'burnt', who: 'ann' }).length, 1);
    for (const store of group.stores) group.network.heal('gw-2', store.id);
    group.run(6 * group.leaseMs);
    assert.deepEqual(core.recovery.force({ partition: 'p1', ...WORD }), []);
    neverServedTwice(group);
  });

  test('gives the rest of a queue up only without a store that has it', () => {
    const group = Group.started({ stores: 3, noRescue: ['gw-2'], blockEntries: 7 });
    group.hops.script = () => 'defer';
    for (let i = 0; i < 400; i++) group.submit('gw-1', ['q1'], 'alice@senders.example', 2000);
    group.run(1000);
    const mirrors = (group.served('gw-1', 'gw-1')[0]?.replicas ?? []).map(({ store }) => store.storeId);
    const other = group.stores.find(({ id }) => !mirrors.includes(id));
    assert.ok(mirrors.length === 2 && other !== undefined);
    group.gateway('gw-1').kill();
    group.gateway('gw-1').start();
    group.until(() => (group.served('gw-1', 'gw-1')[0]?.length ?? 0) > 20, 'a part of it');
    for (const id of mirrors) group.network.cut('gw-1', id);
    const core = group.gateway('gw-1').core;
    group.until(() => core?.recovery.held().some(({ state }) => state === 'stranded') === true, 'the state');
    for (const which of [{ partition: 'p1' }, { owner: 'gw-1' }]) assert.deepEqual(core?.recovery.force({ ...which, ...WORD, missing: other.id }), []);
    for (const id of mirrors) group.network.heal('gw-1', id);
    group.hops.script = () => 'accept';
    group.until(() => group.letters.delivered === 400, 'all deliveries', 120_000);
    checkNoLoss(group.letters);
  });

  test('has a copy read that had left the set, whatever the store that was given up told before', () => {
    const group = Group.started({ stores: 3 });
    group.hops.script = () => 'defer';
    for (let i = 0; i < 5; i++) group.submit('gw-1', ['q1']);
    group.run(500);
    const own = group.served('gw-1', 'gw-1')[0];
    const [leaver, stays] = (own?.replicas ?? []).map(({ store }) => group.stores.find(({ id }) => id === store.storeId));
    const joins = group.stores.find((store) => store !== leaver && store !== stays);
    assert.ok(own !== undefined && leaver !== undefined && stays !== undefined && joins !== undefined);
    joins.kill();
    group.run(1000);
    leaver.leave(5000, true, () => { leaver.kill(); });
    group.until(() => !leaver.isAlive, 'the end of the one that leaves');
    joins.start();
    group.until(() => own.inSyncCount === 2 && own.setChangeNumber === 0, 'a newer set', 120_000);
    group.run(2 * group.leaseMs);
    group.gateway('gw-1').kill();
    for (const store of [stays, joins]) store.kill();
    leaver.start();
    group.run(3 * group.leaseMs);
    const core = group.gateway('gw-2').core;
    for (const { id } of [stays, joins]) core?.recovery.force({ partition: 'p1', ...WORD, missing: id });
    group.hops.script = () => 'accept';
    group.until(() => group.letters.delivered === 5, 'the deliveries, by one order for each store');
    assert.equal(core?.recovery.isIdle, true);
    checkNoLoss(group.letters);
  });

  test('of a store that came back empty is heard again after another look at the queue', () => {
    const group = Group.started({ gateways: ['gw-1', 'gw-2', 'gw-3'], noRescue: ['gw-3'] });
    group.hops.script = () => 'defer';
    for (let i = 0; i < 5; i++) group.submit('gw-1', ['q1']);
    group.run(200);
    group.gateway('gw-1').kill();
    const b = group.store('b');
    b.kill();
    b.start();
    const core = group.gateway('gw-2').core;
    const held = (): boolean => core?.recovery.held().some(({ state }) => state === 'came back empty') === true;
    group.until(held, 'the named state');
    // The round that it ends by finds a lease that runs: the owner is there for a moment.
    group.gateway('gw-1').start();
    group.run(1000);
    group.gateway('gw-1').kill();
    group.run(2 * group.leaseMs);
    group.until(held, 'the named state once more');
    assert.deepEqual(core?.recovery.force({ partition: 'p1', ...WORD }).map(({ partition }) => partition), ['p1']);
    group.hops.script = () => 'accept';
    group.until(() => group.letters.delivered === 5, 'all deliveries');
    checkNoLoss(group.letters);
  });

  for (const reader of ['this process', 'the next process']) test(`goes on for good: a store that was given up is not believed by ${reader} when it is back with a newer set`, () => {
    const group = Group.started({ stores: 3, noRescue: ['gw-2'] });
    group.hops.script = () => 'defer';
    for (let i = 0; i < 5; i++) group.submit('gw-1', ['q1']);
    group.run(500);
    const queue = (): Partition | undefined => group.served('gw-1', 'gw-1')[0];
    const [a, b] = (queue()?.replicas ?? []).map(({ store }) => group.stores.find(({ id }) => id === store.storeId));
    const c = group.stores.find((store) => store !== a && store !== b);
    assert.ok(a !== undefined && b !== undefined && c !== undefined);
    const alone = (): boolean => queue()?.memberCount === 1 && queue()?.setChangeNumber === 0;
    const paired = (): boolean => queue()?.inSyncCount === 2 && queue()?.setChangeNumber === 0;
    // The set goes on at b alone, epoch after epoch, while a is cut off with an early one.
    c.kill();
    group.network.cut('gw-1', a.id);
    group.until(alone, 'the set of b');
    for (let n = 0; n < 3; n++) {
      c.start();
      group.until(paired, 'the set of b and c', 120_000);
      c.kill();
      group.until(alone, 'the set of b again', 120_000);
    }
    group.gateway('gw-1').kill();
    for (const id of ['gw-1', 'gw-2']) group.network.cut(id, b.id);
    group.network.heal('gw-1', a.id);
    c.start();
    group.gateway('gw-1').start();
    group.until(() => group.gateway('gw-1').core?.recovery.held().length === 1, 'the named state');
    group.gateway('gw-1').core?.recovery.force({ partition: 'p1', ...WORD, missing: b.id });
    group.until(paired, 'the set of a and c', 120_000);
    const late = [1, 2, 3, 4, 5].map(() => group.submit('gw-1', ['q1']));
    group.run(1000);
    assert.ok(late.every(({ outcome }) => outcome === COMMITTED));
    if (reader === 'the next process') {
      group.gateway('gw-1').kill();
      for (const id of ['gw-1', 'gw-2']) group.network.heal(id, b.id);
      group.run(3000);
      group.gateway('gw-1').start();
    } else {
      for (const store of [a, c]) group.network.cut('gw-1', store.id);
      group.until(() => queue()?.inSyncCount === 0, 'no mirror in sync');
      for (const id of ['gw-1', 'gw-2']) group.network.heal(id, b.id);
      group.run(3000);
      for (const store of [a, c]) group.network.heal('gw-1', store.id);
    }
    group.hops.script = () => 'accept';
    group.until(() => late.every(({ arrivals }) => arrivals.size > 0), 'what was accepted since');
    checkNoLoss(group.letters);
    // A mirror again, it is believed like any other.
    group.until(paired, 'both mirrors');
    c.kill();
    group.until(() => queue()?.replicas.some(({ store, inSync }) => store.storeId === b.id && inSync) === true, 'a mirror at b', 120_000);
  });
});
