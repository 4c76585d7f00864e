/**
 * What is accepted after an operator's force stays: the set that goes on is numbered beyond any that a store which was given
 * up may tell of when it is back (src/gateway/mirror/replica-set.ts, goesAhead), so that no later process believes that one.
 */
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import type { Partition } from '../../src/gateway/mirror/partition.js';
import { COMMITTED } from '../../src/gateway/queue/types.js';
import type { SetHint } from '../../src/recovery/set-hints.js';
import { checkNoDuplicates, checkNoLoss } from './checks.js';
import { Group } from './group.js';
import { queuesOf, hasQueue } from './inspect.js';
import type { Letter } from './letters.js';
import type { StoreNode } from './store-node.js';
import { World } from './world.js';

const WORD = { reason: 'burnt', who: 'ann' };
const LONG_MS = 120_000;

function servedAt(group: Group, id: string): Partition | undefined {
  return group.served(id, 'gw-1').find((one) => hasQueue(one, 'q1'));
}

/** Five messages of gw-1 that are put off; the stores are returned as first and second mirror, and the one without. */
function loaded(options: ConstructorParameters<typeof Group>[0] = {}): { readonly group: Group; readonly a: StoreNode; readonly b: StoreNode; readonly c: StoreNode } {
  const group = Group.started({ stores: 3, ...options });
  group.hops.script = () => 'defer';
  for (let i = 0; i < 5; i++) group.submit('gw-1', ['q1']);
  group.run(500);
  const [a, b] = (servedAt(group, 'gw-1')?.replicas ?? []).map(({ store }) => group.stores.find(({ id }) => id === store.storeId));
  const c = group.stores.find((store) => store !== a && store !== b);
  assert.ok(a !== undefined && b !== undefined && c !== undefined);
  return { group, a, b, c };
}

/** `id` goes on at the one store, epoch after epoch, beside one that comes and goes. */
function goesOnAlone(group: Group, id: string, comes: StoreNode, rounds = 3): void {
  const alone = (): boolean => servedAt(group, id)?.memberCount === 1 && servedAt(group, id)?.inSyncCount === 1 && servedAt(group, id)?.setChangeNumber === 0;
  group.until(alone, 'the set of one', LONG_MS);
  for (let n = 0; n < rounds; n++) {
    comes.start();
    group.until(() => servedAt(group, id)?.inSyncCount === 2 && servedAt(group, id)?.setChangeNumber === 0, 'the set of two', LONG_MS);
    comes.kill();
    group.until(alone, 'the set of one again', LONG_MS);
  }
}

function cutFromAll(group: Group, store: StoreNode): void {
  for (const id of ['gw-1', 'gw-2']) group.network.cut(id, store.id);
}

function healToAll(group: Group, store: StoreNode): void {
  for (const id of ['gw-1', 'gw-2']) group.network.heal(id, store.id);
}

function force(group: Group, id: string, store: StoreNode): void {
  assert.equal(group.gateway(id).core?.recovery.force({ partition: 'p1', missing: store.id, ...WORD }).length, 1, `${store.id} is given up`);
}

function acceptsLate(group: Group): Letter[] {
  group.until(() => (servedAt(group, 'gw-1')?.inSyncCount ?? 0) > 0 && servedAt(group, 'gw-1')?.setChangeNumber === 0, 'the set that goes on', LONG_MS);
  group.until(() => group.gateway('gw-1').core?.accepting === true, 'a gateway that takes mail');
  const late = [1, 2, 3, 4, 5].map(() => group.submit('gw-1', ['q1']));
  group.until(() => late.every(({ outcome }) => outcome === COMMITTED), 'their 250');
  return late;
}

function allArrive(group: Group, late: readonly Letter[]): void {
  group.hops.script = () => 'accept';
  group.until(() => late.every(({ arrivals }) => arrivals.size > 0), 'what was accepted since', LONG_MS);
  group.run(1000);
  checkNoLoss(group.letters);
}

