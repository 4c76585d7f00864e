/** Stores that have no room for another copy: another is chosen, and mail goes on (G2b, G7; docs/PROTOCOL.md "Acknowledgement and credit"). */
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { COMMITTED } from '../../src/gateway/mail-types.js';
import { checkAll } from './checks.js';
import { coreOf } from './inspect.js';
import { World } from './world.js';

const KIBIBYTE = 1024;

function doubled(world: World): boolean {
  return coreOf(world).registry.partitions.every((one) => one.inSyncCount === 2 && one.memberCount === 2);
}

describe('a store that has no room for a refill', () => {
  test('refuses it: another one is chosen, and mail goes on meanwhile', () => {
    const world = World.started({ stores: 4, replaceAfterMs: 1000, memoryOf: { 'store-c': 512 * KIBIBYTE }, queues: [{ name: 'q1' }], partitions: 1 });
    world.run(500);
    const [partition] = coreOf(world).registry.partitions;
    const members = (): readonly string[] => partition?.rows.filter((row) => row.isRecorded).map(({ storeId }) => storeId) ?? [];
    // Two of those that have room hold it.
    if (members().includes('store-c')) coreOf(world).leaving.drain('store-c');
    world.until(() => doubled(world) && !members().includes('store-c'), 30_000, 'copies at large stores');
    coreOf(world).leaving.undrain('store-c');
    world.hops.script = () => 'unreachable';
    world.submitMany(60, ['q1'], { bytes: 20 * KIBIBYTE });
    world.run(500);
    assert.equal(world.letters.count(COMMITTED), 60);
    const spare = world.stores.find(({ id }) => id !== 'store-c' && !members().includes(id));
    assert.ok(spare !== undefined);
    // The small one is the only one there is, for a while.
    world.cut(spare);
    world.run(3000);
    const [lost] = members();
    world.stores.find(({ id }) => id === lost)?.kill();
    world.until(() => world.log.lines.some(({ text, fields }) => text === 'a store refused what a partition changed' && fields['store'] === 'store-c' && fields['reason'] === 'LIMIT'), 30_000, 'that it refuses');
    const fresh = world.submit(['q1']);
    world.until(() => fresh.outcome === COMMITTED, 5000, 'new mail, on one copy');
    world.heal(spare);
    world.until(() => doubled(world), 30_000, 'two copies');
    assert.ok(members().includes(spare.id));
    world.hops.script = () => 'accept';
    world.stores.find(({ id }) => id === lost)?.start();
    world.untilQuiet();
    world.assertSameContent();
    checkAll(world.letters, world.queueNames);
  });
});
