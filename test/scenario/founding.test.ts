/**
 * A set that is founded has one store that decides: until it has the change nobody else hears of it, for another
 * gateway may have taken that store over meanwhile (src/gateway/mirror/replica-set.ts, THE RULE OF FOUNDING).
 */
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import type { Partition } from '../../src/gateway/mirror/partition.js';
import type { MirroredQueue } from '../../src/kvs/core/mirrored-queue.js';
import { ResyncPhase } from '../../src/gateway/mirror/replica.js';
import { COMMITTED } from '../../src/gateway/queue/types.js';
import { ROLE_FILLING, ROLE_MEMBER } from '../../src/protocol/reasons.js';
import { checkNoDuplicates, checkNoLoss } from './checks.js';
import { Group } from './group.js';
import { queuesOf } from './inspect.js';
import type { StoreNode } from './store-node.js';

function membersAt(store: StoreNode): MirroredQueue[] {
  return store.store === undefined ? [] : queuesOf(store.store).filter((queue) => queue.role === ROLE_MEMBER);
}

/** Five messages of gw-1 that are committed and put off. */
function deferring(group: Group): Partition {
  group.hops.script = () => 'defer';
  for (let i = 0; i < 5; i++) group.submit('gw-1', ['q1']);
  group.run(200);
  assert.equal(group.letters.count(COMMITTED), 5);
  const [own] = group.served('gw-1', 'gw-1');
  assert.ok(own !== undefined);
  return own;
}

function membersOf(group: Group, own: Partition): readonly [StoreNode, StoreNode] {
  const [first, second] = own.replicas.map(({ store }) => group.stores.find(({ id }) => id === store.storeId));
  assert.ok(first !== undefined && second !== undefined);
  return [first, second];
}

function deliveredOnce(group: Group): void {
  group.hops.script = () => 'accept';
  group.until(() => group.letters.delivered === 5, 'the deliveries');
  checkNoLoss(group.letters);
  checkNoDuplicates(group.letters);
}

