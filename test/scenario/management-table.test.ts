/** The management table as operators see it: what each mirror lacks, why, since when, and which queues come first. */
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { CoreView } from '../../src/gateway/admin/core-view.js';
import type { TableRowAnswer } from '../../src/admin-api/gateway-answers.js';
import { GatewayMetrics } from '../../src/observability/gateway-metrics.js';
import { doById } from './by-id.js';
import { coreOf } from './inspect.js';
import { World } from './world.js';

const WALL_MS = 1_800_000_000_000;
const NAMES = ['q1', 'q2', 'q3'];

function viewOf(world: World): CoreView {
  const { core } = world.gateway;
  assert.ok(core !== undefined);
  const clock = { nowMs: () => world.scheduler.nowMs, wallMs: () => WALL_MS + world.scheduler.nowMs };
  return new CoreView(
    { gatewayId: 'gw-1', host: 'box-1', incarnation: 1, version: '', insecure: false, replicas: 2, minReplicas: 1, leaseMs: 10_000, rescues: () => [], hostOf: () => '', others: () => [], unreached: () => [] },
    { clock, log: world.log, core, links: [], metrics: new GatewayMetrics(), pid: 1, adminAddress: () => undefined, isDraining: () => false, drainedSinceWallMs: () => undefined, connectionsIn: () => 0, connectionsOut: () => 0, dotsInFlight: () => 0 },
  );
}

function rowOf(rows: readonly TableRowAnswer[], partition: string, store: string): TableRowAnswer {
  const row = rows.find((one) => one.partition === partition && one.store === store);
  assert.ok(row !== undefined, `a row for ${partition} at ${store}`);
  return row;
}

test('of what waits for no person, status names first what has mail in memory', () => {
  const world = World.started({ partitions: 24 });
  world.hops.script = () => 'hang';
  for (const [index, name] of NAMES.entries()) world.submitMany(index + 1, [name]);
  world.run(100);
  for (const store of world.stores) store.kill();
  const view = viewOf(world);
  world.until(() => view.status().waiting_for.stores === 24, 60_000);
  const { waiting } = view.status();
  assert.deepEqual([waiting.length, ...waiting.slice(0, 4).map(({ messages }) => messages)], [20, 3, 2, 1, 0]);
});

test('status counts what is held, and of that what no route leads out for', () => {
  const world = World.started({ queues: [{ name: 'q1' }, { name: 'q2' }] });
  world.hops.script = () => 'defer';
  world.submitMany(3, ['q1']);
  const [held] = world.submitMany(2, ['q2']);
  world.run(1000);
  assert.deepEqual(doById(coreOf(world), 'hold', held?.id ?? 0).whys, ['']);
  world.run(1000);
  world.unrouted.add('q1');
  world.gateway.kill();
  world.startGateway();
  world.until(() => world.isWhole, 10_000);
  world.run(1000);
  const { queued_messages: queued, held_messages: all, unrouted_messages: unrouted } = viewOf(world).status();
  assert.deepEqual([queued, all, unrouted], [5, 4, 3]);
});

