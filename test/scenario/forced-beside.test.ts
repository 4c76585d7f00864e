/**
 * A gateway that serves its queue while an operator, who takes it for dead, has another go on with it: both are owners until
 * they meet, which nobody can help. What clients sent to the first one stays, also when it is restarted later
 * (src/gateway/queue/recovery-wiring.ts, goBeyond).
 */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Partition } from '../../src/gateway/mirror/partition.js';
import { COMMITTED } from '../../src/gateway/queue/types.js';
import { checkNoLoss } from './checks.js';
import { Group } from './group.js';
import { hasQueue } from './inspect.js';

const WORD = { reason: 'burnt', who: 'ann' };

function servedAt(group: Group, id: string): Partition | undefined {
  return group.served(id, 'gw-1').find((one) => hasQueue(one, 'q1'));
}

test('a gateway that was cut off with one store, while an operator had another take its queue, loses nothing that it accepts since', () => {
  const group = Group.started({ stores: 3 });
  group.hops.script = () => 'defer';
  for (let i = 0; i < 5; i++) group.submit('gw-1', ['q1']);
  group.run(200);
  const own = servedAt(group, 'gw-1');
  const [kept, lost] = (own?.replicas ?? []).map(({ store }) => group.stores.find(({ id }) => id === store.storeId));
  const third = group.stores.find((store) => store !== kept && store !== lost);
  assert.ok(own !== undefined && kept !== undefined && lost !== undefined && third !== undefined);
  for (const store of [lost, third]) group.network.cut('gw-1', store.id);
  group.network.cut('gw-2', kept.id);
  group.run(2 * group.leaseMs);
  assert.equal(group.gateway('gw-2').core?.recovery.force({ partition: 'p1', missing: kept.id, ...WORD }).length, 1);
  group.until(() => servedAt(group, 'gw-2')?.inSyncCount === 2, 'two mirrors of the other', 120_000);
  const epoch = servedAt(group, 'gw-2')?.epoch ?? 0;
  assert.ok(own.inSyncCount === 1 && own.epoch < epoch);

  // The other one hears of the owner's set before it hears of its lease at every mirror.
  group.network.cut('gw-2', third.id);
  for (const id of ['gw-1', 'gw-2']) for (const store of [kept, lost]) group.network.heal(id, store.id);
  group.until(() => own.setChangeNumber === 0 && own.epoch > epoch, 'a set beyond');
  group.run(2 * group.leaseMs);
  for (const store of group.stores) for (const id of ['gw-1', 'gw-2']) group.network.heal(id, store.id);
  group.until(() => servedAt(group, 'gw-1') === own && own.inSyncCount === 2 && servedAt(group, 'gw-2') === undefined, 'one owner, two mirrors', 120_000);
  assert.equal(group.log.count('another gateway was forced to go on'), 1, 'the other one gives way, and does not go beyond that set in turn');
  const late = [1, 2, 3].map(() => group.submit('gw-1', ['q1']));
  group.run(1000);
  assert.ok(late.every(({ outcome }) => outcome === COMMITTED));
  group.gateway('gw-1').kill();
  group.gateway('gw-1').start();
  group.hops.script = () => 'accept';
  group.until(() => late.every(({ arrivals }) => arrivals.size > 0), 'what was accepted since');
  group.until(() => group.letters.delivered === 8, 'all deliveries');
  checkNoLoss(group.letters);
});

test('a forced set whose mirrors all restart empty is remembered: no neighbour takes the queue over by the copy that was given up', () => {
  const group = Group.started({ stores: 3 });
  group.hops.script = () => 'defer';
  for (let i = 0; i < 5; i++) group.submit('gw-1', ['q1']);
  group.run(200);
  const own = servedAt(group, 'gw-1');
  const [left, given] = (own?.replicas ?? []).map(({ store }) => group.stores.find(({ id }) => id === store.storeId));
  const third = group.stores.find((store) => store !== left && store !== given);
  assert.ok(own !== undefined && left !== undefined && given !== undefined && third !== undefined);
  // The set of one, which is cut off for good as it seems.
  third.kill();
  group.network.cut('gw-1', left.id);
  group.until(() => own.memberCount === 1 && own.setChangeNumber === 0, 'the set of one');
  for (const id of ['gw-1', 'gw-2']) group.network.cut(id, given.id);
  group.network.heal('gw-1', left.id);
  third.start();
  const core = group.gateway('gw-1').core;
  group.until(() => core?.recovery.held().some(({ state }) => state === 'members silent') === true, 'the named state', 120_000);
  assert.equal(core?.recovery.force({ partition: 'p1', missing: given.id, ...WORD }).length, 1);
  group.until(() => own.inSyncCount === 2 && own.setChangeNumber === 0, 'two mirrors', 120_000);
  group.run(2 * group.leaseMs);

  // All that shows it is gone while its owner is cut off; what was given up is back.
  for (const store of [left, third]) {
    group.network.cut('gw-1', store.id);
    store.kill();
    store.start();
  }
  group.network.heal('gw-2', given.id);
  const held = (): string => group.gateway('gw-2').core?.recovery.held().find(({ partition }) => partition === 'p1')?.state ?? '';
  group.until(() => held() === 'came back empty', 'what the operator is told there', 60_000);
  group.run(4 * group.leaseMs);
  assert.deepEqual([held(), group.served('gw-2', 'gw-1')], ['came back empty', []]);
  assert.deepEqual(group.gateway('gw-2').core?.recovery.force({ partition: 'p1', missing: left.id, ...WORD }).map(({ outcome, needed }) => [outcome, needed]), [['waiting', [third.id]]]);
  assert.deepEqual(group.served('gw-2', 'gw-1'), []);

  // The owner has the mail in memory, and its operator knows that no other has.
  for (const store of [left, third]) group.network.heal('gw-1', store.id);
  group.until(() => core.recovery.held().some(({ state }) => state === 'no survivor'), 'what the operator is told at the owner', 60_000);
  group.run(1000);
  for (const store of [left, third]) core.recovery.force({ partition: 'p1', missing: store.id, ...WORD });
  group.hops.script = () => 'accept';
  group.until(() => group.letters.delivered === 5, 'the deliveries', 120_000);
  checkNoLoss(group.letters);
});
