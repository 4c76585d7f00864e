/** When the gateway takes new mail, and so keeps its SMTP port open (G6): src/gateway/mirror/readiness.ts. */
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { COMMITTED, NOT_READY } from '../../src/gateway/queue/types.js';
import { Group } from './group.js';
import { coreOf } from './inspect.js';
import { World } from './world.js';

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
  test('while most queues lack a mirror that it needs', () => {
    const world = World.started({ minReplicas: 2, stores: 3 });
    world.hops.script = () => 'hang';
    world.submitMany(3, ['q1', 'q2', 'q3']);
    world.run(200);
    const short = (): number => ['q1', 'q2', 'q3'].filter((name) => world.mirror(name).inSyncCount < 2).length;
    const lost = ['a', 'b', 'c'] as const;
    for (const letter of lost) {
      world.store(letter).kill();
      world.run(2500);
      if (short() >= 2) break;
      world.store(letter).start();
      world.until(() => world.inSync);
    }
    assert.ok(short() >= 2);
    assert.equal(coreOf(world).accepting, false);
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
