/** When the gateway takes new mail, and so keeps its SMTP port open (G6): src/gateway/queue/readiness.ts. */
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { COMMITTED, NOT_READY } from '../../src/gateway/mail-types.js';
import { Group } from './group.js';
import type { LogLine } from './ports.js';
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
    group.until(() => group.served('gw-2', 'gw-1').length === 4, 'the takeover');
    group.run(1000);
    const core = group.gateway('gw-2').core;
    // Its partitions at the third store alone are enough.
    for (const store of group.stores.slice(0, 2)) group.network.cut('gw-2', store.id);
    group.until(() => core?.upCount === 1, 'one store left');
    group.run(500);
    assert.equal(core?.accepting, true);
    const letter = group.submit('gw-2', ['q1']);
    group.run(300);
    assert.equal(letter.outcome, COMMITTED);
  });
});

describe('new mail is not taken', () => {
  test('by most queues at once: each route whose partition can not commit is named and refused, half of them close nothing, more do', () => {
    const queues = ['q1', 'q2', 'q3'].map((name) => ({ name, ordering: 'strict' as const }));
    const world = World.started({ minReplicas: 2, stores: 3, queues, partitions: 3 });
    world.hops.script = () => 'hang';
    world.submitMany(3, ['q1', 'q2', 'q3']);
    world.run(200);
    const core = coreOf(world);
    const short = (): string[] => ['q1', 'q2', 'q3'].filter((name) => world.mirror(name).memberCount < 2);
    world.store('a').kill();
    world.run(2500);
    assert.equal(short().length, 2, 'three partitions lie at three pairs of stores');
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

  test('for strict routes whose queues may still come back, though no partition that is here is short', () => {
    const queues = [{ name: 's1', ordering: 'strict' }, { name: 's2', ordering: 'strict' }] as const;
    const world = World.started({ queues, stores: 3, partitions: 3 });
    world.hops.script = () => 'hang';
    world.submitMany(3, ['s1', 's2']);
    world.run(200);
    const lost = world.mirror('s1').rows.map(({ storeId }) => world.stores.find(({ id }) => id === storeId));
    for (const store of lost) if (store !== undefined) world.cut(store);
    world.gateway.kill();
    world.gateway.start();
    world.run(8000);
    const core = coreOf(world);
    assert.equal(core.registry.partitions.length, 2, 'what has no copy that answers is not served');
    assert.deepEqual(core.holdings.waiting().map(({ waitsFor }) => waitsFor), ['copies away']);
    assert.deepEqual([core.partitionsAwaited, core.accepting], [true, true], '1 of 3 routes');
    assert.deepEqual(refusedBy(world), ['s1 recovering']);
    assert.equal(world.submit(['s1']).outcome, NOT_READY);
    assert.equal(core.admit(world.route('senders')), '');
    for (const store of lost) if (store !== undefined) world.heal(store);
    world.until(() => refusedBy(world).length === 0, 20_000, 'it is taken again, by itself');
  });

  test('when no store is left, though memory is full too: the port closes, as it does with room, and opens again', () => {
    const world = World.started({ gatewayMemoryBytes: 4 * 1024 * 1024 });
    const core = coreOf(world);
    const { memory } = core;
    memory.inTransitBytes += memory.acceptBytes - memory.usedBytes;
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
    const [member] = world.mirror('q1').rows;
    assert.ok(member !== undefined);
    world.network.cut('gw-1', member.storeId);
    world.until(() => world.mirror('q1').inSyncCount === 1, 20_000, 'the loss of a mirror');
    assert.deepEqual([core.accepting, core.upCount], [false, 2], 'stores enough for another partition, which there may not be');
    assert.deepEqual(refusedBy(world), ['q1', 'q2', 'q3', 'senders'].map((name) => `${name} no-store`));
  });

  test('by a gateway that stops, though every mirror is in sync', () => {
    const world = World.started();
    const core = coreOf(world);
    assert.equal(core.accepting, true);
    core.drain();
    assert.deepEqual([core.accepting, core.admit(world.route('q1'))], [false, 'draining']);
    assert.equal(world.submit(['q1']).outcome, NOT_READY);
  });
});

test('new partitions are told of in one line when all of them stand; what becomes of them later in lines of their own', () => {
  const group = Group.started({ stores: 2, queues: [{ name: 'q1' }] });
  const said = (): LogLine[] => group.log.lines.filter(({ event }) => event === 'partition');
  group.until(() => said().length > 0, 'the line');
  group.run(5_000);
  const gateways = said().map(({ text, fields }) => [text, Number(fields['count']) > 1]);
  assert.deepEqual(gateways, gateways.map(() => ['new partitions stand and take mail', true]));
  assert.ok(gateways.length <= 2, 'one a gateway');
  group.gateway('gw-1').kill();
  group.gateway('gw-1').start();
  group.until(() => group.gateway('gw-1').core?.accepting === true, 'its partitions are back');
  assert.ok(said().some(({ text }) => / ASKING -> CLAIMING: /.test(text)), said().map(({ text }) => text).join('\n'));
});
