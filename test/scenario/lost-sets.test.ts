/**
 * Members of a set that come back without their copies: when may an owner, or who takes over, go on without them, and
 * when must the operator say so (G2, G5)? The cases are counterexamples of docs/model.
 */
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { COMMITTED } from '../../src/gateway/queue/types.js';
import type { Replica } from '../../src/gateway/mirror/replica.js';
import { ResyncPhase, SyncState } from '../../src/gateway/mirror/replica.js';
import { checkNoDuplicates, checkNoLoss } from './checks.js';
import { Group } from './group.js';
import { queuesOf, onlyQueue } from './inspect.js';
import type { GatewayNode } from './gateway-node.js';
import type { StoreNode } from './store-node.js';
import { World } from './world.js';

function restart(store: StoreNode): void {
  store.kill();
  store.start();
}

function loadedGroup(): Group {
  const group = Group.started();
  group.hops.script = () => 'hang';
  for (let i = 0; i < 5; i++) group.submit('gw-1', ['q1']);
  group.run(200);
  assert.equal(group.letters.count(COMMITTED), 5);
  return group;
}

/** Both mirrors are lost: the one that a change drops fell out of the ring and is away, the other restarted before it heard of the change. */
function foundedBesideOneThatObeys(awayMs: number): void {
  const world = World.started({ queues: [{ name: 'q1' }], ringBytes: 4000 });
  world.hops.script = () => 'hang';
  world.submitMany(5, ['q1']);
  world.run(200);
  const [a, b] = [world.store('a'), world.store('b')];
  const mirror = world.mirror('q1');
  // store-a falls behind by more than the ring holds; the change that drops it never reaches store-b.
  world.holdRequests(a, true);
  for (let i = 0; i < 20; i++) {
    world.submit(['q1'], { bytes: 1000 });
    world.run(20);
  }
  world.until(() => mirror.setChangeNumber !== 0, 20_000, 'the change that drops store-a');
  world.holdRequests(b, true);
  world.run(200);
  b.kill();
  world.holdRequests(b, false);
  b.start();
  const at = (id: string): Replica => mirror.replicas.find(({ store }) => store.storeId === id) ?? assert.fail(`no mirror at ${id}`);
  world.until(() => at(b.id).phase === ResyncPhase.CAUGHT_UP, 20_000, 'store-b filled');
  world.run(awayMs);
  assert.equal(mirror.founding, false, 'store-a may have the queue and give it to another');
  world.holdRequests(a, false);
  world.until(() => mirror.inSyncCount === 2, 20_000, 'both in sync');
  assert.equal(world.gateway.core?.mirrors.counters.refills, 2);
  world.untilLevel();
  world.assertSameContent();
  assert.equal(mirror.length, 5, 'what was never committed is withdrawn');
}

interface LastOne {
  readonly stores?: number;
  readonly ringBytes?: number;
  /** Mail that only the first one has. */
  readonly ahead: number;
  /** While the first one is about to stop the operator has the other one filled again. */
  readonly isFilled: boolean;
}

/** A store stops, and the set is to go on with the other mirror alone: silent already, it never hears of that. Then the first one is gone. */
function leftToOneThatIsSilent(options: LastOne): World {
  const world = World.started({ ...options, queues: [{ name: 'q1' }], replaceAfterMs: 3000 });
  const [a, b] = [world.store('a'), world.store('b')];
  for (const store of world.stores) if (store !== a && store !== b) store.kill();
  world.hops.script = () => 'hang';
  world.run(10_000);
  world.submitMany(5, ['q1']);
  world.run(200);
  const mirror = world.mirror('q1');
  world.holdRequests(b, true);
  for (let i = 0; i < options.ahead; i++) world.submit(['q1'], { bytes: 1000 });
  world.run(100);
  a.leave(60_000, false, () => {});
  world.until(() => mirror.setChangeNumber !== 0, 20_000, 'the change that drops store-a');
  const other = mirror.replicas.find(({ store }) => store.storeId === b.id) ?? assert.fail('no mirror at store-b');
  assert.equal(other.sync, SyncState.SYNC);
  world.until(() => other.sync === SyncState.NG, 20_000, 'the silence of store-b');
  if (options.isFilled) assert.equal(world.gateway.core?.mirrors.refillAgain(mirror, other), true);
  world.run(1000);
  restart(a);
  for (const store of world.stores) if (!store.isAlive) store.start();
  world.run(10_000);
  const level = mirror.replicas.filter(({ phase }) => phase === ResyncPhase.CAUGHT_UP);
  assert.deepEqual(level.map(({ store }) => store.storeId), world.stores.slice(2).map(({ id }) => id));
  world.holdRequests(b, false);
  world.until(() => mirror.inSyncCount === 2, 20_000, 'both in sync');
  world.untilLevel();
  world.assertSameContent();
  assert.equal(mirror.length, 5, 'what was never committed is withdrawn');
  return world;
}

