/**
 * Who may own a queue when stores restart beside processes that live on: counterexamples of docs/model, played with the
 * real parts. Each story goes wrong without the rule that its title names (G5). More of them: lost-sets.test.ts.
 */
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import type { MirroredQueue } from '../../src/kvs/core/mirrored-queue.js';
import type { Partition } from '../../src/gateway/mirror/partition.js';
import { ResyncPhase } from '../../src/gateway/mirror/replica.js';
import { ROLE_FILLING, ROLE_MEMBER } from '../../src/protocol/reasons.js';
import { COMMITTED } from '../../src/gateway/queue/types.js';
import { checkNoDuplicates, checkNoLoss } from './checks.js';
import { Group } from './group.js';
import type { GroupOptions } from './group.js';
import { queuesOf } from './inspect.js';
import type { StoreNode } from './store-node.js';

const LETTERS = 5;
/** Taken by a set that store-a has not heard of. */
const LATER = 3;

function restart(store: StoreNode): void {
  store.kill();
  store.start();
}

/** gw-1 holds some messages that do not leave. */
function loaded(options: GroupOptions = {}): Group {
  const group = Group.started(options);
  group.hops.script = () => 'hang';
  for (let i = 0; i < LETTERS; i++) group.submit('gw-1', ['q1']);
  group.run(200);
  assert.equal(group.letters.count(COMMITTED), LETTERS);
  return group;
}

function queueAt(node: StoreNode): MirroredQueue | undefined {
  return node.store === undefined ? undefined : queuesOf(node.store, 'q1')[0];
}

function stateAt(group: Group, id: string): string | undefined {
  return group.gateway(id).core?.recovery.held().find(({ partition }) => partition === 'p1')?.state;
}

/** Members of gw-1's queue, in the order of their names; then the stores that are none. */
function storesOf(group: Group): readonly StoreNode[] {
  const members = group.served('gw-1', 'gw-1')[0]?.replicas.map(({ store }) => store.storeId) ?? [];
  return [...group.stores].sort((a, b) => Number(members.includes(b.id)) - Number(members.includes(a.id)));
}

/** It heard of the restart too late to go on by itself; its operator knows that nobody else has the mail. */
function goOnByCommand(group: Group, id: string, lost: StoreNode): void {
  group.until(() => stateAt(group, id) === 'no survivor', 'the named state');
  const names = group.gateway(id).core?.recovery.force({ partition: 'p1', missing: lost.id, reason: 'the owner is stopped', who: 'ann' });
  assert.deepEqual(names?.map(({ partition }) => partition), ['p1']);
}

function deliverAll(group: Group, letters = LETTERS): void {
  group.hops.script = () => 'accept';
  group.until(() => group.letters.delivered === letters, 'all deliveries');
  group.run(2000);
  checkNoLoss(group.letters);
  checkNoDuplicates(group.letters);
}

/**
 * store-a shows the set {a, b} still. The owner went on with b alone, and took more; b restarted, and it fills it, when it
 * is cut off from there, too. It lives.
 */
function filledByOneThatIsCutOff(): Group {
  const group = loaded();
  const [a, b] = [group.store('a'), group.store('b')];
  group.network.cut('gw-1', a.id);
  group.until(() => queueAt(b)?.epoch === 2, 'the set without a');
  for (let i = 0; i < LATER; i++) group.submit('gw-1', ['q1']);
  group.run(200);
  assert.equal(group.letters.count(COMMITTED), LETTERS + LATER);
  restart(b);
  group.until(() => queueAt(b)?.role === ROLE_FILLING, 'the refill of b');
  group.network.cut('gw-1', b.id);
  assert.deepEqual([queueAt(a)?.epoch, queueAt(a)?.count, queueAt(b)?.role], [1, LETTERS, ROLE_FILLING]);
  return group;
}

