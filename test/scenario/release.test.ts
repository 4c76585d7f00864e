/**
 * Claims that are given back by a process that does not know what was done with them: the one before it served the
 * queue by the same claims, and what it had under way reached one mirror and not the other.
 */
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import type { Partition } from '../../src/gateway/mirror/partition.js';
import { COMMITTED } from '../../src/gateway/queue/types.js';
import type { MirroredQueue } from '../../src/kvs/core/mirrored-queue.js';
import { ROLE_FILLING } from '../../src/protocol/reasons.js';
import { checkNoDuplicates, checkNoLoss } from './checks.js';
import { Group } from './group.js';
import { queuesOf } from './inspect.js';
import type { StoreNode } from './store-node.js';

function q1At(node: StoreNode): MirroredQueue {
  const queue = node.store === undefined ? undefined : queuesOf(node.store, 'q1')[0];
  assert.ok(queue !== undefined, `${node.id} has the queue`);
  return queue;
}

/** Asserted at each step: what the owner remembered when it was cut off gives it no right any more. */
function neverDeliversBy(group: Group, remembered: Partition, stepMs: number, steps: number): void {
  for (let i = 0; i < steps; i++) {
    group.run(stepMs);
    assert.equal(group.gateway('gw-1').core?.mirrors.mayDeliver(remembered, group.scheduler.nowMs), false, 'the owner goes on from what it remembers');
  }
}

