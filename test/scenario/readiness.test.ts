/** When the gateway takes new mail, and so keeps its SMTP port open (G6): src/gateway/queue/readiness.ts. */
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { COMMITTED, NOT_READY } from '../../src/gateway/queue/types.js';
import { Group } from './group.js';
import { coreOf } from './inspect.js';
import { World } from './world.js';

/** The refused routes and why, as status names them. */
function refusedBy(world: World): readonly string[] {
  const { readiness, mirrors } = coreOf(world);
  readiness.isReady(mirrors.stateVersion);
  return readiness.refused.map(({ route, reason }) => `${route.queueName} ${reason}`).sort();
}

describe('new mail is taken', () => {
  test('by a gateway without queues, whatever becomes of those that it delivers for another', () => {
    const group = Group.started({ stores: 3 });
    group.hops.script = () => 'hang';
    group.submit('gw-1', ['q1', 'q2']);
    group.run(200);
    group.gateway('gw-1').kill();
    group.until(() => group.served('gw-2', 'gw-1').length === 2, 'the takeover');
    const core = group.gateway('gw-2').core;
    const members = new Set(group.served('gw-2', 'gw-1').flatMap((mirror) => mirror.replicas.map((replica) => replica.store.storeId)));
    for (const store of group.stores.filter(({ id }) => members.has(id)).slice(0, 2)) group.network.cut('gw-2', store.id);
    group.until(() => core?.upCount === 1, 'one store left');
    group.run(500);
    assert.ok(group.served('gw-2', 'gw-1').some((mirror) => mirror.inSyncCount === 0), 'none of its mirrors is in sync');
    assert.equal(core?.accepting, true);
    const letter = group.submit('gw-2', ['q1']);
    group.run(200);
    assert.equal(letter.outcome, COMMITTED);
  });
});

