/**
 * Partitions that no configuration serves any more: workers that are no more, fewer partitions, another id. Their
 * mail is delivered, and when it is, nothing is left of them in the register and at the stores.
 */
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { COMMITTED } from '../../src/gateway/mail-types.js';
import { LINE_MAX } from '../../src/protocol/fields.js';
import { partitionName } from '../../src/protocol/partition-record.js';
import type { RegisterMap } from '../../src/register/core/register-map.js';
import { checkNoDuplicates, checkNoLoss, checkOrder } from './checks.js';
import { Group } from './group.js';
import type { GroupOptions } from './group.js';
import { LETTERS, loaded, recordOf, restart, untilHeldBy } from './pair.js';
import type { Pair } from './pair.js';
import type { StoreNode } from './store-node.js';

/** Mail of these gateways waits at the stores, and they are killed. */
function left(ids: readonly string[], count: number, options: GroupOptions): Group {
  const group = Group.started(options, ids);
  group.hops.script = () => 'hang';
  for (const id of ids) for (let i = 0; i < count; i++) group.submit(id, ['q1', 'q2']);
  group.run(200);
  assert.equal(group.letters.count(COMMITTED), count * ids.length);
  for (const id of ids) group.gateway(id).kill();
  group.hops.script = () => 'accept';
  return group;
}

function judged(group: Group): void {
  checkNoLoss(group.letters);
  checkNoDuplicates(group.letters);
}

function orphansAt(group: Group, id: string): readonly string[] {
  return (group.gateway(id).core?.holdings.orphans() ?? []).map(({ partition }) => partition);
}

/** It stops with a file, and starts with another one; what it wrote. */
function restartedWith(group: Group, store: StoreNode, disk: readonly Uint8Array[]): readonly Uint8Array[] {
  let written: readonly Uint8Array[] = [];
  store.leave(0, true, () => {
    store.kill();
    written = store.disk;
  });
  group.until(() => written.length > 0, 'its file');
  store.putBack(disk);
  store.start();
  return written;
}

/** Nothing of them is in the register, and no store has a copy. */
function isGone(group: Group, gatewayId: string, partitions: number): boolean {
  return Array.from({ length: partitions }, (_, n) => partitionName(gatewayId, n)).every((name) =>
    group.register.recordOf(name) === undefined
      && group.stores.every(({ store }) => store === undefined || store.partitions.find(name) === undefined));
}

/** Its gateway is retired and it ends while the store is away, which comes back then. */
function endsWithout(pair: Pair, away: StoreNode): void {
  const { group } = pair;
  group.gateway('gw-1').register?.bridge.setRetired('gw-1', { who: 'ann', reason: 'gone', wallMs: 1 }, () => undefined);
  group.gateway('gw-2').start();
  group.until(() => recordOf(pair)?.holder.incarnation === 0, 'its end', 120_000);
  group.run(10_000);
  for (const id of ['gw-1', 'gw-2']) group.cutOff(id, false, [away]);
  group.until(() => recordOf(pair) === undefined, 'its end everywhere', 180_000);
  group.run(60_000);
}

