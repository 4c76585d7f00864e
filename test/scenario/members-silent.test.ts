/**
 * Both mirrors of a queue are gone at one instant, and one or both stay away (G2): the owner lives and has the mail in
 * memory. The state has a name, the operator is told what to do, each order says what came of it, and in the end the queue
 * has a set of mirrors again. A store that was given up and comes back after all is not believed.
 */
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { COMMITTED } from '../../src/gateway/queue/types.js';
import { ROLE_MEMBER } from '../../src/protocol/reasons.js';
import type { BulkRecovery } from '../../src/recovery/bulk-recovery.js';
import type { ForcedPartition } from '../../src/recovery/force.js';
import type { SetHint } from '../../src/recovery/set-hints.js';
import type { HeldPartition } from '../../src/recovery/waiting-queues.js';
import { checkNoDuplicates, checkNoLoss } from './checks.js';
import { queuesOf } from './inspect.js';
import type { StoreNode } from './store-node.js';
import type { WorldOptions } from './world.js';
import { World } from './world.js';

const REPLACE_AFTER_MS = 5000;
const TOLD = 'stores that may have a copy of it are silent';

/** Ten messages in q1 at store-a and store-b. */
function loaded(options: WorldOptions = {}): World {
  const world = World.started({ stores: 3, queues: [{ name: 'q1' }], replaceAfterMs: REPLACE_AFTER_MS, ...options });
  world.hops.script = () => 'defer';
  world.submitMany(10, ['q1']);
  world.run(100);
  assert.equal(world.letters.count(COMMITTED), 10);
  assert.deepEqual(world.mirror('q1').replicas.map(({ store }) => store.storeId), ['store-a', 'store-b']);
  return world;
}

function recoveryOf(world: World): BulkRecovery {
  return world.gateway.core?.recovery ?? assert.fail('the gateway runs');
}

function heldIn(world: World): HeldPartition {
  const [held, ...others] = recoveryOf(world).held();
  assert.ok(held !== undefined && others.length === 0, 'one queue is held');
  return held;
}

function force(world: World, letter: 'a' | 'b' | 'c'): ForcedPartition {
  const [forced, ...others] = recoveryOf(world).force({ partition: 'p1', missing: `store-${letter}`, reason: 'burnt', who: 'ann' });
  assert.ok(forced !== undefined && others.length === 0, `store-${letter} is given up for one queue`);
  return forced;
}

function killBoth(world: World): readonly [StoreNode, StoreNode] {
  const both = [world.store('a'), world.store('b')] as const;
  for (const store of both) store.kill();
  return both;
}

/** On the mirrors that live. */
function delivers(world: World): void {
  world.until(() => world.mirror('q1').inSyncCount >= 1, 20_000, 'a mirror in sync');
  assert.deepEqual(recoveryOf(world).held(), []);
  world.hops.script = () => 'accept';
  const fresh = world.submit(['q1']);
  world.until(() => world.letters.delivered === 11, 20_000, 'the deliveries');
  assert.equal(fresh.outcome, COMMITTED);
  checkNoLoss(world.letters);
  checkNoDuplicates(world.letters);
}

