/**
 * What an operator is told of a queue whose owner lives while every mirror that it can go on from came back empty: which
 * store could tell more, and the command (src/gateway/mirror/lost-sets.ts). When that state begins: lost-sets.test.ts.
 */
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import type { HeldPartition } from '../../src/recovery/waiting-queues.js';
import { Group } from './group.js';
import { queuesOf, onlyQueue } from './inspect.js';
import type { StoreNode } from './store-node.js';
import { World } from './world.js';

function restart(store: StoreNode): void {
  store.kill();
  store.start();
}

describe('a queue without a survivor', () => {
  test('names the store that its last change leaves out, while that one may know who has the queue, and what to do', () => {
    const world = World.started({ queues: [{ name: 'q1' }] });
    world.hops.script = () => 'hang';
    world.submitMany(5, ['q1']);
    world.run(200);
    const [a, b] = [world.store('a'), world.store('b')];
    // The change to store-b alone is not acknowledged when that one falls silent, and restarts unheard.
    world.holdAnswers(b, true);
    world.cut(a);
    world.until(() => world.mirror('q1').setChangeNumber !== 0, 20_000, 'the change that drops store-a');
    world.cut(b);
    world.holdAnswers(b, false);
    world.run(30_000);
    restart(b);
    world.heal(b);
    const held = (): HeldPartition => world.gateway.core?.recovery.held()[0] ?? assert.fail('the queue is held');
    world.until(() => world.gateway.core?.recovery.held().length === 1, 20_000, 'the named state');
    const command = 'twinpost rescue --force --partition p1 --owner gw-1 --missing store-b --reason TEXT';
    // Silent as it is, it must be given up, too.
    const both = `${command}; twinpost rescue --force --partition p1 --owner gw-1 --missing store-a --reason TEXT`;
    assert.deepEqual([held().state, held().stores], ['no survivor', ['store-b']]);
    assert.equal(held().why, `the mirrors it can go on from came back empty; store-a, which the set leaves out, can not be reached: start it; if store status shows no other holder there: ${both}`);
    assert.equal(world.log.count('no mirror of this queue has survived'), 0, 'store-a may have');
    assert.deepEqual(world.log.lines.filter(({ text }) => text.startsWith('every mirror that this queue can go on from')).map(({ fields }) => [fields['stores'], fields['left_out'], fields['command']]), [[['store-b'], ['store-a'], both]]);
    world.heal(a);
    world.run(5000);
    assert.equal(held().why, `the mirrors it can go on from came back empty; store-a, which the set leaves out, may have a copy; if store status shows no other holder there: ${command}`);
    restart(a);
    world.run(5000);
    assert.equal(held().why, `no mirror has survived: ${command}`);
    assert.deepEqual(world.gateway.core?.recovery.force({ partition: 'p1', missing: 'store-b', reason: 'no other process runs', who: 'ann' }).map(({ partition }) => partition), ['p1']);
    world.untilLevel();
    world.assertSameContent();
    assert.equal(onlyQueue(world.mirror('q1')).length, 5);
  });

  test('is not told of while a store that has just started is about to say that its copy is gone, too', () => {
    const world = World.started({ queues: [{ name: 'q1' }] });
    world.hops.script = () => 'hang';
    world.submitMany(5, ['q1']);
    world.run(200);
    const [a, b] = [world.store('a'), world.store('b')];
    world.holdAnswers(b, true);
    world.cut(a);
    world.until(() => world.mirror('q1').setChangeNumber !== 0, 20_000, 'the change that drops store-a');
    restart(b);
    world.holdAnswers(b, false);
    restart(a);
    world.heal(a);
    const leftOut = world.mirror('q1').replicas.find(({ store }) => store.storeId === 'store-a');
    world.until(() => leftOut?.store.isUp === true && leftOut.claimSequence !== 0, 20_000, 'the question to store-a');
    world.holdAnswers(a, true);
    world.run(500);
    assert.deepEqual(world.gateway.core?.recovery.held(), []);
    world.holdAnswers(a, false);
    world.untilLevel();
    assert.equal(world.log.lines.filter(({ text }) => text.includes('waits for an operator')).length, 0);
    world.assertSameContent();
  });

  test('points to the store that its last change leaves out, where the holder is another process', () => {
    const group = Group.started();
    group.hops.script = () => 'hang';
    group.submit('gw-1', ['q1']);
    group.run(200);
    const [a, b] = [group.store('a'), group.store('b')];
    // The change to store-b alone never arrives; a rescue takes the queue over by both, and stands still when store-b is lost.
    group.network.holdRequests('gw-1', b.id, true);
    group.network.cut('gw-1', a.id);
    group.until(() => (group.served('gw-1', 'gw-1')[0]?.setChangeNumber ?? 0) !== 0, 'the change that drops store-a');
    group.network.cut('gw-1', b.id);
    group.network.holdRequests('gw-1', b.id, false);
    group.until(() => group.served('gw-2', 'gw-1')[0]?.length === 1, 'the takeover');
    group.freeze('gw-2');
    restart(b);
    for (const store of group.stores) group.network.heal('gw-1', store.id);
    const held = (): HeldPartition | undefined => group.gateway('gw-1').core?.recovery.held()[0];
    group.until(() => held() !== undefined, 'the named state');
    group.run(3 * group.leaseMs);
    assert.deepEqual([held()?.state, held()?.why], ['no survivor', 'the mirrors it can go on from came back empty; store-a, which the set leaves out, may have a copy; if store status shows no other holder there: twinpost rescue --force --partition p1 --owner gw-1 --missing store-b --reason TEXT']);
    assert.equal(a.store === undefined ? '' : queuesOf(a.store, 'q1')[0]?.holder, 'gw-2', 'what store status shows');
    assert.equal(group.served('gw-2', 'gw-1')[0]?.length, 1, 'it has the mail');
    // Who does not look there, and goes on without store-b, founds nothing: the other holder is asked now, and says so.
    const old = group.served('gw-1', 'gw-1')[0];
    assert.ok(old !== undefined);
    const forced = group.gateway('gw-1').core?.recovery.force({ partition: 'p1', missing: b.id, reason: 'no other process has it', who: 'ann' });
    assert.deepEqual(forced?.map(({ outcome }) => outcome), ['later']);
    group.run(3000);
    assert.deepEqual([group.served('gw-1', 'gw-1').includes(old), old.founding, old.inSyncCount], [false, false, 0]);
    assert.deepEqual([held()?.state, group.served('gw-2', 'gw-1')[0]?.length], ['came back empty', 1]);
  });
});
