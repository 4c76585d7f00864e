/**
 * A gateway that serves its queue while an operator, who takes it for dead, has another go on with it: both are owners until
 * they meet, which nobody can help. What clients sent to the first one stays, also when it is restarted later
 * (src/gateway/queue/recovery-wiring.ts, goBeyond).
 */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { QueueMirror } from '../../src/gateway/mirror/queue-mirror.js';
import { COMMITTED } from '../../src/gateway/queue/types.js';
import { checkNoLoss } from './checks.js';
import { Group } from './group.js';

const WORD = { reason: 'burnt', who: 'ann' };

function servedAt(group: Group, id: string): QueueMirror | undefined {
  return group.served(id, 'gw-1').find(({ queue }) => queue.name === 'q1');
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
  assert.equal(group.gateway('gw-2').core?.recovery.force({ queue: 'q1', missing: kept.id, ...WORD }).length, 1);
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