describe('a queue whose two mirrors died at once', () => {
  test('waits by name once they have been away for replace_after; the orders are told, once', () => {
    const world = loaded();
    killBoth(world);
    world.run(REPLACE_AFTER_MS - 500);
    assert.deepEqual(recoveryOf(world).held(), [], 'they may come back');
    world.run(30_000);
    const { state, stores, why } = heldIn(world);
    assert.deepEqual([state, stores], ['members silent', ['store-a', 'store-b']]);
    assert.equal(why, 'no mirror is in sync; store-a is silent, store-b is silent; start what is silent, or go on without: twinpost rescue --force --partition p1 --owner gw-1 --missing store-a --reason TEXT; twinpost rescue --force --partition p1 --owner gw-1 --missing store-b --reason TEXT');
    const lines = world.log.lines.filter(({ text }) => text.includes(TOLD));
    assert.deepEqual(recoveryOf(world).force({ partition: 'p1', owner: 'gw-2', missing: 'store-a', reason: 'x', who: 'ann' }), [], 'a queue of that name of another');
    assert.deepEqual(lines.map(({ level, fields }) => [level, fields['silent'], fields['messages']]), [['error', ['store-a', 'store-b'], 10]]);
  });

  for (const [first, second] of [['a', 'b'], ['b', 'a']] as const) {
    test(`goes on when both are given up, store-${first} first: the first order says what else is needed`, () => {
      const world = loaded();
      killBoth(world);
      world.run(30_000);
      assert.deepEqual(force(world, first), { partition: 'p1', owner: 'gw-1', outcome: 'waiting', needed: [`store-${second}`], exportable: [] });
      assert.deepEqual(recoveryOf(world).force({ partition: 'p1', missing: `store-${first}`, reason: 'again', who: 'ann' }), [], 'nothing more is done by it');
      world.run(10_000);
      assert.deepEqual(heldIn(world).stores, [`store-${second}`]);
      assert.equal(world.mirror('q1').founding, false);
      assert.equal(force(world, second).outcome, 'taken');
      delivers(world);
    });
  }

  test('given up before the third store is filled: it is taken as soon as that is', () => {
    const world = loaded();
    killBoth(world);
    world.run(4000);
    assert.deepEqual(force(world, 'a').needed, ['store-b']);
    assert.equal(force(world, 'b').outcome, 'later');
    assert.equal(world.mirror('q1').founding, false);
    delivers(world);
  });

  test('goes on when the one is back empty and the other is given up', () => {
    const world = loaded();
    const [, b] = killBoth(world);
    world.run(30_000);
    b.start();
    world.run(10_000);
    const { state, why } = heldIn(world);
    assert.equal(state, 'no survivor');
    assert.match(why, /store-a, which the set leaves out, can not be reached: start it; .* --missing store-b --reason TEXT; .* --missing store-a --reason TEXT$/);
    assert.deepEqual(force(world, 'b').needed, ['store-a']);
    assert.equal(force(world, 'a').outcome, 'taken');
    delivers(world);
  });

  test('goes on when the one that the set leaves out is back empty and the one that decides is given up', () => {
    const world = loaded();
    const [a] = killBoth(world);
    world.run(30_000);
    a.start();
    world.run(10_000);
    assert.deepEqual([heldIn(world).state, heldIn(world).stores], ['members silent', ['store-b']]);
    assert.deepEqual(recoveryOf(world).force({ partition: 'p1', missing: 'store-a', reason: 'x', who: 'ann' }), [], 'it answers: nothing waits for it');
    assert.equal(force(world, 'b').outcome, 'taken');
    delivers(world);
    world.untilLevel();
    world.assertSameContent();
  });

  test('goes on by itself when the one that decides is back with all it had', () => {
    const world = loaded();
    for (const store of [world.store('a'), world.store('b')]) world.cut(store);
    world.run(30_000);
    assert.equal(heldIn(world).state, 'members silent');
    const decides = world.mirror('q1').replicas.find((replica) => replica.member && replica.wanted);
    world.heal(decides?.store.storeId === 'store-a' ? world.store('a') : world.store('b'));
    delivers(world);
  });

  test('without a third store it waits as well, and is taken as soon as one is there', () => {
    const world = loaded({ stores: 2 });
    const [a] = killBoth(world);
    world.run(30_000);
    assert.equal(heldIn(world).state, 'members silent');
    assert.equal(force(world, 'a').outcome, 'waiting');
    assert.equal(force(world, 'b').outcome, 'later');
    world.run(10_000);
    a.start();
    delivers(world);
  });
});

