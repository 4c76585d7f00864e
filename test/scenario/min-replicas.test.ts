/** `min_replicas: 2`: no 250 with one copy, whatever is under way; what was answered is delivered all the same (G1, G6). */
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { COMMITTED, NOT_READY } from '../../src/gateway/mail-types.js';
import { checkAll } from './checks.js';
import { coreOf } from './inspect.js';
import type { WorldOptions } from './world.js';
import { World } from './world.js';

function loaded(options: WorldOptions = {}): World {
  const world = World.started({ minReplicas: 2, commitTimeoutMs: 60_000, queues: [{ name: 'q1', ordering: 'strict' }, { name: 'q2' }], ...options });
  world.run(500);
  world.hops.script = () => 'unreachable';
  for (const name of world.queueNames) world.submitMany(5, [name]);
  world.run(300);
  assert.equal(world.letters.count(COMMITTED), 10);
  return world;
}

function judged(world: World): void {
  world.hops.script = () => 'accept';
  world.untilQuiet();
  world.until(() => coreOf(world).registry.partitions.every((one) => one.inSyncCount === 2), 60_000, 'two copies');
  world.assertSameContent();
  checkAll(world.letters, world.queueNames);
}

describe('min_replicas 2, and one store is lost', () => {
  test('of two: nothing new is taken, the port closes, and what was under way is committed when there are two copies again', () => {
    const world = loaded();
    world.holdAnswers(world.store('b'), true);
    const open = world.submit(['q2']);
    world.run(20);
    world.store('b').kill();
    world.holdAnswers(world.store('b'), false);
    world.run(3000);
    assert.equal(open.outcome, 0, 'G1: one copy is not enough');
    assert.equal(coreOf(world).accepting, false);
    assert.equal(world.submit(['q1']).outcome, NOT_READY);
    assert.ok(coreOf(world).registry.partitions.every((one) => one.memberCount === 1), 'the record has one');
    world.hops.script = () => 'accept';
    world.until(() => world.letters.delivered === 10, 10_000, 'what was committed before is delivered from one copy');
    world.store('b').start();
    world.until(() => open.outcome === COMMITTED, 30_000, 'the commit');
    world.until(() => coreOf(world).accepting, 10_000, 'that it takes mail');
    judged(world);
  });

  test('of three: a fifo queue takes new mail in a partition with two, a strict one refuses until its own has', () => {
    const world = loaded({ stores: 3, replaceAfterMs: 10_000 });
    const [strict, fifo] = [world.mirror('q1'), world.mirror('q2')];
    const lostId = strict.rows.map(({ storeId }) => storeId).find((id) => fifo.rows.some(({ storeId }) => storeId === id));
    const lost = world.stores.find(({ id }) => id === lostId);
    assert.ok(lost !== undefined);
    lost.kill();
    world.until(() => strict.memberCount === 1 && fifo.memberCount === 1, 10_000, 'the records of one');
    assert.equal(coreOf(world).accepting, true);
    assert.equal(coreOf(world).admit(world.route('q1')), 'short');
    const beside = world.submit(['q2']);
    world.until(() => beside.outcome === COMMITTED, 2000, 'a commit beside it');
    assert.notEqual(coreOf(world).registry.byName('q2').at(-1)?.partition, fifo);
    // By replace_after at the third store.
    world.until(() => coreOf(world).admit(world.route('q1')) === '', 30_000, 'that it takes mail of the strict queue');
    const after = world.submit(['q1']);
    world.until(() => after.outcome === COMMITTED, 5000, 'the commit');
    lost.start();
    judged(world);
  });

  test('in the middle of a change that is not known to be made: none with one possible member answers 250', () => {
    const world = loaded();
    world.register.goAway('silent');
    world.store('b').kill();
    world.run(3000);
    const before = world.letters.count(COMMITTED);
    world.run(20_000);
    assert.equal(world.letters.count(COMMITTED), before);
    world.register.comeBack();
    world.store('b').start();
    judged(world);
  });
});
