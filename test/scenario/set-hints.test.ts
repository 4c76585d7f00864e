/** Sets of mirrors that the process before left as hints: what no store tells of is waited for, or shown (DESIGN "Recovery"). */
import assert from 'node:assert/strict';
import { existsSync, mkdtempSync, readFileSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, test } from 'node:test';
import type { GatewayCore } from '../../src/gateway/core.js';
import { LocalNotes, readSetHints } from '../../src/gateway/local-notes.js';
import type { SetHint } from '../../src/recovery/set-hints.js';
import { World } from './world.js';

function coreOf(world: World): GatewayCore {
  const { core } = world.gateway;
  assert.ok(core !== undefined, 'the gateway lives');
  return core;
}

describe('sets of mirrors as the process before knew them', () => {
  /** Three stores; the queue's third member was away when the gateway died, and only it knows a newer epoch. */
  function hinted(hint: boolean): World {
    const hints: SetHint[] = [];
    const world = World.started({ stores: 3, seed: 5, hints: () => hints });
    world.hops.script = () => 'hang';
    world.submitMany(5, ['q1']);
    world.run(200);
    const members = world.mirror('q1').replicas.map((replica) => replica.store.storeId);
    if (hint) hints.push(...[...coreOf(world).sets.hints()].map((one) => ({ ...one, epoch: one.epoch + 1, members: world.stores.map((store) => store.id) })));
    world.hops.script = () => 'accept';
    const outside = world.stores.find((store) => !members.includes(store.id));
    assert.ok(outside !== undefined);
    world.gateway.kill();
    outside.kill();
    world.gateway.start();
    return world;
  }

  test('an epoch that no store tells of holds the queue, with its missing member named, until an operator goes on', () => {
    const world = hinted(true);
    world.run(10_000);
    assert.equal(world.letters.delivered, 0);
    const [held] = coreOf(world).recovery.held();
    assert.ok(held !== undefined);
    assert.match(held.why, /were members at epoch 2/);
    const names = coreOf(world).recovery.force({ partition: 'p1', missing: held.stores[0] ?? '', reason: 'burnt', who: 'ann' });
    assert.deepEqual(names.map(({ partition }) => partition), ['p1']);
    world.until(() => world.letters.delivered === 5, 10_000);
  });

  test('the queue goes on by itself when the missing member has answered, whatever it says', () => {
    const world = hinted(true);
    world.run(5000);
    assert.equal(world.letters.delivered, 0);
    for (const store of world.stores) if (!store.isAlive) store.start();
    world.until(() => world.letters.delivered === 5, 10_000);
  });

  test('without the file, or with one that is older than what the stores tell, nothing waits', () => {
    const world = hinted(false);
    world.until(() => world.letters.delivered === 5, 10_000);
  });

  test('a queue that no store tells of is shown with the stores that had it, and told to be gone when all have answered', () => {
    const hints: SetHint[] = [{ ownerId: 'gw-1', birth: 7, serial: 1, name: 'p2', queueClass: 'mail', epoch: 4, members: ['store-b'] }];
    const world = new World({ hints: () => hints });
    world.store('a').start();
    world.gateway.start();
    world.until(() => coreOf(world).recovery.held().length === 1, 10_000);
    assert.deepEqual(coreOf(world).recovery.held().map(({ partition, stores, why }) => ({ partition, stores, why })), [{ partition: 'p2', stores: ['store-b'], why: 'store-b was a member at epoch 4' }]);
    assert.equal(world.log.count('is told by no store that answers'), 1);
    assert.equal([...coreOf(world).sets.hints()].length, 1, 'it is kept for the next process');
    world.store('b').start();
    world.until(() => coreOf(world).recovery.held().length === 0, 10_000);
    world.run(200);
    assert.equal(world.log.count('is told by no store: if it held mail'), 1);
  });
});