describe('a release', () => {
  test('by the next process of a rescuer that had served the queue lets no owner go on from memory', () => {
    const group = Group.started();
    group.hops.script = () => 'defer';
    for (let i = 0; i < 5; i++) group.submit('gw-1', ['q1']);
    group.run(200);
    assert.equal(group.letters.count(COMMITTED), 5);
    const [remembered] = group.served('gw-1', 'gw-1');
    assert.ok(remembered !== undefined);
    const [a, b] = [group.store('a'), group.store('b')];
    group.freeze('gw-1');
    group.hops.script = () => 'accept';
    group.hops.replyMs = 20;
    group.until(() => group.served('gw-2', 'gw-1')[0]?.inFlightCount === 4, 'the attempts of the rescuer');
    group.network.holdRequests('gw-2', b.id, true);
    const [before, first] = [q1At(b).number, q1At(b).holderToken];
    group.until(() => q1At(a).number > before, 'an end that one mirror hears of');
    group.gateway('gw-2').kill();
    group.network.holdRequests('gw-2', b.id, false);
    assert.equal(q1At(b).number, before, 'and the other does not');
    group.hops.script = () => 'defer';

    // The owner is back at one mirror only, so the next process of the rescuer gives both its claims back.
    group.cutOff('gw-1', true, [b]);
    group.thaw('gw-1');
    group.gateway('gw-2').start();
    group.until(() => q1At(b).holderToken > first, 'the claims of the next process');
    group.until(() => q1At(a).holder === 'gw-1' && q1At(b).holder === 'gw-1', 'their release');
    group.network.cut('gw-1', b.id);
    group.cutOff('gw-1', false, [b]);
    group.network.heal('gw-1', b.id);
    neverDeliversBy(group, remembered, 5, 1000);
    group.hops.script = () => 'accept';
    group.until(() => group.letters.delivered === 5, 'all deliveries');
    group.until(() => group.served('gw-1', 'gw-1').some((mirror) => mirror !== remembered && mirror.inSyncCount === 2), 'the queue at its owner');
    checkNoLoss(group.letters);
  });

  test('frees an owner that fills one mirror while a claim of before the rescuer restarted stands at the other', () => {
    const group = Group.started();
    group.hops.script = () => 'defer';
    for (let i = 0; i < 5; i++) group.submit('gw-1', ['q1']);
    group.run(200);
    const [a, b] = [group.store('a'), group.store('b')];
    const [remembered] = group.served('gw-1', 'gw-1');
    assert.ok(remembered !== undefined);
    b.kill();
    group.until(() => remembered.memberCount === 1 && remembered.setChangeNumber === 0, 'the set of one');
    group.freeze('gw-1');
    b.start();
    group.until(() => group.served('gw-2', 'gw-1').some((mirror) => mirror.inSyncCount === 2), 'the takeover, with both mirrors');
    group.gateway('gw-2').kill();
    b.kill();
    b.start();
    // The owner takes it for the store that it was about to fill, before it hears at the other that it was fenced.
    group.thaw('gw-1');
    group.until(() => b.store !== undefined && queuesOf(b.store, 'q1').some(({ role, holder }) => role === ROLE_FILLING && holder === 'gw-1'), 'a mirror that the owner fills');
    assert.equal(q1At(a).holder, 'gw-2');
    group.gateway('gw-2').start();
    group.until(() => q1At(a).holder === 'gw-1', 'the release');
    // The process that counted on the second mirror is dead, as far as it is known to whoever started its next one.
    const recovery = group.gateway('gw-1').core?.recovery;
    group.until(() => recovery?.held().some(({ state, stores }) => state === 'came back empty' && stores.includes(b.id)) === true, 'what the operator is told');
    recovery?.force({ owner: 'gw-1', partition: 'p1', missing: b.id, reason: 'the rescuer was started again', who: 'ann' });
    group.until(() => group.served('gw-1', 'gw-1').some((mirror) => mirror !== remembered && mirror.inSyncCount === 2), 'the queue at its owner');
    group.hops.script = () => 'accept';
    group.until(() => group.letters.delivered === 5, 'all deliveries');
    checkNoLoss(group.letters);
    checkNoDuplicates(group.letters);
  });

  test('that was lost is made again where the newest set counts on a copy that has not heard of it', () => {
    const group = Group.started();
    group.hops.script = () => 'defer';
    for (let i = 0; i < 5; i++) group.submit('gw-1', ['q1']);
    group.run(200);
    const [remembered] = group.served('gw-1', 'gw-1');
    assert.ok(remembered !== undefined);
    const [a, b] = [group.store('a'), group.store('b')];
    group.freeze('gw-1');
    group.until(() => group.served('gw-2', 'gw-1').length === 1, 'the takeover');
    b.kill();
    group.until(() => group.served('gw-2', 'gw-1').every((mirror) => mirror.memberCount === 1 && mirror.setChangeNumber === 0), 'the set of one');
    b.start();
    group.until(() => group.served('gw-2', 'gw-1').every((mirror) => mirror.setChangeNumber !== 0), 'the change that lets the other join');
    group.network.holdRequests('gw-2', b.id, true);
    group.until(() => q1At(a).members.length === 2, 'that change at the mirror that stayed');
    group.gateway('gw-2').kill();
    group.network.holdRequests('gw-2', b.id, false);
    assert.equal(q1At(b).role, ROLE_FILLING);

    // The claim at the one that joins stands when that at the other is given back.
    const first = q1At(b).holderToken;
    group.run(group.leaseMs);
    group.cutOff('gw-1', true, [b]);
    group.thaw('gw-1');
    group.gateway('gw-2').start();
    group.until(() => q1At(b).holderToken > first, 'the claims of the next process');
    group.network.holdRequests('gw-2', b.id, true);
    group.until(() => q1At(a).holder === 'gw-1', 'a release');
    group.network.cut('gw-2', b.id);
    group.network.holdRequests('gw-2', b.id, false);
    assert.equal(q1At(b).holder, 'gw-2');
    group.cutOff('gw-1', false, [b]);
    group.network.heal('gw-2', b.id);
    group.until(() => q1At(b).holder === 'gw-1', 'the other');
    group.hops.script = () => 'accept';
    group.until(() => group.letters.delivered === 5, 'all deliveries');
    group.until(() => group.served('gw-1', 'gw-1').some((mirror) => mirror !== remembered && mirror.inSyncCount === 2), 'the queue at its owner');
    checkNoLoss(group.letters);
    checkNoDuplicates(group.letters);
  });
});
