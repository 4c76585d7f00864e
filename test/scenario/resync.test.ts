/** Mirrors that are lost and come back: refill while mail goes on, and who stays a member meanwhile (G2, G6). */
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { COMMITTED } from '../../src/gateway/mail-types.js';
import { checkAll } from './checks.js';
import { copiesOf } from './inspect.js';
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
    const partition = world.mirror('q1');
    const row = partition.rows.find((one) => one.storeId === 'store-b');
    assert.ok(row !== undefined);
    const cursor = partition.feedOf(row).fillCursor;
    assert.ok(cursor > 5 && cursor < 55, 'the cursor stands in the middle');
    world.untilQuiet();
    assert.equal(world.log.lines.filter(({ text }) => text.startsWith(`${partition.name} member store-b`) && text.endsWith('-> NG')).length, 1, 'only for the kill');
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

  test('the last member, cut off but alive, stays until another that has everything takes its place; it goes on with the tail', () => {
    const world = World.started();
    world.hops.script = () => 'hang';
    world.submitMany(10, ['q1']);
    world.run(30);
    world.store('b').kill();
    world.until(() => world.mirror('q1').memberCount === 1);
    world.cut(world.store('a'));
    world.run(3000);
    assert.deepEqual(world.register.recordOf(world.mirror('q1').name)?.members.map(({ storeId }) => storeId), ['store-a'], 'rule 8');
    world.heal(world.store('a'));
    world.untilLevel();
    assert.equal(world.gateway.core?.mirrors.counters.refills, 0);
    world.store('b').start();
    world.until(() => world.mirror('q1').inSyncCount === 2);
    world.untilLevel();
    world.assertSameContent();
  });

  test('the last member, silent, is replaced in one change by a store that was filled from memory', () => {
    const world = World.started();
    world.hops.script = () => 'hang';
    world.submitMany(10, ['q1']);
    world.run(30);
    world.store('b').kill();
    world.until(() => world.mirror('q1').memberCount === 1);
    world.cut(world.store('a'));
    world.run(100);
    world.store('b').start();
    world.until(() => world.register.recordOf(world.mirror('q1').name)?.members.map(({ storeId }) => storeId).join() === 'store-b', 20_000, 'its successor');
    world.until(() => world.gateway.core?.accepting === true, 5000, 'that it takes mail');
    const letter = world.submit(['q1']);
    world.until(() => letter.outcome === COMMITTED, 5000, 'new mail');
    world.heal(world.store('a'));
    world.until(() => world.mirror('q1').inSyncCount === 2);
    world.gateway.kill();
    world.gateway.start();
    quietAndJudged(world);
  });

  test('a refused section takes the mirror out; it is filled again and counts again', () => {
    const world = World.started();
    world.hops.script = () => 'hang';
    world.submitMany(20, ['q1']);
    world.run(30);
    const { store } = world.store('b');
    const copy = store === undefined ? undefined : copiesOf(store, 'q1')[0];
    assert.ok(copy !== undefined);
    copy.digestA = (copy.digestA ^ 1) >>> 0;
    const letter = world.submit(['q1']);
    world.until(() => letter.outcome !== 0, 5000, 'its end');
    assert.equal(letter.outcome, COMMITTED);
    assert.ok(world.log.lines.some(({ text, fields }) => text === 'a store refused what a partition changed' && fields['reason'] === 'DIGEST' && fields['store'] === 'store-b'));
    world.until(() => world.mirror('q1').inSyncCount === 2);
    assert.equal(world.gateway.core?.mirrors.counters.refills, 1);
    world.untilLevel();
    world.assertSameContent();
  });

  test('mail goes on with one mirror, and a third store takes the place of none that is up', () => {
    const world = World.started({ stores: 3 });
    world.submitMany(30, ['q1', 'q2', 'q3']);
    world.run(20);
    world.store('b').kill();
    world.submitMany(30, ['q1', 'q2', 'q3']);
    world.run(300);
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
