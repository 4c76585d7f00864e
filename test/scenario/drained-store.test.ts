/** A store that an operator has drained, as operators see it: named as such, since when, and as the cause of fewer copies. */
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { CoreView } from '../../src/gateway/admin/core-view.js';
import type { StoreAnswer } from '../../src/admin-api/gateway-answers.js';
import { DISK_WAIT_MS, DrainedStores } from '../../src/gateway/admin/drained-stores.js';
import type { DrainedFile } from '../../src/gateway/admin/drained-stores.js';
import type { DrainedSince } from '../../src/gateway/local/drained-file.js';
import { GatewayMetrics } from '../../src/observability/gateway-metrics.js';
import { coreOf } from './inspect.js';
import { World } from './world.js';

const WALL_MS = 1_800_000_000_000;

/** A disk that takes what is written when the test says so. */
class PlayedFile implements DrainedFile {
  onDisk: DrainedSince = new Map();
  /** Why the disk takes nothing; '' when it does. */
  broken = '';
  hangs = false;
  #written: (() => void)[] = [];

  read(): DrainedSince {
    if (this.broken !== '') throw new Error(this.broken);
    return this.onDisk;
  }

  async write(drained: DrainedSince): Promise<void> {
    if (this.hangs) await new Promise<void>((resolve) => { this.#written.push(resolve); });
    if (this.broken !== '') throw new Error(this.broken);
    this.onDisk = drained;
  }

  async goOn(): Promise<void> {
    this.hangs = false;
    for (const written of this.#written.splice(0)) written();
    await settled();
  }
}

/** Promises that can be kept are kept. */
async function settled(): Promise<void> {
  await new Promise((resolve) => { setImmediate(resolve); });
}

/** What the daemon of a gateway puts around its core. */
function around(world: World, file: DrainedFile = new PlayedFile()): { readonly view: CoreView; readonly drained: DrainedStores } {
  const core = coreOf(world);
  const clock = { nowMs: () => world.scheduler.nowMs, wallMs: () => WALL_MS + world.scheduler.nowMs };
  const drained = new DrainedStores({ clock, log: world.log, mirrors: core.mirrors, leaving: core.leaving, file, partitionsOf: (name) => core.registry.partitionsOf(name), core });
  const links = world.stores.flatMap(({ id }) => world.gateway.link(id) ?? []);
  const view = new CoreView(
    { gatewayId: 'gw-1', host: 'box-1', incarnation: 1, version: '', insecure: false, replicas: 2, minReplicas: 1, leaseMs: 10_000, rescues: () => [], hostOf: () => '', others: () => [], unreached: () => [] },
    { clock, log: world.log, core, links, metrics: new GatewayMetrics(), pid: 1, adminAddress: () => undefined, isDraining: () => false, drainedSinceWallMs: (id) => drained.sinceWallMs(id), connectionsIn: () => 0, connectionsOut: () => 0, dotsInFlight: () => 0 },
  );
  return { view, drained };
}

function storeOf(view: CoreView, id: string): StoreAnswer {
  return view.status().stores.find(({ store }) => store === id) ?? assert.fail(`${id} in the status`);
}

/** What the log says of what operators did. */
function ordersIn(world: World): readonly unknown[] {
  return world.log.lines.filter(({ text }) => text.startsWith('an operator')).map(({ event, text, fields }) => [event, text, fields]);
}

describe('a drained store', () => {
  test('is the cause of fewer copies, since the moment at which it was drained, over a restart too, until it is used again', async () => {
    const world = World.started({ queues: [{ name: 'q1' }] });
    world.hops.script = () => 'hang';
    world.submitMany(5, ['q1']);
    world.run(100);
    const file = new PlayedFile();
    const before = around(world, file);
    assert.deepEqual([storeOf(before.view, 'store-b').drained, before.view.status().degraded_cause], [false, '']);
    const sinceWallMs = WALL_MS + world.scheduler.nowMs;
    before.drained.drain('store-b', { reason: 'disk', who: 'ann' });
    world.store('b').kill();
    world.run(1000);
    const { drained, drained_since: since } = storeOf(before.view, 'store-b');
    assert.deepEqual([drained, since], [true, Math.floor(sinceWallMs / 1000)]);
    assert.match(before.view.status().degraded_cause, /^store-b: drained/);
    assert.equal(storeOf(before.view, 'store-a').drained, false);
    await settled();
    world.gateway.kill();
    world.store('b').start();
    world.startGateway();
    const after = around(world, file);
    assert.deepEqual([storeOf(after.view, 'store-b').drained, storeOf(after.view, 'store-b').drained_since], [true, Math.floor(sinceWallMs / 1000)]);
    after.drained.undrain('store-b', { reason: 'new disk', who: 'bob' });
    assert.deepEqual([storeOf(after.view, 'store-b').drained, storeOf(after.view, 'store-b').drained_since], [false, null]);
    await settled();
    assert.equal(file.onDisk.size, 0);
  });

  test('is no place of its own: a partition with copies at drained stores alone, or none in step, is only in memory', () => {
    const world = World.started({ queues: [{ name: 'q1' }] });
    world.hops.script = () => 'hang';
    world.submitMany(5, ['q1']);
    world.until(() => world.inSync);
    const { view, drained } = around(world);
    const order = { reason: 'new kernel', who: 'ann' };
    const uncopied = (): number => view.status().partitions_uncopied;
    assert.equal(uncopied(), 0);
    drained.drain('store-a', order);
    world.run(3000);
    assert.equal(uncopied(), 0, 'store-b has all');
    drained.drain('store-b', order);
    world.run(3000);
    assert.equal(uncopied(), 1, 'the one with mail');
    drained.undrain('store-a', order);
    drained.undrain('store-b', order);
    world.until(() => uncopied() === 0);
    world.store('a').kill();
    world.store('b').kill();
    world.until(() => uncopied() === 1);
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

  test('is used when the file can not be read, and the log says so', () => {
    const world = World.started();
    const file = new PlayedFile();
    file.broken = 'EACCES';
    const { view } = around(world, file);
    assert.equal(storeOf(view, 'store-b').drained, false);
    assert.equal(world.log.count('can not be read from state_dir'), 1);
  });
});

describe('the answer to a drain, and to its undo', () => {
  const ORDER = { reason: 'disk', who: 'ann' };

  interface Told {
    readonly world: World;
    readonly file: PlayedFile;
    readonly drained: DrainedStores;
    /** What the last answer said; undefined while it waits. */
    kept: boolean | undefined;
    give(verb: 'drain' | 'undrain'): void;
    run(ms: number): void;
  }

  function orders(file = new PlayedFile()): Told {
    const world = World.started();
    const { drained } = around(world, file);
    return {
      world, file, drained, kept: undefined,
      give(verb) {
        this.kept = undefined;
        drained[verb]('store-b', ORDER);
        drained.whenSettled('store-b', () => { this.kept = drained.drainState('store-b')?.kept; });
      },
      run(ms) {
        world.run(ms);
        drained.tick();
      },
    };
  }

  for (const verb of ['drain', 'undrain'] as const) {
    test(`${verb}: comes when the disk has it, not before`, async () => {
      const told = orders();
      const { file } = told;
      if (verb === 'undrain') {
        told.give('drain');
        await settled();
        assert.equal(told.kept, true, 'drained first');
      }
      file.hangs = true;
      told.give(verb);
      await settled();
      told.run(1000);
      assert.equal(told.kept, undefined);
      const state = told.drained.drainState('store-b');
      assert.deepEqual([state?.draining, state?.kept], [verb === 'drain', false], 'in force at once, and who looks is told');
      await file.goOn();
      assert.equal(told.kept, true);
      assert.equal(file.onDisk.has('store-b'), verb === 'drain');
    });
  }

  test('says at a bound that it is not kept yet; given again it is not logged again, and is kept when the disk has it', async () => {
    const told = orders();
    told.file.hangs = true;
    told.give('drain');
    told.run(DISK_WAIT_MS - 100);
    assert.equal(told.kept, undefined);
    told.run(200);
    assert.equal(told.kept, false);
    told.give('drain');
    told.run(100);
    assert.equal(told.kept, undefined, 'still not known');
    await told.file.goOn();
    assert.equal(told.kept, true);
    assert.equal(ordersIn(told.world).length, 1);
  });

  test('says that a restart forgets it when the disk takes nothing; given again it is tried again', async () => {
    const told = orders();
    told.file.broken = 'ENOSPC';
    told.give('drain');
    await settled();
    assert.equal(told.kept, false);
    assert.equal(told.world.log.count('can not be written to state_dir'), 1);
    told.file.broken = '';
    told.give('drain');
    await settled();
    assert.equal(told.kept, true);
  });

  test('an order that is given while another is written is written next', async () => {
    const told = orders();
    told.file.hangs = true;
    told.give('drain');
    told.drained.drain('store-a', ORDER);
    await told.file.goOn();
    assert.deepEqual([...told.file.onDisk.keys()], ['store-b', 'store-a']);
  });

  test('without a state_dir says at once that a restart forgets it; that a store is used needs no file', () => {
    const world = World.started();
    const clock = { nowMs: () => world.scheduler.nowMs, wallMs: () => WALL_MS };
    const drained = new DrainedStores({ clock, log: world.log, mirrors: coreOf(world).mirrors, leaving: coreOf(world).leaving, file: undefined, partitionsOf: () => [], core: { registerAway: '' } });
    const told: (boolean | undefined)[] = [];
    for (const verb of ['drain', 'undrain'] as const) {
      drained[verb]('store-b', ORDER);
      drained.whenSettled('store-b', () => { told.push(drained.drainState('store-b')?.kept); });
    }
    assert.deepEqual(told, [false, true]);
  });
});
