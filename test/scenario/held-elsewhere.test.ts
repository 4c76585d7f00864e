/**
 * An owner that is back while a rescuer has its queue, of which no store has a copy any more: the mail is in the
 * rescuer's memory. A strict queue is not begun anew beside it (G3); its operator may say that nobody has it.
 */
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { COMMITTED } from '../../src/gateway/queue/types.js';
import type { HeldPartition } from '../../src/recovery/waiting-queues.js';
import { checkNoDuplicates, checkNoLoss, checkOrder } from './checks.js';
import { Group } from './group.js';
import { hasQueue, onlyQueue } from './inspect.js';

const COUNT = 5;

/**
 * gw-2 has five messages of gw-1's strict queue in memory and waits for its operator; gw-1 is back, and all stores are empty.
 * `meanwhile` is done when gw-1 waits for store-b.
 */
function emptied(meanwhile: (group: Group) => void = () => {}, script: 'defer' | 'unreachable' = 'defer'): Group {
  const group = Group.started({ queues: [{ name: 'q1', ordering: 'strict' }, { name: 'q2' }] });
  group.hops.script = () => script;
  for (let i = 0; i < COUNT; i++) group.submit('gw-1', ['q1']);
  group.run(200);
  group.gateway('gw-1').kill();
  group.until(() => group.served('gw-2', 'gw-1').length === 1, 'the takeover');
  const [a, b] = [group.store('a'), group.store('b')];
  group.network.cut('gw-2', a.id);
  group.until(() => group.served('gw-2', 'gw-1').every((mirror) => mirror.memberCount === 1 && mirror.setChangeNumber === 0), 'the set of one');
  group.gateway('gw-1').start();
  group.until(() => group.gateway('gw-1').core?.recovery.expects() === 'held', 'the queue seen at the rescuer\'s');
  // store-a forgets what it had; store-b does, too, and its restart is told to the rescuer when its lease there is long over.
  a.kill();
  a.start();
  group.network.cut('gw-2', b.id);
  b.kill();
  group.run(2 * group.leaseMs);
  meanwhile(group);
  b.start();
  for (const store of group.stores) group.network.heal('gw-2', store.id);
  group.until(() => heldAt(group, 'gw-2')?.state === 'no survivor', 'the rescuer waits');
  group.run(2 * group.leaseMs);
  return group;
}

function heldAt(group: Group, id: string): HeldPartition | undefined {
  return group.gateway(id).core?.recovery.held().find(({ partition }) => partition === 'p1');
}

function refused(group: Group): boolean {
  const letter = group.submit('gw-1', ['q1']);
  group.run(500);
  return letter.outcome !== COMMITTED;
}

describe('a queue that only its rescuer has, in memory', () => {
  test('is held at its owner, told once, and not begun anew when it is strict; it comes home when its operator has it founded', () => {
    const group = emptied();
    const held = heldAt(group, 'gw-1');
    assert.deepEqual([held?.state, held?.owner], ['held elsewhere', 'gw-1']);
    assert.match(held?.why ?? '', /gw-2 had it and may have its mail in memory/);
    assert.equal(group.log.count('no store has a copy of it any more'), 1);
    assert.ok(refused(group), 'new mail would overtake what the rescuer has');
    const other = group.submit('gw-1', ['q2']);
    group.run(500);
    assert.equal(other.outcome, COMMITTED, 'other queues go on');
    assert.deepEqual(group.gateway('gw-2').core?.recovery.force({ partition: 'p1', missing: 'store-b', reason: 'nobody else had it', who: 'ann' }).length, 1);
    group.hops.script = () => 'accept';
    group.until(() => group.letters.delivered >= COUNT + 1, 'all deliveries');
    group.until(() => group.served('gw-1', 'gw-1').some((one) => hasQueue(one, 'q1')), 'the queue at its owner');
    assert.equal(heldAt(group, 'gw-1'), undefined);
    group.until(() => group.served('gw-1', 'gw-1').every(({ isRecovering }) => !isRecovering), 'all of it');
    assert.equal(refused(group), false);
    checkNoLoss(group.letters);
    checkOrder(group.letters, 'q1');
    checkNoDuplicates(group.letters);
  });

  test('is not given up with a store that it waited for, nor by an order for all queues', () => {
    const group = emptied();
    assert.deepEqual(group.gateway('gw-1').core?.recovery.force({ owner: 'gw-1', missing: 'store-b', reason: 'burnt', who: 'ann' }), []);
    assert.equal(heldAt(group, 'gw-1')?.state, 'held elsewhere');
    assert.ok(refused(group));

    const other = emptied((before) => {
      const core = before.gateway('gw-1').core;
      assert.deepEqual(heldAt(before, 'gw-1')?.stores, ['store-b']);
      assert.deepEqual(core?.recovery.force({ partition: 'p1', missing: 'store-b', reason: 'burnt', who: 'ann' }).map(({ outcome }) => outcome), ['elsewhere']);
    });
    assert.equal(heldAt(other, 'gw-1')?.state, 'held elsewhere');
    assert.ok(refused(other));
  });

  test('is not handed back: what the rescuer has in memory is all that is left', () => {
    // Nothing is tried, so that all that was changed is committed.
    const group = emptied(() => {}, 'unreachable');
    group.submit('gw-1', ['q2']);
    group.run(500);
    group.gateway('gw-1').kill();
    group.until(() => group.served('gw-2', 'gw-1').some((one) => hasQueue(one, 'q2')), 'the takeover of another queue');
    group.gateway('gw-1').start();
    // By that one the rescuer sees that the owner is back at each store.
    group.until(() => group.served('gw-2', 'gw-1').every((one) => hasQueue(one, 'q1')), 'the other queue handed back');
    group.run(3 * group.leaseMs);
    assert.deepEqual(group.served('gw-2', 'gw-1').map((one) => [onlyQueue(one).name, one.length]), [['q1', COUNT]]);
    assert.equal(heldAt(group, 'gw-2')?.state, 'no survivor');
  });

  test('may be begun anew when an operator has given it up', () => {
    const group = emptied();
    group.gateway('gw-2').kill();
    group.run(3 * group.leaseMs);
    const owner = group.gateway('gw-1').core;
    const [missing] = heldAt(group, 'gw-1')?.stores ?? [];
    assert.ok(owner !== undefined && missing !== undefined);
    assert.equal(owner.recovery.expects(), 'held');
    const forced = owner.recovery.force({ partition: 'p1', missing, reason: 'gw-2 is gone', who: 'ann' });
    assert.deepEqual(forced.map(({ outcome }) => outcome), ['gone']);
    assert.equal(owner.recovery.expects(), '');
    assert.equal(heldAt(group, 'gw-1'), undefined);
  });
});