describe('a queue in memory that an operator has founded without its mirrors', () => {
  /** gw-1 remembers the first set, in which a and b are; b has a newer one, of gw-2, which is dead. `away`: how b goes. */
  function remembered(away: 'cut off' | 'stopped'): ReturnType<typeof loaded> {
    const made = loaded();
    const { group, a, b, c } = made;
    for (const store of group.stores) group.network.cut('gw-1', store.id);
    c.kill();
    group.until(() => servedAt(group, 'gw-2')?.inSyncCount === 2, 'the takeover', LONG_MS);
    a.kill();
    goesOnAlone(group, 'gw-2', c);
    if (away === 'stopped') {
      b.leave(0, true, () => { b.kill(); });
      group.until(() => !b.isAlive, 'its end', LONG_MS);
    } else cutFromAll(group, b);
    group.gateway('gw-2').kill();
    group.until(() => group.gateway('gw-1').core?.recovery.held().some(({ state }) => state === 'members silent') === true, 'the named state', LONG_MS);
    return made;
  }

  function comesBack(group: Group, store: StoreNode): void {
    if (store.isAlive) healToAll(group, store);
    else store.start();
  }

  for (const away of ['cut off', 'stopped'] as const) {
    test(`is not lost for a store that was ${away} and is back with a newer set before the next process`, () => {
      const { group, a, b, c } = remembered(away);
      force(group, 'gw-1', a);
      force(group, 'gw-1', b);
      for (const store of group.stores) if (store !== b || away === 'stopped') group.network.heal('gw-1', store.id);
      c.start();
      const late = acceptsLate(group);
      group.gateway('gw-1').kill();
      comesBack(group, b);
      group.run(3000);
      group.gateway('gw-1').start();
      allArrive(group, late);
    });
  }

  test('is not lost either when the founder dies before it has answered, and another one founds', () => {
    const { group, a, b, c } = remembered('cut off');
    force(group, 'gw-1', a);
    force(group, 'gw-1', b);
    group.network.holdAnswers('gw-1', c.id, true);
    for (const store of [a, c]) group.network.heal('gw-1', store.id);
    c.start();
    group.run(500);
    group.network.holdAnswers('gw-1', c.id, false);
    group.until(() => servedAt(group, 'gw-1')?.founding === true, 'the change that founds', LONG_MS);
    c.kill();
    a.start();
    group.until(() => group.gateway('gw-1').core?.recovery.held().some(({ stores }) => stores.includes(c.id)) === true, 'the founder named', LONG_MS);
    force(group, 'gw-1', c);
    const late = acceptsLate(group);
    assert.deepEqual(servedAt(group, 'gw-1')?.replicas.filter(({ inSync }) => inSync).map(({ store }) => store.storeId), [a.id]);
    group.gateway('gw-1').kill();
    healToAll(group, b);
    group.run(3000);
    group.gateway('gw-1').start();
    allArrive(group, late);
  });

  test('goes on when the store is back before the founder has answered: it is filled anew', () => {
    const { group, a, b, c } = remembered('cut off');
    force(group, 'gw-1', a);
    force(group, 'gw-1', b);
    for (const store of [a, c]) group.network.heal('gw-1', store.id);
    c.start();
    group.until(() => servedAt(group, 'gw-1')?.founding === true, 'the change that founds', LONG_MS);
    group.network.holdAnswers('gw-1', c.id, true);
    healToAll(group, b);
    group.run(10 * group.leaseMs);
    assert.equal(servedAt(group, 'gw-1')?.setChangeNumber === 0, false, 'the founder has not answered');
    const early = group.submit('gw-1', ['q1']);
    group.run(500);
    group.network.holdAnswers('gw-1', c.id, false);
    const late = acceptsLate(group);
    group.until(() => servedAt(group, 'gw-1')?.inSyncCount === 2, 'the store that is back, filled anew', LONG_MS);
    group.gateway('gw-1').kill();
    group.run(3000);
    group.gateway('gw-1').start();
    allArrive(group, late);
    assert.equal(early.outcome === COMMITTED, early.arrivals.size > 0);
  });
});

