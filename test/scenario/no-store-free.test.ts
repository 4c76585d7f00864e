/**
 * A queue that may have a new set of mirrors, and no store for it: named only when every store has been silent or has said
 * no for replace_after, not while one is asked, fills others first, or the queue is not whole; and told once
 * (src/gateway/mirror/lost-sets.ts). Texts: test/unit/gateway/mirror/no-store.test.ts.
 */
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { COMMITTED } from '../../src/gateway/queue/types.js';
import { SyncState } from '../../src/gateway/mirror/replica.js';
import type { HeldQueue } from '../../src/recovery/waiting-queues.js';
import { checkNoDuplicates, checkNoLoss } from './checks.js';
import type { KeptLog } from './ports.js';
import type { StoreNode } from './store-node.js';
import type { WorldOptions } from './world.js';
import { World } from './world.js';

const REPLACE_AFTER_MS = 5000;

function held(world: World): readonly HeldQueue[] {
  return world.gateway.core?.recovery.held() ?? [];
}

function told(world: World, name?: string): KeptLog['lines'] {
  return world.log.lines.filter(({ text, fields }) => text.startsWith('no store takes a copy of this queue') && (name ?? fields['queue']) === fields['queue']);
}

function restart(store: StoreNode): void {
  store.kill();
  store.start();
}

/** All queues are at store-a alone, for store-b is dead. */
function leftToOne(options: WorldOptions, messages: number): World {
  const world = World.started({ replaceAfterMs: REPLACE_AFTER_MS, ...options });
  world.hops.script = () => 'defer';
  for (const name of world.queueNames) world.submitMany(messages, [name]);
  world.run(300);
  assert.equal(world.letters.count(COMMITTED), messages * world.queueNames.length);
  world.store('b').kill();
  world.until(() => world.queueNames.every((name) => world.mirror(name).setChangeNumber === 0 && world.mirror(name).memberCount === 1), 20_000, 'the sets of store-a');
  return world;
}

/** Runs so long, and looks at every step whether anything is told; asserts that nothing is. */
function runUntold(world: World, ms: number): void {
  const end = world.scheduler.nowMs + ms;
  while (world.scheduler.nowMs < end) {
    world.run(100);
    assert.deepEqual(held(world).filter(({ state }) => state === 'no store free').map(({ queue, why }) => [queue, why]), []);
  }
  assert.deepEqual(told(world).map(({ fields }) => fields), []);
}

describe('no store free is not told', () => {
  test('of queues that wait for their turn to be filled, for longer than replace_after', () => {
    const queues = Array.from({ length: 40 }, (_, i) => ({ name: `q${String(i)}` }));
    const world = leftToOne({ queues, windowBytes: 8192 }, 10);
    const a = world.store('a');
    restart(a);
    world.slow(a, 5);
    runUntold(world, 3 * REPLACE_AFTER_MS);
    const waiting = world.queueNames.filter((name) => world.mirror(name).replicas.every(({ sync }) => sync === SyncState.NG));
    assert.ok(waiting.length > 0 && waiting.length < queues.length, `some of them wait: ${String(waiting.length)}`);
    world.slow(a, 0);
    world.until(() => world.queueNames.every((name) => world.mirror(name).inSyncCount === 1), 20_000, 'a mirror of each');
    runUntold(world, REPLACE_AFTER_MS);
  });

  test('of a queue that is only partly back', () => {
    const world = leftToOne({ queues: [{ name: 'q1' }] }, 60);
    const a = world.store('a');
    world.gateway.kill();
    world.gateway.start();
    world.slow(a, 10);
    world.until(() => (world.gateway.core?.registry.byName('q1').at(-1)?.queue.length ?? 0) > 0, 60_000, 'a part of it');
    world.slow(a, 0);
    restart(a);
    runUntold(world, 3 * REPLACE_AFTER_MS);
    a.kill();
    runUntold(world, 3 * REPLACE_AFTER_MS);
    assert.equal(world.mirror('q1').queue.isRecovering, true);
    assert.deepEqual(held(world).map(({ state }) => state), ['stranded']);
  });
});

