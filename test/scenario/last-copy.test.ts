/**
 * A refill empties a copy before it fills it. While no mirror of a queue is in sync, that copy may be all that a crash of
 * the gateway leaves (G2): one is emptied at a time, and the one with the most to lose last.
 */
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { COMMITTED } from '../../src/gateway/queue/types.js';
import type { Replica } from '../../src/gateway/mirror/replica.js';
import { ResyncPhase } from '../../src/gateway/mirror/replica.js';
import { ROLE_MEMBER } from '../../src/protocol/reasons.js';
import { checkNoDuplicates, checkNoLoss } from './checks.js';
import { queuesOf } from './inspect.js';
import { World } from './world.js';

const SLOW_BYTES_PER_MS = 20;

type Letter = 'a' | 'b';

/**
 * One store has five messages, and has left the set; the last one, the set alone, has three more. Both have been cut off,
 * and neither copy can be continued from the ring.
 */
function bothBehind(left: Letter, last: Letter): World {
  const world = World.started({ queues: [{ name: 'q1' }], refillFrameBytes: 600 });
  world.hops.script = () => 'hang';
  world.submitMany(5, ['q1'], { bytes: 1000 });
  world.run(200);
  const mirror = world.mirror('q1');
  world.cut(world.store(left));
  world.until(() => mirror.memberCount === 1, 20_000, 'the set of the last one');
  world.submitMany(3, ['q1'], { bytes: 1000 });
  world.run(200);
  assert.equal(world.letters.count(COMMITTED), 8);
  world.cut(world.store(last));
  world.until(() => mirror.inSyncCount === 0, 20_000, 'no mirror in sync');
  for (const replica of mirror.replicas) replica.mustRefill = true;
  return world;
}

function at(world: World, letter: Letter): Replica {
  return world.mirror('q1').replicas.find(({ store }) => store.storeId === `store-${letter}`) ?? assert.fail(`a mirror at store-${letter}`);
}

describe('with no mirror in sync and none that can be continued', () => {
  for (const [left, last] of [['a', 'b'], ['b', 'a']] as const) {
    test(`the copy of the last set, at store-${last}, is emptied when the other one is whole: a gateway that dies before loses nothing`, () => {
      const world = bothBehind(left, last);
      for (const store of world.stores) {
        world.slow(store, SLOW_BYTES_PER_MS);
        // Both are there before either is looked at.
        for (const replica of world.mirror('q1').replicas) replica.retryAtMs = world.scheduler.nowMs + 5000;
        world.heal(store);
      }
      world.until(() => world.mirror('q1').isFilling, 30_000, 'a refill');
      world.run(100);
      assert.deepEqual([at(world, left).isFilling, at(world, last).phase], [true, ResyncPhase.NONE]);
      const { store } = world.store(last);
      assert.ok(store !== undefined);
      assert.deepEqual(queuesOf(store, 'q1').map(({ role, count }) => [role, count]), [[ROLE_MEMBER, 8]]);
      world.gateway.kill();
      for (const node of world.stores) world.slow(node, 0);
      world.hops.script = () => 'accept';
      world.gateway.start();
      world.untilQuiet();
      assert.equal(world.letters.delivered, 8);
      checkNoLoss(world.letters);
      checkNoDuplicates(world.letters);
    });
  }

  test('both are filled, one after the other, and the queue has its set again', () => {
    const world = bothBehind('a', 'b');
    let both = false;
    world.onTurn = () => { both ||= world.mirror('q1').replicas.every((replica) => replica.isFilling); };
    for (const store of world.stores) {
      world.slow(store, SLOW_BYTES_PER_MS);
      world.heal(store);
    }
    world.until(() => world.mirror('q1').inSyncCount === 2, 30_000, 'two in sync');
    assert.equal(both, false);
    world.untilLevel();
    world.assertSameContent();
  });
});