describe('a queue that an operator has had taken without a mirror', () => {
  /** The set goes on at b alone while a, cut off, has an early one; b is silent then, and gw-1 dead. */
  function left(options: ConstructorParameters<typeof Group>[0] = {}): ReturnType<typeof loaded> {
    const made = loaded(options);
    const { group, a, b, c } = made;
    c.kill();
    for (const id of ['gw-1', 'gw-2']) group.network.cut(id, a.id);
    goesOnAlone(group, 'gw-1', c);
    group.gateway('gw-1').kill();
    cutFromAll(group, b);
    healToAll(group, a);
    c.start();
    return made;
  }

  test('by a rescuer keeps what came since when it is home again and the store is back', () => {
    const { group, b } = left();
    group.until(() => group.gateway('gw-2').core?.recovery.silentStores.includes(b.id) === true, 'the loss');
    group.run(3 * group.leaseMs);
    force(group, 'gw-2', b);
    group.until(() => servedAt(group, 'gw-2')?.inSyncCount === 2 && servedAt(group, 'gw-2')?.setChangeNumber === 0, 'the takeover', LONG_MS);
    group.gateway('gw-1').start();
    group.until(() => servedAt(group, 'gw-1') !== undefined, 'the queue at its owner', LONG_MS);
    const late = acceptsLate(group);
    group.gateway('gw-1').kill();
    healToAll(group, b);
    group.run(3000);
    group.gateway('gw-1').start();
    allArrive(group, late);
  });

  for (const end of ['goes on', 'dies'] as const) {
    test(`promises nothing before its set is acknowledged: the store is back before, and the process ${end}`, () => {
      const { group, a, b } = left({ noRescue: ['gw-2'] });
      group.gateway('gw-1').start();
      group.until(() => group.gateway('gw-1').core?.recovery.held().length === 1, 'the named state');
      force(group, 'gw-1', b);
      group.until(() => servedAt(group, 'gw-1') !== undefined, 'the takeover');
      group.network.holdRequests('gw-1', a.id, true);
      const early = [1, 2, 3].map(() => group.submit('gw-1', ['q1']));
      healToAll(group, b);
      group.run(900);
      if (end === 'dies') {
        group.gateway('gw-1').kill();
        group.network.holdRequests('gw-1', a.id, false);
        group.gateway('gw-1').start();
      } else group.network.holdRequests('gw-1', a.id, false);
      const late = acceptsLate(group);
      group.gateway('gw-1').kill();
      group.run(3000);
      group.gateway('gw-1').start();
      allArrive(group, [...late, ...early.filter(({ outcome }) => outcome === COMMITTED)]);
    });
  }
});