/** The mirrors of q1 are dead, and known to have lost it; store-c has no room for it. */
function full(options: WorldOptions = {}, bytes = 20_000): World {
  const world = World.started({ stores: 3, queues: [{ name: 'q1' }, { name: 'q2' }, { name: 'q3' }], storeMemoryBytes: 1024 * 1024, replaceAfterMs: REPLACE_AFTER_MS, ...options });
  const [kept, filling] = [400_000 / bytes, 640_000 / bytes];
  world.hops.script = () => 'defer';
  world.submitMany(kept, ['q1'], { bytes });
  for (const name of ['q2', 'q3']) world.submit([name]);
  world.run(300);
  const mirror = world.mirror('q1');
  assert.deepEqual(mirror.replicas.map(({ store }) => store.storeId), ['store-a', 'store-b']);
  const [a, b] = [world.store('a'), world.store('b')];
  b.kill();
  world.until(() => mirror.setChangeNumber === 0 && mirror.memberCount === 1, 200_000, 'the set of store-a');
  restart(a);
  world.until(() => mirror.replicas.every(({ member, mayHoldCopy }) => !member || !mayHoldCopy), 20_000, 'the answer of store-a');
  a.kill();
  for (let i = 0; i < filling; i++) {
    world.submit(['q2'], { bytes });
    world.run(20);
  }
  assert.equal(world.letters.count(COMMITTED), kept + filling + 2, world.lastLog());
  return world;
}

describe('no store free', () => {
  test('is told once, however often a store refuses, and ends with the first mirror', () => {
    const world = full();
    // Each attempt takes a while before it is refused.
    world.slow(world.store('c'), 500);
    world.run(10 * REPLACE_AFTER_MS);
    const [first] = held(world);
    assert.equal(first?.why, 'no mirror is in sync, and no store takes a copy: store-a is silent, store-b is silent, store-c is full; start store-a or store-b, or make room at store-c');
    assert.deepEqual(first.stores, ['store-a', 'store-b']);
    const at = world.mirror('q1').replicas.find(({ store }) => store.storeId === 'store-c') ?? assert.fail('a mirror at store-c');
    const before = at.refusals;
    while (at.refusals < before + 10) {
      world.run(50);
      const [now, ...others] = held(world).filter(({ queue }) => queue === 'q1');
      assert.deepEqual([now?.state, now?.sinceMs, others], ['no store free', first.sinceMs, []]);
    }
    assert.deepEqual(told(world, 'q1').map(({ fields }) => [fields['queue'], fields['messages'], fields['silent']]), [['q1', 20, ['store-a', 'store-b']]]);
    world.store('a').start();
    world.until(() => world.mirror('q1').inSyncCount > 0, 20_000, 'a mirror in sync');
    assert.deepEqual(held(world).filter(({ queue }) => queue === 'q1'), []);
    world.hops.script = () => 'accept';
    world.until(() => world.letters.delivered === 54, 20_000, 'the deliveries');
    checkNoLoss(world.letters);
    checkNoDuplicates(world.letters);
  });

  test('is told when each attempt at a full store takes longer than replace_after to be refused', () => {
    const replaceAfterMs = 18_000;
    const world = full({ windowBytes: 8192, replaceAfterMs }, 10_000);
    world.slow(world.store('c'), 6);
    const isFilled = (): boolean => world.mirror('q1').replicas.some(({ store, sync }) => store.storeId === 'store-c' && sync === SyncState.RESYNC);
    for (let attempt = 0; attempt < 6; attempt++) {
      world.until(isFilled, 120_000, 'an attempt');
      const sinceMs = world.scheduler.nowMs;
      if (attempt === 0) assert.deepEqual(told(world, 'q1'), []);
      world.until(() => !isFilled(), 600_000, 'its refusal');
      assert.ok(world.scheduler.nowMs - sinceMs > replaceAfterMs, `it takes longer than replace_after: ${String(world.scheduler.nowMs - sinceMs)}`);
    }
    assert.equal(told(world, 'q1').length, 1);
  });
});
