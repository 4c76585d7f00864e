/** Sets of mirrors that the process before left as hints: what no store tells of is waited for, or shown (DESIGN "Recovery"). */
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import type { GatewayCore } from '../../src/gateway/core.js';
import type { SetHint } from '../../src/recovery/set-hints.js';
import { World } from './world.js';

function coreOf(world: World): GatewayCore {
  const { core } = world.gateway;
  assert.ok(core !== undefined, 'the gateway lives');
  return core;
}

describe('sets of mirrors as the process before knew them', () => {
  /** Three stores; the queue's third member was away when the gateway died, and only it knows a newer epoch. */
  function hinted(hint: boolean): World {
    const hints: SetHint[] = [];
    const world = World.started({ stores: 3, seed: 5, hints: () => hints });
    world.hops.script = () => 'hang';
    world.submitMany(5, ['q1']);
    world.run(200);
    const members = world.mirror('q1').replicas.map((replica) => replica.store.storeId);
    if (hint) hints.push(...coreOf(world).setHints().map((one) => ({ ...one, epoch: one.epoch + 1, members: world.stores.map((store) => store.id) })));
    world.hops.script = () => 'accept';
    const outside = world.stores.find((store) => !members.includes(store.id));
    assert.ok(outside !== undefined);
    world.gateway.kill();
    outside.kill();
    world.gateway.start();
    return world;
  }

  test('an epoch that no store tells of holds the queue, with its missing member named, until an operator goes on', () => {
    const world = hinted(true);
    world.run(10_000);
    assert.equal(world.letters.delivered, 0);
    const [held] = coreOf(world).recovery.held();
    assert.ok(held !== undefined);
    assert.match(held.why, /were members at epoch 2/);
    const names = coreOf(world).recovery.force({ queue: 'q1', missing: held.stores[0] ?? '', reason: 'burnt', who: 'ann' });
    assert.deepEqual(names.map(({ queue }) => queue), ['q1']);
    world.until(() => world.letters.delivered === 5, 10_000);
  });

  test('the queue goes on by itself when the missing member has answered, whatever it says', () => {
    const world = hinted(true);
    world.run(5000);
    assert.equal(world.letters.delivered, 0);
    for (const store of world.stores) if (!store.isAlive) store.start();
    world.until(() => world.letters.delivered === 5, 10_000);
  });

  test('without the file, or with one that is older than what the stores tell, nothing waits', () => {
    const world = hinted(false);
    world.until(() => world.letters.delivered === 5, 10_000);
  });

  test('a queue that no store tells of is shown with the stores that had it, and told to be gone when all have answered', () => {
    const hints: SetHint[] = [{ ownerId: 'gw-1', birth: 7, serial: 1, name: 'q2', queueClass: 'mail', epoch: 4, members: ['store-b'] }];
    const world = new World({ hints: () => hints });
    world.store('a').start();
    world.gateway.start();
    world.until(() => coreOf(world).recovery.held().length === 1, 10_000);
    assert.deepEqual(coreOf(world).recovery.held().map(({ queue, stores, why }) => ({ queue, stores, why })), [{ queue: 'q2', stores: ['store-b'], why: 'store-b was a member at epoch 4' }]);
    assert.equal(world.log.count('is told by no store that answers'), 1);
    assert.equal(coreOf(world).setHints().length, 1, 'it is kept for the next process');
    world.store('b').start();
    world.until(() => coreOf(world).recovery.held().length === 0, 10_000);
    world.run(200);
    assert.equal(world.log.count('is told by no store: if it held mail'), 1);
  });
});