describe('founding a set anew', () => {
  test('a restart heard of before a founding was sent says nothing of the founders: a rescue may have taken it by them', () => {
    const group = loaded();
    group.hops.script = () => 'defer';
    // Both mirrors are lost, in time: the owner founds the next set.
    for (const store of group.stores) restart(store);
    const founded = (): StoreNode | undefined => group.stores.find((store) => (queueAt(store)?.epoch ?? 0) > 1);
    group.until(() => founded() !== undefined, 'the founding');
    const founder = founded();
    const other = group.stores.find((store) => store !== founder);
    assert.ok(founder !== undefined && other !== undefined);
    // Its acknowledgement is lost, and with it the owner's lease; a rescue takes the queue over by the founder alone.
    for (const store of group.stores) group.network.cut('gw-1', store.id);
    group.network.cut('gw-2', other.id);
    const [old] = group.served('gw-1', 'gw-1');
    assert.ok(old !== undefined && old.founding && old.setChangeNumber !== 0);
    const { epoch, setChangeNumber } = old;
    group.until(() => group.served('gw-2', 'gw-1').length === 1, 'the takeover by the founder alone');
    group.run(500);
    // That one restarts while the rescue is cut off. It has the mail, and its lease.
    group.network.cut('gw-2', founder.id);
    restart(founder);
    for (const store of group.stores) group.network.heal('gw-1', store.id);
    group.until(() => old.replicas.every(({ store, mayHoldCopy }) => store.isUp && !mayHoldCopy), 'both mirrors known to be lost');
    group.run(2000);
    assert.ok(group.served('gw-1', 'gw-1')[0] === old);
    assert.deepEqual([old.epoch, old.setChangeNumber, stateAt(group, 'gw-1')], [epoch, setChangeNumber, 'no survivor'], 'the old owner founds nothing');
    assert.equal(group.served('gw-2', 'gw-1')[0]?.length, LETTERS, 'the rescue has the mail');
    for (const store of group.stores) group.network.heal('gw-2', store.id);
    group.gateway('gw-1').kill();
    goOnByCommand(group, 'gw-2', founder);
    deliverAll(group);
  });
});

/** The owner founded its last set on store-a, which was no member; it never heard that it stands, and is cut off. */
function foundedUnheard(): { readonly group: Group; readonly old: Partition } {
  const group = loaded();
  group.hops.script = () => 'defer';
  const [a, b] = [group.store('a'), group.store('b')];
  const [old] = group.served('gw-1', 'gw-1');
  assert.ok(old !== undefined);
  group.network.cut('gw-1', a.id);
  group.until(() => old.memberCount === 1, 'the set without a');
  // Filled anew, emptied by its holder, it is to join; b dies before it has heard of that.
  const joiner = old.replicas.find(({ store }) => store.storeId === a.id);
  assert.ok(joiner !== undefined);
  joiner.mustRefill = true;
  group.network.heal('gw-1', a.id);
  group.until(() => joiner.isFilling, 'the refill of a');
  group.network.holdRequests('gw-1', b.id, true);
  group.until(() => joiner.phase === ResyncPhase.JOINING, 'the change that a joins by');
  group.network.holdAnswers('gw-1', a.id, true);
  group.network.holdRequests('gw-1', b.id, false);
  restart(b);
  group.until(() => queueAt(a)?.members.join() === a.id, 'the founding');
  for (const store of group.stores) group.network.cut('gw-1', store.id);
  group.network.holdAnswers('gw-1', a.id, false);
  assert.deepEqual([old.founding, joiner.member, joiner.wanted], [true, false, true]);
  return { group, old };
}

describe('a store that a set was founded on, unheard, and that has forgotten the queue in the same boot', () => {
  test('was dropped there by another: the queue is given up, and taken back from where it went', () => {
    const { group, old } = foundedUnheard();
    const [a, b] = [group.store('a'), group.store('b')];
    group.until(() => group.served('gw-2', 'gw-1').some((mirror) => mirror.inSyncCount === 2), 'the takeover by a alone, and its second mirror');
    group.gateway('gw-2').core?.mirrors.moves.drain(a.id);
    group.until(() => queueAt(a) === undefined, 'the end of the copy at a');
    for (const store of group.stores) group.network.heal('gw-1', store.id);
    group.until(() => group.served('gw-1', 'gw-1').every((mirror) => mirror !== old), 'the end of what it remembered');
    assert.equal(queueAt(b)?.role, ROLE_MEMBER);
    group.gateway('gw-2').core?.mirrors.moves.undrain(a.id);
    deliverAll(group);
  });
});

