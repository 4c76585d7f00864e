/** The commit point on whole processes: when a 250, a 4xx or nothing may be said (G1, G6, G7, G9). */
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { COMMITTED, NO_MEMORY, NO_REPLY, NOT_READY, REFUSED } from '../../src/gateway/mail-types.js';
import { checkAll } from './checks.js';
import { coreOf } from './inspect.js';
import type { Letter } from './letters.js';
import { World } from './world.js';

function quietAndJudged(world: World): void {
  world.untilQuiet();
  checkAll(world.letters, world.queueNames);
  world.assertSameContent();
}

describe('commit', () => {
  test('no outcome and no delivery before both mirrors have acknowledged', () => {
    const world = World.started();
    world.holdAnswers(world.store('b'), true);
    const letter = world.submit(['q1']);
    world.run(1000);
    assert.equal(letter.outcome, 0);
    assert.equal(letter.attempts.size, 0, 'nothing is tried before the commit');
    world.holdAnswers(world.store('b'), false);
    world.run(10);
    assert.equal(letter.outcome, COMMITTED);
    quietAndJudged(world);
  });

  test('a message to three queues is committed when all three are, and crosses each link once', () => {
    const world = World.started();
    world.hops.script = () => 'hang';
    const letter = world.submit(['q1', 'q2', 'q3'], { bytes: 30_000 });
    world.run(20);
    assert.equal(letter.outcome, COMMITTED);
    for (const store of world.stores) {
      assert.equal(store.store?.shared.count, 1, 'the body stands there once');
      assert.ok((store.counters?.bytesIn ?? 0) < 40_000, 'the body crossed once');
    }
  });

  test('mail that waits for a second copy is committed when the record names that copy, not when it is only filled', () => {
    const world = World.started({ stores: 3, queues: [{ name: 'q1' }], minReplicas: 2, replaceAfterMs: 500, commitTimeoutMs: 30_000 });
    world.hops.script = () => 'hang';
    world.submitMany(5, ['q1']);
    world.run(600);
    const partition = world.mirror('q1');
    const lost = world.stores.find(({ id }) => id === partition.rows[1]?.storeId);
    assert.ok(lost !== undefined);
    world.holdAnswers(lost, true);
    const letter = world.submit(['q1']);
    world.run(50);
    lost.kill();
    world.until(() => partition.memberCount === 1, 5000, 'the record of one');
    world.register.goAway('silent');
    world.until(() => partition.rows.some(({ isInStep, isRecorded }) => isInStep && !isRecorded), 20_000, 'a filled copy that is to join');
    world.run(3000);
    assert.equal(letter.outcome, 0);
    world.register.comeBack();
    world.until(() => letter.outcome === COMMITTED, 10_000, 'the commit');
    assert.equal(world.register.recordOf(partition.name)?.members.length, 2);
  });

  test('a message to two queues is committed when both are, also by a copy that joins the one meanwhile', () => {
    const world = World.started({ queues: [{ name: 'q1' }, { name: 'q2' }], commitTimeoutMs: 30_000 });
    world.hops.script = () => 'hang';
    world.submitMany(50, ['q1'], { bytes: 2000 });
    world.submit(['q2']);
    world.run(600);
    const b = world.store('b');
    b.kill();
    world.until(() => world.mirror('q1').memberCount === 1 && world.mirror('q2').memberCount === 1, 5000, 'records of one');
    world.slow(b, 30);
    b.start();
    world.until(() => world.mirror('q1').isFilling, 5000, 'the refill');
    // G1 is looked at in the stores at each 250: that copy has it, if the record names it by then.
    const letters: Letter[] = [];
    let nextMs = 0;
    world.until(() => {
      if (!world.mirror('q1').isFilling) world.slow(b, 600);
      if (world.scheduler.nowMs >= nextMs) {
        nextMs = world.scheduler.nowMs + 2;
        letters.push(world.submit(['q1', 'q2'], { bytes: 100 }));
      }
      return world.inSync;
    }, 20_000, 'both copies, though the link there is the slower one');
    world.slow(b, 0);
    world.until(() => letters.every(({ outcome }) => outcome === COMMITTED), 10_000, 'the commits');
    assert.ok(letters.length > 20);
    world.untilLevel();
    world.assertSameContent();
  });

  test('a lost mirror counts until the record without it is known to be made, then the survivor alone does', () => {
    const world = World.started();
    world.submit(['q1']);
    world.run(500);
    const partition = world.mirror('q1');
    world.register.slow(2000);
    const { epoch } = partition;
    const letter = world.submit(['q1']);
    world.cut(world.store('b'));
    world.run(150);
    assert.deepEqual([letter.outcome, partition.epoch], [0, epoch]);
    world.until(() => letter.outcome !== 0, 10_000, 'its end');
    assert.equal(letter.outcome, COMMITTED);
    const record = world.register.recordOf(partition.name);
    assert.deepEqual([partition.epoch, record?.epoch, record?.members.map(({ storeId }) => storeId)], [epoch + 1, epoch + 1, ['store-a']]);
    world.register.slow(2);
    world.heal(world.store('b'));
    quietAndJudged(world);
  });

  test('with min_replicas 2 one mirror alone gets no 250', () => {
    const world = World.started({ minReplicas: 2 });
    world.submit(['q1']);
    world.run(20);
    const letter = world.submit(['q1']);
    world.cut(world.store('b'));
    world.run(1000);
    assert.equal(letter.outcome, 0);
    assert.equal(world.submit(['q1']).outcome, NOT_READY);
    world.heal(world.store('b'));
    world.until(() => letter.outcome === COMMITTED);
    quietAndJudged(world);
  });

  test('a commit that runs out of time is refused only after the withdrawal is acknowledged', () => {
    const world = World.started({ commitTimeoutMs: 1000 });
    world.submit(['q1', 'q2']);
    world.run(20);
    world.holdAnswers(world.store('b'), true);
    const letter = world.submit(['q1', 'q2']);
    world.run(1500);
    assert.equal(letter.outcome, 0, 'the withdrawal is at one mirror only');
    world.holdAnswers(world.store('b'), false);
    world.run(50);
    assert.equal(letter.outcome, REFUSED);
    quietAndJudged(world);
  });

  test('there is no reply when not even the withdrawal can be had', () => {
    const world = World.started({ commitTimeoutMs: 500 });
    world.submit(['q1']);
    world.run(20);
    for (const store of world.stores) world.holdAnswers(store, true);
    const letter = world.submit(['q1']);
    world.run(1200);
    assert.equal(letter.outcome, NO_REPLY);
    for (const store of world.stores) world.holdAnswers(store, false);
    quietAndJudged(world);
    assert.equal(letter.arrivals.size, 0, 'the withdrawal was sent all the same');
  });

  test('a withdrawn message does not come back with the gateway', () => {
    const world = World.started({ commitTimeoutMs: 500 });
    world.submit(['q1']);
    world.run(20);
    world.holdAnswers(world.store('a'), true);
    const letters = world.submitMany(5, ['q1', 'q2']);
    world.run(800);
    world.holdAnswers(world.store('a'), false);
    world.run(20);
    assert.ok(letters.every((letter) => letter.outcome === REFUSED));
    world.gateway.kill();
    world.gateway.start();
    quietAndJudged(world);
  });

  test('without credit the answer is 452 and no number is used', () => {
    const world = World.started({ storeMemoryBytes: 3 * 1024 * 1024 });
    world.hops.script = () => 'hang';
    world.submit(['q1'], { bytes: 10_000 });
    world.run(20);
    for (let i = 0; i < 500 && world.letters.count(NO_MEMORY) === 0; i++) {
      const before = world.mirror('q1').lastNumber;
      const letter = world.submit(['q1'], { bytes: 10_000 });
      if (letter.outcome === NO_MEMORY) assert.equal(world.mirror('q1').lastNumber, before);
      if (i % 10 === 9) world.run(5);
    }
    assert.ok(world.letters.count(NO_MEMORY) > 0);
    world.run(50);
    for (const store of world.stores) assert.equal(store.counters?.refusals.reduce((a, b) => a + b, 0), 0, 'nothing within credit is refused');
  });

  test('what waits behind a full window counts against the credit', () => {
    const world = World.started({ storeMemoryBytes: 4 * 1024 * 1024, windowBytes: 20_000 });
    world.hops.script = () => 'hang';
    world.submit(['q1', 'q2', 'q3'], { bytes: 100 });
    world.run(20);
    for (const store of world.stores) world.slow(store, 20);
    for (let i = 0; i < 600; i++) {
      world.submit([world.queueNames[i % 3] ?? 'q1'], { bytes: 10_000 });
      if (i % 20 === 0) world.run(1);
    }
    world.run(60);
    assert.ok(world.letters.count(NO_MEMORY) > 0, 'the stores would not take all of it');
    for (const store of world.stores) world.slow(store, 0);
    world.run(3000);
    for (const store of world.stores) assert.equal(store.counters?.refusals.reduce((a, b) => a + b, 0), 0, 'nothing that was numbered is refused');
    assert.equal(world.mirror('q1').inSyncCount, 2);
  });

  test('a full gateway answers 452, goes on delivering and takes mail again when it has drained', () => {
    const world = World.started({ gatewayMemoryBytes: 2 * 1024 * 1024 });
    world.hops.script = () => 'hang';
    const kept = world.submitMany(200, ['q1'], { bytes: 10_000 });
    world.run(20);
    assert.ok(kept.some((letter) => letter.outcome === NO_MEMORY));
    world.hops.script = () => 'accept';
    world.gateway.kill();
    world.gateway.start();
    world.untilQuiet();
    const after = world.submit(['q1'], { bytes: 10_000 });
    quietAndJudged(world);
    assert.equal(after.outcome, COMMITTED);
  });

  test('a slow store holds commits back, not their order', () => {
    const world = World.started({ windowBytes: 5000 });
    world.submit(['q1']);
    world.run(20);
    world.slow(world.store('b'), 20);
    for (let i = 0; i < 40; i++) {
      world.submitMany(5, ['q1'], { bytes: 500 });
      world.run(5);
    }
    assert.ok((world.gateway.core?.mirrors.backlogBytes ?? 0) > 5000, 'frames wait behind the window');
    world.slow(world.store('b'), 0);
    quietAndJudged(world);
    assert.equal(world.letters.count(COMMITTED), 201);
    assert.equal(world.log.count('-> NG'), 0);
  });

  test('many large messages of one turn leave in frames that a store takes', () => {
    const world = World.started({ storeMemoryBytes: 1024 * 1024 * 1024, gatewayMemoryBytes: 1024 * 1024 * 1024 });
    world.submit(['q1']);
    world.run(20);
    const letters = world.submitMany(3, ['q1'], { bytes: 9 * 1024 * 1024 });
    world.until(() => letters.every((letter) => letter.outcome !== 0));
    assert.ok(letters.every((letter) => letter.outcome === COMMITTED));
    assert.equal(world.log.count('-> NG'), 0);
  });

});

describe('sync state', () => {
  test('a copy that may be recorded is never emptied: both links blip, both go on with the tail', () => {
    const world = World.started({ commitTimeoutMs: 60_000 });
    world.hops.script = () => 'hang';
    world.submitMany(50, ['q1'], { bytes: 4000 });
    world.run(500);
    for (const store of world.stores) world.cut(store);
    world.run(10);
    const letter = world.submit(['q1']);
    assert.equal(letter.outcome, NOT_READY);
    for (const store of world.stores) {
      world.heal(store);
      world.slow(store, 30);
    }
    world.until(() => world.inSync && coreOf(world).accepting);
    assert.equal(coreOf(world).mirrors.counters.refills, 0);
    world.untilLevel();
    world.assertSameContent();
  });
});