describe('partitions that nobody serves any more', () => {
  test('workers 3 to 1: the one that is left delivers all mail, then nothing is left of the others', () => {
    const workers = ['gw-1-1', 'gw-1-2', 'gw-1-3'];
    const group = left(workers, 10, {
      gateways: [...workers, 'gw-1'], groupOf: { 'gw-1': ['gw-1'] }, alone: ['gw-1'], noRescue: workers,
    });
    group.gateway('gw-1').start();
    group.until(() => group.letters.delivered === 60, 'all deliveries');
    group.until(() => workers.every((id) => isGone(group, id, 4)), 'the end of their partitions');
    judged(group);
    assert.deepEqual(orphansAt(group, 'gw-1'), []);
    assert.equal(group.log.count('no configuration serves these partitions any more'), 3);
    const fresh = group.submit('gw-1', ['q1']);
    group.until(() => fresh.arrivals.size === 1, 'new mail');
  });

  test('are tried again after a pause when one can not end within its time', () => {
    const group = Group.started({ stores: 2, partitions: 1, noRescue: ['gw-2'] });
    group.gateway('gw-2').register?.bridge.setRetired('gw-1', { who: 'ann', reason: 'gone', wallMs: 1 }, () => undefined);
    group.until(() => group.log.count('gw-1/0 HOLDER -> HANDING_BACK') > 0, 'the first try');
    group.cutOff('gw-1', true);
    group.run(25_000);
    assert.equal(group.log.count('gw-1/0 HANDING_BACK -> HOLDER'), 1);
    assert.equal(group.log.count('gw-1/0 HOLDER -> HANDING_BACK'), 1);
  });

  test('workers 1 to 3 to 1 to 3: partitions that have ended begin anew, empty', () => {
    const workers = ['gw-1-1', 'gw-1-2'];
    const group = left(workers, 3, {
      gateways: [...workers, 'gw-1'], groupOf: { 'gw-1': ['gw-1'] }, alone: ['gw-1'], noRescue: workers,
    });
    group.gateway('gw-1').start();
    group.until(() => workers.every((id) => isGone(group, id, 4)), 'the end of their partitions');
    group.gateway('gw-1').kill();
    for (const id of workers) group.gateway(id).start();
    group.until(() => workers.every((id) => group.served(id, id).length === 4), 'their partitions again');
    const fresh = workers.map((id) => group.submit(id, ['q1']));
    group.until(() => fresh.every((letter) => letter.arrivals.size === 1), 'new mail');
    judged(group);
  });

  test('partitions 16 to 4: what the others hold is delivered in order, before what comes meanwhile; then they are gone', () => {
    const group = left(['gw-1'], 40, {
      gateways: ['gw-1'], partitions: 16, elsewhere: { 'gw-1b': 'gw-1' }, partitionsOf: { 'gw-1b': 4 },
      queues: Array.from({ length: 12 }, (_, i) => ({ name: `q${String(i + 1)}` })),
    });
    const others = Array.from({ length: 12 }, (_, i) => partitionName('gw-1', i + 4));
    assert.ok(others.every((name) => group.register.recordOf(name) !== undefined));
    group.gateway('gw-1b').start();
    group.until(() => group.served('gw-1b', 'gw-1').length > 0, 'the first partition');
    group.until(() => group.gateway('gw-1b').core?.accepting === true, 'new mail');
    for (let i = 0; i < 5; i++) group.submit('gw-1b', ['q1', 'q2']);
    group.until(() => group.letters.delivered === 90, 'all deliveries');
    group.until(() => others.every((name) => group.register.recordOf(name) === undefined), 'the end of those above');
    judged(group);
    for (const name of ['q1', 'q2']) checkOrder(group.letters, name);
    assert.equal(group.served('gw-1b', 'gw-1').length, 4);
    assert.ok(group.stores.every(({ store }) => others.every((name) => store?.partitions.find(name) === undefined)));
  });

  test('take no new mail: what comes while theirs waits goes to a partition that is configured', () => {
    const queues = Array.from({ length: 12 }, (_, i) => ({ name: `q${String(i + 1)}` }));
    const names = queues.map(({ name }) => name);
    const group = Group.started({ gateways: ['gw-1'], partitions: 16, elsewhere: { 'gw-1b': 'gw-1' }, partitionsOf: { 'gw-1b': 4 }, queues }, ['gw-1']);
    group.hops.script = () => 'hang';
    for (let i = 0; i < 5; i++) group.submit('gw-1', names);
    group.run(200);
    group.gateway('gw-1').kill();
    group.gateway('gw-1b').start();
    const orphans = Array.from({ length: 12 }, (_, i) => partitionName('gw-1', i + 4));
    const waiting = (): number => group.served('gw-1b', 'gw-1').filter(({ name }) => orphans.includes(name)).reduce((sum, { length }) => sum + length, 0);
    const all = (): number => group.served('gw-1b', 'gw-1').reduce((sum, { length }) => sum + length, 0);
    group.until(() => all() === 60 && group.gateway('gw-1b').core?.accepting === true, 'all mail back');
    group.run(2_000);
    const before = waiting();
    assert.ok(before > 0, 'some of it waits there');
    for (let i = 0; i < 3; i++) group.submit('gw-1b', names);
    group.run(1_000);
    assert.deepEqual([waiting(), all()], [before, 96]);
  });

  test('another id: a group takes over what the old one left, though it is in no group, after the grace time', () => {
    const group = left(['gw-1'], 10, {
      gateways: ['gw-1', 'gw-2', 'gw-3'], groupOf: { 'gw-2': ['gw-2', 'gw-3'], 'gw-3': ['gw-2', 'gw-3'] }, orphanGraceMs: 20_000,
    });
    const diedMs = group.scheduler.nowMs;
    for (const id of ['gw-2', 'gw-3']) group.gateway(id).start();
    group.until(() => orphansAt(group, 'gw-2').length === 4 && orphansAt(group, 'gw-3').length === 4, 'both see them');
    assert.ok(group.scheduler.nowMs - diedMs >= 20_000, 'a missing key alone is no verdict');
    assert.equal(group.letters.delivered, 0);
    group.until(() => group.letters.delivered === 20, 'all deliveries');
    group.until(() => isGone(group, 'gw-1', 4), 'the end of its partitions');
    judged(group);
  });

  test('an owner that is only away is served by its own group: others leave it alone', () => {
    const group = left(['gw-1'], 5, {
      gateways: ['gw-1', 'gw-2', 'gw-3'], groupOf: { 'gw-1': ['gw-1', 'gw-2'], 'gw-2': ['gw-1', 'gw-2'], 'gw-3': ['gw-3'] },
      orphanGraceMs: 1000, noRescue: ['gw-2'],
    });
    for (const id of ['gw-2', 'gw-3']) group.gateway(id).start();
    group.run(10 * group.leaseMs);
    assert.deepEqual([orphansAt(group, 'gw-3'), group.letters.delivered], [[], 0]);
    group.gateway('gw-1').start();
    group.until(() => group.letters.delivered === 10, 'all deliveries by their owner');
    judged(group);
  });

  test('a store that is away when a partition ends is waited for: nothing of it is ever delivered again', () => {
    const group = left(['gw-0'], 6, {
      gateways: ['gw-0', 'gw-1'], groupOf: { 'gw-1': ['gw-1'] }, alone: ['gw-1'], stores: 3,
    });
    const away = group.store('a');
    group.gateway('gw-1').start();
    group.run(1000);
    group.cutOff('gw-1', true, [away]);
    group.until(() => group.letters.delivered === 12, 'all deliveries');
    const ended = (n: number): boolean => group.register.recordOf(partitionName('gw-0', n))?.holder.incarnation === 0;
    group.until(() => [0, 1, 2, 3].every(ended), 'their end', 120_000);
    group.run(30_000);
    assert.ok([0, 1, 2, 3].every(ended), 'their records stay while a store was not told');
    group.cutOff('gw-1', false, [away]);
    group.until(() => isGone(group, 'gw-0', 4), 'their end everywhere');
    judged(group);
  });

  test('a disk that is found after the end is told of it: nothing there is delivered again, though nobody else remembers', () => {
    const group = left(['gw-0'], 6, {
      gateways: ['gw-0', 'gw-1'], groupOf: { 'gw-1': ['gw-1'] }, alone: ['gw-1'], stores: 3,
    });
    const late = group.store('a');
    const others = group.stores.filter((store) => store !== late);
    assert.ok([...late.store?.partitions.copies() ?? []].length > 0);
    const disk = restartedWith(group, late, []);
    group.gateway('gw-1').start();
    group.until(() => group.letters.delivered === 12, 'all deliveries');
    group.until(() => isGone(group, 'gw-0', 4), 'the end of its partitions', 120_000);
    restartedWith(group, late, disk);
    group.run(1000);
    assert.ok(!isGone(group, 'gw-0', 4), 'its copies are back');
    group.until(() => isGone(group, 'gw-0', 4), 'the end of these', 120_000);
    for (const store of others) {
      store.kill();
      store.start();
    }
    group.run(120_000);
    judged(group);
    assert.equal(group.log.count('no configuration serves these partitions any more'), 2);
  });

  /** More terms than a line names, too. */
  for (const terms of [1, LINE_MAX + 1]) test(`a disk from before the end takes nothing from what was begun anew since, though nobody else remembers: ${String(terms)}`, () => {
    const group = left(['gw-0'], 6, {
      gateways: ['gw-0', 'gw-1'], groupOf: { 'gw-1': ['gw-1'] }, alone: ['gw-1'], stores: 3,
    });
    group.hops.script = () => 'hang';
    for (let term = 1; term < terms; term++) {
      group.gateway('gw-0').start();
      group.until(() => group.served('gw-0', 'gw-0').length === 4, 'its partitions', 120_000);
      group.run(3000);
      group.gateway('gw-0').kill();
    }
    group.hops.script = () => 'accept';
    group.gateway('gw-1').start();
    group.until(() => isGone(group, 'gw-0', 4), 'the end of its partitions', 120_000);
    group.gateway('gw-1').kill();
    const late = group.store('a');
    const disk = restartedWith(group, late, []);
    for (const store of group.stores) {
      if (store === late) continue;
      store.kill();
      store.start();
    }
    group.gateway('gw-0').start();
    group.until(() => group.served('gw-0', 'gw-0').length === 4, 'its partitions again', 120_000);
    group.hops.script = () => 'hang';
    for (let i = 0; i < 8; i++) group.submit('gw-0', ['q1', 'q2']);
    group.run(1000);
    assert.equal(group.letters.count(COMMITTED), 14);
    group.gateway('gw-0').kill();
    group.hops.script = () => 'accept';
    restartedWith(group, late, disk);
    group.gateway('gw-1').start();
    group.until(() => group.letters.delivered === 28, 'all deliveries', 180_000);
    judged(group);
  });

  /** gw-0 begins its partitions anew, which nobody remembers, and has 8 messages; then the register is put back. */
  function begunAnewBefore(group: Group, snapshot: RegisterMap, dead?: StoreNode): void {
    group.gateway('gw-1').kill();
    for (const store of group.stores) {
      store.kill();
      if (store !== dead) store.start();
    }
    group.hops.script = () => 'unreachable';
    group.gateway('gw-0').start();
    group.until(() => group.served('gw-0', 'gw-0').length === 4, 'its partitions, begun anew', 120_000);
    for (let i = 0; i < 8; i++) group.submit('gw-0', ['q1', 'q2']);
    group.run(1000);
    assert.equal(group.letters.count(COMMITTED), 14);
    group.gateway('gw-0').kill();
    group.register.restore(snapshot);
    group.run(1000);
    group.hops.script = () => 'accept';
  }

  for (const [who, stores] of [['gw-0', 2], ['gw-0', 3], ['gw-1', 2], ['gw-1', 3]] as const) {
    test(`a register put back to their end takes nothing from what was begun anew since: ${who} goes on, ${String(stores)} stores`, () => {
      const group = left(['gw-0'], 6, {
        gateways: ['gw-0', 'gw-1'], groupOf: { 'gw-1': ['gw-1'] }, alone: ['gw-1'], stores,
      });
      const areEnded = (): boolean => [0, 1, 2, 3].every((n) => group.register.recordOf(partitionName('gw-0', n))?.holder.incarnation === 0);
      let snapshot: RegisterMap | undefined;
      group.gateway('gw-1').start();
      group.until(() => {
        if (areEnded()) snapshot ??= group.register.snapshot();
        return isGone(group, 'gw-0', 4);
      }, 'their end', 120_000);
      assert.ok(snapshot !== undefined);
      begunAnewBefore(group, snapshot);
      group.gateway(who).start();
      group.until(() => group.letters.delivered === 28, 'all deliveries', 240_000);
      judged(group);
    });
  }

  /** As many takeovers as leave the term of the loss among the oldest of the line. */
  for (const terms of [3, LINE_MAX + 1]) test(`mail of a partition that once lost all copies is not delivered again by a store that left before its end, ${String(terms)} takeovers ago`, () => {
    const pair = loaded({ partitions: 1 }, 4);
    const { group, first, second, third } = pair;
    assert.ok(third !== undefined);
    for (const id of ['gw-1', 'gw-2']) group.gateway(id).kill();
    for (const store of [first, second, third]) restart(store);
    group.gateway('gw-1').start();
    untilHeldBy(pair, 'gw-1');
    const fresh = Array.from({ length: 6 }, () => group.submit('gw-1', ['q1']));
    group.run(1000);
    assert.ok(fresh.every(({ outcome }) => outcome === COMMITTED));
    const away = group.stores.find(({ id }) => id === recordOf(pair)?.members[0]?.storeId);
    assert.ok(away !== undefined);
    for (const id of ['gw-1', 'gw-2']) group.cutOff(id, true, [away]);
    group.until(() => recordOf(pair)?.members.length === 2
      && recordOf(pair)?.members.every(({ storeId }) => storeId !== away.id) === true, 'another copy in its place', 120_000);
    group.hops.script = () => 'accept';
    group.until(() => fresh.every(({ arrivals }) => arrivals.size === 1), 'all deliveries', 60_000);
    group.run(3000);
    for (let term = 0; term < terms; term++) {
      group.gateway('gw-1').kill();
      group.gateway('gw-1').start();
      untilHeldBy(pair, 'gw-1');
      group.run(1000);
    }
    endsWithout(pair, away);
    for (const { arrivals } of fresh) assert.deepEqual([...arrivals.values()], [1]);
  });

  test('mail is not delivered again by a store that was away when its partition ended and was begun again, more takeovers ago than a line has room for', () => {
    const pair = loaded({ partitions: 1 });
    const { group, first } = pair;
    group.gateway('gw-2').kill();
    for (const id of ['gw-1', 'gw-2']) group.cutOff(id, true, [first]);
    group.until(() => recordOf(pair)?.members.length === 2
      && recordOf(pair)?.members.every(({ storeId }) => storeId !== first.id) === true, 'another copy in its place', 120_000);
    group.hops.script = () => 'accept';
    group.until(() => group.letters.delivered === LETTERS, 'all deliveries', 60_000);
    for (const store of group.stores) {
      if (store !== first) restart(store);
      untilHeldBy(pair, 'gw-1');
      group.run(3000);
    }
    const retire = (rule: { who: string; reason: string; wallMs: number } | undefined): void => {
      group.gateway('gw-1').register?.bridge.setRetired('gw-1', rule, () => undefined);
    };
    retire({ who: 'ann', reason: 'gone', wallMs: 1 });
    group.until(() => recordOf(pair)?.holder.incarnation === 0, 'its end', 120_000);
    retire(undefined);
    group.until(() => (recordOf(pair)?.holder.incarnation ?? 0) > 0, 'its beginning', 120_000);
    for (let term = 0; term <= LINE_MAX; term++) {
      untilHeldBy(pair, 'gw-1');
      group.gateway('gw-1').kill();
      group.gateway('gw-1').start();
    }
    untilHeldBy(pair, 'gw-1');
    for (const id of ['gw-1', 'gw-2']) group.cutOff(id, false, [first]);
    group.run(60_000);
    for (const { arrivals } of group.letters.byId.values()) assert.deepEqual([...arrivals.values()], [1]);
  });

  test('a store that had a copy and is down when its gateway starts is waited for, though it can\'t be found', () => {
    const group = left(['gw-0'], 6, {
      gateways: ['gw-0', 'gw-1'], groupOf: { 'gw-1': ['gw-1'] }, alone: ['gw-1'], stores: 3,
    });
    const away = group.store('a');
    group.gateway('gw-1').start();
    group.run(1000);
    const withCopy = [0, 1, 2, 3].map((n) => partitionName('gw-0', n))
      .filter((name) => group.register.recordOf(name)?.members.some(({ storeId }) => storeId === away.id));
    assert.notEqual(withCopy.length, 0);
    group.cutOff('gw-1', true, [away]);
    const areEnded = (): boolean => withCopy.every((name) => group.register.recordOf(name)?.holder.incarnation === 0);
    group.until(areEnded, 'their end', 120_000);
    group.gateway('gw-1').kill();
    group.gateway('gw-1').unknown.add(away.id);
    group.gateway('gw-1').start();
    group.run(60_000);
    assert.ok(areEnded(), 'what names the store stays');
    group.cutOff('gw-1', false, [away]);
    group.gateway('gw-1').learn(away.id);
    group.until(() => isGone(group, 'gw-0', 4), 'their end everywhere');
    judged(group);
  });

  /** store-a, which has copies, is away; others can't find it, and forget all that they were told. */
  function outlived(group: Group): void {
    group.gateway('gw-1').kill();
    group.gateway('gw-1').unknown.add('store-a');
    for (const letter of ['b', 'c'] as const) {
      group.store(letter).kill();
      group.store(letter).start();
    }
    group.gateway('gw-1').start();
    group.cutOff('gw-1', false, [group.store('a')]);
    group.gateway('gw-1').learn('store-a');
  }

  test('one that began anew before its end was told everywhere remembers who was not, to its next end', () => {
    const group = left(['gw-0'], 6, {
      gateways: ['gw-0', 'gw-1'], groupOf: { 'gw-0': ['gw-0'], 'gw-1': ['gw-1'] }, alone: ['gw-1'], stores: 3,
    });
    const names = [0, 1, 2, 3].map((n) => partitionName('gw-0', n));
    const ended = (): boolean => names.every((name) => group.register.recordOf(name)?.holder.incarnation === 0);
    group.gateway('gw-1').start();
    group.run(1000);
    for (const id of ['gw-0', 'gw-1']) group.cutOff(id, true, [group.store('a')]);
    group.until(() => group.letters.delivered === 12 && ended(), 'their end', 120_000);
    group.gateway('gw-1').kill();
    for (const id of ['gw-0', 'gw-1']) group.gateway(id).unknown.add('store-a');
    group.gateway('gw-0').start();
    group.until(() => group.served('gw-0', 'gw-0').length === 4, 'its partitions, begun anew');
    const fresh = group.submit('gw-0', ['q1']);
    group.until(() => fresh.arrivals.size === 1, 'new mail');
    group.run(1000);
    group.gateway('gw-0').kill();
    group.gateway('gw-1').start();
    group.until(() => names.every((name) => group.served('gw-1', 'gw-0').length === 0
      && (group.register.recordOf(name)?.holder.incarnation ?? 0) === 0), 'their next end', 120_000);
    group.run(30_000);
    outlived(group);
    group.until(() => leftAt(group).length === 0, 'the end of the copies at store-a', 120_000);
    group.until(() => isGone(group, 'gw-0', 4), 'their end everywhere', 120_000);
    assert.equal(group.letters.delivered, 13);
    judged(group);
  });

  test('a copy that left under one holder is remembered by the next one, which ends the partition', () => {
    const group = left(['gw-0'], 6, {
      gateways: ['gw-0', 'gw-1'], groupOf: { 'gw-0': ['gw-0'], 'gw-1': ['gw-1'] }, alone: ['gw-1'], stores: 3,
    });
    const names = [0, 1, 2, 3].map((n) => partitionName('gw-0', n));
    group.hops.script = () => 'defer';
    group.gateway('gw-1').start();
    group.run(1000);
    group.cutOff('gw-1', true, [group.store('a')]);
    const namesAway = (): boolean => names.some((name) => group.register.recordOf(name)?.members
      .some(({ storeId }) => storeId === 'store-a') !== false);
    group.until(() => !namesAway(), 'records without the store that is away', 120_000);
    group.gateway('gw-1').kill();
    group.gateway('gw-1').unknown.add('store-a');
    group.hops.script = () => 'accept';
    group.gateway('gw-1').start();
    group.until(() => group.letters.delivered === 12, 'all deliveries', 120_000);
    group.until(() => names.every((name) => (group.register.recordOf(name)?.holder.incarnation ?? 0) === 0), 'their end', 120_000);
    group.run(30_000);
    outlived(group);
    group.until(() => leftAt(group).length === 0, 'the end of the copies at store-a', 120_000);
    group.until(() => isGone(group, 'gw-0', 4), 'their end everywhere', 120_000);
    assert.equal(group.letters.delivered, 12);
    judged(group);
  });

  test('a copy that left before the end is of what has ended, though all copies were lost before, more than once', () => {
    const pair = loaded({ partitions: 1 }, 4);
    const { group, first, second, third = assert.fail('there are three') } = pair;
    const storeOf = (at: number): StoreNode => group.stores.find(({ id }) => id === recordOf(pair)?.members[at]?.storeId) ?? assert.fail('a member');
    group.gateway('gw-2').kill();
    for (let losses = 0; losses < 2; losses++) {
      group.gateway('gw-1').kill();
      for (const store of [first, second, third]) restart(store);
      group.gateway('gw-1').start();
      untilHeldBy(pair, 'gw-1');
    }
    const fresh = Array.from({ length: 6 }, () => group.submit('gw-1', ['q1']));
    group.until(() => fresh.every(({ outcome }) => outcome === COMMITTED), 'new mail');
    // Changes of members, so that the term of now has many epochs.
    const moved = storeOf(1);
    for (let i = 0; i < 2; i++) {
      restart(moved);
      group.run(20_000);
      untilHeldBy(pair, 'gw-1');
    }
    const away = storeOf(0);
    for (const id of ['gw-1', 'gw-2']) group.cutOff(id, true, [away]);
    group.until(() => recordOf(pair)?.members.length === 2 && recordOf(pair)?.members.every(({ storeId }) => storeId !== away.id) === true, 'another copy in its place', 120_000);
    group.hops.script = () => 'accept';
    group.until(() => fresh.every(({ arrivals }) => arrivals.size === 1), 'all deliveries', 60_000);
    group.run(3000);
    group.gateway('gw-1').kill();
    group.gateway('gw-1').start();
    untilHeldBy(pair, 'gw-1');
    endsWithout(pair, away);
    for (const { arrivals } of fresh) assert.deepEqual([...arrivals.values()], [1]);
  });

  /** gw-0's partitions have ended while store-a, which has copies, was away; it is given up. */
  function givenUp(): Group {
    const group = left(['gw-0'], 6, {
      gateways: ['gw-0', 'gw-1'], groupOf: { 'gw-0': ['gw-0'], 'gw-1': ['gw-1'] }, alone: ['gw-1'], stores: 3,
    });
    group.gateway('gw-1').start();
    group.run(1000);
    for (const id of ['gw-0', 'gw-1']) group.cutOff(id, true, [group.store('a')]);
    group.until(() => group.letters.delivered === 12, 'all deliveries');
    const holdings = group.gateway('gw-1').core?.holdings;
    assert.ok(holdings !== undefined);
    group.until(() => holdings.untoldEnds().length === 4, 'their end, but for a store that is away', 120_000);
    assert.deepEqual(holdings.untoldEnds().map(({ stores }) => stores), Array.from({ length: 4 }, () => ['store-a']));
    assert.deepEqual(gaveUp(group, ['store-b', 'store-c']), []);
    assert.equal(gaveUp(group, ['store-c', 'store-a']).length, 4);
    group.until(() => [0, 1, 2, 3].every((n) => group.register.recordOf(partitionName('gw-0', n)) === undefined), 'their end');
    assert.deepEqual(holdings.untoldEnds(), []);
    return group;
  }

  function gaveUp(group: Group, storeIds: readonly string[]): readonly string[] {
    let given: readonly string[] | undefined;
    group.gateway('gw-1').core?.holdings.giveUpEnded(storeIds, { who: 'ann', reason: 'burnt' }, ({ ended }) => { given = ended; });
    group.until(() => given !== undefined, 'the answer to the order');
    return given ?? [];
  }

  function leftAt(group: Group): readonly string[] {
    const { store } = group.store('a');
    return [0, 1, 2, 3].map((n) => partitionName('gw-0', n)).filter((name) => store?.partitions.find(name) !== undefined);
  }

  test('a store that is given up is waited for no more; back after all, it drops its copies', () => {
    const group = givenUp();
    assert.notEqual(leftAt(group).length, 0);
    assert.equal(group.gateway('gw-1').register?.bridge.givenUp().get('store-a')?.length, 4);
    group.cutOff('gw-1', false, [group.store('a')]);
    group.until(() => leftAt(group).length === 0, 'the end of its copies');
    group.until(() => group.gateway('gw-1').register?.bridge.givenUp().size === 0, 'that nothing is left of it');
    judged(group);
  });

  test('a store that was given up never brings back to life what has ended, though nobody else remembers', () => {
    const group = givenUp();
    group.gateway('gw-1').kill();
    for (const letter of ['b', 'c'] as const) {
      group.store(letter).kill();
      group.store(letter).start();
    }
    for (const id of ['gw-0', 'gw-1']) group.cutOff(id, false, [group.store('a')]);
    group.gateway('gw-0').start();
    group.until(() => group.served('gw-0', 'gw-0').length === 4, 'its partitions, begun anew');
    const fresh = group.submit('gw-0', ['q1']);
    group.until(() => fresh.arrivals.size === 1, 'new mail');
    group.run(30_000);
    assert.equal(group.letters.delivered, 13);
    for (const { store } of group.stores) for (const copy of store?.partitions.copies() ?? []) assert.equal(copy.count, 0);
    assert.equal(group.gateway('gw-0').register?.bridge.givenUp().size, 0);
    judged(group);
  });

  test('a register put back to when a store was given up takes nothing from what was begun anew since', () => {
    const group = givenUp();
    const snapshot = group.register.snapshot();
    for (const id of ['gw-0', 'gw-1']) group.cutOff(id, false, [group.store('a')]);
    begunAnewBefore(group, snapshot);
    group.gateway('gw-0').start();
    group.until(() => group.letters.delivered === 28, 'all deliveries', 240_000);
    judged(group);
  });

  for (const who of ['gw-0', 'gw-1']) test(`a register put back to when a store was given up, which stays away, hides nothing that was begun anew since: ${who} goes on`, () => {
    const group = givenUp();
    const snapshot = group.register.snapshot();
    begunAnewBefore(group, snapshot, group.store('a'));
    group.gateway(who).start();
    group.run(1_000);
    const { holdings } = group.gateway(who).core ?? assert.fail('it runs');
    const given = new Set<string>();
    group.until(() => {
      for (const partition of holdings.giveUp(['store-a'])) given.add(partition);
      return [0, 1, 2, 3].every((n) => given.has(partitionName('gw-0', n)));
    }, 'the order', 120_000);
    group.until(() => group.letters.delivered === 28, 'all deliveries', 240_000);
  });

  test('who dies after a partition has ended is followed by another', () => {
    const group = left(['gw-0'], 6, {
      gateways: ['gw-0', 'gw-1', 'gw-2'], groupOf: { 'gw-1': ['gw-1', 'gw-2'], 'gw-2': ['gw-1', 'gw-2'] }, orphanGraceMs: 100,
    });
    for (const id of ['gw-1', 'gw-2']) group.gateway(id).start();
    const ended = (n: number): boolean => group.register.recordOf(partitionName('gw-0', n))?.holder.incarnation === 0;
    group.until(() => [0, 1, 2, 3].some(ended), 'the first end');
    group.gateway('gw-1').kill();
    group.until(() => isGone(group, 'gw-0', 4), 'their end');
    assert.equal(group.letters.delivered, 12);
    judged(group);
  });
});