describe('founding a set anew', () => {
  test('the restart of a member that a sent change drops is no witness: a rescue may have the queue by the other one', () => {
    const group = loadedGroup();
    const [a, b] = [group.store('a'), group.store('b')];
    // The change that drops a is applied at b; its acknowledgement never comes.
    group.network.holdAnswers('gw-1', b.id, true);
    group.network.cut('gw-2', a.id);
    restart(a);
    group.until(() => (group.served('gw-1', 'gw-1')[0]?.setChangeNumber ?? 0) !== 0, 'the change that drops a');
    group.run(50);
    group.network.cut('gw-1', b.id);
    group.until(() => group.served('gw-2', 'gw-1').length === 1, 'the takeover by b alone');
    group.run(500);
    // For a moment the rescue does not hear that its only mirror restarts. It has the mail, and its lease.
    group.network.cut('gw-2', b.id);
    restart(b);
    group.network.holdAnswers('gw-1', b.id, false);
    group.network.heal('gw-1', b.id);
    group.until(() => group.served('gw-1', 'gw-1').every((mirror) => mirror.replicas.every((replica) => replica.store.isUp && !replica.mayHoldCopy)), 'both members known to be lost');
    group.run(2000);
    assert.deepEqual(group.served('gw-1', 'gw-1').map((mirror) => mirror.epoch), [1], 'the old owner founds nothing');
    assert.equal(group.gateway('gw-1').core?.recovery.held()[0]?.state, 'no survivor');
    assert.equal(group.served('gw-2', 'gw-1')[0]?.length, 5, 'the rescue has the mail');
  });

  test('a filled copy founds the next set though the one that the change drops is there, obeys, and can only be filled', () => {
    foundedBesideOneThatObeys(1000);
  });

  test('the same when that one has been away for longer than a lease: it is not taken for one that another wrote to', () => {
    foundedBesideOneThatObeys(15_000);
  });

  test('the one that a change leaves in the set gets the tail, though the other one alone was in sync for a while', () => {
    const world = leftToOneThatIsSilent({ ahead: 20, ringBytes: 4000, isFilled: false });
    assert.equal(world.gateway.core?.mirrors.counters.refills, 1, 'only the lost one is filled');
  });

  for (const [stores, what] of [[2, 'one that waits for its set'], [3, 'a third one that is level and can\'t found the set']] as const) {
    test(`the one that a change leaves in the set is filled if it must be, without waiting for ${what}`, () => {
      leftToOneThatIsSilent({ stores, ahead: 0, isFilled: true });
    });
  }

  test('nor for one that is to join beside it, when its copy was refused', () => {
    const world = World.started({ queues: [{ name: 'q1' }] });
    world.hops.script = () => 'hang';
    world.submitMany(5, ['q1']);
    world.run(200);
    const mirror = world.mirror('q1');
    const at = (id: string): Replica => mirror.replicas.find(({ store }) => store.storeId === id) ?? assert.fail(`no mirror at ${id}`);
    restart(world.store('a'));
    world.until(() => at('store-a').sync === SyncState.RESYNC, 20_000, 'the refill of store-a');
    world.holdRequests(world.store('b'), true);
    world.until(() => at('store-b').sync === SyncState.NG, 20_000, 'the silence of store-b');
    assert.equal(at('store-a').phase, ResyncPhase.JOINING);
    at('store-b').mustRefill = true;
    world.holdRequests(world.store('b'), false);
    world.until(() => mirror.inSyncCount === 2, 20_000, 'both in sync');
    world.untilLevel();
    world.assertSameContent();
    assert.equal(mirror.length, 5);
  });

  test('alone or not, an owner that heard of no restart in time holds its mail until the operator says that it may go on', () => {
    const world = World.started({ queues: [{ name: 'q1' }] });
    world.hops.script = () => 'hang';
    world.submitMany(10, ['q1']);
    world.run(100);
    for (const store of world.stores) store.kill();
    world.run(30_000);
    for (const store of world.stores) store.start();
    world.run(10_000);
    const recovery = world.gateway.core?.recovery;
    const [held] = recovery?.held() ?? [];
    assert.deepEqual([held?.partition, held?.state], ['p1', 'no survivor']);
    assert.match(held?.why ?? '', /twinpost rescue --force --partition p1 --owner gw-1 --missing store-[ab] --reason TEXT/);
    assert.equal(world.log.count('no mirror of this queue has survived'), 1);
    assert.deepEqual(recovery?.force({ partition: 'p1', missing: held?.stores[0] ?? '', reason: 'no other process runs', who: 'ann' }).map(({ partition }) => partition), ['p1']);
    world.untilLevel();
    assert.deepEqual(recovery.held(), []);
    world.assertSameContent();
    assert.equal(onlyQueue(world.mirror('q1')).length, 10);
  });
});

