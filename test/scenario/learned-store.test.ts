/** A store that a running gateway learns of late: it is used, and a copy there counts again, with no restart. */
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import type { Partition } from '../../src/gateway/mirror/set/partition.js';
import { COMMITTED } from '../../src/gateway/mail-types.js';
import { RegisterMap } from '../../src/register/core/register-map.js';
import { checkAll, checkNoDuplicates, checkNoLoss } from './checks.js';
import { coreOf } from './inspect.js';
import { World } from './world.js';

describe('a store that is learned of', () => {
  test('by a gateway that runs with one takes the second copies', () => {
    const world = new World();
    world.gateway.unknown.add('store-b');
    for (const store of world.stores) store.start();
    world.gateway.start();
    world.until(() => world.gateway.core?.accepting === true, 30_000, 'that it takes mail with one copy');
    for (const name of world.queueNames) world.submitMany(5, [name]);
    world.run(500);
    assert.ok(coreOf(world).registry.partitions.every((one) => one.inSyncCount === 1));
    world.gateway.learn('store-b');
    const { partitions } = coreOf(world).registry;
    world.until(() => partitions.every((one) => one.inSyncCount === 2), 30_000, 'two copies');
    world.untilQuiet();
    world.assertSameContent();
    checkAll(world.letters, world.queueNames);
  });

  test('late, with the list of all stores, has the mail of a register that was lost: nothing begins anew before', () => {
    const world = World.started({ stores: 3, partitions: 1 });
    world.hops.script = () => 'unreachable';
    for (const name of world.queueNames) world.submitMany(5, [name]);
    world.run(300);
    const members = coreOf(world).registry.partitions[0]?.rows.map(({ storeId }) => storeId) ?? [];
    world.gateway.kill();
    world.register.restore(new RegisterMap());
    for (const id of members) world.gateway.unknown.add(id);
    // One that was told nothing.
    const fresh = world.stores.find(({ id }) => !members.includes(id));
    fresh?.kill();
    fresh?.start();
    world.gateway.isStoreListRead = false;
    world.gateway.start();
    // It is configured, and answers.
    world.run(8_000);
    for (const id of members) world.gateway.learn(id);
    world.gateway.isStoreListRead = true;
    world.hops.script = () => 'accept';
    world.until(() => world.letters.delivered === 15, 30_000, 'all of it');
    world.untilQuiet();
    world.assertSameContent();
    checkAll(world.letters, world.queueNames);
    assert.equal(coreOf(world).holdings.counters.losses, 0);
  });

  for (const [how, stores] of [['both', 3], ['one', 3], ['both', 4]] as const) {
    test(`when its partition was begun anew, for the register had lost its key, too: its mail is taken in, ${how} of the copies back, ${String(stores)} stores`, () => {
      const world = World.started({ stores, partitions: 1 });
      world.hops.script = () => 'unreachable';
      for (const name of world.queueNames) world.submitMany(200, [name]);
      world.run(300);
      const members = coreOf(world).registry.partitions[0]?.rows.map(({ storeId }) => storeId) ?? [];
      world.gateway.kill();
      world.register.restore(new RegisterMap());
      for (const id of members) world.gateway.unknown.add(id);
      for (const fresh of world.stores.filter(({ id }) => !members.includes(id))) {
        fresh.kill();
        fresh.start();
      }
      world.gateway.start();
      world.until(() => world.gateway.core?.accepting === true, 30_000, 'that it begins anew');
      for (const name of world.queueNames) world.submitMany(5, [name]);
      world.run(300);
      for (const id of how === 'both' ? members : members.slice(1)) world.gateway.learn(id);
      world.hops.script = () => 'accept';
      world.until(() => world.letters.delivered === 615, 30_000, 'all of it, and what came meanwhile');
      checkNoLoss(world.letters);
      checkNoDuplicates(world.letters);
    });
  }

  test('while the register is away, and has a recorded copy, is fed again without a change of a record', () => {
    const world = World.started();
    world.run(500);
    world.hops.script = () => 'unreachable';
    for (const name of world.queueNames) world.submitMany(5, [name]);
    world.run(300);
    world.gateway.kill();
    world.gateway.unknown.add('store-b');
    world.gateway.start();
    const withMail = (): Partition | undefined =>
      world.gateway.core?.registry.partitions.find(({ queues }) => queues.size > 0);
    world.until(() => withMail() !== undefined, 30_000, 'a partition with mail');
    world.register.goAway('silent');
    world.run(3_000);
    const open = withMail();
    assert.equal(open?.memberCount, 2, 'nobody could leave the record');
    assert.ok(open.credit > 0, 'as is asked for each message');
    world.gateway.learn('store-b');
    world.until(() => open.inSyncCount === 2, 30_000, 'both copies');
    const [name] = [...open.queues.values()].map((queue) => queue.name);
    assert.ok(name !== undefined);
    const letter = world.submit([name]);
    world.until(() => letter.outcome === COMMITTED, 5_000, 'the commit at both');
    world.register.comeBack();
    world.hops.script = () => 'accept';
    world.untilQuiet();
    world.assertSameContent();
    checkAll(world.letters, world.queueNames);
  });
});