describe('a gateway that an operator retires', () => {
  const RULE = { who: 'ann', reason: 'host given back', wallMs: 1 };

  function retire(group: Group, by: string, id: string, undo = false): void {
    let told: string | undefined;
    group.gateway(by).register?.bridge.setRetired(id, undo ? undefined : RULE, (why) => { told = why; });
    group.until(() => told !== undefined, 'the answer of the register');
    assert.equal(told, '');
  }

  const OPTIONS = { gateways: ['gw-1', 'gw-2', 'gw-3'] };

  test('and that is dead: its mail is delivered by the others, and nothing is left of it', () => {
    const group = Group.started(OPTIONS);
    group.hops.script = () => 'hang';
    for (let i = 0; i < 20; i++) group.submit('gw-1', ['q1', 'q2']);
    group.run(200);
    group.gateway('gw-1').kill();
    group.hops.script = () => 'accept';
    retire(group, 'gw-2', 'gw-1');
    group.until(() => group.letters.delivered === 40, 'all deliveries');
    group.until(() => isGone(group, 'gw-1', 4), 'the end of its partitions');
    judged(group);
    for (const id of ['gw-2', 'gw-3']) assert.ok(group.gateway(id).core?.holdings.retired.has('gw-1'));
  });

  test('and that lives: it takes nothing new, hands on what it has, and it is never handed back', () => {
    const group = Group.started(OPTIONS);
    group.run(10_000);
    group.hops.script = () => 'defer';
    for (let i = 0; i < 20; i++) group.submit('gw-1', ['q1', 'q2']);
    group.run(200);
    retire(group, 'gw-2', 'gw-1');
    group.until(() => group.gateway('gw-1').core?.accepting === false, 'it takes nothing new');
    group.until(() => group.served('gw-1', 'gw-1').length === 0, 'it has handed on what it had');
    const others = (): number => group.served('gw-2', 'gw-1').length + group.served('gw-3', 'gw-1').length;
    group.until(() => others() > 0, 'others have it');
    group.run(20_000);
    assert.equal(group.served('gw-1', 'gw-1').length, 0);
    group.hops.script = () => 'accept';
    group.until(() => group.letters.delivered === 40, 'all deliveries');
    group.until(() => isGone(group, 'gw-1', 4), 'the end of its partitions');
    judged(group);
  });

  for (const [missing, letters] of [['a store', ['a']], ['all stores', ['a', 'b']]] as const) {
    test(`and that lives: who does not reach ${missing} is given nothing`, () => {
      const group = Group.started({ ...OPTIONS, groupOf: { 'gw-2': ['gw-2'], 'gw-3': ['gw-3'] } });
      group.hops.script = () => 'defer';
      for (let i = 0; i < 20; i++) group.submit('gw-1', ['q1', 'q2']);
      group.run(10_000);
      group.cutOff('gw-2', true, letters.map((letter) => group.store(letter)));
      group.run(group.leaseMs + 1000);
      retire(group, 'gw-3', 'gw-1');
      const holders = new Set<string>();
      group.until(() => {
        for (let n = 0; n < 4; n++) holders.add(group.register.recordOf(partitionName('gw-1', n))?.holder.gatewayId ?? '');
        return group.served('gw-1', 'gw-1').length === 0 && group.served('gw-3', 'gw-1').length > 0;
      }, 'it has handed on what it had');
      assert.equal(holders.has('gw-2'), false);
      group.hops.script = () => 'accept';
      group.until(() => group.letters.delivered === 40, 'all deliveries');
      judged(group);
    });
  }

  test('and that has an empty partition of which copies were given up hands it on: they may come back', () => {
    const group = Group.started({ gateways: ['gw-1', 'gw-2'], stores: 3, partitions: 1, noRescue: ['gw-2'] });
    group.hops.script = () => 'defer';
    const name = partitionName('gw-1', 0);
    for (let i = 0; i < 5; i++) group.submit('gw-1', ['q1']);
    group.run(10_000);
    const away = group.stores.filter(({ id }) => group.register.recordOf(name)?.members.some(({ storeId }) => storeId === id));
    group.gateway('gw-1').kill();
    group.cutOff('gw-1', true, away);
    group.gateway('gw-1').start();
    const giveUp = (): readonly string[] | undefined =>
      group.gateway('gw-1').core?.holdings.giveUp(away.map(({ id }) => id));
    group.until(() => giveUp()?.includes(name) === true, 'the order');
    group.until(() => group.served('gw-1', 'gw-1').length === 1, 'that it goes on, empty');
    const kept = (): number | undefined => group.gateway('gw-1').core?.holdings.keptFor('gw-1').count;
    group.until(() => kept() === 1, 'that it stands for these copies alone');
    const fresh = group.submit('gw-1', ['q1']);
    group.until(() => fresh.outcome === COMMITTED, 'new mail');
    assert.equal(kept(), 0, 'now it has mail');
    retire(group, 'gw-2', 'gw-1');
    group.until(() => group.served('gw-2', 'gw-1').length === 1, 'that it is handed on');
    assert.equal(group.register.recordOf(name)?.gaveUp.length, 2);
    group.hops.script = () => 'accept';
    group.until(() => group.letters.delivered === 6, 'what they had, and what is new');
    group.until(() => isGone(group, 'gw-1', 1), 'its end');
    judged(group);
  });

  test('and of which copies were given up at stores that stay dead is waited for no more, and says what stays', () => {
    const group = Group.started({ gateways: ['gw-1', 'gw-2'], stores: 3, partitions: 1 });
    group.hops.script = () => 'defer';
    const name = partitionName('gw-1', 0);
    for (let i = 0; i < 5; i++) group.submit('gw-1', ['q1']);
    group.run(10_000);
    const dead = group.stores.filter(({ id }) => group.register.recordOf(name)?.members.some(({ storeId }) => storeId === id));
    const ids = dead.map(({ id }) => id).sort();
    group.gateway('gw-1').kill();
    for (const store of dead) store.kill();
    const giveUp = (): boolean => group.gateway('gw-2').core?.holdings.giveUp(ids).includes(name) === true;
    group.until(giveUp, 'the order');
    retire(group, 'gw-2', 'gw-1');
    const kept = (): { readonly count: number; readonly stores: readonly string[] } | undefined => group.gateway('gw-2').core?.holdings.keptFor('gw-1');
    group.until(() => group.served('gw-2', 'gw-1').length === 1 && kept()?.count === 1, 'that it stands, empty, for these copies alone');
    assert.deepEqual(kept()?.stores, ids);
    group.run(60_000);
    assert.deepEqual([kept()?.count, group.register.recordOf(name)?.gaveUp.length], [1, 2], 'they may have the mail (rule 16)');
    for (const store of dead) store.start();
    group.until(() => isGone(group, 'gw-1', 1), 'its end, once they are known to have come back empty');
    assert.equal(kept()?.count, 0);
  });

  test('and that is taken back: it begins anew', () => {
    const group = Group.started(OPTIONS);
    group.run(10_000);
    retire(group, 'gw-2', 'gw-1');
    group.until(() => group.gateway('gw-1').core?.accepting === false && isGone(group, 'gw-1', 4), 'its end');
    retire(group, 'gw-3', 'gw-1', true);
    group.until(() => group.gateway('gw-1').core?.accepting === true, 'it takes mail again');
    const fresh = group.submit('gw-1', ['q1']);
    group.until(() => fresh.arrivals.size === 1, 'new mail');
  });

  test('and that is alone in its group delivers what it has by itself', () => {
    const group = Group.started({ gateways: ['gw-1'] });
    group.run(10_000);
    group.hops.script = () => 'defer';
    for (let i = 0; i < 5; i++) group.submit('gw-1', ['q1']);
    group.run(200);
    retire(group, 'gw-1', 'gw-1');
    group.run(3000);
    group.hops.script = () => 'accept';
    group.until(() => group.letters.delivered === 5 && isGone(group, 'gw-1', 4), 'deliveries, and its end');
    judged(group);
  });
});
