/** Copies spread over a store that is new: by themselves, slowly; at once by order; and never back again. */
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { COMMITTED } from '../../src/gateway/mail-types.js';
import { checkNoDuplicates, checkNoLoss } from './checks.js';
import { World } from './world.js';
import type { WorldOptions } from './world.js';

const MEBIBYTE = 1024 * 1024;

/** Two stores have all copies; store-c begins empty. Mail waits in every partition. */
function grown(options: WorldOptions = {}): World {
  const queues = options.queues ?? Array.from({ length: 16 }, (_, i) => ({ name: `q${String(i + 1)}` }));
  const world = World.started({ stores: 3, queues, replaceAfterMs: 1000, ...options });
  world.store('c').kill();
  world.until(() => copies(world)[2] === 0 && world.inSync && fewestCopies(world) === 2, 60_000, 'all copies at two stores');
  world.hops.script = () => 'defer';
  world.submitMany(3, queues.map(({ name }) => name));
  world.run(500);
  world.store('c').start();
  return world;
}

function copies(world: World): readonly number[] {
  const { mirrors } = world.gateway.core ?? assert.fail('it lives');
  return mirrors.stores.map((store) => mirrors.copiesAt(store));
}

function moved(world: World): number {
  return world.log.count('a copy moves to a store that has fewer');
}

function fewestCopies(world: World): number {
  const partitions = world.gateway.core?.registry.partitions ?? [];
  return Math.min(...partitions.map((partition) => partition.set?.records.fewestMembers ?? 0));
}

describe('a store that is new', () => {
  test('gets its part of the copies by itself, one after the other, and they stay there', () => {
    const world = grown({ rebalanceBytesPerSecond: 20 * MEBIBYTE });
    let [most, fewest] = [0, 2];
    world.until(() => {
      most = Math.max(most, world.gateway.core?.mirrors.rebalance.moving.length ?? 0);
      fewest = Math.min(fewest, fewestCopies(world));
      return copies(world).every((count) => count >= 5);
    }, 300_000, 'even stores');
    world.run(60_000);
    assert.deepEqual([most, fewest], [1, 2], 'one at a time, and no partition has fewer copies for it');
    assert.deepEqual([...copies(world)].sort(), [5, 5, 6]);
    assert.equal(moved(world), 5);
    world.run(600_000);
    assert.equal(moved(world), 5, 'it does not swing');
    world.assertSameContent();
    world.hops.script = () => 'accept';
    world.untilQuiet();
    checkNoLoss(world.letters);
    checkNoDuplicates(world.letters);
    assert.equal(world.letters.count(COMMITTED), 3);
  });

  test('gets nothing by itself when that is switched off; by order it gets its part now', () => {
    const world = grown();
    world.run(120_000);
    assert.deepEqual(copies(world), [8, 8, 0]);
    const { rebalance } = world.gateway.core?.mirrors ?? assert.fail('it lives');
    assert.equal(rebalance.plan().length, 5);
    assert.ok(rebalance.plan().every(({ to }) => to === 'store-c'));
    const startMs = world.scheduler.nowMs;
    rebalance.order();
    world.until(() => Math.min(...copies(world)) >= 5 && rebalance.moving.length === 0, 60_000, 'even stores');
    assert.ok(world.scheduler.nowMs - startMs < 15_000, `${String(world.scheduler.nowMs - startMs)} ms`);
    assert.deepEqual(rebalance.plan(), []);
    world.run(60_000);
    assert.equal(moved(world), 5);
  });

  test('is filled no faster than the rate', () => {
    const bytesPerSecond = 20_000;
    const world = grown({ rebalanceBytesPerSecond: bytesPerSecond, partitions: 2, queues: [{ name: 'q1' }, { name: 'q2' }] });
    for (let i = 0; i < 10; i++) world.submit(['q1', 'q2'], { bytes: 20_000 });
    world.until(() => world.gateway.core?.mirrors.rebalance.moving.length === 1, 60_000, 'the move');
    const startMs = world.scheduler.nowMs;
    world.until(() => copies(world)[2] === 1 && world.gateway.core?.mirrors.rebalance.moving.length === 0, 60_000, 'its end');
    const seconds = (world.scheduler.nowMs - startMs) / 1000;
    assert.ok(seconds >= 8 && seconds <= 14, `200 kB in ${String(seconds)} s`);
  });

  test('gets nothing while a copy is missing, and its part as soon as none is', () => {
    const world = World.started({ stores: 3 });
    const { leaving, mirrors: { rebalance } } = world.gateway.core ?? assert.fail('it lives');
    leaving.drain('store-c');
    world.until(() => copies(world)[2] === 0 && world.inSync, 60_000, 'it is empty');
    leaving.undrain('store-c');
    world.store('b').kill();
    world.run(3000);
    rebalance.order();
    world.run(5000);
    assert.match(rebalance.why(), /^gw-1\/\d does not have all its copies in step$/);
    assert.equal(moved(world), 0);
    world.store('b').start();
    world.until(() => Math.min(...copies(world)) >= 5 && rebalance.moving.length === 0, 60_000, 'even stores');
    assert.equal(fewestCopies(world), 2);
  });

  test('and that dies while it is filled: the old copies count as before', () => {
    const world = grown();
    const { rebalance } = world.gateway.core?.mirrors ?? assert.fail('it lives');
    world.run(2000);
    world.holdRequests(world.store('c'), true);
    rebalance.order();
    world.until(() => rebalance.moving.length === 4, 10_000, 'moves');
    world.store('c').kill();
    world.until(() => rebalance.moving.length === 0, 10_000, 'they are given up');
    world.run(5000);
    assert.deepEqual([copies(world), fewestCopies(world)], [[8, 8, 0], 2]);
  });

  test('that takes no copy leaves the old one where it is', () => {
    const world = grown({ memoryOf: { 'store-c': 300 * 1024 }, partitions: 2, queues: [{ name: 'q1' }, { name: 'q2' }] });
    for (let i = 0; i < 20; i++) world.submit(['q1', 'q2'], { bytes: 40_000 });
    world.run(3000);
    const { rebalance } = world.gateway.core?.mirrors ?? assert.fail('it lives');
    rebalance.order();
    let fewest = 2;
    const endMs = world.scheduler.nowMs + 60_000;
    world.until(() => {
      fewest = Math.min(fewest, fewestCopies(world));
      return world.scheduler.nowMs >= endMs;
    }, 70_000);
    assert.equal(fewest, 2);
  });

  test('and that takes the place of a drained copy lets the one stay that was to move to it', () => {
    const world = grown();
    const { leaving, mirrors: { rebalance } } = world.gateway.core ?? assert.fail('it lives');
    world.run(2000);
    world.holdRequests(world.store('c'), true);
    rebalance.order();
    world.until(() => rebalance.moving.length === 4, 10_000, 'moves');
    const { partition, from } = rebalance.moving[0] ?? assert.fail('one of them');
    const other = partition.rows.find(({ storeId }) => storeId !== from && storeId !== 'store-c');
    leaving.drain(other?.storeId ?? assert.fail('its other copy'));
    world.holdRequests(world.store('c'), false);
    let fewest = 2;
    const endMs = world.scheduler.nowMs + 5000;
    world.until(() => {
      fewest = Math.min(fewest, fewestCopies(world));
      return world.scheduler.nowMs >= endMs;
    }, 6000);
    assert.equal(fewest, 2);
  });
});
