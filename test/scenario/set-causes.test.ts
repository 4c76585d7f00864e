/** Every change of a set of mirrors, and every takeover, says in the log why it was made. */
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { ResyncPhase } from '../../src/gateway/mirror/replica.js';
import { Group } from './group.js';
import { coreOf } from './inspect.js';
import type { KeptLog } from './ports.js';
import { World } from './world.js';

const CHANGED = 'the set of mirrors changed';

/** Causes of the changes of the set so far. */
function causes(log: KeptLog): string[] {
  return log.lines.filter(({ text }) => text === CHANGED).map(({ fields }) => String(fields['cause']));
}

/** Causes of what was claimed so far, by who took it. */
function takeovers(log: KeptLog): string[] {
  return log.lines.filter(({ text }) => text.startsWith('the claims of a partition stand')).map(({ fields }) => `${String(fields['to'])}: ${String(fields['cause'])}`);
}

function withMail(stores: number, minReplicas = 1): World {
  const world = World.started({ stores, minReplicas, queues: [{ name: 'q1' }] });
  world.hops.script = () => 'hang';
  world.submitMany(5, ['q1']);
  world.run(100);
  return world;
}

function members(world: World): string[] {
  return world.mirror('q1').replicas.filter(({ member }) => member).map(({ store }) => store.storeId);
}

describe('a change of the set of mirrors', () => {
  test('names the store that is isolated with what was wrong with it, and the one that joins', () => {
    const world = withMail(2);
    world.store('b').kill();
    world.until(() => members(world).length === 1, 10_000, 'the set without it');
    const { cause } = world.mirror('q1').replicas.find(({ store }) => store.storeId === 'store-b') ?? assert.fail('still a mirror');
    assert.ok(cause !== '');
    assert.deepEqual(causes(world.log), [`store-b isolated: ${cause}`]);
    world.store('b').start();
    world.untilLevel();
    assert.deepEqual(causes(world.log).slice(1), ['store-b joined: it is in sync']);
  });

  test('names the store that is let in again, since it was filled anew while no other was in sync', () => {
    const world = withMail(3);
    const mirror = world.mirror('q1');
    const [leaving, sibling] = members(world);
    const third = world.stores.find(({ id }) => id !== leaving && id !== sibling);
    assert.ok(leaving !== undefined && sibling !== undefined && third !== undefined);
    coreOf(world).mirrors.moves.drain(leaving);
    world.until(() => mirror.setChangeNumber !== 0 && mirror.memberCount === 3, 20_000, 'the change to the sibling and the third store');
    world.network.holdAnswers('gw-1', sibling, true);
    third.kill();
    third.start();
    world.until(() => mirror.replicas.some(({ store, phase }) => store.storeId === third.id && phase === ResyncPhase.CAUGHT_UP), 20_000, 'the third store filled');
    world.network.holdAnswers('gw-1', sibling, false);
    world.until(() => mirror.inSyncCount === 2 && mirror.setChangeNumber === 0, 20_000, 'both in sync');
    assert.deepEqual(causes(world.log), [`${third.id} joined: it is in sync`, `${leaving} left: the store is drained`, `${third.id} let in again: it is filled`]);
  });

  test('names the drain for which a store leaves, with and without another in its place', () => {
    const world = withMail(3);
    const [first, second] = members(world);
    const third = world.stores.find(({ id }) => id !== first && id !== second)?.id ?? '';
    assert.ok(first !== undefined && second !== undefined);
    coreOf(world).mirrors.moves.drain(first);
    world.until(() => !members(world).includes(first), 20_000, 'that it has left');
    assert.deepEqual(causes(world.log), [`${third} joined: it is in sync`, `${first} left: the store is drained`]);
    const left = world.log.lines.find(({ text, fields }) => text.startsWith('a mirror is isolated') && fields['store'] === first);
    assert.equal(left?.fields['cause'], 'it has left the set: the store is drained');
    coreOf(world).mirrors.moves.drain(second);
    world.until(() => members(world).length === 1, 20_000, 'that it has left');
    assert.deepEqual(causes(world.log).slice(2), [`${second} left: the store is drained`]);
  });

  test('names the stop for which a store leaves', () => {
    const world = withMail(2);
    world.store('b').leave(60_000, false, () => { world.store('b').kill(); });
    world.until(() => members(world).length === 1, 20_000, 'that it has left');
    assert.deepEqual(causes(world.log), ['store-b left: the store stops']);
  });

  test('says that this gateway founded it, when every mirror had lost its copy', () => {
    const world = withMail(2);
    for (const store of world.stores) {
      store.kill();
      store.start();
    }
    world.untilLevel();
    const told = causes(world.log);
    assert.ok(told.some((cause) => /^founded by this gateway at store-[ab](, store-[ab])?: no mirror in sync was left/.test(cause)), told.join('\n'));
    assert.ok(told.every((cause) => cause !== ''));
  });

  test('says that an operator forced it', () => {
    const world = withMail(2);
    for (const store of world.stores) world.cut(store);
    world.run(30_000);
    for (const store of world.stores) {
      store.kill();
      store.start();
      world.heal(store);
    }
    world.until(() => coreOf(world).recovery.held().length === 1, 20_000, 'the named state');
    assert.deepEqual(causes(world.log), []);
    coreOf(world).recovery.force({ partition: 'p1', missing: 'store-b', reason: 'no other process runs', who: 'ann' });
    world.untilLevel();
    assert.match(causes(world.log)[0] ?? '', /^founded at store-[ab](, store-[ab])?, forced by an operator who gave up store-b/);
  });

  test('says which member a process did without that took the queue back', () => {
    const world = withMail(3);
    const away = world.stores.find(({ id }) => id === members(world)[1]) ?? assert.fail('a member');
    away.kill();
    world.gateway.kill();
    world.gateway.start();
    world.until(() => coreOf(world).recovery.held().length === 1, 60_000, 'the named state');
    coreOf(world).recovery.force({ partition: 'p1', missing: away.id, reason: 'it burnt', who: 'ann' });
    world.until(() => causes(world.log).length > 0, 60_000, 'a change of the set');
    assert.equal(causes(world.log)[0], `${away.id} isolated: given up by an operator`);
    assert.deepEqual(takeovers(world.log), ['gw-1: forced by an operator']);
  });
});

describe('a takeover', () => {
  test('says of an own queue whether it is back after a restart, or from another gateway that had it', () => {
    const group = Group.started({ queues: [{ name: 'q1' }] });
    group.hops.script = () => 'hang';
    group.submit('gw-1', ['q1']);
    group.run(200);
    group.gateway('gw-1').kill();
    group.gateway('gw-1').start();
    group.until(() => takeovers(group.log).length === 1, 'the restart');
    assert.deepEqual(takeovers(group.log), ['gw-1: own queue after a restart']);
    group.run(1000);
    // So that nothing is in flight when it is to be handed back.
    group.hops.script = () => 'defer';
    group.freeze('gw-1');
    group.until(() => group.served('gw-2', 'gw-1').length === 1, 'the takeover');
    group.thaw('gw-1');
    group.until(() => takeovers(group.log).length === 3, 'the hand-back');
    assert.deepEqual(takeovers(group.log).slice(1), ['gw-2: its gateway is silent', 'gw-1: own queue back from gw-2']);
  });
});
