/**
 * Two sets of mirrors of one number: of an owner that was cut off while a change was open, and of who took the queue over
 * without having heard of that change (src/gateway/mirror/claim-again.ts, isNewer).
 */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { ResyncPhase } from '../../src/gateway/mirror/replica.js';
import { ROLE_MEMBER } from '../../src/protocol/reasons.js';
import { LETTERS, deliverAll, loaded, queueAt, restart, servedAt } from './one-owner.js';

/**
 * gw-1 is at {second}, epoch 2; its change to {second, third}, epoch 3, never reaches second. gw-2 takes the queue over and
 * goes on with {second, first}: epoch 3, too. gw-2 and second die. First alone has all of it, and gw-1 comes by.
 */
test('an owner that was cut off does not empty the last copy of another set of the same number', () => {
  const { group, own, first, second, third } = loaded();
  first.kill();
  group.until(() => own.memberCount === 1 && own.setChangeNumber === 0, 'the set of the second');
  group.until(() => own.replicas.some(({ store, phase }) => store.storeId === third.id && phase !== ResyncPhase.NONE), 'a refill of the third', 90_000);
  group.network.holdRequests('gw-1', second.id, true);
  group.until(() => own.setChangeNumber !== 0, 'the change to second and third');
  for (const store of group.stores) group.network.cut('gw-1', store.id);
  group.network.holdRequests('gw-1', second.id, false);
  assert.deepEqual([own.newestEpoch, queueAt(second)?.epoch], [3, 2]);
  group.network.cut('gw-2', third.id);
  first.start();
  group.until(() => servedAt(group, 'gw-2')?.inSyncCount === 2, 'the takeover, and a second mirror', 120_000);
  group.run(2 * group.leaseMs);
  assert.deepEqual([queueAt(first)?.role, queueAt(first)?.epoch, queueAt(first)?.count], [ROLE_MEMBER, 3, LETTERS]);
  group.gateway('gw-2').kill();
  second.kill();
  group.network.heal('gw-1', first.id);
  group.until(() => servedAt(group, 'gw-1') === undefined, 'what gw-1 remembers, given up');
  group.run(20_000);
  assert.deepEqual([queueAt(first)?.role, queueAt(first)?.count], [ROLE_MEMBER, LETTERS]);
  // The second comes back empty: that it was not needed is for an operator to say.
  restart(second);
  group.gateway('gw-2').start();
  for (const store of group.stores) for (const id of ['gw-1', 'gw-2']) group.network.heal(id, store.id);
  const recovery = group.gateway('gw-1').core?.recovery;
  group.until(() => recovery?.held().some(({ state, stores }) => state === 'came back empty' && stores.includes(second.id)) === true, 'what the operator is told', 60_000);
  recovery?.force({ owner: 'gw-1', partition: 'p1', missing: second.id, reason: 'it was not ahead', who: 'ann' });
  deliverAll(group);
});
