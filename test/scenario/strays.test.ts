/**
 * Copies that no record names: what a holder began, and did not live to record or to take back. Who holds the partition
 * after it finds each by asking nobody: it tells all stores, until they know.
 */
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { COMMITTED } from '../../src/gateway/queue/types.js';
import { HolderState } from '../../src/recovery/ownership/holder.js';
import { checkNoDuplicates, checkNoLoss } from './checks.js';
import { Group } from './group.js';
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
  group.gateway('gw-1').core?.moves.drain(leaver);
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
