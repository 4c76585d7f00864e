/** Mail that comes while a link changes its path: numbered on, within the credit that is left (G1, G7). */
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { COMMITTED, NO_MEMORY } from '../../src/gateway/mail-types.js';
import { checkAll } from './checks.js';
import { changesSinceBegun } from './inspect.js';
import type { Letter } from './letters.js';
import { World } from './world.js';

const GATEWAY = 'gw-1';
const QUEUES = ['q1', 'q2', 'q3'];
const MEBIBYTE = 1024 * 1024;

function untilPaths(world: World, wanted: string): void {
  world.until(() => world.gateway.link('store-a')?.pathStates().map(({ path, state }) => `${path} ${state}`).join() === wanted);
}

/**
 * Mail for several queues, whose bodies stores share: in flight when the first path is reset, then as long as `wanted` at
 * once, then each moment until the other path serves.
 */
function changingPath(world: World, bytes: number, wanted: () => boolean): Letter[] {
  const link = world.gateway.link('store-a');
  assert.ok(link !== undefined);
  untilPaths(world, 'A RUN,B READY');
  const letters = world.submitMany(5, QUEUES, { bytes });
  world.run(1);
  world.network.cut(GATEWAY, 'store-a', 'A');
  world.until(() => !link.canSend, 1000);
  assert.ok(link.isUp);
  while (wanted()) {
    assert.ok(letters.length < 5000, 'the credit ends');
    letters.push(world.submit(QUEUES, { bytes }));
    // The turn ends, no time passes.
    world.run(0);
  }
  for (let round = 0; !link.canSend; round++) {
    assert.ok(round < 2000, 'the other path takes over');
    letters.push(world.submit(QUEUES, { bytes }), world.submit(['q2'], { bytes }));
    world.run(1);
  }
  return letters;
}

function refusalsOf(world: World): number {
  return world.stores.reduce((sum, store) => sum + (store.counters?.refusals ?? []).reduce((total, count) => total + count, 0), 0);
}

function assertNobodyIsolated(world: World, changes: number, inSync: number): void {
  assert.equal(refusalsOf(world), 0, 'nothing numbered is refused');
  for (const name of QUEUES) assert.deepEqual([changesSinceBegun(world.mirror(name)), world.mirror(name).inSyncCount], [changes, inSync]);
  world.untilLevel();
  world.assertSameContent();
}

describe('while the path of a link changes', () => {
  test('mail is taken as before: nobody is told 452', () => {
    const world = World.started();
    world.submitMany(3, QUEUES);
    world.run(50);
    const letters = changingPath(world, 2000, () => false);
    world.run(500);
    assert.ok(letters.length > 8);
    assert.ok(letters.every((letter) => letter.outcome === COMMITTED));
    assertNobodyIsolated(world, 0, 2);
    world.untilQuiet();
    checkAll(world.letters, world.queueNames);
  });

  test('what the same turn has changed goes behind what is repeated', () => {
    const world = World.started();
    const { core } = world.gateway;
    const link = world.gateway.link('store-a');
    assert.ok(core !== undefined && link !== undefined);
    untilPaths(world, 'A RUN,B READY');
    const switched = core.onLinkSwitched.bind(core);
    core.onLinkSwitched = (store) => {
      // Of one queue each: a body that queues share would be sealed at once.
      for (const name of QUEUES) world.submit([name]);
      switched(store);
    };
    // Sent, and lost with the path.
    world.network.holdRequests(GATEWAY, 'store-a', true, 'A');
    const letters = world.submitMany(5, QUEUES);
    world.run(50);
    world.network.cut(GATEWAY, 'store-a', 'A');
    world.until(() => letters.every(({ outcome }) => outcome === COMMITTED));
    assertNobodyIsolated(world, 0, 2);
    world.untilQuiet();
    checkAll(world.letters, world.queueNames);
  });

  test('a store is sent no more than it granted before, and refuses nothing of it', () => {
    for (let seed = 1; seed <= 6; seed++) {
      const world = World.started({ seed, storeMemoryBytes: (1 + (seed % 3)) * MEBIBYTE });
      world.hops.script = () => 'hang';
      world.submitMany(20 * seed, QUEUES, { bytes: 1000 });
      world.run(100);
      // Alone: no other store's credit is a bound.
      world.store('b').kill();
      world.until(() => QUEUES.every((name) => world.mirror(name).memberCount === 1));
      changingPath(world, 3000, () => world.letters.count(NO_MEMORY) === 0);
      world.run(500);
      assert.ok(world.letters.count(COMMITTED) > 20 * seed + 5, 'some found room');
      assertNobodyIsolated(world, 1, 1);
      const { store } = world.store('a');
      assert.ok(store !== undefined && store.admission.chargedBytes + store.admission.grantedBytes <= store.admission.acceptBytes, 'the reserve is for refills');
    }
  });
});