describe('new mail is not taken', () => {
  test('by most queues at once: each route that lacks mirrors is named and refused, half of them close nothing, more do', () => {
    const queues = ['q1', 'q2', 'q3'].map((name) => ({ name, ordering: 'strict' as const }));
    const world = World.started({ minReplicas: 2, stores: 3, queues });
    world.hops.script = () => 'hang';
    world.submitMany(3, ['q1', 'q2', 'q3']);
    world.run(200);
    const core = coreOf(world);
    const short = (): string[] => ['q1', 'q2', 'q3'].filter((name) => world.mirror(name).inSyncCount < 2);
    world.store('a').kill();
    world.run(2500);
    assert.equal(short().length, 2, 'three queues lie at three pairs of stores');
    assert.equal(core.accepting, true, '2 of 4 routes, that of the senders among them');
    assert.deepEqual(refusedBy(world), short().map((name) => `${name} short`));
    for (const name of ['q1', 'q2', 'q3', 'senders']) assert.equal(core.admit(world.route(name)), short().includes(name) ? 'short' : '', name);
    world.store('b').kill();
    world.run(2500);
    assert.deepEqual([core.accepting, short().length], [false, 3]);
    assert.deepEqual(refusedBy(world), ['q1 short', 'q2 short', 'q3 short', 'senders no-store'], 'that one has no queue yet');
    world.store('b').start();
    world.store('a').start();
    world.until(() => core.accepting && refusedBy(world).length === 0, 20_000, 'mail is taken again, by itself');
  });

  test('for routes whose queues are still to come back, though no queue is short', () => {
    const queues = [{ name: 's1', ordering: 'strict' }, { name: 's2', ordering: 'strict' }] as const;
    const world = World.started({ queues });
    world.hops.script = () => 'hang';
    world.submitMany(3, ['s1', 's2']);
    world.run(200);
    world.cut(world.store('a'));
    world.gateway.kill();
    world.gateway.start();
    world.run(5000);
    const core = coreOf(world);
    assert.deepEqual(core.registry.partitions, [], 'what waits for the store is not served');
    assert.deepEqual([core.queuesAwaited, core.accepting], [true, false]);
    assert.deepEqual(refusedBy(world), ['s1 recovering', 's2 recovering']);
    assert.equal(world.submit(['senders']).outcome, NOT_READY, '2 of 3 routes: the port is closed for all');
    world.heal(world.store('a'));
    world.until(() => core.accepting, 20_000, 'the port opens by itself');
    assert.deepEqual(refusedBy(world), []);
  });

  test('by a route without a queue while no store may be chosen for one: it is refused before its content is sent', () => {
    const world = World.started({ minReplicas: 2 });
    const core = coreOf(world);
    core.mirrors.moves.drain('store-b');
    assert.equal(core.accepting, false);
    assert.deepEqual(refusedBy(world), ['q1', 'q2', 'q3', 'senders'].map((name) => `${name} no-store`));
    core.mirrors.moves.undrain('store-b');
    assert.deepEqual([core.accepting, core.admit(world.route('q3')), refusedBy(world)], [true, '', []]);
  });

  test('when no store is left, though memory is full too: the port closes, as it does with room, and opens again', () => {
    const world = World.started({ gatewayMemoryBytes: 4 * 1024 * 1024 });
    const core = coreOf(world);
    const { memory } = core;
    assert.ok(core.reserve(memory.acceptBytes - memory.usedBytes));
    memory.inTransitBytes += 1;
    core.readiness.lookAgain();
    assert.deepEqual([core.accepting, core.admit(world.route('q1'))], [true, 'memory'], 'a limit closes no port');
    for (const name of ['a', 'b'] as const) world.store(name).kill();
    world.run(2500);
    assert.deepEqual([core.upCount, core.accepting], [0, false]);
    assert.deepEqual(refusedBy(world), ['q1', 'q2', 'q3', 'senders'].map((name) => `${name} no-store`));
    for (const name of ['a', 'b'] as const) world.store(name).start();
    world.until(() => core.accepting, 20_000, 'the port opens by itself');
    assert.deepEqual(refusedBy(world), ['q1', 'q2', 'q3', 'senders'].map((name) => `${name} memory`));
  });

  test('at RCPT by a gateway whose partitions are all made and short: it is not asked for content that nothing could commit', () => {
    const world = World.started({ minReplicas: 2, stores: 3, partitions: 1 });
    const core = coreOf(world);
    world.submit(['q1']);
    world.run(200);
    assert.deepEqual([core.accepting, core.admit(world.route('q2'))], [true, '']);
    const [member] = world.mirror('q1').replicas;
    assert.ok(member !== undefined);
    world.network.cut('gw-1', member.store.storeId);
    world.until(() => world.mirror('q1').inSyncCount === 1, 20_000, 'a mirror is isolated');
    assert.deepEqual([core.accepting, core.upCount], [false, 2], 'stores enough for another partition, which there may not be');
    assert.deepEqual(refusedBy(world), ['q1', 'q2', 'q3', 'senders'].map((name) => `${name} short`));
  });

  test('by a gateway that stops, though every mirror is in sync', () => {
    const world = World.started();
    const core = coreOf(world);
    assert.equal(core.accepting, true);
    core.drain();
    assert.deepEqual([core.accepting, core.admit(world.route('q1'))], [false, 'draining']);
    assert.equal(world.submit(['q1']).outcome, NOT_READY);
  });

  test('by a gateway without queues while too few stores may be chosen for one, and again when they may', () => {
    const world = World.started({ minReplicas: 2 });
    const core = coreOf(world);
    const { moves } = core.mirrors;
    assert.equal(core.accepting, true);
    moves.drain('store-b');
    assert.equal(core.accepting, false);
    assert.equal(world.submit(['q1']).outcome, NOT_READY);
    moves.undrain('store-b');
    assert.equal(core.accepting, true);
    const letter = world.submit(['q1']);
    world.run(200);
    assert.equal(letter.outcome, COMMITTED);
  });
});
