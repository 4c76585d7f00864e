/**
 * All stores of a site start before their disks are there, and nobody has anything in memory: what they held begins empty.
 * When they are started again with their disks, what lay there is delivered (rule 16 of docs/model).
 */
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { COMMITTED } from '../../src/gateway/mail-types.js';
import { LINE_MAX } from '../../src/protocol/fields.js';
import type { PartitionHolder } from '../../src/recovery/ownership/holder.js';
import { HolderState } from '../../src/recovery/ownership/holder.js';
import { RegisterMap } from '../../src/register/core/register-map.js';
import type { Group } from './group.js';
import type { Letter } from './letters.js';
import { LETTERS, loaded, recordOf, restart, untilHeldBy } from './pair.js';
import type { Pair } from './pair.js';
import type { StoreNode } from './store-node.js';
import { World } from './world.js';

const OLD = 40;
const NEW = 20;
const QUEUES = ['q1', 'q2', 'q3'];

const BY = { who: 'ann', reason: 'gone', wallMs: 1 };

function stop(world: World, store: StoreNode): void {
  let isDown = false;
  store.leave(0, true, () => {
    store.kill();
    isDown = true;
  });
  world.until(() => isDown);
}

/** It stops, and its disk is taken out. */
function outOf(group: Group, store: StoreNode): readonly Uint8Array[] {
  let isDown = false;
  store.leave(0, true, () => {
    store.kill();
    isDown = true;
  });
  group.until(() => isDown, 'its stop');
  const disk = [...store.disk];
  store.putBack([]);
  return disk;
}

function firstMember(pair: Pair): StoreNode {
  const [first] = recordOf(pair)?.members ?? [];
  return pair.group.stores.find(({ id }) => id === first?.storeId) ?? assert.fail('one has a copy');
}

/** This store is out; two others have a copy. */
function untilElsewhere(pair: Pair, without: StoreNode): void {
  pair.group.until(() => {
    const { members = [] } = recordOf(pair) ?? {};
    return members.length === 2 && members.every(({ storeId }) => storeId !== without.id);
  }, 'two copies elsewhere', 120_000);
}

/** One more term. */
function restartGateway(pair: Pair, id = 'gw-1'): void {
  const gateway = pair.group.gateway(id);
  gateway.kill();
  gateway.start();
  untilHeldBy(pair, id, 2);
}

function take(world: World, count: number): void {
  const letters = world.submitMany(count, QUEUES);
  world.until(() => letters.every(({ outcome }) => outcome === COMMITTED));
}

function holderAt({ group, name }: Pair, id: string): PartitionHolder {
  return [...(group.gateway(id).core?.holdings.all() ?? [])].find((each) => each.name === name)?.holder ?? assert.fail('it is held');
}

/** Empty, with the disks of all its stores in a drawer; and what came since. The register is as before, or lost, too. */
function lateDisks(isRegisterLost = false): { readonly world: World; readonly disks: readonly Uint8Array[][] } {
  const world = World.started();
  world.hops.script = () => 'unreachable';
  take(world, OLD);
  world.gateway.kill();
  const disks = world.stores.map((store) => {
    stop(world, store);
    const disk = [...store.disk];
    store.putBack([]);
    return disk;
  });
  world.run(5000);
  if (isRegisterLost) world.register.restore(new RegisterMap());
  for (const store of world.stores) store.start();
  world.startGateway();
  world.run(30_000);
  take(world, NEW);
  world.untilLevel();
  return { world, disks };
}

/** The disk of one store is back, which is read; that of the other one is not. */
function oneIsBack(): ReturnType<typeof lateDisks> & { readonly first: StoreNode; readonly second: StoreNode } {
  const { world, disks } = lateDisks();
  const [first, second] = world.stores;
  assert.ok(first !== undefined && second !== undefined);
  world.gateway.kill();
  for (const store of world.stores) stop(world, store);
  world.startGateway();
  world.until(() => (world.gateway.core?.holdings.waiting().length ?? 0) > 0);
  world.gateway.core?.holdings.giveUp([first.id, second.id]);
  world.run(10_000);
  first.putBack(disks[0] ?? assert.fail());
  first.start();
  world.run(30_000);
  return { world, disks, first, second };
}

/** All stores are started again, each with its disk. */
function findAll(world: World, disks: readonly Uint8Array[][]): void {
  for (const store of world.stores) stop(world, store);
  world.stores.forEach((store, at) => {
    store.putBack(disks[at] ?? assert.fail('each has a disk'));
    store.start();
  });
}

