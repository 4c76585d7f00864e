/**
 * Copies that no record names: what a holder began, and did not live to record or to take back. Who holds the partition
 * after it finds each by asking nobody: it tells all stores, until they know. And mail of which the register knows
 * nothing: what stores have is asked for.
 */
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { COMMITTED } from '../../src/gateway/mail-types.js';
import { HolderState } from '../../src/recovery/ownership/holder.js';
import { checkNoDuplicates, checkNoLoss } from './checks.js';
import { RegisterMap } from '../../src/register/core/register-map.js';
import { Group } from './group.js';
import type { GroupOptions } from './group.js';
import type { StoreNode } from './store-node.js';

const NAME = 'gw-1/0';
const COUNT = 200;

interface Left {
  readonly group: Group;
  /** It has a copy, or a part of one, that no record names. */
  readonly store: StoreNode;
}

/** gw-1 dies while a store is filled that is to take the place of another. */
function left(when: 'at once' | 'half filled' | 'filled'): Left {
  const group = Group.started({ stores: 3, partitions: 1 });
  group.hops.script = () => 'hang';
  for (let i = 0; i < COUNT; i++) group.submit('gw-1', ['q1']);
  group.until(() => group.letters.count(COMMITTED) === COUNT, 'the mail');
  const members = (): readonly string[] => (group.register.recordOf(NAME)?.members ?? []).map(({ storeId }) => storeId);
  const store = group.stores.find(({ id }) => !members().includes(id)) ?? assert.fail('there are three');
  const [leaver = ''] = members();
  group.gateway('gw-1').core?.leaving.drain(leaver);
  // What is asked of it takes a while, and its record is never changed.
  const copyThere = (): number => store.store?.partitions.find(NAME)?.refillCount ?? -1;
  const isSo = { 'at once': () => copyThere() >= 0, 'half filled': () => copyThere() > COUNT / 2, filled: () => isWhole(store) };
  group.until(isSo[when], when);
  group.gateway('gw-1').kill();
  group.hops.script = () => 'accept';
  assert.ok(!members().includes(store.id), 'no record names it');
  return { group, store };
}

function isWhole({ store }: StoreNode): boolean {
  return store?.partitions.find(NAME)?.isComplete === true;
}

function judged({ group }: Left): void {
  group.until(() => group.letters.delivered === COUNT, 'all deliveries');
  checkNoLoss(group.letters);
  checkNoDuplicates(group.letters);
}

function holderAt(group: Group, id: string): number {
  return group.served(id, 'gw-1')[0]?.holder.state ?? HolderState.IDLE;
}

describe('a copy that no record names', () => {
  for (const when of ['at once', 'half filled', 'filled'] as const) {
    test(`of a holder that died when it had begun it (${when}) is dropped by the next one`, () => {
      const stray = left(when);
      const { group, store } = stray;
      group.until(() => holderAt(group, 'gw-2') === HolderState.HOLDER, 'the next holder');
      group.until(() => store.store?.partitions.find(NAME) === undefined, 'the end of the copy', 5000);
      judged(stray);
    });
  }

  test('is dropped though what was told of it got lost with its path', () => {
    const stray = left('filled');
    const { group, store } = stray;
    group.until(() => holderAt(group, 'gw-2') === HolderState.READING, 'a takeover');
    group.network.holdRequests('gw-2', store.id, true);
    group.until(() => holderAt(group, 'gw-2') === HolderState.HOLDER, 'the next holder');
    group.run(100);
    group.network.reset('gw-2', store.id, 'A');
    group.network.reset('gw-2', store.id, 'B');
    group.network.holdRequests('gw-2', store.id, false);
    assert.ok(isWhole(store), 'nothing was told yet');
    group.until(() => store.store?.partitions.find(NAME) === undefined, 'the end of the copy', 20_000);
    judged(stray);
  });

  test('at a store that is away is dropped when that is back', () => {
    const stray = left('filled');
    const { group, store } = stray;
    group.cutOff('gw-2', true, [store]);
    group.until(() => holderAt(group, 'gw-2') === HolderState.HOLDER, 'the next holder');
    group.run(30_000);
    assert.ok(isWhole(store));
    group.cutOff('gw-2', false, [store]);
    group.until(() => store.store?.partitions.find(NAME) === undefined, 'the end of the copy', 20_000);
    judged(stray);
  });
});

