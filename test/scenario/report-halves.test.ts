/**
 * Reports in rescue: the source that owes one and the parked copy are two queues, which go home one after the other. There
 * is one report, whoever has which half, and whatever of it the owner has heard.
 */
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { checkNoLoss } from './checks.js';
import { Group } from './group.js';
import type { StoreNode } from './store-node.js';

/** gw-2 tries the one message of gw-1, which is dead, and hears in five seconds that it is rejected; `third` has no mirror of its queue. */
function aboutToReject(): { readonly group: Group; readonly third: StoreNode } {
  const group = Group.started({ stores: 3 });
  group.hops.script = () => 'defer';
  group.submit('gw-1', ['q1']);
  group.run(200);
  const members = (group.served('gw-1', 'gw-1')[0]?.replicas ?? []).map(({ store }) => store.storeId);
  const third = group.stores.find(({ id }) => !members.includes(id));
  assert.ok(third !== undefined);
  group.gateway('gw-1').kill();
  group.hops.script = ({ queueName }) => (queueName === 'senders' ? 'accept' : 'reject');
  group.hops.replyMs = 5000;
  group.until(() => group.served('gw-2', 'gw-1')[0]?.queue.inFlightCount === 1, 'the attempt of the rescuer');
  group.run(10);
  group.hops.replyMs = 2;
  return { group, third };
}

describe('the two halves of a report, of which one has gone home', () => {
  test('a report whose source went to its owner while its copy stayed with the rescuer goes out once', () => {
    const group = Group.started({ stores: 3 });
    group.hops.script = () => 'defer';
    group.submit('gw-1', ['q1']);
    group.run(200);
    const [kept, other] = (group.served('gw-1', 'gw-1')[0]?.replicas ?? []).map(({ store }) => group.stores.find(({ id }) => id === store.storeId));
    const third = group.stores.find((store) => store !== kept && store !== other);
    assert.ok(kept !== undefined && other !== undefined && third !== undefined);
    group.gateway('gw-1').kill();
    group.until(() => group.served('gw-2', 'gw-1').length === 1, 'the takeover');
    group.network.cut('gw-2', other.id);
    group.until(() => group.served('gw-2', 'gw-1').every((mirror) => mirror.memberCount === 1 && mirror.setChangeNumber === 0), 'the set of one');
    group.hops.script = ({ queueName }) => (queueName === 'senders' ? 'accept' : 'reject');
    // The copy is parked; that the source owes no more does not reach the store.
    group.until(() => group.served('gw-2', 'gw-1').some(({ queue }) => queue.name === 'senders' && queue.length === 1) && group.gateway('gw-2').core?.commitPoint.openCount === 0, 'the parked copy');
    group.cutOff('gw-2', true, [kept]);
    for (const store of [other, third]) group.network.cut('gw-1', store.id);
    group.gateway('gw-1').start();
    group.until(() => group.served('gw-1', 'gw-1').some(({ queue }) => queue.name === 'q1' && queue.length === 1), 'the source at its owner');
    group.cutOff('gw-2', false, [kept]);
    group.until(() => group.served('gw-2', 'gw-1').every(({ queue }) => queue.name === 'senders'), 'the loss of the source');
    assert.equal(group.served('gw-2', 'gw-1').length, 1);
    group.run(5000);
    assert.equal(group.hops.reports.length, 0, 'the owner may ask for another');
    for (const store of [other, third]) group.network.heal('gw-1', store.id);
    group.network.heal('gw-2', other.id);
    group.until(() => group.served('gw-2', 'gw-1').length === 0 && group.served('gw-1', 'gw-1').length === 2, 'all queues at their owner');
    group.until(() => group.hops.reports.length > 0, 'the report');
    group.run(10_000);
    assert.equal(group.hops.reports.length, 1);
    checkNoLoss(group.letters);
  });

  test('so it does when a store of the copy dies before the copy is parked for good', () => {
    const { group, third } = aboutToReject();
    group.network.cut('gw-1', third.id);
    group.gateway('gw-1').start();
    group.until(() => group.served('gw-2', 'gw-1')[0]?.queue.isLeaving === true, 'the owner seen');
    group.until(() => group.served('gw-2', 'gw-1').some(({ queue }) => queue.name === 'senders'), 'the bounce queue');
    group.network.holdAnswers('gw-2', third.id, true);
    group.until(() => group.served('gw-2', 'gw-1').every(({ queue }) => queue.name === 'senders'), 'the source at its owner');
    // Without the third store the copy is committed.
    third.kill();
    group.network.holdAnswers('gw-2', third.id, false);
    group.until(() => group.served('gw-2', 'gw-1').length === 0, 'the bounce queue handed back');
    third.start();
    group.network.heal('gw-1', third.id);
    group.until(() => group.hops.reports.length > 0, 'the report');
    group.run(10_000);
    assert.equal(group.hops.reports.length, 1);
    checkNoLoss(group.letters);
  });

  test('a source stays with the rescuer while the copy is on its way to a store', () => {
    const { group, third } = aboutToReject();
    group.gateway('gw-1').start();
    group.until(() => group.served('gw-2', 'gw-1').some(({ queue }) => queue.name === 'senders'), 'the bounce queue');
    group.network.holdRequests('gw-2', third.id, true);
    // No list of any store shows the copy yet, and the mirror is not given up for a while.
    for (let i = 0; i < 90; i++) {
      group.run(10);
      assert.ok(group.served('gw-2', 'gw-1').some(({ queue }) => queue.name === 'q1'), 'its owner would make another report');
    }
    group.network.holdRequests('gw-2', third.id, false);
    group.until(() => group.served('gw-2', 'gw-1').length === 0 && group.served('gw-1', 'gw-1').length === 2, 'all queues at their owner');
    group.until(() => group.hops.reports.length > 0, 'the report');
    group.run(10_000);
    assert.equal(group.hops.reports.length, 1);
    checkNoLoss(group.letters);
  });
});