describe('going on past a member that came back empty', () => {
  test('a gateway of a group waits for its operator, is told the command, and goes on by it', () => {
    const group = loadedGroup();
    group.gateway('gw-1').kill();
    group.gateway('gw-2').kill();
    restart(group.store('b'));
    group.hops.script = () => 'accept';
    group.run(2 * group.leaseMs);
    group.gateway('gw-1').start();
    group.run(3 * group.leaseMs);
    assert.equal(group.letters.delivered, 0, 'gw-2 might have had it by b, and live');
    const recovery = group.gateway('gw-1').core?.recovery;
    const held = recovery?.held().find(({ partition }) => partition === 'p1');
    assert.deepEqual([held?.state, held?.stores, held?.why], ['came back empty', ['store-b'], 'store-b came back empty: twinpost rescue --force --partition p1 --owner gw-1 --missing store-b --reason TEXT']);
    recovery?.force({ partition: 'p1', missing: 'store-b', reason: 'gw-2 is switched off', who: 'ann' });
    group.until(() => group.letters.delivered === 5, 'the forced deliveries');
    checkNoLoss(group.letters);
    checkNoDuplicates(group.letters);
  });

  test('a rescue waits for it, too', () => {
    const group = loadedGroup();
    group.gateway('gw-1').kill();
    restart(group.store('b'));
    group.hops.script = () => 'accept';
    group.run(5 * group.leaseMs);
    assert.equal(group.letters.delivered, 0);
    assert.equal(group.gateway('gw-2').core?.recovery.held()[0]?.state, 'came back empty');
  });

  test('a gateway alone reads the file of the one store that had the newest set, beside a file of before it', () => {
    const world = World.started({ stores: 3, queues: [{ name: 'q1' }] });
    world.hops.script = () => 'hang';
    world.submitMany(5, ['q1']);
    world.run(200);
    const mirror = world.mirror('q1');
    const [first, second] = mirror.replicas.map(({ store }) => store.storeId);
    const nodeOf = (id = ''): StoreNode => world.stores.find((store) => store.id === id) ?? assert.fail(`no ${id}`);
    // A third one joins in place of the first. The change of the set is applied at the first only.
    world.gateway.core?.mirrors.moves.drain(first ?? '');
    world.until(() => mirror.replicas.length === 3);
    const third = mirror.replicas.map(({ store }) => store.storeId).find((id) => id !== first && id !== second);
    world.holdRequests(nodeOf(second), true);
    const epochAt = (id = ''): number | undefined => { const { store } = nodeOf(id); return store === undefined ? undefined : queuesOf(store, 'q1')[0]?.epoch; };
    world.until(() => epochAt(first) === 2);
    assert.equal(epochAt(second), 1);
    world.gateway.kill();
    world.holdRequests(nodeOf(second), false);
    for (const id of [first, second]) nodeOf(id).leave(0, true, () => { nodeOf(id).kill(); });
    nodeOf(third).kill();
    for (const store of world.stores) store.start();
    world.hops.script = () => 'accept';
    world.gateway.start();
    world.untilQuiet();
    assert.equal(world.letters.delivered, 5);
    checkNoLoss(world.letters);
    world.assertSameContent();
  });
});

