/**
 * A queue that may have a new set of mirrors, and no store for it: named only when every store has been silent or has said
 * no for replace_after, not while one is asked, fills others first, or the queue is not whole; and told once
 * (src/gateway/mirror/lost-sets.ts). Texts: test/unit/gateway/mirror/no-store.test.ts.
 */
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { COMMITTED } from '../../src/gateway/queue/types.js';
import type { HeldPartition } from '../../src/recovery/waiting-queues.js';
import type { KeptLog } from './ports.js';
import type { StoreNode } from './store-node.js';
import type { WorldOptions } from './world.js';
import { World } from './world.js';
import { onlyQueue } from './inspect.js';

const REPLACE_AFTER_MS = 5000;

function held(world: World): readonly HeldPartition[] {
  return world.gateway.core?.recovery.held() ?? [];
}

function told(world: World, name?: string): KeptLog['lines'] {
  return world.log.lines.filter(({ text, fields }) => text.startsWith('no store takes a copy of this partition') && (name ?? fields['partition']) === fields['partition']);
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
    assert.deepEqual(held(world).filter(({ state }) => state === 'no store free').map(({ partition, why }) => [partition, why]), []);
  }
  assert.deepEqual(told(world).map(({ fields }) => fields), []);
}

describe('no store free is not told', () => {
  test('of a queue that is only partly back', () => {
    const world = leftToOne({ queues: [{ name: 'q1' }] }, 60);
    const a = world.store('a');
    world.gateway.kill();
    world.gateway.start();
    world.slow(a, 10);
    world.until(() => (world.gateway.core?.registry.byName('q1').at(-1)?.length ?? 0) > 0, 60_000, 'a part of it');
    world.slow(a, 0);
    restart(a);
    runUntold(world, 3 * REPLACE_AFTER_MS);
    a.kill();
    runUntold(world, 3 * REPLACE_AFTER_MS);
    assert.equal(onlyQueue(world.mirror('q1')).isRecovering, true);
    assert.deepEqual(held(world).map(({ state }) => state), ['stranded']);
  });
});