describe('the file of sets', () => {
  const PARTITIONS = 600;

  /** A gateway with many partitions, its notes, and how many sets they ask it for. */
  function noted(state: string): { readonly world: World; readonly notes: LocalNotes; readonly made: () => number } {
    const queues = Array.from({ length: PARTITIONS }, (_none, i) => ({ name: `n${String(i)}` }));
    const world = World.started({ stores: 3, partitions: PARTITIONS, queues });
    for (const { name } of queues) world.submit([name]);
    world.run(200);
    const { sets, crashes, inHand } = coreOf(world);
    let made = 0;
    const hints = function* (): Generator<SetHint, undefined> {
      for (const hint of sets.hints()) {
        made += 1;
        yield hint;
      }
    };
    return { world, notes: new LocalNotes(state, { log: world.log, crashes, inHand, incarnation: 1, sets: { signature: () => sets.signature(), hints } }), made: () => made };
  }

  test('is made in parts, and again only when a set has changed or a partition has come', { timeout: 20_000 }, async (t) => {
    const state = mkdtempSync(join(tmpdir(), 'twinpost-sets-'));
    t.after(() => { rmSync(state, { recursive: true, force: true }); });
    const { world, notes, made } = noted(state);
    for (let tick = 0, before = 0; made() < PARTITIONS; tick++, before = made()) {
      notes.tick(tick * 25);
      assert.ok(made() - before <= 250, 'a tick is short');
    }
    while (readSetHints(state).length !== PARTITIONS) await new Promise(setImmediate);
    assert.deepEqual(readSetHints(state), [...coreOf(world).sets.hints()]);
    assert.equal(statSync(join(state, 'queue-sets.json')).mode & 0o777, 0o600);
    const first = made();
    for (let ms = 1000; ms < 5000; ms += 25) {
      notes.tick(ms);
      await new Promise(setImmediate);
    }
    assert.equal(made(), first, 'nothing has changed');
    const { name: changed, epoch } = world.mirror('n7');
    const [leaves] = world.mirror('n7').replicas;
    world.stores.find(({ id }) => id === leaves?.store.storeId)?.kill();
    world.until(() => world.mirror('n7').epoch > epoch, 10_000);
    world.run(1000);
    for (let ms = 6000; readSetHints(state).find(({ name }) => name === changed)?.epoch === epoch; ms += 25) {
      notes.tick(ms);
      await new Promise(setImmediate);
    }
    assert.equal(made(), first + PARTITIONS);
    assert.deepEqual(readSetHints(state), [...coreOf(world).sets.hints()]);
  });

  test('is begun once, however long it takes to be made', (t) => {
    const state = mkdtempSync(join(tmpdir(), 'twinpost-sets-'));
    t.after(() => { rmSync(state, { recursive: true, force: true }); });
    const world = World.started();
    let begun = 0;
    const hints = function* (): Generator<SetHint, undefined> {
      begun += 1;
      for (let serial = 1; ; serial++) yield { ownerId: 'gw-1', birth: 1, serial, name: 'q', queueClass: 'mail', epoch: 1, members: ['store-a'] };
    };
    const notes = new LocalNotes(state, { log: world.log, crashes: coreOf(world).crashes, inHand: coreOf(world).inHand, incarnation: 1, sets: { signature: () => 1, hints } });
    for (let ms = 0; ms < 3000; ms += 25) notes.tick(ms);
    assert.equal(begun, 1);
  });

  test('names members alone, and is another when a queue that had not come back is told of, comes or goes', () => {
    const hints: SetHint[] = [{ ownerId: 'gw-1', birth: 7, serial: 1, name: 'p2', queueClass: 'mail', epoch: 4, members: ['store-b'] }];
    const world = new World({ stores: 3, hints: () => hints });
    for (const store of world.stores) store.start();
    world.gateway.start();
    const { sets, mirrors, registry } = coreOf(world);
    const seen = [sets.signature()];
    world.until(() => coreOf(world).accepting);
    world.run(3000);
    assert.deepEqual([...sets.hints()], [], 'the stores have told that it is gone');
    seen.push(sets.signature());
    world.submit(['q1']);
    seen.push(sets.signature());
    const mirror = world.mirror('q1');
    const members = mirror.replicas.map(({ store }) => store.storeId);
    const other = mirrors.stores.find(({ storeId }) => !members.includes(storeId));
    assert.ok(other !== undefined);
    mirrors.addReplica(mirror, other);
    assert.deepEqual([...sets.hints()].map((hint) => [hint.name, hint.epoch, hint.members]), [[mirror.name, mirror.epoch, members]]);
    registry.remove(mirror);
    assert.equal(sets.signature(), seen[1]);
    assert.equal(new Set(seen).size, 3);
  });

  test('of a gateway without queues is an empty list', { timeout: 5000 }, async (t) => {
    const state = mkdtempSync(join(tmpdir(), 'twinpost-sets-'));
    t.after(() => { rmSync(state, { recursive: true, force: true }); });
    const { sets, crashes, inHand } = coreOf(World.started());
    const notes = new LocalNotes(state, { log: new World().log, crashes, inHand, incarnation: 1, sets });
    notes.tick(0);
    notes.tick(25);
    while (!existsSync(join(state, 'queue-sets.json'))) await new Promise(setImmediate);
    assert.deepEqual(JSON.parse(readFileSync(join(state, 'queue-sets.json'), 'utf8')), []);
  });
});