const TOLD_ALL_GONE = 'every mirror of its newest set came back empty';

/** Five messages in q1; store-b left the set with a file, store-a took three more alone and came back empty. */
function onlyALeaverIsLeft(): World {
  const world = World.started({ queues: [{ name: 'q1' }] });
  world.hops.script = () => 'hang';
  world.submitMany(5, ['q1']);
  world.run(200);
  const [a, b] = [world.store('a'), world.store('b')];
  b.leave(3000, true, () => { b.kill(); });
  world.until(() => !b.isAlive && world.mirror('q1').memberCount === 1);
  world.submitMany(3, ['q1']);
  world.run(200);
  assert.equal(world.letters.count(COMMITTED), 8);
  world.gateway.kill();
  a.kill();
  a.start();
  b.start();
  world.gateway.start();
  return world;
}

describe('every member of the newest set came back empty, and a store that had left it has a file', () => {
  test('the queue is held under a name of its own, told once, and the file is not read', () => {
    const world = onlyALeaverIsLeft();
    world.run(60_000);
    const held = world.gateway.core?.recovery.held() ?? [];
    assert.deepEqual(held.map(({ partition, state, stores }) => [partition, state, stores]), [['p1', 'all gone', ['store-a']]]);
    assert.match(held[0]?.why ?? '', /store-b, which had left before, has a copy: twinpost rescue --force --partition p1 --owner gw-1 --missing store-a --reason TEXT/);
    assert.equal(world.log.count(TOLD_ALL_GONE), 1);
    assert.equal(world.log.count('so the newest epoch goes on'), 0);
    assert.ok(world.log.lines.length < 200, 'nor is anything else told again and again');
    assert.equal(world.gateway.core?.registry.partitions.length, 0);
    // A fifo route serves new mail beside it.
    world.hops.script = () => 'accept';
    const fresh = world.submit(['q1']);
    world.until(() => fresh.arrivals.size === 1);
    assert.equal(world.letters.delivered, 1);
  });

  test('by the operator\'s word the file is read: what it has goes out, and the queue has mirrors again', () => {
    const world = onlyALeaverIsLeft();
    const recovery = (): NonNullable<GatewayNode['core']>['recovery'] => world.gateway.core?.recovery ?? assert.fail('the gateway runs');
    world.until(() => recovery().held().some(({ state }) => state === 'all gone'));
    assert.deepEqual(recovery().force({ partition: 'p1', missing: 'store-a', reason: 'its memory is gone', who: 'ann' }).map(({ partition }) => partition), ['p1']);
    world.until(() => world.gateway.core?.registry.partitions.length === 1 && world.mirror('q1').inSyncCount === 2, 20_000, 'the queue on two mirrors');
    assert.deepEqual(recovery().held(), []);
    assert.equal(world.mirror('q1').epoch > 2, true, 'a set of its own, above the one that is lost');
    assert.equal(onlyQueue(world.mirror('q1')).length, 5);
    world.untilLevel();
    world.assertSameContent();
    world.gateway.kill();
    world.gateway.start();
    world.hops.script = () => 'accept';
    world.untilQuiet();
    assert.equal(world.letters.delivered, 5, 'what store-a took alone is lost');
    checkNoDuplicates(world.letters);
  });

  test('without that store, too, the operator gives the queue up', () => {
    const world = onlyALeaverIsLeft();
    const { core } = world.gateway;
    assert.ok(core !== undefined);
    world.until(() => core.recovery.held().some(({ state }) => state === 'all gone'));
    world.store('b').kill();
    world.run(10_000);
    assert.deepEqual(core.recovery.held().map(({ state, stores }) => [state, stores]), [['waiting', ['store-b']]]);
    assert.deepEqual(core.recovery.force({ partition: 'p1', missing: 'store-a', reason: 'gone', who: 'ann' }).map(({ partition }) => partition), ['p1']);
    assert.deepEqual(core.recovery.force({ partition: 'p1', missing: 'store-b', reason: 'burnt', who: 'ann' }).map(({ partition }) => partition), ['p1']);
    world.run(1000);
    assert.deepEqual(core.recovery.held(), []);
    assert.equal(core.recovery.isIdle, true);
  });

  test('in a group, too', () => {
    const group = loadedGroup();
    const [a, b] = [group.store('a'), group.store('b')];
    b.leave(3000, true, () => { b.kill(); });
    group.until(() => !b.isAlive && group.served('gw-1', 'gw-1')[0]?.memberCount === 1, 'the set of one');
    for (const id of ['gw-1', 'gw-2']) group.gateway(id).kill();
    restart(a);
    b.start();
    group.hops.script = () => 'accept';
    for (const id of ['gw-1', 'gw-2']) group.gateway(id).start();
    group.run(4 * group.leaseMs);
    assert.equal(group.letters.delivered, 0);
    const { recovery } = group.gateway('gw-1').core ?? assert.fail('gw-1 runs');
    assert.deepEqual(recovery.held().map(({ partition, state }) => [partition, state]), [['p1', 'all gone']]);
    recovery.force({ partition: 'p1', missing: 'store-a', reason: 'gone', who: 'ann' });
    group.until(() => group.letters.delivered === 5, 'the forced deliveries');
    checkNoLoss(group.letters);
    checkNoDuplicates(group.letters);
  });
});