describe('founding', () => {
  test('with two copies out of files is told to the one that was to go on alone, before the other: a rescuer may have it', () => {
    const group = Group.started({ stores: 3 });
    const own = deferring(group);
    const [stays, leaves] = membersOf(group, own);
    // The change that drops one of them never reaches the other, which stops, too. Both come back with their files.
    group.network.holdRequests('gw-1', stays.id, true);
    leaves.leave(0, true, () => { leaves.kill(); });
    group.until(() => own.setChangeNumber !== 0, 'the change that drops a mirror');
    stays.leave(0, true, () => { stays.kill(); });
    group.until(() => !leaves.isAlive && !stays.isAlive, 'the end of both stores');
    group.network.holdRequests('gw-1', stays.id, false);
    stays.start();
    assert.equal(stays.loadedCopies, 1);
    // With its tail it gets the change: from here on whoever claims it may have the queue.
    group.until(() => membersAt(stays).length === 1, 'the set of one, at its store');
    assert.ok(own.replicas.some(({ phase }) => phase === ResyncPhase.TAILING), 'the owner has not heard that it is');
    group.freeze('gw-1');
    group.until(() => group.served('gw-2', 'gw-1').some((mirror) => mirror.inSyncCount === 2), 'the takeover, with a second mirror');
    leaves.start();
    group.thaw('gw-1');
    group.until(() => group.served('gw-1', 'gw-1').every((mirror) => mirror !== own), 'the owner without what it remembered');
    assert.deepEqual(membersAt(leaves), [], 'nobody told it of a set');
    group.until(() => group.served('gw-1', 'gw-1').some((mirror) => mirror.inSyncCount === 2), 'the queue at its owner');
    deliveredOnce(group);
  });

  test('with two whole copies is told to the one that was the last set, alone: a rescuer may have it, and not need the other', () => {
    const group = Group.started({ stores: 3 });
    const own = deferring(group);
    const [left, last] = membersOf(group, own);
    left.leave(0, true, () => { left.kill(); });
    group.until(() => own.memberCount === 1 && own.setChangeNumber === 0, 'the set of the last one');
    last.leave(0, true, () => { last.kill(); });
    group.until(() => !left.isAlive && !last.isAlive, 'the end of both stores');
    left.start();
    const first = own.replicas[0];
    group.until(() => first?.phase === ResyncPhase.CAUGHT_UP, 'the copy of the one that had left');
    assert.equal(first?.store.storeId, left.id);
    last.start();
    group.until(() => last.store !== undefined && queuesOf(last.store, 'q1').some((queue) => queue.isClaimOfThisBoot), 'the claim at the last one');
    group.freeze('gw-1');
    assert.equal(own.founding, false, 'the owner has not heard that the claim was granted');
    group.until(() => group.served('gw-2', 'gw-1').length === 1, 'the takeover');
    group.thaw('gw-1');
    group.until(() => group.served('gw-1', 'gw-1').every((mirror) => mirror !== own), 'the owner without what it remembered');
    assert.deepEqual(membersAt(left), [], 'nobody told it of a set');
    group.until(() => group.served('gw-1', 'gw-1').some((mirror) => mirror.inSyncCount === 2), 'the queue at its owner');
    deliveredOnce(group);
  });

  test('is nothing for an owner that finds a newer set at another store: the queue went on there while it stood still', () => {
    const group = Group.started({ stores: 3 });
    const own = deferring(group);
    const [first, second] = membersOf(group, own);
    group.freeze('gw-1');
    group.until(() => group.served('gw-2', 'gw-1').some((mirror) => mirror.inSyncCount === 2), 'the takeover');
    // The rescuer moves the queue from both stores, which never come back, to the third one.
    first.kill();
    group.until(() => group.served('gw-2', 'gw-1').some((mirror) => mirror.inSyncCount === 2 && mirror.epoch >= 3), 'a mirror at the third store', 90_000);
    second.kill();
    group.until(() => group.served('gw-2', 'gw-1').some((mirror) => mirror.memberCount === 1 && mirror.setChangeNumber === 0), 'the set of one');
    group.thaw('gw-1');
    group.until(() => group.served('gw-1', 'gw-1').some((mirror) => mirror !== own && mirror.inSyncCount === 1), 'the queue at its owner', 90_000);
    deliveredOnce(group);
  });

  test('by force stops at a copy that another holds: what the operator gave up is not waited for', () => {
    const group = Group.started({ stores: 3 });
    const own = deferring(group);
    const [dropped, named] = membersOf(group, own);
    group.network.cut('gw-1', dropped.id);
    group.until(() => own.setChangeNumber !== 0, 'the change that drops a mirror');
    group.network.cut('gw-1', named.id);
    group.until(() => group.served('gw-2', 'gw-1').some((mirror) => mirror.inSyncCount === 2), 'the takeover');
    group.gateway('gw-2').kill();
    named.kill();
    group.network.heal('gw-1', dropped.id);
    const recovery = group.gateway('gw-1').core?.recovery;
    assert.ok(recovery !== undefined);
    group.until(() => recovery.held().some(({ state }) => state === 'members silent'), 'what the operator is told', 90_000);
    const order = { owner: 'gw-1', queue: 'p1', missing: named.id, reason: 'lost for good', who: 'ann' };
    recovery.force(order);
    group.until(() => group.served('gw-1', 'gw-1').length === 0, 'what it remembered is given up');
    // Now it is the copies that go on without the lost one: that is another thing to say.
    group.until(() => recovery.held().some(({ stores }) => stores.includes(named.id)), 'what the operator is told again');
    recovery.force(order);
    group.until(() => group.served('gw-1', 'gw-1').some((mirror) => mirror !== own && mirror.inSyncCount > 0), 'the queue at its owner', 90_000);
    deliveredOnce(group);
  });

  test('goes on without a copy that the owner from before is filling: that store has lost what it had of the set', () => {
    const group = Group.started();
    const remembered = deferring(group);
    const [decides, left] = membersOf(group, remembered);
    group.freeze('gw-1');
    group.until(() => group.served('gw-2', 'gw-1')[0]?.length === 5, 'the takeover');
    const rescued = group.served('gw-2', 'gw-1')[0];
    assert.ok(rescued !== undefined);
    // The change to the one that decides is not answered when that one restarts, empty; its former owner is the first to see it.
    group.network.holdRequests('gw-2', decides.id, true);
    group.network.cut('gw-2', left.id);
    group.until(() => rescued.setChangeNumber !== 0, 'the change that drops a mirror');
    group.network.cut('gw-2', decides.id);
    group.network.holdRequests('gw-2', decides.id, false);
    decides.kill();
    decides.start();
    group.network.cut('gw-1', left.id);
    group.thaw('gw-1');
    group.until(() => decides.store !== undefined && queuesOf(decides.store, 'q1').some(({ role, holder }) => role === ROLE_FILLING && holder === 'gw-1'), 'the copy that its former owner fills');
    for (const store of [left, decides]) group.network.heal('gw-2', store.id);
    group.until(() => rescued.inSyncCount > 0, 'the set that the rescuer founds');
    group.network.heal('gw-1', left.id);
    deliveredOnce(group);
    group.until(() => group.served('gw-1', 'gw-1').some((mirror) => mirror !== remembered && mirror.inSyncCount === 2), 'the queue at its owner');
  });
});
