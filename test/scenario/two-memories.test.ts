/**
 * An owner and its rescuer that both have a queue in memory, while the one store that decides between them is lost for
 * good: both wait for their operator. He goes on at the owner, whose memory has all mail that clients sent
 * (src/gateway/mirror/lost-sets.ts); the rescuer gives up what it has by the set that is founded.
 */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { HeldPartition } from '../../src/recovery/waiting-queues.js';
import { checkNoDuplicates, checkNoLoss, checkOrder } from './checks.js';
import { Group } from './group.js';
import { hasQueue } from './inspect.js';

const COUNT = 5;

function heldAt(group: Group, id: string): HeldPartition | undefined {
  return group.gateway(id).core?.recovery.held().find(({ partition }) => partition === 'p1');
}

/** gw-1 has five messages. store-a has the set without store-b; its owner does not hear so, and is cut off from both. */
function cutOff(): Group {
  const group = Group.started();
  group.hops.script = () => 'defer';
  for (let i = 0; i < COUNT; i++) group.submit('gw-1', ['q1']);
  group.run(200);
  const [a, b] = [group.store('a'), group.store('b')];
  group.network.holdAnswers('gw-1', a.id, true);
  group.network.cut('gw-1', b.id);
  group.until(() => (group.served('gw-1', 'gw-1')[0]?.setChangeNumber ?? 0) !== 0, 'the change that drops store-b');
  group.run(50);
  group.network.cut('gw-1', a.id);
  return group;
}

/** Both have the five messages in memory, and wait for store-a, which is lost. */
function twice(): Group {
  const group = cutOff();
  const [a, b] = [group.store('a'), group.store('b')];
  group.network.cut('gw-2', b.id);
  group.until(() => group.served('gw-2', 'gw-1')[0]?.length === COUNT && group.gateway('gw-2').core?.recovery.isIdle === true, 'the takeover');
  a.kill();
  group.network.holdAnswers('gw-1', a.id, false);
  for (const id of ['gw-1', 'gw-2']) group.network.heal(id, b.id);
  group.until(() => heldAt(group, 'gw-1')?.state === 'members silent' && heldAt(group, 'gw-2')?.state === 'members silent', 'both wait');
  return group;
}

test('a queue in two memories goes on at its owner by the operator\'s word, and the rescuer gives its own up', () => {
  const group = twice();
  assert.doesNotMatch(heldAt(group, 'gw-1')?.why ?? '', /too/);
  assert.match(heldAt(group, 'gw-2')?.why ?? '', /if gw-1 has this queue \(gw-1\/\d+\/1\) in memory, too, as members silent or no survivor in its status, go on with one of the two and export the other first: .*: twinpost rescue --force --partition p1 --owner gw-1 --missing store-a/);
  assert.equal(group.letters.delivered, 0);

  const forced = group.gateway('gw-1').core?.recovery.force({ partition: 'p1', missing: 'store-a', reason: 'burnt', who: 'ann' });
  assert.equal(forced?.length, 1);
  group.hops.script = () => 'accept';
  group.until(() => group.letters.delivered === COUNT, 'all deliveries');
  group.until(() => group.served('gw-2', 'gw-1').length === 0, 'the rescuer gives it up');
  assert.equal(heldAt(group, 'gw-1'), undefined);
  group.until(() => heldAt(group, 'gw-2') === undefined, 'nothing is told to be held');
  checkNoLoss(group.letters);
});

test('a queue in two memories goes on at the rescuer by the operator\'s word, when its owner gives no store free and is stopped for a while', () => {
  const group = twice();
  assert.equal(group.gateway('gw-2').core?.recovery.force({ partition: 'p1', missing: 'store-a', reason: 'burnt', who: 'ann' }).length, 1);
  group.hops.script = () => 'accept';
  group.until(() => heldAt(group, 'gw-2')?.state === 'no store free', 'the named state');
  assert.equal(heldAt(group, 'gw-2')?.why, 'no mirror is in sync, and no store takes a copy: store-a is silent, store-b says that another gateway holds it, whose lease runs; start store-a, or stop the gateway that holds it (gw-1, or one that goes on for it: twinpost store status shows which) for longer than a lease, until this queue has a mirror, or export what is here and go on there');
  group.run(3 * group.leaseMs);
  assert.equal(group.letters.delivered, 0);
  group.gateway('gw-1').kill();
  group.until(() => group.letters.delivered === COUNT, 'all deliveries');
  group.gateway('gw-1').start();
  group.until(() => group.served('gw-1', 'gw-1').some((one) => hasQueue(one, 'q1')), 'the queue at its owner');
  assert.equal(heldAt(group, 'gw-2'), undefined);
  checkNoLoss(group.letters);
  checkNoDuplicates(group.letters);
});

test('an owner whose queue a rescuer has moved on and given back has it again, though the store that it waits for is lost for good', () => {
  const group = cutOff();
  const [a, b] = [group.store('a'), group.store('b')];
  // store-b, which the owner's open change leaves out, has a newer set.
  group.until(() => group.served('gw-2', 'gw-1').some(({ inSyncCount }) => inSyncCount === 2), 'the takeover');
  const [remembered] = group.served('gw-1', 'gw-1');
  a.kill();
  group.network.holdAnswers('gw-1', a.id, false);
  group.network.heal('gw-1', b.id);
  group.until(() => group.served('gw-2', 'gw-1').length === 0, 'the hand-back');
  group.hops.script = () => 'accept';
  group.until(() => group.letters.delivered === COUNT, 'all deliveries');
  const [mirror] = group.served('gw-1', 'gw-1');
  assert.notEqual(mirror, remembered);
  assert.equal(heldAt(group, 'gw-1'), undefined);
  checkNoLoss(group.letters);
  checkNoDuplicates(group.letters);
  checkOrder(group.letters, 'q1');
});