describe('a set that was sent and never acknowledged', () => {
  test('is not told by the file of a store that had no part in it', () => {
    const world = World.started({ stores: 3, queues: [{ name: 'q1' }], replaceAfterMs: 1000 });
    world.hops.script = () => 'hang';
    world.submitMany(5, ['q1']);
    world.run(200);
    const mirror = world.mirror('q1');
    const [first, second] = mirror.replicas.map(({ store }) => world.stores.find(({ id }) => id === store.storeId));
    const third = world.stores.find((store) => store !== first && store !== second);
    assert.ok(first !== undefined && second !== undefined && third !== undefined);
    first.leave(0, true, () => { first.kill(); });
    world.until(() => mirror.memberCount === 2 && mirror.replicas.every(({ store }) => store.storeId !== first.id), 20_000, 'the third store in place of the first');
    const { epoch } = mirror;
    // One falls silent, then the other: the change to the one is never heard of.
    world.holdRequests(second, true);
    world.until(() => mirror.inSyncCount === 1, 20_000, 'the silence of the second');
    world.holdRequests(third, true);
    first.start();
    world.until(() => mirror.replicas.some((replica) => replica.store.storeId === first.id && replica.phase === ResyncPhase.CAUGHT_UP), 20_000, 'the first level again, out of its file');
    world.run(200);
    first.leave(0, true, () => { first.kill(); });
    world.gateway.kill();
    for (const store of [second, third]) world.holdRequests(store, false);
    first.start();
    const told = first.store === undefined ? undefined : queuesOf(first.store, 'q1')[0]?.epoch;
    assert.ok(told !== undefined && told <= epoch, 'its file tells of no set that nobody acknowledged');
    world.hops.script = () => 'accept';
    world.gateway.start();
    world.untilQuiet();
    assert.equal(world.letters.delivered, 5);
    checkNoLoss(world.letters);
    world.assertSameContent();
  });
});
