/** Mirrors that are away for a moment, for long, or are told to go: repeats, tails, replacement, drain (G1, G2, G4). */
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import type { RepairCounters } from '../../src/gateway/mirror/feed/repair-counters.js';
import { COMMITTED } from '../../src/gateway/mail-types.js';
import { checkAll } from './checks.js';
import { copiesOf, coreOf } from './inspect.js';
import { World } from './world.js';

function countersOf(world: World): RepairCounters {
  const core = world.gateway.core;
  assert.ok(core !== undefined);
  return core.mirrors.counters;
}

/** What hangs ends with the process; the next one delivers from what the stores have. */
function quietAndJudged(world: World): void {
  world.gateway.kill();
  world.gateway.start();
  world.hops.script = () => 'accept';
  world.untilQuiet();
  checkAll(world.letters, world.queueNames);
  world.assertSameContent();
}

function storesOf(world: World, name: string): string[] {
  return world.mirror(name).rows.filter((row) => row.shown === 'SYNC').map((row) => row.storeId).sort();
}

describe('heal', () => {
  test('a mirror whose link blips gets only the tail, while its sibling goes on', () => {
    const world = World.started();
    world.hops.script = () => 'hang';
    world.submitMany(200, ['q1', 'q2'], { bytes: 2000 });
    world.run(30);
    world.cut(world.store('b'));
    world.run(20);
    const during = world.submitMany(3, ['q1', 'q2'], { bytes: 2000 });
    world.run(300);
    assert.ok(during.every((letter) => letter.outcome === COMMITTED), 'the sibling alone commits');
    world.heal(world.store('b'));
    world.untilLevel();
    world.assertSameContent();
    const { tails, refills, tailBytes } = countersOf(world);
    assert.equal(refills, 0);
    assert.ok(tails >= 2);
    assert.ok(tailBytes < 203 * 2 * 2000 / 20, `${String(tailBytes)} bytes are sent again`);
    quietAndJudged(world);
  });

  test('the only copy is never emptied: its link blips, and the gateway dies at any moment after', () => {
    for (let step = 0; step < 40; step++) {
      const world = World.started({ seed: step + 1 });
      world.hops.script = () => 'hang';
      world.submitMany(40, ['q1'], { bytes: 1000 });
      world.run(30);
      world.store('a').kill();
      world.until(() => world.mirror('q1').memberCount === 1);
      world.cut(world.store('b'));
      world.run(5);
      world.slow(world.store('b'), 100);
      world.heal(world.store('b'));
      world.run(20 + step * 20);
      world.gateway.kill();
      world.slow(world.store('b'), 0);
      world.store('a').start();
      world.gateway.start();
      quietAndJudged(world);
    }
  });

  test('a body that another queue brought to the store goes along with the tail', () => {
    const world = World.started();
    world.hops.script = ({ queueName }) => (queueName === 'q1' ? 'accept' : 'hang');
    world.submit(['q2']);
    world.submit(['q1']);
    world.run(100);
    world.cut(world.store('b'));
    world.run(20);
    // q1 brings the body and ends its entry before the mirror is back.
    world.submit(['q1', 'q2'], { bytes: 5000 });
    world.run(200);
    world.heal(world.store('b'));
    world.untilLevel();
    world.assertSameContent();
    assert.equal(countersOf(world).refills, 0);
  });

  test('a mirror that lacks more than the ring holds is filled again', () => {
    const world = World.started({ ringBytes: 4000 });
    world.hops.script = () => 'hang';
    world.submitMany(5, ['q1'], { bytes: 1000 });
    world.run(30);
    world.cut(world.store('b'));
    world.run(20);
    for (let i = 0; i < 20; i++) {
      world.submit(['q1'], { bytes: 1000 });
      world.run(20);
    }
    world.heal(world.store('b'));
    world.untilLevel();
    world.assertSameContent();
    assert.equal(countersOf(world).refills, 1);
  });

  test('without a lease nothing is handed out; with a new one deliveries go on after the right is confirmed', () => {
    const world = World.started();
    world.submit(['q1']);
    world.untilQuiet();
    for (const store of world.stores) world.holdAnswers(store, true);
    const { core } = world.gateway;
    assert.ok(core !== undefined);
    world.run(30_000);
    assert.equal(world.mirror('q1').holder.mayDeliver(world.scheduler.nowMs), false);
    for (const store of world.stores) world.holdAnswers(store, false);
    world.until(() => world.mirror('q1').holder.mayDeliver(world.scheduler.nowMs));
    world.submit(['q1']);
    quietAndJudged(world);
  });

});