describe('going on past a member that came back empty', () => {
  test('a gateway of a group does not: a rescue may hold a newer epoch that it began there', () => {
    const group = loaded();
    group.hops.script = () => 'defer';
    const [a, b] = [group.store('a'), group.store('b')];
    for (const id of ['gw-1', 'gw-2']) group.network.cut(id, a.id);
    group.until(() => queueAt(b)?.epoch === 2, 'the set without a');
    group.run(200);
    group.gateway('gw-1').kill();
    group.until(() => group.served('gw-2', 'gw-1').length === 1, 'the takeover by b alone');
    group.run(500);
    // Its only mirror restarts while the rescue is cut off for a moment; the owner finds the older epoch at a.
    group.network.cut('gw-2', b.id);
    restart(b);
    group.network.heal('gw-1', a.id);
    group.gateway('gw-1').start();
    group.until(() => stateAt(group, 'gw-1') === 'came back empty', 'the named state');
    assert.equal(group.served('gw-1', 'gw-1').length, 0);
    assert.equal(group.served('gw-2', 'gw-1')[0]?.length, LETTERS, 'the rescue has the mail');
    for (const store of group.stores) group.network.heal('gw-2', store.id);
    goOnByCommand(group, 'gw-2', b);
    deliverAll(group);
  });

  test('a gateway alone does, but not without proof that its older process is dead', () => {
    for (const unproven of [[], ['gw-1']]) {
      const group = loaded({ gateways: ['gw-1'], unproven });
      group.gateway('gw-1').kill();
      restart(group.store('b'));
      group.run(2 * group.leaseMs);
      group.hops.script = () => 'accept';
      group.gateway('gw-1').start();
      if (unproven.length === 0) deliverAll(group);
      else {
        group.until(() => stateAt(group, 'gw-1') === 'came back empty', 'the named state');
        group.run(3 * group.leaseMs);
        assert.equal(group.letters.delivered, 0);
      }
    }
  });
});