/** What lay on the disks is delivered, and what came since, if the gateway lives: it has that in memory. */
function allComesBack(world: World, disks: readonly Uint8Array[][], isGatewayUp: boolean): void {
  if (!isGatewayUp) world.gateway.kill();
  findAll(world, disks);
  if (!isGatewayUp) world.startGateway();
  world.hops.script = () => 'accept';
  world.run(180_000);
  assert.ok(world.letters.delivered >= (isGatewayUp ? OLD + NEW : OLD) * QUEUES.length, String(world.letters.delivered));
  assert.deepEqual(world.gateway.core?.holdings.waiting(), []);
}

describe('disks that come late', () => {
  for (const isGatewayUp of [true, false]) {
    test(`all at once, ${isGatewayUp ? 'while the gateway lives: nothing is lost' : 'with a start of the gateway: what lay on them is delivered'}`, () => {
      const { world, disks } = lateDisks();
      allComesBack(world, disks, isGatewayUp);
    });
  }

  /** Takeovers since: as many as one line has room for, and more. */
  for (const terms of [0, 1, 2, LINE_MAX + 1]) for (const isGatewayUp of [true, false]) {
    const what = isGatewayUp ? 'nothing is lost' : 'what lay on them is delivered, after a start of the gateway, too';
    test(`though the register was lost when they were away, ${String(terms)} takeovers ago: ${what}`, () => {
      const { world, disks } = lateDisks(true);
      for (let term = 0; term < terms; term++) {
        world.gateway.kill();
        world.startGateway();
        world.run(5000);
        world.untilLevel();
      }
      allComesBack(world, disks, isGatewayUp);
    });
  }

  test('though the register was lost, and the paths to them are away for a moment while it begins anew', () => {
    const { world, disks } = lateDisks(true);
    world.gateway.kill();
    findAll(world, disks);
    world.run(15_000);
    world.startGateway();
    const isBeginning = (): boolean => [...(world.gateway.core?.holdings.all() ?? [])].some(({ holder }) => holder.state === HolderState.FOUNDING);
    world.until(isBeginning);
    world.run(1000);
    for (const store of world.stores) world.network.cut('gw-1', store.id);
    world.run(2000);
    for (const store of world.stores) world.network.heal('gw-1', store.id);
    world.hops.script = () => 'accept';
    world.run(180_000);
    assert.ok(world.letters.delivered >= OLD * QUEUES.length, String(world.letters.delivered));
  });

  test('also where only one of them is back, and is lost with who read it: the other one stays in the record', () => {
    const { world, disks, first, second } = oneIsBack();
    assert.ok((world.gateway.core?.holdings.counters.losses ?? 0) > 0, 'what came since is lost');
    assert.deepEqual(world.gateway.core?.holdings.waiting(), []);
    world.gateway.kill();
    first.kill();
    first.start();
    second.putBack(disks[1] ?? assert.fail());
    second.start();
    world.startGateway();
    world.hops.script = () => 'accept';
    world.run(180_000);
    assert.equal(world.letters.delivered, OLD * QUEUES.length);
  });

  test('and one that is not back leaves the record once what the other one had is at two stores', () => {
    const { world, disks, second } = oneIsBack();
    second.putBack([]);
    second.start();
    world.run(10_000);
    world.untilLevel();
    world.gateway.kill();
    stop(world, second);
    second.putBack(disks[1] ?? assert.fail());
    second.start();
    world.startGateway();
    world.hops.script = () => 'accept';
    world.run(60_000);
    assert.equal(world.letters.delivered, OLD * QUEUES.length);
    assert.equal(world.gateway.core?.holdings.counters.adopted, 0);
  });

  test('also when the gateway lived, and died before any of it was at a store again', () => {
    const world = World.started({ partitions: 1 });
    world.hops.script = () => 'hang';
    take(world, OLD);
    const disks = world.stores.map((store) => {
      stop(world, store);
      const disk = [...store.disk];
      store.putBack([]);
      return disk;
    });
    const isStoredNowhere = (): boolean => world.gateway.core?.registry.partitions[0]?.holder.record?.members.length === 0;
    for (const store of world.stores) store.start();
    world.until(isStoredNowhere);
    world.gateway.kill();
    for (const store of world.stores) store.kill();
    world.stores.forEach((store, at) => { store.putBack(disks[at] ?? assert.fail('each has a disk')); });
    for (const store of world.stores) store.start();
    world.startGateway();
    world.hops.script = () => 'accept';
    world.run(180_000);
    assert.equal(world.letters.delivered, OLD * QUEUES.length);
  });

  describe('though it has ended since, with a copy cut off that was to be dropped', () => {
    interface Ended extends Pair {
      readonly cutOff: StoreNode;
      /** Mail of its second life, delivered before it ended. */
      readonly fresh: readonly Letter[];
    }

    /** The disks are back, but for that of the store that is cut off. */
    function endedSince(): Ended {
      const pair = loaded({ partitions: 1 });
      const { group, first, second, third = assert.fail('there are three') } = pair;
      const stores = [first, second, third];
      for (const id of ['gw-1', 'gw-2']) group.gateway(id).kill();
      const disks = stores.map((store) => outOf(group, store));
      for (const store of stores) store.start();
      group.gateway('gw-1').start();
      untilHeldBy(pair, 'gw-1', 2);
      const fresh = [1, 2, 3].map(() => group.submit('gw-1', ['q1']));
      group.until(() => fresh.every(({ outcome }) => outcome === COMMITTED), 'its mail');
      const cutOff = firstMember(pair);
      for (const id of ['gw-1', 'gw-2']) group.cutOff(id, true, [cutOff]);
      untilElsewhere(pair, cutOff);
      group.hops.script = () => 'accept';
      group.until(() => fresh.every(({ arrivals }) => arrivals.size === 1), 'its deliveries', 120_000);
      group.gateway('gw-1').register?.bridge.setRetired('gw-1', BY, () => undefined);
      group.until(() => recordOf(pair)?.holder.incarnation === 0, 'its end', 120_000);
      group.run(5_000);
      stores.forEach((store, at) => {
        if (store === cutOff) return;
        store.kill();
        store.putBack(disks[at] ?? assert.fail('each has a disk'));
        store.start();
      });
      return { ...pair, cutOff, fresh };
    }

    function comesBack({ group, cutOff }: Ended): void {
      for (const id of ['gw-1', 'gw-2']) group.cutOff(id, false, [cutOff]);
    }

    function timesDelivered(letters: readonly Letter[]): number[] {
      return letters.map(({ arrivals }) => [...arrivals.values()].reduce((sum, times) => sum + times, 0));
    }

    test('what it had delivered by then is not delivered again', () => {
      const ended = endedSince();
      const { group, fresh } = ended;
      group.gateway('gw-1').kill();
      group.gateway('gw-2').start();
      group.run(40_000);
      comesBack(ended);
      group.until(() => group.letters.delivered === LETTERS + fresh.length, 'all deliveries', 120_000);
      group.until(() => recordOf(ended) === undefined, 'its end, for good', 120_000);
      group.run(30_000);
      assert.deepEqual(timesDelivered(fresh), [1, 1, 1]);
    });

    test('and lost again, it is waited for no more', () => {
      const ended = endedSince();
      const { group, name, cutOff } = ended;
      group.gateway('gw-1').kill();
      group.gateway('gw-2').start();
      group.run(20_000);
      for (const store of [ended.first, ended.second, ended.third]) if (store !== undefined && store !== cutOff) restart(store);
      comesBack(ended);
      group.until(() => recordOf(ended) === undefined, 'its end, for good', 120_000);
      assert.deepEqual(group.gateway('gw-2').core?.holdings.waiting().filter(({ partition }) => partition === name), []);
    });

    for (const isFlapping of [false, true]) test(`the newest of two copies is taken, though the older one was found first${isFlapping ? ', again and again' : ''}`, () => {
      const pair = loaded({ partitions: 1 });
      const { group } = pair;
      const { stores } = group;
      const cut = (store: StoreNode, isCut: boolean): void => { for (const id of ['gw-1', 'gw-2']) group.cutOff(id, isCut, [store]); };
      const taken = (count: number): readonly Letter[] => {
        const letters = Array.from({ length: count }, () => group.submit('gw-1', ['q1']));
        group.until(() => letters.every(({ outcome }) => outcome === COMMITTED), 'mail');
        group.run(3_000);
        return letters;
      };
      group.gateway('gw-2').kill();
      restartGateway(pair);
      const old = taken(3);
      const older = firstMember(pair);
      cut(older, true);
      untilElsewhere(pair, older);
      untilHeldBy(pair, 'gw-1', 2);
      group.hops.script = () => 'accept';
      group.until(() => old.every(({ arrivals }) => arrivals.size === 1), 'deliveries', 60_000);
      group.run(3_000);
      group.hops.script = () => 'defer';
      taken(7);
      group.gateway('gw-1').kill();
      const disks = new Map(stores.map((store) => [store, outOf(group, store)]));
      cut(older, false);
      for (const store of stores) store.start();
      group.gateway('gw-1').start();
      untilHeldBy(pair, 'gw-1', 2);
      const [away = assert.fail('there are three'), newer = assert.fail('there are three')] = stores.filter((store) => store !== older);
      cut(away, true);
      untilElsewhere(pair, away);
      group.gateway('gw-1').register?.bridge.setRetired('gw-1', BY, () => undefined);
      group.until(() => recordOf(pair)?.holder.incarnation === 0, 'its end', 120_000);
      group.run(5_000);
      group.gateway('gw-1').kill();
      const found = (store: StoreNode): void => {
        store.kill();
        store.putBack(disks.get(store) ?? assert.fail('each has a disk'));
        store.start();
      };
      found(older);
      group.gateway('gw-2').start();
      group.hops.script = () => 'accept';
      group.run(45_000);
      for (let i = 0; isFlapping && i < 20; i++) {
        group.cutOff('gw-2', true, [older]);
        group.run(700 + 37 * i);
        group.cutOff('gw-2', false, [older]);
        group.run(900 + 53 * i);
      }
      found(newer);
      group.run(20_000);
      cut(away, false);
      group.run(90_000);
      assert.deepEqual([timesDelivered(old), group.letters.delivered], [[1, 1, 1], LETTERS + 10]);
    });

    for (const [terms, later, isLost] of [[LINE_MAX - 1, 0, false], [5, 9, true]] as const) test(`newer copies are taken, too, though the terms of both have no room in a line: ${String(terms)} before the end, ${String(later)} since, the register ${isLost ? 'lost' : 'kept'}`, () => {
      const pair = loaded({ partitions: 1 });
      const { group } = pair;
      const { stores } = group;
      group.gateway('gw-2').kill();
      restartGateway(pair);
      group.run(5_000);
      const older = firstMember(pair);
      for (const id of ['gw-1', 'gw-2']) group.cutOff(id, true, [older]);
      untilElsewhere(pair, older);
      untilHeldBy(pair, 'gw-1', 2);
      if (isLost) restartGateway(pair);
      const late = Array.from({ length: 7 }, () => group.submit('gw-1', ['q1']));
      group.until(() => late.every(({ outcome }) => outcome === COMMITTED), 'mail');
      group.gateway('gw-1').kill();
      const disks = new Map(stores.map((store) => [store, outOf(group, store)]));
      for (const id of ['gw-1', 'gw-2']) group.cutOff(id, false, [older]);
      if (isLost) group.register.restore(new RegisterMap());
      for (const store of stores) store.start();
      group.gateway('gw-1').start();
      untilHeldBy(pair, 'gw-1', 2);
      for (let i = 1; i < terms; i++) restartGateway(pair);
      group.gateway('gw-1').register?.bridge.setRetired('gw-1', BY, () => undefined);
      group.until(() => (recordOf(pair)?.holder.incarnation ?? 0) === 0, 'its end', 120_000);
      group.gateway('gw-1').kill();
      for (const store of [older, ...stores.filter((one) => one !== older)]) {
        store.kill();
        store.putBack(disks.get(store) ?? assert.fail('each has a disk'));
        store.start();
        if (store === older) group.gateway('gw-2').start();
        group.run(store === older ? 100_000 : 20_000);
        if (store === older) for (let i = 0; i < later; i++) restartGateway(pair, 'gw-2');
      }
      group.hops.script = () => 'accept';
      group.until(() => group.letters.delivered === LETTERS + late.length, 'all deliveries', 120_000);
    });

    test('it is begun again at once, when its gateway is to have it again', () => {
      const ended = endedSince();
      const { group } = ended;
      group.run(40_000);
      group.gateway('gw-1').register?.bridge.setRetired('gw-1', undefined, () => undefined);
      untilHeldBy(ended, 'gw-1', 2);
      const letter = group.submit('gw-1', ['q1']);
      group.until(() => letter.arrivals.size === 1, 'new mail');
      group.until(() => group.letters.delivered === LETTERS + 4, 'all deliveries', 120_000);
    });
  });

  test('with mail of a term of which the register, put back, knows only the beginning', () => {
    const pair = loaded({ partitions: 1 });
    const { group, second } = pair;
    group.gateway('gw-2').kill();
    const before = group.register.snapshot();
    group.cutOff('gw-1', true, [second]);
    untilElsewhere(pair, second);
    untilHeldBy(pair, 'gw-1', 2);
    const late = Array.from({ length: 7 }, () => group.submit('gw-1', ['q1']));
    group.until(() => late.every(({ outcome }) => outcome === COMMITTED), 'mail');
    group.gateway('gw-1').kill();
    const disks = group.stores.map((store) => [store, outOf(group, store)] as const);
    group.cutOff('gw-1', false, [second]);
    group.register.restore(before);
    for (const store of group.stores) store.start();
    group.gateway('gw-1').start();
    untilHeldBy(pair, 'gw-1', 2);
    const [found, disk] = disks.find(([{ id }]) => id === pair.third?.id) ?? assert.fail('there are three');
    found.kill();
    found.putBack(disk);
    found.start();
    group.hops.script = () => 'accept';
    group.until(() => group.letters.delivered === LETTERS + late.length, 'all deliveries', 240_000);
  });

  test('also when they were lost, and their partition has ended and begun again, so long ago that a line has no room', () => {
    const pair = loaded({ partitions: 1 });
    const { group } = pair;
    group.gateway('gw-2').kill();
    restartGateway(pair);
    group.run(5_000);
    group.gateway('gw-1').kill();
    const disks = new Map(group.stores.map((store) => [store, outOf(group, store)]));
    for (const store of group.stores) store.start();
    group.gateway('gw-1').start();
    untilHeldBy(pair, 'gw-1', 2);
    const retire = (rule: typeof BY | undefined): void => { group.gateway('gw-1').register?.bridge.setRetired('gw-1', rule, () => undefined); };
    retire(BY);
    group.until(() => (recordOf(pair)?.holder.incarnation ?? 0) === 0, 'its end', 120_000);
    retire(undefined);
    group.until(() => (recordOf(pair)?.holder.incarnation ?? 0) > 0, 'its beginning', 120_000);
    untilHeldBy(pair, 'gw-1', 2);
    for (let i = 0; i < LINE_MAX - 2; i++) restartGateway(pair);
    group.hops.script = () => 'accept';
    for (const [store, disk] of disks) {
      outOf(group, store);
      store.putBack(disk);
      store.start();
      group.run(30_000);
    }
    group.until(() => group.letters.delivered === LETTERS, 'all deliveries', 120_000);
  });

  for (const isBegunAgain of [false, true]) {
    const then = isBegunAgain ? 'is begun again' : 'is not';
    test(`also when it has ended since, and a store was given up for that end; its partition ${then}`, () => {
      const pair = loaded({ partitions: 1 });
      const { group, name, first, second, third = assert.fail('there are three') } = pair;
      const stores = [first, second, third];
      const retire = (by: string, rule: typeof BY | undefined): void => {
        group.gateway(by).register?.bridge.setRetired('gw-1', rule, () => undefined);
      };
      for (const id of ['gw-1', 'gw-2']) group.gateway(id).kill();
      const disks = stores.map((store) => outOf(group, store));
      for (const store of stores) store.start();
      group.gateway('gw-1').start();
      untilHeldBy(pair, 'gw-1', 2);
      const dead = firstMember(pair);
      dead.kill();
      untilElsewhere(pair, dead);
      retire('gw-1', BY);
      const { holdings } = group.gateway('gw-1').core ?? assert.fail('it runs');
      group.until(() => holdings.untoldEnds().length === 1, 'its end, but for one store', 60_000);
      holdings.giveUpEnded([dead.id], BY, () => undefined);
      group.until(() => recordOf(pair) === undefined, 'its end', 60_000);
      group.gateway('gw-1').kill();
      stores.forEach((store, at) => {
        if (store === dead) return;
        store.kill();
        store.putBack(disks[at] ?? assert.fail('each has a disk'));
        store.start();
      });
      group.hops.script = () => 'accept';
      group.gateway('gw-2').start();
      group.run(20_000);
      if (isBegunAgain) {
        retire('gw-2', undefined);
        group.run(1_000);
        group.gateway('gw-1').start();
      } else {
        const { holdings: others } = group.gateway('gw-2').core ?? assert.fail('it runs');
        group.until(() => others.waiting().length === 1, 'that it is shown', 60_000);
        group.until(() => others.giveUp([dead.id]).includes(name), 'the order', 60_000);
      }
      group.until(() => group.letters.delivered === LETTERS, 'all deliveries', 180_000);
    });
  }

  for (const losses of [1, 2]) test(`also when their partition has ended since, all copies of it lost ${String(losses)} times`, () => {
    const pair = loaded({ partitions: 1 });
    const { group, first, second, third = assert.fail('there are three') } = pair;
    const stores = [first, second, third];
    for (const id of ['gw-1', 'gw-2']) group.gateway(id).kill();
    const disks = stores.map((store) => outOf(group, store));
    for (const store of stores) store.start();
    group.gateway('gw-1').start();
    untilHeldBy(pair, 'gw-1', 2);
    for (let more = 1; more < losses; more++) {
      group.gateway('gw-1').kill();
      for (const store of stores) restart(store);
      group.gateway('gw-1').start();
      untilHeldBy(pair, 'gw-1', 2);
    }
    group.gateway('gw-1').register?.bridge.setRetired('gw-1', BY, () => undefined);
    const hasEnded = (): boolean => (recordOf(pair)?.holder.incarnation ?? 0) === 0;
    group.until(hasEnded, 'its end', 60_000);
    group.gateway('gw-1').kill();
    stores.forEach((store, at) => {
      store.kill();
      store.putBack(disks[at] ?? assert.fail('each has a disk'));
      store.start();
    });
    group.hops.script = () => 'accept';
    group.gateway('gw-2').start();
    group.until(() => group.letters.delivered === LETTERS, 'all deliveries', 180_000);
    group.until(hasEnded, 'its end, for good', 180_000);
    group.run(60_000);
    assert.deepEqual([hasEnded(), group.letters.delivered], [true, LETTERS]);
  });

  test('are read though a store that never had a copy, and was awaited before a loss was believed, is still away', () => {
    const pair = loaded({ partitions: 1 });
    const { group, first, second, third = assert.fail('there are three') } = pair;
    for (const id of ['gw-1', 'gw-2']) group.gateway(id).kill();
    const disks = [first, second].map((store) => [store, outOf(group, store)] as const);
    third.kill();
    for (const [store] of disks) store.start();
    group.hops.script = () => 'accept';
    group.gateway('gw-1').start();
    group.run(30_000);
    assert.equal(group.letters.delivered, 0);
    for (const [store, disk] of disks) {
      store.kill();
      store.putBack(disk);
      store.start();
    }
    group.until(() => group.letters.delivered === LETTERS, 'all deliveries', 60_000);
  });

  test('are all delivered though some mail of one was taken in before another loss, and an older one is read back then', () => {
    const pair = loaded({ partitions: 1 });
    const { group, first, second, third = assert.fail('there are three') } = pair;
    const stores = [first, second, third];
    const begun = (): void => {
      for (const store of stores) store.start();
      group.gateway('gw-1').start();
      untilHeldBy(pair, 'gw-1', 2);
    };
    const lost = (): Map<StoreNode, readonly Uint8Array[]> => {
      group.gateway('gw-1').kill();
      return new Map(stores.map((store) => [store, outOf(group, store)]));
    };
    group.gateway('gw-2').kill();
    const oldest = lost();
    begun();
    // The disk of the store that has none of what is new has an older copy.
    const isAtThird = (): boolean => recordOf(pair)?.members.some(({ storeId }) => storeId === third.id) === true;
    if (!isAtThird()) {
      first.kill();
      group.until(isAtThird, 'a copy at the third', 60_000);
      first.start();
      untilHeldBy(pair, 'gw-1', 2);
    }
    const fresh = Array.from({ length: 300 }, () => group.submit('gw-1', ['q1']));
    group.until(() => fresh.every(({ outcome }) => outcome === COMMITTED), 'new mail');
    const [one, other] = recordOf(pair)?.members.map(({ storeId }) => stores.find(({ id }) => id === storeId)) ?? [];
    const older = stores.find((store) => store !== one && store !== other);
    assert.ok(one !== undefined && other !== undefined && older !== undefined);
    const newer = lost();
    begun();
    one.kill();
    group.until(() => recordOf(pair)?.members.every(({ storeId }) => storeId !== one.id) === true, 'its end', 60_000);
    untilHeldBy(pair, 'gw-1', 2);
    one.putBack(newer.get(one) ?? []);
    one.start();
    group.until(() => (group.gateway('gw-1').core?.holdings.counters.adopted ?? 0) > 100, 'that some is taken in', 60_000);
    group.gateway('gw-1').kill();
    for (const [store, disk] of [[older, oldest.get(older)], [other, newer.get(other)]] as const) {
      store.kill();
      store.putBack(disk ?? []);
      store.start();
    }
    group.hops.script = () => 'accept';
    group.gateway('gw-1').start();
    group.until(() => fresh.every(({ arrivals }) => arrivals.size === 1), 'all deliveries', 180_000);
  });

  test('are read though their stores fell silent again, without them, before the order for this loss', () => {
    const pair = loaded({ partitions: 1 });
    const { group, name, first, second, third = assert.fail('there are three') } = pair;
    for (const id of ['gw-1', 'gw-2']) group.gateway(id).kill();
    const disks = [first, second].map((store) => [store, outOf(group, store)] as const);
    third.kill();
    for (const [store] of disks) store.start();
    group.gateway('gw-1').start();
    const awaited = (): readonly string[] => group.gateway('gw-1').core?.holdings.waiting()
      .find(({ partition }) => partition === name)?.copies ?? [];
    group.until(() => awaited().length === 1, 'that only the third has said nothing', 60_000);
    group.cutOff('gw-1', true, [first, second]);
    group.until(() => awaited().length === 3, 'that all of them are silent', 60_000);
    assert.ok(group.gateway('gw-1').core?.holdings.giveUp(awaited()).includes(name));
    group.cutOff('gw-1', false, [first, second]);
    untilHeldBy(pair, 'gw-1', 2);
    for (const [store, disk] of disks) {
      store.kill();
      store.putBack(disk);
      store.start();
    }
    group.hops.script = () => 'accept';
    group.until(() => group.letters.delivered === LETTERS, 'all deliveries', 120_000);
  });

  test('hold nothing up when their store is gone for good', () => {
    const pair = loaded({ partitions: 1 });
    const { group, first, second, third } = pair;
    const stores = [first, second, third ?? assert.fail('there are three')];
    for (const id of ['gw-1', 'gw-2']) group.gateway(id).kill();
    for (const store of stores) store.kill();
    for (const store of stores) store.start();
    group.gateway('gw-1').start();
    untilHeldBy(pair, 'gw-1', 2);
    assert.equal(recordOf(pair)?.gaveUp.length, 2);
    group.run(10_000);
    first.kill();
    group.run(60_000);
    const holder = holderAt(pair, 'gw-1');
    assert.deepEqual([holder.givenUp, holder.mayEnd], [[], true]);
  });

  test('take no room from what an operator gave up', () => {
    const pair = loaded({ partitions: 1 }, NEW);
    const { group, name, first, second, third = assert.fail('there are three') } = pair;
    group.gateway('gw-1').kill();
    group.cutOff('gw-2', true, [first, second]);
    const isAwaited = (): boolean => group.gateway('gw-2').core?.holdings.waiting().some(({ partition }) => partition === name) === true;
    const giveUp = (...ids: string[]): void => void group.gateway('gw-2').core?.holdings.giveUp(ids);
    group.until(isAwaited, 'the named state', 60_000);
    giveUp(first.id, second.id);
    untilHeldBy(pair, 'gw-2', 1, 60_000);
    for (let losses = 0; losses < 12; losses++) {
      const epoch = recordOf(pair)?.epoch ?? 0;
      group.gateway('gw-2').kill();
      third.kill();
      third.start();
      group.gateway('gw-2').start();
      group.until(() => {
        if (isAwaited()) {
          giveUp(first.id, second.id);
          giveUp();
        }
        return (recordOf(pair)?.epoch ?? 0) > epoch;
      }, 'that it begins anew', 120_000);
      untilHeldBy(pair, 'gw-2', 1, 60_000);
    }
    const gaveUp = recordOf(pair)?.gaveUp ?? [];
    assert.equal(gaveUp.filter(({ isGone }) => isGone !== true).length, 2);
    assert.ok(gaveUp.length < 12, String(gaveUp.length));
  });
});