describe('moves', () => {
  test('a mirror that stays away is replaced on a third store, and what it held is dropped when it is back', () => {
    const world = World.started({ stores: 3, replaceAfterMs: 3000, queues: [{ name: 'q1' }] });
    world.hops.script = () => 'hang';
    world.submitMany(20, ['q1']);
    world.run(50);
    const gone = world.stores.find((store) => store.id === storesOf(world, 'q1')[1]);
    assert.ok(gone !== undefined);
    world.cut(gone);
    world.run(2000);
    assert.equal(world.mirror('q1').rows.length, 2, 'not yet');
    world.until(() => storesOf(world, 'q1').length === 2, 10_000);
    assert.ok(!storesOf(world, 'q1').includes(gone.id));
    world.heal(gone);
    world.until(() => gone.store !== undefined && copiesOf(gone.store, 'q1').length === 0, 10_000, 'the old copy gone');
    world.untilLevel();
    world.assertSameContent();
  });

  test('a mirror that is back before its replacement is in sync stays', () => {
    const world = World.started({ stores: 3, replaceAfterMs: 1000, queues: [{ name: 'q1' }] });
    world.hops.script = () => 'hang';
    world.submitMany(100, ['q1'], { bytes: 2000 });
    world.run(50);
    const before = storesOf(world, 'q1');
    const gone = world.stores.find((store) => store.id === before[1]);
    const third = world.stores.find((store) => !before.includes(store.id));
    assert.ok(gone !== undefined && third !== undefined);
    world.slow(third, 5);
    world.cut(gone);
    world.until(() => world.mirror('q1').rows.length === 3, 10_000);
    world.heal(gone);
    world.until(() => world.mirror('q1').rows.length === 2 && storesOf(world, 'q1').length === 2, 60_000);
    assert.deepEqual(storesOf(world, 'q1'), before);
    world.slow(third, 0);
    quietAndJudged(world);
  });

  test('a drained store is left by every queue, new mirror first, while mail goes on', () => {
    const world = World.started({ stores: 3 });
    world.hops.script = () => 'hang';
    world.submitMany(60, ['q1', 'q2', 'q3']);
    world.run(50);
    const { core } = world.gateway;
    assert.ok(core !== undefined);
    core.leaving.drain('store-a');
    let least = 2;
    world.until(() => {
      if (world.scheduler.stepCount % 50 === 0) world.submit(['q1', 'q3']);
      for (const mirror of core.registry.partitions) least = Math.min(least, mirror.inSyncCount);
      return core.leaving.copiesAt('store-a') === 0;
    }, 20_000, 'the store empty');
    assert.equal(least, 2, 'no queue was ever short of a mirror');
    world.run(100);
    const { store } = world.store('a');
    assert.equal(store?.partitions.count, 0);
    world.submit(['q2']);
    quietAndJudged(world);
  });

  test('a copy out of a file that is not wanted any more is dropped when its store is back', () => {
    const world = World.started({ stores: 3, replaceAfterMs: 1000, queues: [{ name: 'q1' }], partitions: 1 });
    world.hops.script = () => 'hang';
    world.submitMany(20, ['q1']);
    world.run(50);
    const gone = world.stores.find((store) => store.id === storesOf(world, 'q1')[1]);
    assert.ok(gone !== undefined);
    gone.leave(0, true, () => { gone.kill(); });
    world.until(() => !gone.isAlive && storesOf(world, 'q1').length === 2 && !storesOf(world, 'q1').includes(gone.id), 10_000, 'the third store in its place');
    gone.start();
    assert.equal(gone.loadedCopies, 1);
    world.until(() => gone.store !== undefined && gone.store.partitions.count === 0, 10_000, 'the copy gone');
    assert.equal(countersOf(world).refills, 1);
    world.untilLevel();
    world.assertSameContent();
    quietAndJudged(world);
  });

  test('a copy that the process before left behind is dropped', () => {
    const world = World.started({ stores: 3, replaceAfterMs: 1000, queues: [{ name: 'q1' }], partitions: 1 });
    world.hops.script = () => 'hang';
    world.submitMany(20, ['q1']);
    world.run(50);
    const [kept, gone] = storesOf(world, 'q1').map((id) => world.stores.find((store) => store.id === id));
    const third = world.stores.find((store) => store !== kept && store !== gone);
    assert.ok(kept !== undefined && gone !== undefined && third !== undefined);
    world.cut(gone);
    world.until(() => storesOf(world, 'q1').includes(third.id), 10_000, 'the third store in its place');
    world.run(200);
    world.gateway.kill();
    world.heal(gone);
    assert.equal(gone.store?.partitions.count, 1);
    world.gateway.start();
    world.until(() => gone.store?.partitions.count === 0, 10_000, 'the copy gone');
    world.untilLevel();
    world.assertSameContent();
    quietAndJudged(world);
  });

  test('with no third store a drained one is left if min_replicas still holds, and taken again after the undo; else it is shown as stuck', () => {
    for (const minReplicas of [1, 2]) {
      const world = World.started({ minReplicas });
      world.hops.script = () => 'hang';
      world.submitMany(10, ['q1']);
      world.run(50);
      const { leaving } = coreOf(world);
      leaving.drain('store-b');
      world.run(5000);
      assert.deepEqual([leaving.copiesAt('store-b'), leaving.stuckAt('store-b')], minReplicas === 1 ? [0, 0] : [8, 8]);
      assert.equal(coreOf(world).accepting, true, 'mail goes on');
      leaving.undrain('store-b');
      world.until(() => storesOf(world, 'q1').length === 2, 10_000, 'both');
      world.run(200);
      assert.deepEqual([leaving.stuckAt('store-b'), leaving.copiesMissing()], [0, 0]);
      quietAndJudged(world);
    }
  });

  test('one mirror is filled again at the operator\'s wish, but never the last in sync', () => {
    const world = World.started();
    world.hops.script = () => 'hang';
    world.submitMany(10, ['q1']);
    world.run(50);
    const { mirrors } = coreOf(world);
    const partition = world.mirror('q1');
    const [first, second] = partition.rows;
    assert.ok(first !== undefined && second !== undefined);
    assert.equal(mirrors.refillAgain(partition, first), true);
    assert.equal(mirrors.refillAgain(partition, second), false);
    world.until(() => countersOf(world).refills === 1 && partition.inSyncCount === 2, 20_000, 'both');
    world.untilLevel();
    world.assertSameContent();
  });
});
