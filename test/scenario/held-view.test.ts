/**
 * Queues whose mail waits, as `twinpost status` shows them: by the name of their state, which queue it is, and how many
 * messages wait, here in memory or at the stores (src/gateway/core-view.ts).
 */
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import type { HeldPartitionView, StatusView } from '../../src/gateway/admin/view.js';
import { CoreView } from '../../src/gateway/core-view.js';
import { GatewayMetrics } from '../../src/observability/gateway-metrics.js';
import type { SetHint } from '../../src/recovery/set-hints.js';
import { coreOf, onlyQueue } from './inspect.js';
import type { WorldOptions } from './world.js';
import { World } from './world.js';

const WALL_MS = 1_800_000_000_000;

function statusOf(world: World): StatusView {
  const clock = { nowMs: () => world.scheduler.nowMs, wallMs: () => WALL_MS + world.scheduler.nowMs };
  return new CoreView(
    { gatewayId: 'gw-1', host: 'box-1', incarnation: 1, version: '', insecure: false, replicas: 2, storeHosts: new Map(), others: [] },
    { clock, log: world.log, core: coreOf(world), links: [], metrics: new GatewayMetrics(), pid: 1, adminAddress: () => undefined, isDraining: () => false, drainedSinceWallMs: () => undefined, connectionsIn: () => 0, connectionsOut: () => 0, dotsInFlight: () => 0 },
  ).status();
}

/** The one that is held, without what its reason says. */
function heldIn(world: World): Omit<HeldPartitionView, 'why'> {
  const { partitionsHeld, heldPartitions: [first] } = statusOf(world);
  assert.ok(first !== undefined && partitionsHeld === 1, 'one queue is held');
  const { why, ...held } = first;
  assert.notEqual(why, '');
  return held;
}

/** Five messages in q1, at store-a and store-b; and what the file of the gateway's machine says of it then. */
function loaded(options: WorldOptions = {}): { readonly world: World; readonly id: string; readonly hint: SetHint } {
  const world = World.started({ queues: [{ name: 'q1' }], ...options });
  world.hops.script = () => 'hang';
  world.submitMany(5, ['q1']);
  world.run(200);
  const { ownerId, birth, serial } = onlyQueue(world.mirror('q1')).identity;
  const hint = [...coreOf(world).sets.hints()].find(({ name }) => name === 'p1');
  return { world, id: `${ownerId}/${String(birth)}/${String(serial)}`, hint: hint ?? assert.fail('a hint') };
}

describe('a queue that is held, in the status', () => {
  test('has what this gateway has of it in memory, when its mirrors are silent', () => {
    const { world, id } = loaded({ replaceAfterMs: 5000 });
    for (const store of world.stores) store.kill();
    const silentWallMs = WALL_MS + world.scheduler.nowMs;
    assert.deepEqual(statusOf(world).heldPartitions, [], 'they may come back');
    world.run(30_000);
    const { sinceWallMs, ...held } = heldIn(world);
    assert.deepEqual(held, { partition: 'p1', owner: 'gw-1', id, state: 'members silent', messages: 5, stores: ['store-a', 'store-b'] });
    assert.ok(sinceWallMs !== undefined && sinceWallMs > silentWallMs + 4000 && sinceWallMs < silentWallMs + 10_000);
  });

  test('has what a store has told of it, when another one is missing', () => {
    const { world, id } = loaded();
    world.gateway.kill();
    world.store('b').kill();
    world.gateway.start();
    const startWallMs = WALL_MS + world.scheduler.nowMs;
    world.run(30_000);
    const { sinceWallMs, ...held } = heldIn(world);
    assert.deepEqual(held, { partition: 'p1', owner: 'gw-1', id, state: 'waiting', messages: 5, stores: ['store-b'] });
    assert.ok(sinceWallMs !== undefined && sinceWallMs > startWallMs && sinceWallMs < startWallMs + 10_000);
  });

  test('has neither a number of messages nor a time, when no store has told of it', () => {
    const hints: SetHint[] = [];
    const { world, id, hint } = loaded({ hints: () => hints });
    world.gateway.kill();
    for (const store of world.stores) store.kill();
    world.store('a').start();
    hints.push({ ...hint, members: ['store-b'] });
    world.gateway.start();
    world.run(30_000);
    assert.deepEqual(heldIn(world), { partition: 'p1', owner: 'gw-1', id, state: 'unknown', messages: undefined, stores: ['store-b'], sinceWallMs: undefined });
  });
});
