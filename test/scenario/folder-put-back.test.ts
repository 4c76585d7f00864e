/**
 * What a store left at its stop is put back to an older state, in a way that the store itself can't see (a snapshot of
 * its volume): it goes on in a boot that counts, without changes that it had acknowledged.
 */
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { COMMITTED } from '../../src/gateway/mail-types.js';
import { checkAll } from './checks.js';
import type { StoreNode } from './store-node.js';
import { World } from './world.js';

const QUEUES = ['q1', 'q2', 'q3'];
const LACKS = 'lacks changes that it had acknowledged';

type Disk = readonly Uint8Array[];

function stop(world: World, store: StoreNode): Disk {
  let isDown = false;
  store.leave(0, true, () => { store.kill(); isDown = true; });
  world.until(() => isDown);
  return store.disk;
}

/** `count` letters that stay queued, committed. */
function take(world: World, count: number): void {
  const letters = world.submitMany(count, QUEUES);
  world.until(() => letters.every(({ outcome }) => outcome === COMMITTED));
}

/** Each of them is stopped and started in good order; what it left is kept; then it takes 40 letters more. */
function backedUp(stores: (world: World) => readonly StoreNode[]): { readonly world: World; readonly backups: readonly Disk[] } {
  const world = World.started();
  world.hops.script = () => 'hang';
  take(world, 40);
  const backups = stores(world).map((store) => {
    const disk = stop(world, store);
    assert.ok(disk.length > 0);
    store.start();
    return disk;
  });
  world.untilLevel();
  take(world, 40);
  return { world, backups };
}

function putBack(world: World, store: StoreNode, disk: Disk | undefined): void {
  const { bootId } = store;
  stop(world, store);
  store.putBack(disk ?? []);
  store.start();
  assert.equal(store.bootId, bootId, 'it goes on as the boot that counts');
}

function deliveredFrom(world: World, alone: StoreNode): void {
  world.gateway.kill();
  for (const store of world.stores) if (store !== alone) store.kill();
  world.hops.script = () => 'accept';
  world.startGateway();
  world.untilQuiet();
  checkAll(world.letters, QUEUES);
}

describe('a store whose folder was put back to an older state', () => {
  test('gets what it lacks, and counts only then, without any new mail; the log says so once', () => {
    const { world, backups } = backedUp(({ stores }) => stores.slice(1));
    const store = world.store('b');
    putBack(world, store, backups[0]);
    world.untilLevel();
    world.assertSameContent();
    world.run(2_000);
    assert.equal(world.log.count(LACKS), 1);
    const told = world.log.lines.find(({ text }) => text.includes(LACKS));
    assert.equal(told?.fields['store'], 'store-b');
    assert.match(String(told.fields['partitions']), /^gw-1\/\d+ gw-1\/\d+ gw-1\/\d+$/);
    deliveredFrom(world, store);
  });

  test('does so when the other one was put back too, from the memory of the gateway', () => {
    const { world, backups } = backedUp(({ stores }) => stores);
    world.stores.forEach((store, at) => { putBack(world, store, backups[at]); });
    world.untilLevel();
    world.assertSameContent();
    world.run(2_000);
    assert.equal(world.log.count(LACKS), 2);
    deliveredFrom(world, world.store('a'));
  });

  test('is not what a gateway reads that starts meanwhile, while another copy is there', () => {
    const { world, backups } = backedUp(({ stores }) => stores.slice(1));
    world.gateway.kill();
    putBack(world, world.store('b'), backups[0]);
    world.hops.script = () => 'accept';
    world.startGateway();
    world.untilQuiet();
    checkAll(world.letters, QUEUES);
  });
});
