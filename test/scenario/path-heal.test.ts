/** A link that changes its path in the middle of a repair: what was begun there begins anew, and nothing is lost (G1, G2). */
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { COMMITTED } from '../../src/gateway/mail-types.js';
import { checkAll } from './checks.js';
import { changesSinceBegun } from './inspect.js';
import type { StoreNode } from './store-node.js';
import { World } from './world.js';

const GATEWAY = 'gw-1';
const QUEUES = ['q1', 'q2'];

function untilPaths(world: World, store: StoreNode, wanted: string): void {
  world.until(() => world.gateway.link(store.id)?.pathStates().map(({ path, state }) => `${path} ${state}`).join() === wanted, 20_000, `${store.id}: ${wanted}`);
}

/** What hangs ends with the process; the next one delivers from what the stores have. */
function quietAndJudged(world: World): void {
  world.untilLevel();
  world.assertSameContent();
  world.gateway.kill();
  world.gateway.start();
  world.hops.script = () => 'accept';
  world.untilQuiet();
  checkAll(world.letters, world.queueNames);
  world.assertSameContent();
}

function isolatedCount(world: World): number {
  return world.log.count('IN_STEP -> NG');
}

describe('a link changes its path', () => {
  test('twice in a row under load: no mirror is isolated, each change is applied once, nothing is filled again', () => {
    const world = World.started();
    const store = world.store('b');
    world.hops.script = ({ messageId }) => (messageId % 2 === 0 ? 'accept' : 'hang');
    untilPaths(world, store, 'A RUN,B READY');
    const load = (ms: number): void => {
      for (let at = 0; at < ms; at += 5) {
        world.submit(QUEUES, { bytes: 1500 });
        world.run(5);
      }
    };
    load(100);
    world.network.cut(GATEWAY, store.id, 'A');
    load(100);
    world.network.heal(GATEWAY, store.id, 'A');
    world.until(() => {
      if (world.scheduler.stepCount % 100 === 0) world.submit(QUEUES);
      return world.gateway.link(store.id)?.pathStates().map(({ path, state }) => `${path} ${state}`).join() === 'A READY,B RUN';
    }, 20_000);
    world.network.cut(GATEWAY, store.id, 'B');
    load(100);
    world.network.heal(GATEWAY, store.id, 'B');
    untilPaths(world, store, 'A RUN,B READY');
    world.run(200);
    assert.ok([...world.letters.byId.values()].every((letter) => letter.outcome === COMMITTED));
    assert.equal(isolatedCount(world), 0);
    for (const name of QUEUES) assert.deepEqual([changesSinceBegun(world.mirror(name)), world.mirror(name).inSyncCount], [0, 2]);
    assert.equal(world.gateway.core?.mirrors.counters.refills, 0);
    quietAndJudged(world);
  });

  test('while a mirror there is filled: the refill begins anew, and ends', () => {
    const world = World.started();
    const store = world.store('b');
    world.hops.script = () => 'hang';
    world.submitMany(120, QUEUES, { bytes: 1500 });
    world.run(50);
    store.kill();
    world.run(500);
    world.slow(store, 30);
    store.start();
    world.until(() => world.mirror('q1').isFilling);
    const states = (): string => world.gateway.link(store.id)?.pathStates().map(({ path, state }) => `${path} ${state}`).join() ?? '';
    world.until(() => states().includes('RUN') && states().includes('READY'), 20_000, 'both paths');
    const active = states().startsWith('A RUN') ? 'A' : 'B';
    assert.equal(world.mirror('q1').isFilling, true, 'it takes longer than the other path to come up');
    world.network.cut(GATEWAY, store.id, active);
    world.slow(store, 0);
    world.submitMany(10, QUEUES, { bytes: 1500 });
    untilPaths(world, store, active === 'A' ? 'A NG,B RUN' : 'A RUN,B NG');
    world.until(() => world.inSync);
    assert.ok((world.gateway.core?.mirrors.counters.refills ?? 0) >= 3, 'the refill that was cut began anew');
    world.network.heal(GATEWAY, store.id, active);
    quietAndJudged(world);
  });

  test('while a change of mail is open there, and the other mirror is lost: it is repeated under its number, once', () => {
    const world = World.started({ queues: [{ name: 'q1' }] });
    const store = world.store('a');
    world.hops.script = () => 'hang';
    world.submitMany(20, ['q1'], { bytes: 1500 });
    world.run(50);
    untilPaths(world, store, 'A RUN,B READY');
    const mirror = world.mirror('q1');
    world.network.holdAnswers(GATEWAY, store.id, true, 'A');
    const letter = world.submit(['q1']);
    world.store('b').kill();
    world.until(() => mirror.memberCount === 1, 5000, 'the record without b');
    world.run(20);
    assert.equal(letter.outcome, 0, 'its acknowledgement is held up');
    world.network.cut(GATEWAY, store.id, 'A');
    world.network.holdAnswers(GATEWAY, store.id, false, 'A');
    assert.deepEqual([changesSinceBegun(mirror), mirror.memberCount], [1, 1]);
    world.run(50);
    assert.equal(letter.outcome, COMMITTED);
    assert.equal(mirror.rows.find((row) => row.storeId === store.id)?.shown, 'SYNC');
    world.network.heal(GATEWAY, store.id, 'A');
    world.store('b').start();
    world.until(() => changesSinceBegun(mirror) === 2 && mirror.inSyncCount === 2, 20_000, 'b back in the set');
    quietAndJudged(world);
  });
});
