/** Owners that were cut off while their queues were served by another, and come back with what they remember. */
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import type { Partition } from '../../src/gateway/mirror/partition.js';
import type { Replica } from '../../src/gateway/mirror/replica.js';
import { SyncState } from '../../src/gateway/mirror/replica.js';
import { COMMITTED } from '../../src/gateway/queue/types.js';
import type { Store } from '../../src/kvs/core/store.js';
import { checkNoDuplicates, checkNoLoss, checkOrder } from './checks.js';
import { Group } from './group.js';
import { queuesOf } from './inspect.js';
import type { StoreNode } from './store-node.js';

describe('hand-back', () => {
  test('an owner that was changing the set when it was cut off gives its memory of the queue up and gets the queue back', () => {
    const group = Group.started({ stores: 3 });
    group.hops.script = () => 'defer';
    for (let i = 0; i < 10; i++) group.submit('gw-1', ['q1']);
    group.run(200);
    assert.equal(group.letters.count(COMMITTED), 10);
    const remembered = group.served('gw-1', 'gw-1')[0];
    assert.ok(remembered !== undefined);
    group.cutOff('gw-1', true);
    group.until(() => remembered.setChangeNumber !== 0 && remembered.inSyncCount === 0, 'the change that no member heard of');
    group.hops.script = () => 'accept';
    group.until(() => group.letters.delivered > 0, 'a rescued delivery');
    group.cutOff('gw-1', false);
    group.until(() => group.letters.delivered === 10, 'all deliveries');
    group.until(() => group.served('gw-1', 'gw-1').some((mirror) => mirror !== remembered && mirror.inSyncCount === 2), 'the queue at its owner');
    assert.equal(group.served('gw-2', 'gw-1').length, 0);
    const fresh = group.submit('gw-1', ['q1']);
    group.until(() => fresh.arrivals.size === 1, 'new mail by the owner');
    checkNoLoss(group.letters);
    checkNoDuplicates(group.letters);
    checkOrder(group.letters, 'q1');
  });

  test('a queue with fewer members than min_replicas goes home, though nothing of it is committed any more', () => {
    const group = Group.started({ minReplicas: 2 });
    group.hops.script = () => 'defer';
    for (let i = 0; i < 5; i++) group.submit('gw-1', ['q1']);
    group.run(200);
    assert.equal(group.letters.count(COMMITTED), 5);
    const [a, b] = [group.store('a'), group.store('b')];
    group.network.cut('gw-1', a.id);
    group.until(() => group.served('gw-1', 'gw-1').every((mirror) => mirror.memberCount === 1 && mirror.setChangeNumber === 0), 'the set of one');
    // The owner holds its lease at a from here on, so a can join no set of the rescuer.
    group.network.cut('gw-1', b.id);
    group.network.heal('gw-1', a.id);
    group.until(() => group.served('gw-2', 'gw-1').length === 1, 'the takeover');
    group.hops.script = () => 'accept';
    group.until(() => group.letters.delivered === 5, 'the rescued deliveries');
    group.run(1000);
    const [rescued] = group.served('gw-2', 'gw-1');
    assert.ok(rescued !== undefined && rescued.committedNumber < rescued.lastNumber);
    group.network.heal('gw-1', b.id);
    group.until(() => group.served('gw-1', 'gw-1').some((mirror) => mirror.inSyncCount === 2), 'the queue at its owner');
    assert.equal(group.served('gw-2', 'gw-1').length, 0);
    const fresh = group.submit('gw-1', ['q1']);
    group.until(() => fresh.arrivals.size === 1, 'new mail by the owner');
    checkNoLoss(group.letters);
    checkNoDuplicates(group.letters);
  });

  test('a rescuer gives a queue up that its owner took back while it was cut off, though the one store that told has restarted since', () => {
    const group = Group.started();
    group.hops.script = () => 'hang';
    for (let i = 0; i < 5; i++) group.submit('gw-1', ['q1']);
    group.run(200);
    assert.equal(group.letters.count(COMMITTED), 5);
    const [a, b] = [group.store('a'), group.store('b')];
    group.freeze('gw-1');
    group.until(() => group.served('gw-2', 'gw-1').length === 1, 'the takeover');
    a.kill();
    group.until(() => group.served('gw-2', 'gw-1').every((mirror) => mirror.memberCount === 1 && mirror.setChangeNumber === 0), 'the set of one');
    group.network.cut('gw-2', b.id);
    group.thaw('gw-1');
    group.hops.script = () => 'accept';
    group.until(() => group.letters.delivered === 5, 'the deliveries by the owner');
    const [own] = group.served('gw-1', 'gw-1');
    assert.ok(own !== undefined);
    const { epoch } = own;
    // The owner fills it from memory. That store has no token of the rescuer any more.
    b.kill();
    b.start();
    group.until(() => own.epoch > epoch && own.inSyncCount === 1, 'the set that the owner founds');
    group.network.heal('gw-2', b.id);
    group.until(() => group.served('gw-2', 'gw-1').length === 0, 'the rescuer without the queue');
    a.start();
    group.until(() => group.served('gw-1', 'gw-1').some((mirror) => mirror.inSyncCount === 2), 'both mirrors');
    const fresh = group.submit('gw-1', ['q1']);
    group.until(() => fresh.arrivals.size === 1, 'new mail by the owner');
    checkNoLoss(group.letters);
  });

  test('a rescuer that was cut off does not fill a store from memory that has a newer set, though its claim is granted', () => {
    const group = Group.started();
    group.hops.script = () => 'hang';
    for (let i = 0; i < 5; i++) group.submit('gw-1', ['q1']);
    group.run(200);
    assert.equal(group.letters.count(COMMITTED), 5);
    const [a, b] = [group.store('a'), group.store('b')];
    group.freeze('gw-1');
    group.until(() => group.served('gw-2', 'gw-1').length === 1, 'the takeover');
    a.kill();
    group.until(() => group.served('gw-2', 'gw-1').every((mirror) => mirror.memberCount === 1 && mirror.setChangeNumber === 0), 'the set of one');
    group.network.cut('gw-2', b.id);
    group.thaw('gw-1');
    group.hops.script = () => 'accept';
    group.until(() => group.letters.delivered === 5, 'the deliveries by the owner');
    const [own] = group.served('gw-1', 'gw-1');
    assert.ok(own !== undefined);
    const { epoch } = own;
    // The owner fills it from memory. That store has no token of the rescuer any more.
    b.kill();
    b.start();
    group.until(() => own.epoch > epoch && own.inSyncCount === 1, 'the set that the owner founds');
    group.hops.script = () => 'hang';
    const fresh = group.submit('gw-1', ['q1']);
    group.run(200);
    assert.equal(fresh.outcome, COMMITTED);
    group.gateway('gw-1').kill();
    group.run(2 * group.leaseMs);
    group.hops.script = () => 'accept';
    group.network.heal('gw-2', b.id);
    group.until(() => fresh.arrivals.size === 1, 'what only the owner had taken');
    checkNoLoss(group.letters);
  });

  for (const isFromFile of [false, true]) {
    const beside = isFromFile ? ', beside a copy out of a file, too' : '';
    test(`a copy that a store brought back in its file, after the rescuer had moved the queue away from it, does not keep the owner from a mirror there${beside}`, () => {
      const group = Group.started();
      group.hops.script = () => 'defer';
      for (let i = 0; i < 5; i++) group.submit('gw-1', ['q1']);
      group.run(200);
      assert.equal(group.letters.count(COMMITTED), 5);
      const b = group.store('b');
      group.freeze('gw-1');
      group.until(() => group.served('gw-2', 'gw-1').length === 1, 'the takeover');
      b.leave(5000, true, () => { b.kill(); });
      group.until(() => !b.isAlive, 'the end of store-b');
      group.until(() => group.served('gw-2', 'gw-1').every((mirror) => mirror.memberCount === 1 && mirror.setChangeNumber === 0), 'the set of one');
      group.thaw('gw-1');
      group.until(() => group.served('gw-2', 'gw-1').length === 0 && group.served('gw-1', 'gw-1').some((mirror) => mirror.inSyncCount === 1), 'the queue at its owner');
      if (isFromFile) {
        // The only member stops and comes back with its file, and the owner is another process by then.
        const a = group.store('a');
        group.gateway('gw-1').kill();
        a.leave(0, true, () => { a.kill(); });
        group.until(() => !a.isAlive, 'the end of store-a');
        a.start();
        group.gateway('gw-1').start();
      }
      b.start();
      assert.equal(b.loadedCopies, 1);
      group.until(() => group.served('gw-1', 'gw-1').some((mirror) => mirror.inSyncCount === 2), 'both mirrors');
      group.hops.script = () => 'accept';
      group.until(() => group.letters.delivered === 5, 'the deliveries');
      checkNoLoss(group.letters);
      checkNoDuplicates(group.letters);
    });
  }

  test('an owner that is thawed never delivers by a mirror that the rescuer has dropped', () => {
    const { group, remembered, kept } = droppedMeanwhile();
    // The owner hears of the takeover at one store only: the one that has forgotten the queue.
    group.cutOff('gw-1', true, [kept]);
    group.thaw('gw-1');
    for (let i = 0; i < 3000; i++) {
      group.run(1);
      for (const mirror of group.served('gw-1', 'gw-1')) assert.equal(group.gateway('gw-1').core?.mirrors.mayDeliver(mirror, group.scheduler.nowMs), false);
    }
    group.cutOff('gw-1', false, [kept]);
    judged(group, remembered);
  });

  test('an owner that never read an answer to its first OPEN does not deliver by a mirror that the rescuer has dropped', () => {
    const group = Group.started({ stores: 3 });
    group.hops.script = () => 'defer';
    for (const store of group.stores) group.network.holdAnswers('gw-1', store.id, true);
    for (let i = 0; i < 5; i++) group.submit('gw-1', ['q1']);
    group.run(20);
    const [remembered] = group.served('gw-1', 'gw-1');
    assert.ok(remembered !== undefined);
    assert.ok(remembered.replicas.every((replica) => replica.acked === 0), 'it has read nothing');
    // One after the other, so that a change of the set to the one that will be dropped is under way.
    const [first, second] = remembered.replicas;
    group.network.cut('gw-1', second?.store.storeId ?? '');
    group.until(() => second?.sync === SyncState.NG, 'the loss of one mirror');
    assert.ok(first?.inSync === true);
    for (const store of group.stores) group.network.cut('gw-1', store.id);
    for (const store of group.stores) group.network.holdAnswers('gw-1', store.id, false);
    const { dropped, kept } = rescuedAndMoved(group, remembered);
    group.network.heal('gw-1', dropped.id);
    for (let i = 0; i < 3000; i++) {
      group.run(1);
      for (const mirror of group.served('gw-1', 'gw-1')) assert.equal(group.gateway('gw-1').core?.mirrors.mayDeliver(mirror, group.scheduler.nowMs), false, 'two may deliver');
    }
    for (const store of [kept, ...group.stores]) group.network.heal('gw-1', store.id);
    group.hops.script = () => 'accept';
    group.until(() => group.served('gw-2', 'gw-1').length === 0 && group.served('gw-1', 'gw-1').some((mirror) => mirror.inSyncCount === 2), 'the queue at its owner');
    group.run(5000);
    checkNoLoss(group.letters);
    checkNoDuplicates(group.letters);
  });

  test('a mirror that the rescuer has dropped is not made again out of the owner\'s memory', () => {
    const { group, remembered, dropped, kept } = droppedMeanwhile();
    const at = (store: StoreNode): Replica | undefined => remembered.replicas.find((replica) => replica.store.storeId === store.id);
    group.thaw('gw-1');
    group.until(() => (at(dropped)?.attachSequence ?? 0) !== 0, 'the question that makes an empty copy');
    group.network.holdRequests('gw-1', dropped.id, true);
    group.until(() => at(kept)?.fenced === true && remembered.setChangeNumber !== 0, 'the change of the set, right behind the question');
    group.network.holdRequests('gw-1', dropped.id, false);
    judged(group, remembered);
  });

  /** The rescuer that left a mirror behind is cut off from it when it gives the queue back, then hears of it first. */
  function leftBehind(group: Group, tellsLater: (kept: StoreNode) => void): void {
    group.hops.script = () => 'defer';
    for (let i = 0; i < 5; i++) group.submit('gw-1', ['q1']);
    group.run(200);
    const [remembered] = group.served('gw-1', 'gw-1');
    assert.ok(remembered !== undefined);
    const [left, kept] = remembered.replicas.map(({ store }) => group.stores.find(({ id }) => id === store.storeId));
    assert.ok(left !== undefined && kept !== undefined);
    group.freeze('gw-1');
    group.until(() => group.served('gw-2', 'gw-1').length === 1, 'the takeover');
    group.network.cut('gw-2', left.id);
    group.until(() => group.served('gw-2', 'gw-1').every((mirror) => mirror.memberCount === 1 && mirror.setChangeNumber === 0), 'the set of one');
    // The owner is fenced at one mirror and goes on with the other, of which it hears nothing.
    group.cutOff('gw-1', true, [left]);
    group.thaw('gw-1');
    group.until(() => remembered.setChangeNumber !== 0, 'the change of the set at the owner');
    group.network.cut('gw-1', left.id);
    group.cutOff('gw-1', false, [left]);
    group.until(() => group.served('gw-2', 'gw-1').length === 0, 'the hand-back');
    group.until(() => queuesOf(present(kept), 'q1').every((queue) => queue.mustClaim), 'the release');
    // The rescuer, which has forgotten that it served the queue, hears of the copy it left before it hears of the newest set.
    group.network.holdAnswers('gw-2', kept.id, true);
    group.network.heal('gw-2', left.id);
    const known = group.log.lines.length;
    group.until(() => group.log.lines.slice(known).some(({ text, fields }) => text === 'path to the store is active' && fields['store'] === left.id), 'the store that was left behind');
    group.run(300);
    group.network.holdAnswers('gw-2', kept.id, false);
    tellsLater(kept);
    group.run(50);
    group.network.heal('gw-1', left.id);
    for (let i = 0; i < 3000; i++) {
      group.run(1);
      assert.equal(group.gateway('gw-1').core?.mirrors.mayDeliver(remembered, group.scheduler.nowMs), false, 'the owner goes on from what it remembers');
    }
    group.network.heal('gw-2', kept.id);
    judged(group, remembered);
  }

  test('an owner does not go on with a mirror that its rescuer has left behind', () => {
    leftBehind(Group.started({ stores: 3 }), () => {});
  });

  test('nor when the rescuer can not ask the mirror that it kept', () => {
    const group = Group.started({ stores: 3 });
    leftBehind(group, (kept) => { group.network.cut('gw-2', kept.id); });
  });
});

