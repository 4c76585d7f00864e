/** A store that an operator has drained, as operators see it: named as such, since when, and as the cause of fewer copies. */
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { CoreView } from '../../src/gateway/core-view.js';
import type { StoreView } from '../../src/gateway/admin/view.js';
import { DrainedStores } from '../../src/gateway/drained-stores.js';
import { GatewayMetrics } from '../../src/observability/gateway-metrics.js';
import { coreOf } from './inspect.js';
import { World } from './world.js';

const WALL_MS = 1_800_000_000_000;

/** What the daemon of a gateway puts around its core. */
function around(world: World): { readonly view: CoreView; readonly drained: DrainedStores } {
  const core = coreOf(world);
  const clock = { nowMs: () => world.scheduler.nowMs, wallMs: () => WALL_MS + world.scheduler.nowMs };
  const drained = new DrainedStores({ clock, log: world.log, mirrors: core.mirrors, records: core.control.queues.own, queuesOf: (name) => core.registry.byName(name) });
  const links = world.stores.flatMap(({ id }) => world.gateway.link(id) ?? []);
  const view = new CoreView(
    { gatewayId: 'gw-1', host: 'box-1', incarnation: 1, insecure: false, replicas: 2, storeHosts: new Map(), others: [] },
    { clock, log: world.log, core, links, metrics: new GatewayMetrics(), pid: 1, adminAddress: () => undefined, isDraining: () => false, drainedSinceWallMs: (id) => drained.sinceWallMs(id), connectionsIn: () => 0, connectionsOut: () => 0, dotsInFlight: () => 0 },
  );
  return { view, drained };
}

function storeOf(view: CoreView, id: string): StoreView {
  return view.status().stores.find((store) => store.id === id) ?? assert.fail(`${id} in the status`);
}

/** What the log says of what operators did. */
function ordersIn(world: World): readonly unknown[] {
  return world.log.lines.filter(({ text }) => text.startsWith('an operator')).map(({ event, text, fields }) => [event, text, fields]);
}

describe('a drained store', () => {
  test('is the cause of fewer copies, since the moment at which it was drained, over a restart too, until it is used again', () => {
    const world = World.started({ queues: [{ name: 'q1' }] });
    world.hops.script = () => 'hang';
    world.submitMany(5, ['q1']);
    world.run(100);
    const before = around(world);
    assert.deepEqual([storeOf(before.view, 'store-b').drained, before.view.status().degradedCause], [false, '']);
    const sinceWallMs = WALL_MS + world.scheduler.nowMs;
    before.drained.drain('store-b', { reason: 'disk', who: 'ann' });
    world.until(() => world.mirror('q1').replicas.length === 1, 10_000, 'one copy');
    world.run(500);
    const { drained, drainedSinceWallMs } = storeOf(before.view, 'store-b');
    assert.deepEqual([drained, drainedSinceWallMs], [true, sinceWallMs]);
    assert.match(before.view.status().degradedCause, /^store-b: drained$/);
    assert.equal(storeOf(before.view, 'store-a').drained, false);
    world.gateway.kill();
    world.gateway.start();
    world.until(() => coreOf(world).control.queues.own.size > 0, 20_000, 'the records back');
    const after = around(world);
    after.drained.tick();
    assert.deepEqual([storeOf(after.view, 'store-b').drained, storeOf(after.view, 'store-b').drainedSinceWallMs], [true, sinceWallMs]);
    after.drained.undrain('store-b', { reason: 'new disk', who: 'bob' });
    assert.deepEqual([storeOf(after.view, 'store-b').drained, storeOf(after.view, 'store-b').drainedSinceWallMs], [false, undefined]);
  });

  test('is logged with who had it drained and why, once for each change; so is a mirror that is filled again', () => {
    const world = World.started({ queues: [{ name: 'q1' }] });
    world.hops.script = () => 'hang';
    world.submitMany(5, ['q1']);
    world.run(100);
    const { drained } = around(world);
    const order = { reason: 'it differs', who: 'ann' };
    assert.equal(drained.resync('q1', 'store-b', order), 1);
    assert.equal(drained.resync('q1', 'store-z', order), undefined);
    world.until(() => world.inSync);
    for (const reason of ['disk', 'again']) drained.drain('store-b', { reason, who: 'ann' });
    for (const reason of ['new disk', 'again']) drained.undrain('store-b', { reason, who: 'bob' });
    assert.deepEqual(ordersIn(world), [
      ['mirror', 'an operator has a mirror emptied and filled again', { queue: 'q1', store: 'store-b', queues: 1, ...order }],
      ['drain', 'an operator drains a store', { store: 'store-b', reason: 'disk', who: 'ann' }],
      ['drain', 'an operator has a store used again', { store: 'store-b', reason: 'new disk', who: 'bob' }],
    ]);
  });

  test('of which an older release kept the record is drained, nobody knows since when', () => {
    const world = World.started();
    coreOf(world).control.queues.own.set('drain/store-b', Uint8Array.of(1));
    const { view, drained } = around(world);
    drained.tick();
    assert.deepEqual([storeOf(view, 'store-b').drained, storeOf(view, 'store-b').drainedSinceWallMs], [true, undefined]);
  });
});