describe('mail of a dead gateway that the register has lost', () => {
  function lost(options: GroupOptions): Group {
    const group = Group.started(options, ['gw-1']);
    group.hops.script = () => 'defer';
    for (let i = 0; i < 20; i++) group.submit('gw-1', ['q1', 'q2']);
    group.until(() => group.letters.count(COMMITTED) === 20, 'the mail');
    group.run(5000);
    group.gateway('gw-1').kill();
    group.register.restore(new RegisterMap());
    group.hops.script = () => 'accept';
    group.gateway('gw-2').start();
    return group;
  }

  function delivered(group: Group): void {
    group.until(() => group.letters.delivered === 40, 'all deliveries', 120_000);
    checkNoLoss(group.letters);
    checkNoDuplicates(group.letters);
  }

  test('is delivered by one of its group that was started since, and never met it', () => {
    const group = lost({ stores: 3 });
    delivered(group);
    assert.deepEqual(group.gateway('gw-2').core?.holdings.orphans(), []);
    group.gateway('gw-1').start();
    group.until(() => group.served('gw-1', 'gw-1').length === 4, 'its partitions are home', 120_000);
  });

  test('is shown, and delivered after the grace time, though no configuration names the gateway', () => {
    const group = lost({ stores: 3, groupOf: { 'gw-2': ['gw-2'] }, orphanGraceMs: 20_000 });
    const orphans = (): readonly string[] => (group.gateway('gw-2').core?.holdings.orphans() ?? []).map(({ owner }) => owner);
    group.until(() => orphans().length === 4, 'it is shown');
    assert.deepEqual(new Set(orphans()), new Set(['gw-1']));
    assert.equal(group.letters.delivered, 0);
    delivered(group);
    const isGone = (): boolean => [0, 1, 2, 3].every((n) => group.register.recordOf(`gw-1/${String(n)}`) === undefined
      && group.stores.every(({ store }) => store?.partitions.find(`gw-1/${String(n)}`) === undefined));
    group.until(isGone, 'nothing is left of it', 120_000);
    group.run(60_000);
    assert.equal(group.log.count('a partition that nobody needs any more has ended'), 4, 'none is met again');
  });

  test('waits for stores that are away, and says so: one may know more', () => {
    const group = lost({ stores: 3 });
    group.cutOff('gw-2', true, [group.store('c')]);
    const waiting = (): readonly string[] => [...new Set((group.gateway('gw-2').core?.holdings.waiting() ?? [])
      .map(({ owner, waitsFor, copies }) => `${owner} ${waitsFor} ${copies.join(' ')}`))].sort();
    group.run(20_000);
    assert.deepEqual(waiting(), ['gw-1 stores ', 'gw-2 stores ']);
    group.run(40_000);
    assert.deepEqual(waiting(), ['gw-1 copies away store-c', 'gw-2 copies away store-c'], 'a person may know that it never comes back');
    group.cutOff('gw-2', false, [group.store('c')]);
    delivered(group);
  });

  test('goes on without a store that a person gives up, with what all others know', () => {
    const group = lost({ stores: 3 });
    group.cutOff('gw-2', true, [group.store('c')]);
    const awaited = (): readonly string[] => (group.gateway('gw-2').core?.holdings.waiting() ?? [])
      .filter(({ waitsFor }) => waitsFor === 'copies away').map(({ partition }) => partition);
    group.until(() => awaited().length === 8, 'the named state', 90_000);
    assert.equal(group.gateway('gw-2').core?.holdings.giveUp(['store-c']).length, 8);
    group.until(() => awaited().length === 0, 'that all goes on', 60_000);
    assert.equal(group.gateway('gw-2').core?.holdings.counters.losses, 0);
    group.cutOff('gw-2', false, [group.store('c')]);
    delivered(group);
  });
});
