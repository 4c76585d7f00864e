/** Mirrors that are lost and come back: isolation, refill while mail goes on, founding (G2, G6). */
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { COMMITTED } from '../../src/gateway/queue/types.js';
import { ROLE_FILLING, ROLE_MEMBER } from '../../src/protocol/reasons.js';
import { ResyncPhase, SyncState } from '../../src/gateway/mirror/replica.js';
import { checkAll } from './checks.js';
import { queuesOf } from './inspect.js';
import { World } from './world.js';

function quietAndJudged(world: World): void {
  world.hops.script = () => 'accept';
  world.untilQuiet();
  checkAll(world.letters, world.queueNames);
  world.assertSameContent();
}

/** Mail that stays queued, some with notes: most are deferred on their first attempts. */
function deferMost(world: World): void {
  world.hops.script = ({ messageId, earlier }) => (messageId % 3 === 0 && earlier < 3 ? 'defer' : messageId % 3 === 1 ? 'accept' : 'hang');
}

describe('resync', () => {
  for (const names of [['q1'], ['q1', 'q2', 'q3']]) {
    test(`a mirror that restarted is filled while stores, deletes and notes of ${String(names.length)} queues go on`, () => {
      const world = World.started({ refillFrameBytes: 600 });
      deferMost(world);
      world.submitMany(150, names);
      world.run(30);
      const store = world.store('b');
      store.kill();
      world.run(100);
      world.slow(store, 40);
      store.start();
      let live = 0;
      world.until(() => {
        if (world.mirror('q1').isFilling && live < 60 && world.scheduler.stepCount % 20 === 0) {
          world.submit(names);
          live += 1;
        }
        return live >= 60 && world.inSync;
      });
      world.slow(store, 0);
      world.untilLevel();
      world.assertSameContent();
      world.gateway.kill();
      world.gateway.start();
      quietAndJudged(world);
    });
  }

  test('deletes of one turn on both sides of the refill cursor do not trip the mirror', () => {
    const world = World.started({ queues: [{ name: 'q1', concurrency: 60 }], refillFrameBytes: 600, windowBytes: 3000 });
    world.hops.replyMs = 1500;
    const letters = world.submitMany(60, ['q1']);
    world.run(100);
    assert.ok(letters.every((letter) => letter.arrivals.size === 1), 'all wait for their replies');
    world.store('b').kill();
    world.run(50);
    world.slow(world.store('b'), 12);
    world.store('b').start();
    world.run(1300);
    const replica = world.mirror('q1').replicas.find((one) => one.store.storeId === 'store-b');
    assert.ok(replica !== undefined && replica.refillCursor > 5 && replica.refillCursor < 55, 'the cursor stands in the middle');
    world.untilQuiet();
    assert.equal(world.log.lines.filter((line) => line.text.includes('isolated')).length, 1, 'only for the kill');
    world.assertSameContent();
  });

  test('twenty queues are filled at once, a few side by side', () => {
    const queues = Array.from({ length: 20 }, (_, i) => ({ name: `n${String(i)}` }));
    const world = World.started({ queues });
    world.hops.script = () => 'hang';
    for (const { name } of queues) world.submitMany(15, [name]);
    world.run(30);
    world.store('a').kill();
    world.run(300);
    world.store('a').start();
    world.untilLevel();
    world.assertSameContent();
    assert.equal(world.letters.count(COMMITTED), 300);
  });

  test('a joiner is told that it is a member without waiting for more mail', () => {
    const world = World.started();
    world.hops.script = () => 'hang';
    world.submit(['q1']);
    world.run(20);
    world.store('b').kill();
    world.run(5);
    world.store('b').start();
    world.until(() => world.inSync);
    world.run(5);
    const { store } = world.store('b');
    assert.equal(store === undefined ? undefined : queuesOf(store, 'q1')[0]?.role, ROLE_MEMBER);
  });

  test('a joiner hears of the set with it only when the survivors have it', () => {
    const world = World.started();
    world.hops.script = () => 'hang';
    world.submitMany(20, ['q1']);
    world.run(30);
    world.store('b').kill();
    world.run(30);
    world.store('b').start();
    world.until(() => world.mirror('q1').isFilling);
    world.holdRequests(world.store('a'), true);
    world.run(500);
    assert.equal(world.mirror('q1').replicas[1]?.phase, ResyncPhase.JOINING);
    const { store } = world.store('b');
    assert.ok(store !== undefined);
    assert.equal(queuesOf(store, 'q1')[0]?.role, ROLE_FILLING);
    world.holdRequests(world.store('a'), false);
    world.untilLevel();
    assert.equal(queuesOf(store, 'q1')[0]?.role, ROLE_MEMBER);
    world.assertSameContent();
  });

  test('a store that dies while the other is being filled loses nothing while the gateway lives', () => {
    const world = World.started();
    world.hops.script = () => 'hang';
    world.submitMany(100, ['q1'], { bytes: 2000 });
    world.run(30);
    world.store('a').kill();
    world.run(50);
    world.slow(world.store('a'), 40);
    world.store('a').start();
    world.until(() => world.mirror('q1').isFilling);
    world.store('b').kill();
    world.run(500);
    world.store('b').start();
    world.until(() => world.inSync);
    world.slow(world.store('a'), 0);
    world.run(100);
    world.assertSameContent();
    world.gateway.kill();
    world.gateway.start();
    quietAndJudged(world);
    assert.equal(world.letters.count(COMMITTED), 100);
  });

  test('a joiner whose only survivor dies before it has acknowledged founds the next set', () => {
    const world = World.started();
    world.hops.script = () => 'hang';
    world.submitMany(30, ['q1']);
    world.run(30);
    world.store('b').kill();
    world.run(50);
    world.store('b').start();
    world.until(() => world.mirror('q1').replicas.some((replica) => replica.phase === ResyncPhase.CAUGHT_UP || replica.phase === ResyncPhase.JOINING));
    world.holdAnswers(world.store('a'), true);
    world.run(1);
    world.submitMany(3, ['q1']);
    world.run(20);
    world.store('a').kill();
    world.holdAnswers(world.store('a'), false);
    world.run(300);
    world.store('a').start();
    world.untilLevel();
    world.assertSameContent();
    world.gateway.kill();
    world.gateway.start();
    quietAndJudged(world);
  });

  test('after a blip on both links the gateway may die at any moment of the refill', () => {
    for (let step = 0; step < 60; step++) {
      const world = World.started({ seed: step + 1 });
      world.hops.script = () => 'hang';
      world.submitMany(40, ['q1', 'q2'], { bytes: 1000 });
      world.run(30);
      for (const store of world.stores) world.cut(store);
      world.run(5);
      for (const store of world.stores) {
        world.slow(store, 200);
        world.heal(store);
      }
      world.run(50 + step * 15);
      world.gateway.kill();
      for (const store of world.stores) world.slow(store, 0);
      world.gateway.start();
      quietAndJudged(world);
    }
  });

  test('no set is founded beside an old member that is cut off but alive: it goes on with the tail', () => {
    const world = World.started();
    world.hops.script = () => 'hang';
    world.submitMany(10, ['q1']);
    world.run(30);
    world.store('b').kill();
    world.run(30);
    world.store('b').start();
    world.until(() => world.mirror('q1').isFilling);
    world.cut(world.store('a'));
    world.until(() => world.mirror('q1').replicas[1]?.phase === ResyncPhase.CAUGHT_UP || world.mirror('q1').replicas[1]?.phase === ResyncPhase.JOINING);
    world.run(3000);
    assert.equal(world.mirror('q1').inSyncCount, 0, 'the filled one waits for the member');
    assert.equal(world.mirror('q1').founding, false);
    world.heal(world.store('a'));
    world.untilLevel();
    assert.equal(world.gateway.core?.mirrors.counters.refills, 1, 'of the one that had restarted');
    assert.equal(world.submit(['q1']).outcome, 0);
    world.untilLevel();
    world.assertSameContent();
  });

  test('a refused section isolates the mirror, which is filled again and counts again', () => {
    const world = World.started();
    world.hops.script = () => 'hang';
    world.submitMany(20, ['q1']);
    world.run(30);
    const { store } = world.store('b');
    const queue = store === undefined ? undefined : queuesOf(store, 'q1')[0];
    assert.ok(queue !== undefined);
    queue.digestA = (queue.digestA ^ 1) >>> 0;
    const letter = world.submit(['q1']);
    world.run(20);
    assert.equal(letter.outcome, COMMITTED, 'the survivor alone is the set now');
    assert.equal(world.mirror('q1').replicas[1]?.sync, SyncState.NG);
    assert.match(world.mirror('q1').replicas[1]?.cause ?? '', /DIGEST/);
    world.untilLevel();
    world.assertSameContent();
  });

  test('mail goes on with one mirror, and a third store takes the place of none that is up', () => {
    const world = World.started({ stores: 3 });
    world.submitMany(30, ['q1', 'q2', 'q3']);
    world.run(20);
    world.store('b').kill();
    world.submitMany(30, ['q1', 'q2', 'q3']);
    world.run(100);
    assert.equal(world.letters.count(COMMITTED), 60);
    world.store('b').start();
    quietAndJudged(world);
  });

  test('both mirrors lost one after the other, the gateway alive: everything is still there', () => {
    const world = World.started();
    deferMost(world);
    world.submitMany(60, ['q1', 'q3']);
    world.run(30);
    for (const name of ['a', 'b'] as const) {
      world.store(name).kill();
      world.run(200);
    }
    world.store('b').start();
    world.run(300);
    world.store('a').start();
    world.untilLevel();
    world.assertSameContent();
    world.gateway.kill();
    world.gateway.start();
    quietAndJudged(world);
  });
});
