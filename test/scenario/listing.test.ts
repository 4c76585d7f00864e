/** What operators see of a queue: every message once, in order, however it is cut into pages. */
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { CoreView } from '../../src/gateway/core-view.js';
import type { GatewayCore } from '../../src/gateway/core.js';
import { GatewayMetrics } from '../../src/observability/gateway-metrics.js';
import { Group } from './group.js';
import { World } from './world.js';

const COUNT = 25;

function viewOf(world: Pick<World, 'scheduler' | 'log'> & { readonly gateway: { readonly core: GatewayCore | undefined } }, gatewayId = 'gw-1'): CoreView {
  const { core } = world.gateway;
  assert.ok(core !== undefined);
  const clock = { nowMs: () => world.scheduler.nowMs, wallMs: () => 0 };
  return new CoreView(
    { gatewayId, host: 'box-1', incarnation: 1, version: '', insecure: false, replicas: 2, storeHosts: new Map(), others: [] },
    { clock, log: world.log, core, links: [], metrics: new GatewayMetrics(), pid: 1, adminAddress: () => undefined, isDraining: () => false, drainedSinceWallMs: () => undefined, connectionsIn: () => 0, connectionsOut: () => 0, dotsInFlight: () => 0 },
  );
}

/** Ids of all pages; `mend` may change a cursor between two of them. */
function idsInPages(view: CoreView, limit: number, mend: (cursor: string) => string): string[] {
  const ids: string[] = [];
  let cursor = '';
  for (;;) {
    const page = view.messages('q1', 'mail', cursor, limit);
    assert.ok(page !== undefined);
    assert.ok(page.messages.length <= limit);
    ids.push(...page.messages.map((message) => message.queueId));
    if (page.nextCursor === undefined) return ids;
    cursor = mend(page.nextCursor);
  }
}

describe('listing', () => {
  test('a queue comes in pages, each message once and in order, also when the one shown last has gone', () => {
    const world = World.started();
    world.hops.script = () => 'unreachable';
    for (let i = 0; i < COUNT; i++) world.submit(['q1']);
    world.run(500);
    const view = viewOf(world);
    const whole = idsInPages(view, 1000, (cursor) => cursor);
    assert.equal(new Set(whole).size, COUNT);
    assert.deepEqual([...whole].sort(), whole);
    for (const limit of [1, 7, COUNT]) {
      assert.deepEqual(idsInPages(view, limit, (cursor) => cursor), whole);
      // No message has the id 0: as if the one of the cursor had been delivered meanwhile.
      assert.deepEqual(idsInPages(view, limit, (cursor) => cursor.replace(/\d+$/, '0')), whole);
    }
    assert.equal(view.messages('q1', 'bounce', '', 10), undefined);
    assert.equal(view.messages('q1', 'mail', 'nonsense', 1000)?.messages.length, COUNT);
  });

  test('copies that are missing are counted, and since when', () => {
    const world = World.started();
    world.hops.script = () => 'unreachable';
    world.submit(['q1']);
    world.submit(['q2']);
    world.run(500);
    assert.equal(viewOf(world).status().partitionsShort, 0);
    world.store('a').kill();
    world.run(5000);
    assert.equal(viewOf(world).status().partitionsShort, 2);
  });

  test('says whose each queue and message is: a rescuer has queues of one name', () => {
    const group = Group.started();
    group.hops.script = () => 'hang';
    group.submit('gw-1', ['q1']);
    group.run(200);
    group.gateway('gw-1').kill();
    group.until(() => group.served('gw-2', 'gw-1').length === 1, 'the takeover');
    group.submit('gw-2', ['q1']);
    group.run(200);
    const view = viewOf({ scheduler: group.scheduler, log: group.log, gateway: group.gateway('gw-2') }, 'gw-2');
    assert.deepEqual(view.queues('', 10).queues.map(({ name, owner }) => `${name} of ${owner}`).sort(), ['q1 of gw-1', 'q1 of gw-2']);
    assert.deepEqual(view.messages('q1', 'mail', '', 10)?.messages.map(({ owner }) => owner).sort(), ['gw-1', 'gw-2']);
  });
});
