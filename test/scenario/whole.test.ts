/**
 * When an owner's queues count as whole here, so that its reports go on (src/recovery/bulk-recovery.ts, isWhole): not by
 * lists of the stores that were asked for before the last queue came back. Until then another gateway of the group had
 * it, and may have made a queue of reports that such a list does not show.
 */
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import type { BulkRecovery } from '../../src/recovery/bulk-recovery.js';
import { Group } from './group.js';
import { World } from './world.js';

interface Stage {
  run(ms: number): void;
  readonly scheduler: { readonly nowMs: number };
}

const COUNT = 20;
const BOUND_MS = 60_000;

/** How long after the last queue was back its owner's queues counted as whole. */
function wholeAfterMs(stage: Stage, recovery: () => BulkRecovery | undefined, isBack: () => boolean): number {
  const until = (what: string, is: () => boolean): number => {
    const endMs = stage.scheduler.nowMs + BOUND_MS;
    while (!is()) {
      assert.ok(stage.scheduler.nowMs < endMs, what);
      stage.run(1);
    }
    return stage.scheduler.nowMs;
  };
  const backMs = until('the queue is back', () => isBack() && recovery()?.isIdle === true);
  return until('it counts as whole', () => recovery()?.isWhole('gw-1') === true) - backMs;
}

describe('an owner whose queue came back', () => {
  test('has all its queues when the stores have told their lists anew, if another gateway may have had it', () => {
    const group = Group.started();
    group.hops.script = () => 'hang';
    for (let i = 0; i < COUNT; i++) group.submit('gw-1', ['q1']);
    group.run(200);
    const owner = group.gateway('gw-1');
    owner.kill();
    owner.start();
    const asked = wholeAfterMs(group, () => owner.core?.recovery, () => group.served('gw-1', 'gw-1').some(({ queue }) => queue.length === COUNT));
    assert.ok(asked > 0, 'the lists of its start do not count');
  });

  test('has them at once in a group of its own', () => {
    const world = World.started({ queues: [{ name: 'q1' }] });
    world.hops.script = () => 'hang';
    world.submitMany(COUNT, ['q1']);
    world.run(200);
    world.gateway.kill();
    world.gateway.start();
    assert.equal(wholeAfterMs(world, () => world.gateway.core?.recovery, () => world.gateway.core?.registry.byName('q1').some(({ queue }) => queue.length === COUNT) === true), 0);
  });
});