function present(node: StoreNode): Store {
  assert.ok(node.store !== undefined, `${node.id} runs`);
  return node.store;
}

interface DroppedMeanwhile {
  readonly group: Group;
  /** The queue as its owner remembers it. */
  readonly remembered: Partition;
  readonly dropped: StoreNode;
  readonly kept: StoreNode;
}

/** The owner is frozen, its queue rescued; the rescuer has moved it away from one of its two stores. */
function droppedMeanwhile(): DroppedMeanwhile {
  const group = Group.started({ stores: 3 });
  group.hops.script = () => 'defer';
  for (let i = 0; i < 5; i++) group.submit('gw-1', ['q1']);
  group.run(200);
  const [remembered] = group.served('gw-1', 'gw-1');
  assert.ok(remembered !== undefined);
  group.freeze('gw-1');
  return { group, remembered, ...rescuedAndMoved(group, remembered) };
}

/** The owner is silent: its neighbour takes the queue over, and moves it away from one of its two stores. */
function rescuedAndMoved(group: Group, remembered: Partition): Pick<DroppedMeanwhile, 'dropped' | 'kept'> {
  const [dropped, kept] = remembered.replicas.map(({ store }) => group.stores.find(({ id }) => id === store.storeId));
  assert.ok(dropped !== undefined && kept !== undefined);
  group.until(() => group.served('gw-2', 'gw-1').length === 1, 'the takeover');
  group.gateway('gw-2').core?.mirrors.moves.drain(dropped.id);
  group.until(() => dropped.store !== undefined && queuesOf(dropped.store, 'q1').length === 0, 'the drop');
  return { dropped, kept };
}

/** The owner has it back as the rescuer left it, and all mail goes out once. */
function judged(group: Group, remembered: Partition): void {
  group.hops.script = () => 'accept';
  group.until(() => group.letters.delivered === 5, 'all deliveries');
  group.until(() => group.served('gw-1', 'gw-1').some((mirror) => mirror !== remembered && mirror.inSyncCount === 2), 'the queue at its owner');
  checkNoLoss(group.letters);
  checkNoDuplicates(group.letters);
}
