/** A store that an operator has drained, as operators see it: named as such, since when, and as the cause of fewer copies. */
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { CoreView } from '../../src/gateway/core-view.js';
import type { DrainState } from '../../src/gateway/admin/store-api.js';
import type { StoreView } from '../../src/gateway/admin/view.js';
import { DrainedStores } from '../../src/gateway/drained-stores.js';
import { KEPT_WAIT_MS } from '../../src/gateway/control/kept-waits.js';
import { GatewayMetrics } from '../../src/observability/gateway-metrics.js';
import { coreOf } from './inspect.js';
import { World } from './world.js';

const WALL_MS = 1_800_000_000_000;

/** What the daemon of a gateway puts around its core. */
function around(world: World): { readonly view: CoreView; readonly drained: DrainedStores } {
  const core = coreOf(world);
  const clock = { nowMs: () => world.scheduler.nowMs, wallMs: () => WALL_MS + world.scheduler.nowMs };
  const drained = new DrainedStores({ clock, log: world.log, mirrors: core.mirrors, records: core.control.queues.own, partitionsOf: (name) => core.registry.partitionsOf(name), whenKept: (then) => { core.control.whenKept(['gw-1'], then); } });
  const links = world.stores.flatMap(({ id }) => world.gateway.link(id) ?? []);
  const view = new CoreView(
    { gatewayId: 'gw-1', host: 'box-1', incarnation: 1, version: '', insecure: false, replicas: 2, storeHosts: new Map(), others: [] },
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

describe('records of the gateway itself that no store has', () => {
  test('are told as degraded, with how many, in status and log, until a store takes them', () => {
    const world = World.started({ minReplicas: 2 });
    const { view } = around(world);
    const { mirrors, control } = coreOf(world);
    const told = (): readonly unknown[] => world.log.lines.filter(({ text }) => /^(degraded|complete again):/.test(text)).map(({ text, fields }) => [text, fields['cause'], fields['records']]);
    const watched = (ms: number): void => {
      world.run(ms);
      view.watch(world.scheduler.nowMs);
    };
    watched(1100);
    assert.deepEqual([view.status().degradedSinceWallMs, told()], [undefined, []]);
    // With one store left no queue can be founded for them.
    mirrors.moves.drain('store-b');
    for (const name of ['hold/1', 'hold/2']) control.queues.own.set(name, Uint8Array.of(1));
    const sinceWallMs = WALL_MS + world.scheduler.nowMs;
    const cause = 'store-b: drained; 2 records of the gateway itself at no store: a restart forgets what they say';
    const { degradedSinceWallMs, degradedCause, controlRecords, controlCopies } = view.status();
    assert.deepEqual([degradedSinceWallMs, degradedCause, controlRecords, controlCopies], [sinceWallMs, cause, 2, 0]);
    watched(1100);
    assert.deepEqual(told(), [['degraded: records of the gateway itself are at no store', cause, 2]]);
    mirrors.moves.undrain('store-b');
    watched(1100);
    assert.deepEqual([view.status().degradedSinceWallMs, view.status().controlCopies, told().length], [undefined, 2, 2]);
  });
});

describe('the answer to a drain, and to its undo', () => {
  const ORDER = { reason: 'disk', who: 'ann' };

  interface Told {
    readonly world: World;
    drained: DrainedStores;
    /** What the last answer said; undefined while it waits. */
    kept: boolean | undefined;
    give(verb: 'drain' | 'undrain'): void;
  }

  function orders(onAnswer: () => void = () => undefined): Told {
    const world = World.started({ queues: [{ name: 'q1' }] });
    world.hops.script = () => 'hang';
    world.submitMany(5, ['q1']);
    world.run(100);
    const told: Told = {
      world, drained: around(world).drained, kept: undefined,
      give: (verb) => {
        told.kept = undefined;
        told.drained[verb]('store-b', ORDER);
        told.drained.whenSettled('store-b', () => {
          told.kept = told.drained.drainState('store-b')?.kept;
          onAnswer();
        });
      },
    };
    return told;
  }

  function holdAnswers(world: World, held: boolean): void {
    for (const store of world.stores) world.holdAnswers(store, held);
  }

  /** What a new process takes the store for. */
  function isDrainedAfterRestart(world: World): boolean {
    world.until(() => coreOf(world).control.queues.own.size > 0, 20_000, 'the records back');
    const { drained } = around(world);
    drained.tick();
    return drained.drainState('store-b')?.draining === true;
  }

  for (const verb of ['drain', 'undrain'] as const) {
    test(`${verb}: comes when the mirrors have acknowledged it, not before; a crash right behind it undoes nothing`, () => {
      let crash = false;
      const told = orders(() => {
        if (!crash) return;
        told.world.gateway.kill();
        told.world.gateway.start();
      });
      const { world } = told;
      if (verb === 'undrain') {
        told.give('drain');
        world.until(() => told.kept === true, 1000, 'drained first');
      }
      holdAnswers(world, true);
      crash = true;
      told.give(verb);
      world.run(1000);
      assert.equal(told.kept, undefined, 'no store has acknowledged it');
      assert.equal(told.drained.drainState('store-b')?.kept, false, 'who looks is told so');
      assert.equal(told.drained.drainState('store-b')?.draining, verb === 'drain', 'in force at once');
      holdAnswers(world, false);
      world.until(() => told.kept !== undefined, 1000, 'the answer');
      assert.equal(told.kept, true);
      assert.equal(isDrainedAfterRestart(world), verb === 'drain');
    });
  }

  test('says at a bound that it is not kept yet; given again it is not logged again, and is kept when a store answers', () => {
    const told = orders();
    const { world } = told;
    holdAnswers(world, true);
    told.give('drain');
    world.run(KEPT_WAIT_MS - 100);
    assert.equal(told.kept, undefined);
    world.run(200);
    assert.equal(told.kept, false);
    told.give('drain');
    world.run(100);
    assert.equal(told.kept, undefined, 'still not known');
    holdAnswers(world, false);
    world.until(() => told.kept === true, 1000, 'it is kept');
    assert.equal(ordersIn(world).length, 1);
  });

  test('is that it is kept also where no store can take over and two mirrors are needed: the first record of all', () => {
    const world = World.started({ minReplicas: 2, queues: [{ name: 'q1' }] });
    const { drained } = around(world);
    let state: DrainState | undefined;
    drained.drain('store-b', ORDER);
    drained.whenSettled('store-b', () => { state = drained.drainState('store-b'); });
    world.until(() => state !== undefined, KEPT_WAIT_MS + 500, 'the answer');
    assert.deepEqual([state?.draining, state?.kept], [true, true]);
  });

  test('that the store is used is written down though no record was known: one that comes back late drains it no more', () => {
    const told = orders();
    const { world } = told;
    told.give('drain');
    world.until(() => told.kept === true, 1000, 'it is kept');
    world.gateway.kill();
    world.gateway.start();
    told.drained = around(world).drained;
    told.give('undrain');
    assert.equal(told.kept, undefined, 'its control queue is not back');
    world.until(() => told.kept === true, 20_000, 'it is kept');
    world.gateway.kill();
    world.gateway.start();
    assert.equal(isDrainedAfterRestart(world), false);
  });

  test('with nothing written down, and nothing to write, there is nothing to wait for', () => {
    const world = World.started();
    const { drained } = around(world);
    let told = false;
    drained.whenSettled('store-b', () => { told = true; });
    assert.equal(told, true);
    assert.equal(drained.drainState('store-b')?.kept, true);
  });
});