describe('the management table', () => {
  test('shows what an isolated mirror lacks, since when and why, and nothing of it once it is back', () => {
    const world = World.started({ refillFrameBytes: 600 });
    world.hops.script = () => 'hang';
    world.submitMany(60, NAMES);
    world.run(100);
    const view = viewOf(world);
    view.watch(world.scheduler.nowMs);
    for (const row of view.mirrors('', 100).rows) assert.deepEqual([row.sync, row.member, row.lag_messages, row.lag_bytes, row.transactions], ['SYNC', true, 0, 0, row.last_transaction]);
    world.store('b').kill();
    world.run(1050);
    const lostMs = WALL_MS + world.scheduler.nowMs;
    const before = rowOf(view.mirrors('', 100).rows, world.mirror('q2').name, 'store-b');
    world.submitMany(10, ['q2']);
    world.run(50);
    const after = rowOf(view.mirrors('', 100).rows, world.mirror('q2').name, 'store-b');
    assert.deepEqual([after.sync, after.member, after.transactions], ['NG', false, null]);
    assert.equal(after.lag_messages - before.lag_messages, 10, 'each change since then is one that it lacks');
    assert.ok(after.lag_bytes - before.lag_bytes > 10 * 33, 'and its bytes count');
    assert.ok(Math.abs(after.since * 1000 - lostMs) <= 2100 && after.cause !== '');
    assert.equal(rowOf(view.mirrors('', 100).rows, world.mirror('q2').name, 'store-a').lag_messages, 0);
    assert.equal(view.status().partitions_copies_missing, 8);
    view.watch(world.scheduler.nowMs);
    world.store('b').start();
    world.until(() => world.inSync);
    world.run(500);
    world.run(1000);
    view.watch(world.scheduler.nowMs);
    const told = world.log.lines.map((line) => line.text).filter((text) => /^(degraded|complete again):/.test(text));
    assert.deepEqual(told.map((text) => text.split(':', 1)[0]), ['degraded', 'complete again'], 'one line each');
    for (const row of view.mirrors('', 100).rows) assert.deepEqual([row.sync, row.member, row.progress, row.lag_messages, row.lag_bytes], ['SYNC', true, null, 0, 0]);
  });

  test('says why and since when of a mirror that is new and not filled yet, too', () => {
    const world = World.started({ stores: 3, queues: [{ name: 'q1' }], replaceAfterMs: 2000, partitions: 1 });
    world.hops.script = () => 'hang';
    world.submitMany(5, ['q1']);
    world.run(10_000);
    const view = viewOf(world);
    const killedMs = WALL_MS + world.scheduler.nowMs;
    const third = world.stores.find(({ id }) => !world.mirror('q1').rows.some(({ storeId }) => storeId === id));
    assert.ok(third !== undefined);
    world.slow(third, 1);
    world.stores.find((store) => store !== third)?.kill();
    world.until(() => view.mirrors('', 10).rows.some((row) => row.store === third.id));
    const { sync, cause, since } = rowOf(view.mirrors('', 10).rows, world.mirror('q1').name, third.id);
    assert.deepEqual([sync, cause], ['RESYNC', 'filling']);
    assert.ok(since * 1000 > killedMs - 1000, 'since it was made');
  });

  test('shows how far a refill has come, from nothing to all', () => {
    const world = World.started({ queues: [{ name: 'q1' }], refillFrameBytes: 600, partitions: 1 });
    world.hops.script = () => 'hang';
    world.submitMany(100, ['q1']);
    world.run(100);
    const view = viewOf(world);
    world.store('b').kill();
    world.run(50);
    world.slow(world.store('b'), 20);
    world.store('b').start();
    const seen: number[] = [];
    world.until(() => {
      const row = rowOf(view.mirrors('', 10).rows, world.mirror('q1').name, 'store-b');
      if (row.progress !== null) {
        seen.push(row.progress);
        assert.equal(row.sync, 'RESYNC');
        assert.equal(row.lag_messages, Math.round(100 * (1 - row.progress)), 'what is still to be sent');
      }
      return world.inSync;
    });
    const rising = seen.every((share, i) => share >= (seen[i - 1] ?? 0));
    assert.ok(rising && (seen[0] ?? 1) < 0.5 && seen.at(-1) === 1, `progress went ${seen.join(' ')}`);
  });

  test('names the partitions first that lack copies, then those that lag, and cuts into pages by partition', () => {
    const world = World.started({ queues: Array.from({ length: 16 }, (_, i) => ({ name: `n${String(i)}` })), partitions: 16 });
    world.hops.script = () => 'hang';
    for (let i = 0; i < 16; i++) world.submitMany(i + 1, [`n${String(i)}`]);
    world.run(200);
    const view = viewOf(world);
    assert.deepEqual(view.troubled(2).map((row) => row.partition), ['n15', 'n15', 'n14', 'n14'].map((name) => world.mirror(name).name), 'without trouble the longest');
    world.holdAnswers(world.store('a'), true);
    world.submit(['n3']);
    world.run(20);
    assert.equal(view.troubled(1)[0]?.partition, world.mirror('n3').name, 'the one that lags');
    const seen: string[] = [];
    let pages = 0;
    for (let cursor: string | null = ''; cursor !== null; pages++) {
      const page = view.mirrors(cursor, 10);
      assert.ok(page.rows.length <= 20);
      seen.push(...page.rows.map((row) => `${row.partition} ${row.store}`));
      cursor = page.next_cursor;
    }
    assert.deepEqual([pages, seen.length, new Set(seen).size], [2, 32, 32]);
  });
});
