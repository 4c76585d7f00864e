/**
 * A member that is being filled counts when the process that named it fills it (src/recovery/census.ts, isOnItsWay). A claim
 * that came to nothing, and was released, does not hide which one that was (src/kvs/core/copy-writer.ts).
 */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Partition } from '../../src/gateway/mirror/partition.js';
import type { MirroredQueue } from '../../src/kvs/core/mirrored-queue.js';
import { ROLE_FILLING } from '../../src/protocol/reasons.js';
import { Group } from './group.js';
import { queuesOf, hasQueue } from './inspect.js';
import type { StoreNode } from './store-node.js';

const LETTERS = 5;

function queueAt(node: StoreNode): MirroredQueue | undefined {
  return node.store === undefined ? undefined : queuesOf(node.store, 'q1')[0];
}

function servedAt(group: Group, id: string): Partition | undefined {
  return group.served(id, 'gw-1').find((one) => hasQueue(one, 'q1'));
}

function stateAt(group: Group, id: string): string | undefined {
  return group.gateway(id).core?.recovery.held().find(({ partition }) => partition === 'p1')?.state;
}

function ends(group: Group): string {
  const end = group.scheduler.nowMs + 60_000;
  while (group.scheduler.nowMs < end) {
    group.run(50);
    if (['gw-1', 'gw-2'].some((id) => group.gateway(id).isAlive && (servedAt(group, id)?.inSyncCount ?? 0) > 0)) return 'served';
  }
  return ['gw-1', 'gw-2'].filter((id) => group.gateway(id).isAlive).map((id) => `${id}: ${String(stateAt(group, id))} ${String(group.gateway(id).core?.recovery.held().find(({ partition }) => partition === 'p1')?.why)}`).join('; ');
}

/** Two gateways. `dies` serves the queue of gw-1 and dies while a mirror joins: the survivor has the set that names it. */
function diesWhileOneJoins(dies: string): { readonly group: Group; readonly survivor: StoreNode; readonly joiner: StoreNode } {
  const group = Group.started({ stores: 3 });
  group.hops.script = () => 'defer';
  for (let i = 0; i < LETTERS; i++) group.submit('gw-1', ['q1']);
  group.run(200);
  if (dies === 'gw-2') group.gateway('gw-1').kill();
  group.until(() => servedAt(group, dies)?.inSyncCount === 2, 'it is served', 60_000);
  const served = servedAt(group, dies);
  const [survivor, joiner] = (served?.replicas ?? []).map(({ store }) => store.storeId).sort().map((id) => group.stores.find((store) => store.id === id));
  const third = group.stores.find((store) => store !== survivor && store !== joiner);
  assert.ok(served !== undefined && survivor !== undefined && joiner !== undefined && third !== undefined);
  group.network.cut(dies, third.id);
  for (let n = 0; n < 2; n++) {
    joiner.kill();
    group.until(() => served.memberCount === 1 && served.setChangeNumber === 0, 'the set of one');
    joiner.start();
    group.until(() => served.setChangeNumber !== 0 || served.memberCount === 2, 'the change', 60_000);
    if (served.setChangeNumber !== 0) break;
  }
  group.network.holdAnswers(dies, survivor.id, true);
  group.run(200);
  group.gateway(dies).kill();
  group.network.holdAnswers(dies, survivor.id, false);
  for (const store of group.stores) group.network.heal(dies, store.id);
  assert.deepEqual([queueAt(survivor)?.members.length, queueAt(joiner)?.role], [2, ROLE_FILLING]);
  group.run(2 * group.leaseMs * (dies === 'gw-2' ? 1 : 0));
  return { group, survivor, joiner };
}

