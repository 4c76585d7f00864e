/**
 * Two of {holder, members} of a partition die at the same instant, one is left: all mail is delivered and doubled again, and
 * nobody is asked (G2, G2b).
 */
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { COMMITTED } from '../../src/gateway/mail-types.js';
import { checkAll } from './checks.js';
import { coreOf } from './inspect.js';
import type { WorldOptions } from './world.js';
import { World } from './world.js';
import { LETTERS, judged, loaded, partitionAt, untilHeldBy } from './pair.js';

const COUNT = 30;

function loadedWorld(options: WorldOptions = {}): World {
  const world = World.started(options);
  world.hops.script = () => 'defer';
  for (const name of world.queueNames) world.submitMany(COUNT, [name]);
  world.run(300);
  assert.equal(world.letters.count(COMMITTED), COUNT * 3);
  return world;
}

function doubled(world: World): boolean {
  return coreOf(world).registry.partitions.length === 8 && coreOf(world).registry.partitions.every((partition) => partition.inSyncCount === 2 && partition.memberCount === 2);
}

function judgedWorld(world: World): void {
  world.hops.script = () => 'accept';
  world.untilQuiet();
  world.until(() => doubled(world), 60_000, 'two copies of everything');
  world.assertSameContent();
  checkAll(world.letters, world.queueNames);
  assert.deepEqual(coreOf(world).holdings.waiting(), []);
  assert.equal(coreOf(world).holdings.counters.losses, 0);
}

describe('a gateway and a store die at the same instant', () => {
  for (const letter of ['a', 'b'] as const) {
    test(`both come back, store ${letter} later and empty: what the other store has is delivered before that`, () => {
      const world = loadedWorld();
      world.store(letter).kill();
      world.gateway.kill();
      world.hops.script = () => 'accept';
      world.run(100);
      world.gateway.start();
      world.until(() => world.letters.delivered === COUNT * 3, 30_000, 'all deliveries');
      assert.deepEqual(coreOf(world).holdings.waiting(), []);
      const fresh = world.submit(['q1']);
      world.until(() => fresh.arrivals.size === 1, 5000, 'new mail, on one copy');
      assert.ok(coreOf(world).registry.partitions.every((partition) => partition.memberCount <= 1 || partition.inSyncCount === 2));
      world.store(letter).start();
      judgedWorld(world);
    });
  }

  test('the store never comes back: a third one takes the copies', () => {
    const world = loadedWorld({ stores: 3, replaceAfterMs: 5000 });
    world.store('a').kill();
    world.gateway.kill();
    world.run(100);
    world.gateway.start();
    world.until(() => world.gateway.core !== undefined && doubled(world), 60_000, 'two copies of everything');
    assert.equal(world.letters.delivered, 0);
    judgedWorld(world);
  });

  test('the gateway never comes back: another of its group delivers, from the one copy that is left, and doubles it', () => {
    const pair = loaded();
    const { group, first } = pair;
    group.gateway('gw-1').kill();
    first.kill();
    untilHeldBy(pair, 'gw-2', 1, 30_000);
    assert.deepEqual(group.gateway('gw-2').core?.holdings.waiting(), []);
    // By replace_after at the third store.
    untilHeldBy(pair, 'gw-2', 2, 60_000);
    assert.equal(partitionAt(pair, 'gw-2')?.length, LETTERS);
    group.hops.script = () => 'accept';
    group.until(() => group.letters.delivered === LETTERS, 'all deliveries');
    group.gateway('gw-1').start();
    judged(pair);
  });

  test('and again, with the next gateway and the next store, before anybody is back but to be filled', () => {
    const world = loadedWorld({ stores: 3, replaceAfterMs: 2000 });
    for (const letter of ['a', 'b', 'c', 'a', 'b', 'c'] as const) {
      const node = world.store(letter);
      node.kill();
      world.gateway.kill();
      world.run(50);
      world.gateway.start();
      world.run(500);
      node.start();
      world.until(() => world.gateway.core !== undefined && doubled(world), 60_000, 'two copies of everything');
    }
    judgedWorld(world);
  });
});

describe('both stores die, and the gateway lives', () => {
  test('it delivers from its memory by its session, and takes new mail when one store is back; then all is doubled again', () => {
    const world = loadedWorld();
    world.store('a').kill();
    world.store('b').kill();
    world.hops.script = () => 'hang';
    world.run(2000);
    const partitions = [...coreOf(world).registry.partitions];
    // A store that is merely silent may have the last copy: until it is seen in a new boot, its lease is asked.
    assert.ok(partitions.every((partition) => partition.memberCount > 0));
    assert.ok(partitions.every((partition) => !partition.mayTake(world.scheduler.nowMs)), 'no mail that nothing could commit');
    assert.equal(coreOf(world).accepting, false, 'G6: the port is closed');
    world.store('a').start();
    world.until(() => partitions.every((partition) => world.register.recordOf(partition.name)?.members.some(({ bootId }) => bootId === world.store('a').bootId)), 30_000, 'a copy at the first');
    assert.deepEqual(partitions, coreOf(world).registry.partitions, 'memory was not given up');
    world.store('b').start();
    world.hops.script = () => 'accept';
    for (const letter of world.letters.all) letter.mayRepeat = false;
    world.until(() => doubled(world), 60_000, 'two copies of everything');
    world.gateway.kill();
    world.gateway.start();
    judgedWorld(world);
  });

  test('with no store that takes a copy it delivers all the same: the record has no member, the session decides', () => {
    const world = loadedWorld();
    world.store('a').kill();
    world.store('b').kill();
    world.run(1000);
    // Both are seen in a new boot, and neither can take a refill: answers are held back behind the handshake.
    for (const letter of ['a', 'b'] as const) {
      world.store(letter).start();
      world.until(() => world.gateway.link(`store-${letter}`)?.bootId === world.store(letter).bootId, 10_000, 'the new boot is seen');
      world.store(letter).kill();
    }
    const partitions = coreOf(world).registry.partitions;
    world.until(() => partitions.every((partition) => world.register.recordOf(partition.name)?.members.length === 0), 20_000, 'records without members');
    world.hops.script = () => 'accept';
    world.until(() => world.letters.delivered === COUNT * 3, 20_000, 'deliveries from memory');
    assert.equal(world.submit(['q1']).outcome !== COMMITTED, true, 'G1: no 250 without a copy');
    world.store('a').start();
    world.store('b').start();
    judgedWorld(world);
  });
});