describe('a store that was given up and comes back with its copy', () => {
  function givenUp(): World {
    const world = loaded();
    for (const store of [world.store('a'), world.store('b')]) world.cut(store);
    world.run(30_000);
    force(world, 'a');
    force(world, 'b');
    world.until(() => world.mirror('q1').inSyncCount === 1, 20_000, 'the set of the third');
    world.hops.script = () => 'accept';
    world.until(() => world.letters.delivered === 10, 20_000, 'the deliveries');
    world.hops.script = () => 'defer';
    world.submitMany(3, ['q1']);
    world.run(500);
    return world;
  }

  test('is a mirror that was away, at the owner that lives', () => {
    const world = givenUp();
    const before = world.mirror('q1').epoch;
    for (const store of [world.store('a'), world.store('b')]) world.heal(store);
    world.until(() => world.mirror('q1').inSyncCount === 2, 20_000, 'two in sync');
    world.run(5000);
    const copies = world.stores.flatMap((node) => (node.store === undefined ? [] : queuesOf(node.store)).filter((queue) => queue.role === ROLE_MEMBER && queue.attributes.name === 'p1'));
    assert.equal(copies.length, 2, 'the third copy is dropped');
    assert.ok(copies.every((queue) => queue.epoch > before && queue.count === 3));
    world.untilLevel();
    world.assertSameContent();
  });

  test('is not believed by the next process, which reads the set that was founded', () => {
    const world = givenUp();
    world.gateway.kill();
    for (const store of [world.store('a'), world.store('b')]) world.heal(store);
    world.hops.script = () => 'accept';
    world.gateway.start();
    world.untilQuiet();
    assert.equal(world.letters.delivered, 13);
    checkNoLoss(world.letters);
    checkNoDuplicates(world.letters);
    world.assertSameContent();
  });

  test('nor while that set is silent: it is waited for', () => {
    const hints: SetHint[] = [];
    const world = loaded({ hints: () => hints });
    for (const store of [world.store('a'), world.store('b')]) world.cut(store);
    world.run(30_000);
    force(world, 'a');
    force(world, 'b');
    world.until(() => world.mirror('q1').inSyncCount === 1, 20_000, 'the set of the third');
    const { epoch, identity, name } = world.mirror('q1');
    hints.push({ ...identity, name, queueClass: 'mail', epoch, members: ['store-c'] });
    world.gateway.kill();
    for (const store of [world.store('a'), world.store('b')]) world.heal(store);
    world.cut(world.store('c'));
    world.hops.script = () => 'accept';
    world.gateway.start();
    world.run(60_000);
    assert.deepEqual([world.letters.delivered, heldIn(world).stores], [0, ['store-c']]);
    world.heal(world.store('c'));
    world.untilQuiet();
    assert.equal(world.letters.delivered, 10);
    checkNoDuplicates(world.letters);
  });
});

describe('a gateway that was restarted in that state', () => {
  test('says, when both are given up, where a copy is left that no set counts', () => {
    const world = loaded();
    killBoth(world);
    world.run(30_000);
    world.gateway.kill();
    world.run(500);
    world.gateway.start();
    world.run(30_000);
    assert.deepEqual([heldIn(world).state, heldIn(world).stores], ['waiting', ['store-a', 'store-b']]);
    assert.deepEqual(force(world, 'a').needed, ['store-b']);
    assert.deepEqual(force(world, 'b'), { partition: 'p1', owner: 'gw-1', outcome: 'gone', needed: [], exportable: ['store-c'] });
    const told = world.log.lines.filter(({ text }) => text.startsWith('a partition is given up by an operator'));
    assert.deepEqual(told.map(({ fields }) => [fields['stores'], fields['messages'], fields['command']]), [[['store-c'], [10], 'twinpost store export --partition p1 DIR --from ADDRESS']]);
    const { store } = world.store('c');
    assert.ok(store !== undefined);
    assert.deepEqual(queuesOf(store, 'q1').map(({ count }) => count), [10], 'and it stays there');
  });
});
