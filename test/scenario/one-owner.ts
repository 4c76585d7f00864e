/**
 * What stories of one queue and two that may think it theirs have in common: gw-1 owns it, gw-2 may rescue it, its mirrors are
 * at the first two of three stores.
 */
import assert from 'node:assert/strict';
import type { Partition } from '../../src/gateway/mirror/partition.js';
import { COMMITTED } from '../../src/gateway/queue/types.js';
import type { MirroredQueue } from '../../src/kvs/core/mirrored-queue.js';
import { checkNoDuplicates, checkNoLoss } from './checks.js';
import type { GroupOptions } from './group.js';
import { Group } from './group.js';
import { queuesOf, hasQueue } from './inspect.js';
import type { StoreNode } from './store-node.js';

export const LETTERS = 5;

export function restart(store: StoreNode): void {
  store.kill();
  store.start();
}

export function queueAt(node: StoreNode): MirroredQueue | undefined {
  return node.store === undefined ? undefined : queuesOf(node.store, 'q1')[0];
}

export function servedAt(group: Group, id: string): Partition | undefined {
  return group.served(id, 'gw-1').find((one) => hasQueue(one, 'q1'));
}

export interface Loaded {
  readonly group: Group;
  readonly own: Partition;
  readonly first: StoreNode;
  readonly second: StoreNode;
  readonly third: StoreNode;
}

/** gw-1, the younger one, has some messages that do not leave, at the first two of three stores. */
export function loaded(options: GroupOptions = {}): Loaded {
  const group = Group.started({ stores: 3, ...options }, ['gw-2']);
  group.gateway('gw-1').start();
  group.run(500);
  group.hops.script = () => 'defer';
  for (let i = 0; i < LETTERS; i++) group.submit('gw-1', ['q1']);
  group.run(200);
  assert.equal(group.letters.count(COMMITTED), LETTERS);
  const own = servedAt(group, 'gw-1');
  const [first, second] = (own?.replicas ?? []).map(({ store }) => group.stores.find(({ id }) => id === store.storeId));
  const third = group.stores.find((store) => store !== first && store !== second);
  assert.ok(own !== undefined && first !== undefined && second !== undefined && third !== undefined);
  return { group, own, first, second, third };
}

export function oneDeliversAtMost(group: Group, ms: number): void {
  const end = group.scheduler.nowMs + ms;
  while (group.scheduler.nowMs < end) {
    group.run(10);
    const owners = ['gw-1', 'gw-2'].filter((id) => group.served(id, 'gw-1').some((mirror) => group.gateway(id).core?.mirrors.mayDeliver(mirror, group.scheduler.nowMs)));
    assert.ok(owners.length <= 1, `one owner, not ${owners.join(' and ')}; log:\n${group.lastLog()}`);
  }
}

export function stateAt(group: Group, id: string): string | undefined {
  return group.gateway(id).core?.recovery.held().find(({ partition }) => partition === 'p1')?.state;
}

/** All paths are there again: what is held goes out, by one of the two. */
export function deliverAll(group: Group): void {
  for (const store of group.stores) for (const id of ['gw-1', 'gw-2']) group.network.heal(id, store.id);
  group.hops.script = () => 'accept';
  group.until(() => group.letters.delivered === LETTERS, 'all deliveries', 120_000);
  group.until(() => servedAt(group, 'gw-1') !== undefined && servedAt(group, 'gw-2') === undefined, 'the queue at its owner', 120_000);
  checkNoLoss(group.letters);
  checkNoDuplicates(group.letters);
}