describe('a claim', () => {
  test('at a member that was still to join counts where it stands in the history of the copy that is read', () => {
    const group = loaded({ stores: 3 });
    const [first, second, third] = storesOf(group);
    assert.ok(first !== undefined && second !== undefined && third !== undefined);
    // A third one is filled in place of the first, and named by a change that it has not been told of.
    group.gateway('gw-1').core?.mirrors.moves.drain(first.id);
    group.until(() => group.served('gw-1', 'gw-1')[0]?.setChangeNumber !== 0 && [first, second].every((store) => queueAt(store)?.epoch === 2), 'the set with three');
    assert.deepEqual([queueAt(third)?.role, queueAt(second)?.members.includes(third.id)], [ROLE_FILLING, true]);
    group.gateway('gw-1').kill();
    group.run(100);
    assert.equal(queueAt(third)?.role, ROLE_FILLING);
    group.gateway('gw-1').start();
    deliverAll(group);
    assert.equal(group.log.count('a mirror came back empty'), 0);
  });

  test('at a member that is being filled, and stands in no history of the copy that is read, is none: its owner may live, and have more', () => {
    const group = filledByOneThatIsCutOff();
    const [a, b] = [group.store('a'), group.store('b')];
    group.run(3 * group.leaseMs);
    assert.equal(stateAt(group, 'gw-2'), 'came back empty');
    assert.equal(group.served('gw-2', 'gw-1').length, 0, 'what a has is not all');
    assert.deepEqual([queueAt(a)?.holder, queueAt(b)?.holder], ['gw-1', 'gw-1'], 'what was granted is given back');
    for (const store of group.stores) group.network.heal('gw-1', store.id);
    group.until(() => group.served('gw-1', 'gw-1')[0]?.inSyncCount === 2, 'the next set of the owner');
    assert.equal(group.served('gw-1', 'gw-1')[0]?.length, LETTERS + LATER);
    group.gateway('gw-1').kill();
    group.gateway('gw-1').start();
    deliverAll(group, LETTERS + LATER);
  });

  test('is made where a store knows the queue, member or not, also when an operator goes on without it: its owner may found there', () => {
    const group = filledByOneThatIsCutOff();
    group.until(() => stateAt(group, 'gw-2') === 'came back empty', 'the named state');
    group.hops.script = () => 'hang';
    const names = group.gateway('gw-2').core?.recovery.force({ partition: 'p1', missing: 'store-b', reason: 'gw-1 is taken for dead', who: 'ann' });
    assert.deepEqual(names?.map(({ partition }) => partition), ['p1']);
    group.until(() => group.served('gw-2', 'gw-1').length === 1, 'the forced takeover');
    group.network.cut('gw-2', 'store-b');
    group.network.heal('gw-1', 'store-b');
    for (let i = 0; i < 1000; i++) {
      group.run(10);
      const owners = ['gw-1', 'gw-2'].filter((id) => group.served(id, 'gw-1').some((mirror) => group.gateway(id).core?.mirrors.mayDeliver(mirror, group.scheduler.nowMs)));
      assert.ok(owners.length <= 1, 'one owner');
    }
    assert.equal(group.served('gw-1', 'gw-1')[0]?.inSyncCount, 0, 'the old owner finds itself fenced there');
    assert.equal(group.served('gw-2', 'gw-1')[0]?.length, LETTERS);
    // That is no word about what it remembers: the store came back empty. The newer set is.
    for (const store of group.stores) group.network.heal('gw-1', store.id);
    group.until(() => group.served('gw-1', 'gw-1').length === 0, 'what it remembers, given up');
  });

  test('ends with its round when any store restarts: another may have begun a set of the same number there', () => {
    const group = loaded({ stores: 3 });
    const [first, second, third] = storesOf(group);
    assert.ok(first !== undefined && second !== undefined && third !== undefined);
    group.gateway('gw-1').kill();
    const last = first.id < second.id ? second : first;
    const begun = last === second ? first : second;
    group.until(() => queueAt(begun)?.holder === 'gw-2', 'the first claim');
    group.network.holdAnswers('gw-2', last.id, true);
    group.run(50);
    assert.equal(group.served('gw-2', 'gw-1').length, 0);
    restart(third);
    group.until(() => queueAt(begun)?.holder === 'gw-1', 'the release of what was granted', 1000);
    group.network.holdAnswers('gw-2', last.id, false);
    deliverAll(group);
  });

  test('waits for the first lease period also where the owner itself filled the store: the rescue may deliver by a lease of its former boot', () => {
    const group = loaded();
    const [a, b] = [group.store('a'), group.store('b')];
    group.freeze('gw-1');
    group.until(() => group.served('gw-2', 'gw-1').length === 1, 'the takeover');
    group.network.cut('gw-2', a.id);
    group.run(2 * group.leaseMs);
    assert.equal(queueAt(b)?.epoch, 2, 'the rescue has b alone');
    // The owner wakes; it hears only b, which has just restarted, and fills it.
    group.network.cut('gw-1', a.id);
    group.network.holdRequests('gw-2', b.id, true);
    group.network.holdAnswers('gw-2', b.id, true);
    restart(b);
    group.thaw('gw-1');
    group.until(() => queueAt(b)?.holder === 'gw-1', 'the copy that the owner made', 1000);
    const token = queueAt(b)?.holderToken;
    group.gateway('gw-1').kill();
    group.network.heal('gw-1', a.id);
    group.gateway('gw-1').start();
    const [rescued] = group.served('gw-2', 'gw-1');
    assert.ok(rescued !== undefined);
    let delivers = 0;
    while ((b.store?.graceMs(group.scheduler.nowMs) ?? 0) > 0) {
      group.run(5);
      assert.equal(queueAt(b)?.holderToken, token, 'nothing is granted there');
      if (group.gateway('gw-2').core?.mirrors.mayDeliver(rescued, group.scheduler.nowMs) === true) delivers += 1;
    }
    assert.ok(delivers > 0, 'the rescue did deliver meanwhile');
  });

  test('without proof of its older process\'s death waits a lease at each store, not only at the first', () => {
    const group = loaded({ gateways: ['gw-1'], unproven: ['gw-1'] });
    group.gateway('gw-1').kill();
    group.network.cut('gw-1', 'store-b');
    group.hops.script = () => 'accept';
    group.gateway('gw-1').start();
    group.run(2 * group.leaseMs);
    group.network.heal('gw-1', 'store-b');
    group.until(() => group.gateway('gw-1').link('store-b')?.isUp === true, 'the second store');
    const metMs = group.scheduler.nowMs;
    group.until(() => group.letters.delivered > 0, 'the first delivery');
    assert.ok(group.scheduler.nowMs - metMs >= group.leaseMs, `after ${String(group.scheduler.nowMs - metMs)} ms`);
    deliverAll(group);
  });
});