describe('a queue that was forced twice', () => {
  test('at two gateways goes on by the later word', () => {
    const { group, a, b, c } = loaded();
    for (const store of group.stores) group.network.cut('gw-1', store.id);
    a.kill();
    c.kill();
    group.run(3 * group.leaseMs);
    force(group, 'gw-2', a);
    goesOnAlone(group, 'gw-2', c, 1);
    cutFromAll(group, b);
    group.gateway('gw-2').kill();
    group.until(() => group.gateway('gw-1').core?.recovery.held().some(({ state }) => state === 'members silent') === true, 'the named state', LONG_MS);
    for (const store of [a, b]) force(group, 'gw-1', store);
    for (const store of [a, c]) group.network.heal('gw-1', store.id);
    c.start();
    const late = acceptsLate(group);
    group.gateway('gw-1').kill();
    healToAll(group, b);
    group.run(3000);
    group.gateway('gw-1').start();
    allArrive(group, late);
  });

  for (const [betweenMs, aheadMs] of [[0, 0], [20_000, 0], [40_000, 0], [60_000, 0], [0, 3_600_000]] as const) {
    test(`goes on by the later word, ${String(betweenMs / 1000)} s after${aheadMs === 0 ? '' : ', by a clock that was set back'}: what went on by the earlier one is not believed when it is back`, () => {
      const hints: SetHint[] = [];
      const world = World.started({ stores: 3, queues: [{ name: 'q1' }], replaceAfterMs: 5000, hints: () => hints });
      const [a, b, c] = [world.store('a'), world.store('b'), world.store('c')];
      const forced = (store: StoreNode): void => { assert.equal(world.gateway.core?.recovery.force({ partition: 'p1', missing: store.id, ...WORD }).length, 1); };
      world.hops.script = () => 'defer';
      world.submitMany(5, ['q1']);
      world.run(100);
      assert.deepEqual(world.mirror('q1').replicas.map(({ store }) => store.storeId), [a.id, b.id]);
      for (const store of [a, b]) world.cut(store);
      world.run(30_000);
      forced(a);
      forced(b);
      world.until(() => world.mirror('q1').inSyncCount === 1 && world.mirror('q1').setChangeNumber === 0, LONG_MS, 'the set of the third');
      // As if its number were of a clock that was ahead.
      for (const copy of c.store === undefined ? [] : queuesOf(c.store, 'q1')) copy.epoch += aheadMs;
      hints.push(...[...(world.gateway.core?.sets.hints() ?? [])].map((hint) => ({ ...hint, epoch: hint.epoch + aheadMs })));
      assert.deepEqual(hints.map(({ members }) => members), [[c.id]]);
      // That one is lost, too, and the first two are found again.
      world.gateway.kill();
      world.cut(c);
      world.run(betweenMs);
      for (const store of [a, b]) world.heal(store);
      world.gateway.start();
      world.until(() => world.gateway.core?.recovery.held().length === 1, LONG_MS, 'the named state');
      forced(c);
      world.until(() => world.gateway.core?.registry.partitions.some(({ inSyncCount, setChangeNumber }) => inSyncCount === 2 && setChangeNumber === 0) === true, LONG_MS, 'the first set');
      const late = world.submitMany(5, ['q1']);
      world.run(500);
      assert.ok(late.every(({ outcome }) => outcome === COMMITTED));
      world.gateway.kill();
      world.heal(c);
      world.hops.script = () => 'accept';
      world.gateway.start();
      world.until(() => late.every(({ arrivals }) => arrivals.size > 0), LONG_MS, 'what was accepted since');
      world.untilQuiet();
      checkNoLoss(world.letters);
      checkNoDuplicates(world.letters);
    });
  }
});

test('a forced set is known by its number out of the file of its store, too', () => {
  const world = World.started({ stores: 3, queues: [{ name: 'q1' }], replaceAfterMs: 5000 });
  const [a, b, c] = [world.store('a'), world.store('b'), world.store('c')];
  world.hops.script = () => 'defer';
  world.submitMany(5, ['q1']);
  world.run(100);
  for (const store of [a, b]) world.cut(store);
  world.run(30_000);
  for (const store of [a, b]) world.gateway.core?.recovery.force({ partition: 'p1', missing: store.id, ...WORD });
  world.until(() => world.mirror('q1').inSyncCount === 1 && world.mirror('q1').setChangeNumber === 0, LONG_MS, 'the set of the third');
  const { epoch } = world.mirror('q1');
  assert.ok(epoch > 2 ** 40, 'beyond what 32 bits hold');
  const late = world.submitMany(5, ['q1']);
  world.until(() => late.every(({ outcome }) => outcome === COMMITTED), LONG_MS, 'their 250');
  c.leave(0, true, () => { c.kill(); });
  world.until(() => !c.isAlive, LONG_MS, 'its end');
  world.gateway.kill();
  c.start();
  assert.deepEqual(c.store === undefined ? [] : queuesOf(c.store, 'q1').map((copy) => copy.epoch), [epoch]);
  for (const store of [a, b]) world.heal(store);
  world.hops.script = () => 'accept';
  world.gateway.start();
  world.until(() => world.letters.delivered === 10, LONG_MS, 'all of it');
  world.untilQuiet();
  checkNoLoss(world.letters);
  checkNoDuplicates(world.letters);
  world.assertSameContent();
});