test('an owner that is back after its rescuer died while a mirror joined, and loses that one for two seconds between two claims, goes on by itself', () => {
  const { group, survivor, joiner } = diesWhileOneJoins('gw-2');
  group.gateway('gw-1').start();
  group.until(() => queueAt(survivor)?.holder === 'gw-1', 'the first claim');
  group.network.cut('gw-1', joiner.id);
  group.run(2000);
  assert.deepEqual([queueAt(survivor)?.holder, queueAt(joiner)?.role, queueAt(joiner)?.holder], ['gw-1', ROLE_FILLING, 'gw-2']);
  group.network.heal('gw-1', joiner.id);
  assert.equal(ends(group), 'served');
});

test('killed between them it waits for its operator: nobody can say that the claim came to nothing', () => {
  const { group, survivor, joiner } = diesWhileOneJoins('gw-2');
  group.gateway('gw-1').start();
  group.until(() => queueAt(survivor)?.holder === 'gw-1', 'the first claim');
  group.gateway('gw-1').kill();
  group.run(100);
  assert.deepEqual([queueAt(survivor)?.holder, queueAt(joiner)?.role, queueAt(joiner)?.holder], ['gw-1', ROLE_FILLING, 'gw-2']);
  group.gateway('gw-1').start();
  group.until(() => stateAt(group, 'gw-1') === 'came back empty', 'the named state', 60_000);
  group.gateway('gw-1').core?.recovery.force({ partition: 'p1', owner: 'gw-1', missing: joiner.id, reason: 'gw-2 has nothing', who: 'ann' });
  assert.equal(ends(group), 'served');
});

/** gw-1 of three gateways dies while a mirror joins: the survivor has the set that names it, which has not heard of it yet. */
function ownerDiesWhileOneJoins(): { readonly group: Group; readonly survivor: StoreNode; readonly joiner: StoreNode } {
  const group = Group.started({ gateways: ['gw-1', 'gw-2', 'gw-3'], stores: 3 });
  group.hops.script = () => 'defer';
  for (let i = 0; i < LETTERS; i++) group.submit('gw-1', ['q1']);
  group.run(200);
  const own = servedAt(group, 'gw-1');
  const [survivor, joiner] = (own?.replicas ?? []).map(({ store }) => store.storeId).sort().map((id) => group.stores.find((store) => store.id === id));
  const third = group.stores.find((store) => store !== survivor && store !== joiner);
  assert.ok(own !== undefined && survivor !== undefined && joiner !== undefined && third !== undefined);
  group.network.cut('gw-1', third.id);
  for (let n = 0; n < 2 && own.setChangeNumber === 0; n++) {
    joiner.kill();
    group.until(() => own.memberCount === 1 && own.setChangeNumber === 0, 'the set of one');
    joiner.start();
    group.until(() => own.setChangeNumber !== 0 || own.memberCount === 2, 'the change', 60_000);
  }
  group.network.holdAnswers('gw-1', survivor.id, true);
  group.run(200);
  group.gateway('gw-1').kill();
  group.network.holdAnswers('gw-1', survivor.id, false);
  for (const store of group.stores) group.network.heal('gw-1', store.id);
  assert.deepEqual([queueAt(survivor)?.members.length, queueAt(joiner)?.role], [2, ROLE_FILLING]);
  return { group, survivor, joiner };
}

for (const [what, isHealed] of [['the owner is back', false], ['the joiner can be reached again', true]] as const) {
  test(`of three gateways one is down; a rescuer loses the joiner for two seconds between two claims: when ${what} the queue goes on by itself`, () => {
    const { group, survivor, joiner } = ownerDiesWhileOneJoins();
    group.gateway('gw-3').kill();
    group.until(() => queueAt(survivor)?.holder === 'gw-2', 'the first claim');
    group.network.cut('gw-2', joiner.id);
    group.run(2000);
    assert.deepEqual([queueAt(survivor)?.holder, queueAt(survivor)?.holderToken, queueAt(joiner)?.role, queueAt(joiner)?.holder], ['gw-1', 0, ROLE_FILLING, 'gw-1']);
    if (isHealed) group.network.heal('gw-2', joiner.id);
    else group.gateway('gw-1').start();
    assert.equal(ends(group), 'served');
  });
}
