/**
 * What stories of two processes have in common that may both think a partition theirs: gw-1 owns it and has mail in it that
 * does not leave, gw-2 may rescue it; its copies are at the first two of three stores.
 */
import assert from 'node:assert/strict';
import type { Partition } from '../../src/gateway/mirror/set/partition.js';
import { COMMITTED } from '../../src/gateway/mail-types.js';
import type { PartitionRecord } from '../../src/protocol/partition-record.js';
import { checkNoDuplicates, checkNoLoss } from './checks.js';
import type { GroupOptions } from './group.js';
import { Group } from './group.js';
import { hasQueue } from './inspect.js';
import type { Answer } from './next-hop.js';
import type { StoreNode } from './store-node.js';

export const LETTERS = 5;

export interface Pair {
  readonly group: Group;
  /** Name of the partition with the mail. */
  readonly name: string;
  readonly first: StoreNode;
  readonly second: StoreNode;
  /** Holds no copy of it. */
  readonly third: StoreNode | undefined;
}

export function loaded(options: GroupOptions = {}, letters = LETTERS, answer: Answer = 'defer'): Pair {
  const group = Group.started({ stores: 3, ...options });
  group.hops.script = () => answer;
  for (let i = 0; i < letters; i++) group.submit('gw-1', ['q1']);
  group.run(300);
  assert.equal(group.letters.count(COMMITTED), letters);
  const name = group.served('gw-1', 'gw-1').find((one) => hasQueue(one, 'q1'))?.name ?? '';
  const [first, second] = group.register.recordOf(name)?.members.map(({ storeId }) => group.stores.find(({ id }) => id === storeId)) ?? [];
  assert.ok(first !== undefined && second !== undefined, 'two copies');
  return { group, name, first, second, third: group.stores.find((store) => store !== first && store !== second) };
}

export function restart(store: StoreNode): void {
  store.kill();
  store.start();
}

/** The partition as this process has it in memory. */
export function partitionAt({ group, name }: Pick<Pair, 'group' | 'name'>, id: string): Partition | undefined {
  return group.gateway(id).core?.registry.partitions.find((one) => one.name === name);
}

export function recordOf({ group, name }: Pick<Pair, 'group' | 'name'>): PartitionRecord | undefined {
  return group.register.recordOf(name);
}

export function holderOf(pair: Pick<Pair, 'group' | 'name'>): string {
  return recordOf(pair)?.holder.gatewayId ?? '';
}

export function untilHeldBy(pair: Pair, id: string, copies = 2, boundMs = 120_000): void {
  const isHeld = (): boolean => {
    const partition = partitionAt(pair, id);
    return holderOf(pair) === id && partition?.isRecovering === false && partition.inSyncCount === copies && partition.set?.records.isSettled === true;
  };
  pair.group.until(isHeld, `${pair.name} at ${id} with ${String(copies)} copies`, boundMs);
}

/** Of all partitions: G5 at every step. */
export function oneDeliversAtMost(group: Group, ms: number, ids: readonly string[] = ['gw-1', 'gw-2']): void {
  const end = group.scheduler.nowMs + ms;
  while (group.scheduler.nowMs < end) {
    group.run(10);
    assertOneDelivers(group, ids);
  }
}

export function assertOneDelivers(group: Group, ids: readonly string[] = ['gw-1', 'gw-2']): void {
  const rightful = new Map<string, string>();
  for (const id of ids) {
    if (group.isFrozen(id)) continue;
    for (const partition of group.gateway(id).core?.registry.partitions ?? []) {
      if (!partition.holder.mayDeliver(group.scheduler.nowMs)) continue;
      const other = rightful.get(partition.name);
      assert.equal(other, undefined, `${partition.name}: ${String(other)} and ${id} may deliver; log:\n${group.lastLog()}`);
      rightful.set(partition.name, id);
    }
  }
}

/** All paths are there again: what is held goes out once, and the partition goes home. */
export function judged(pair: Pair, letters = LETTERS): void {
  const { group } = pair;
  for (const store of group.stores) for (const id of ['gw-1', 'gw-2']) group.network.heal(id, store.id);
  group.hops.script = () => 'accept';
  group.until(() => group.letters.delivered === letters, 'all deliveries', 120_000);
  untilHeldBy(pair, 'gw-1');
  group.run(2000);
  assert.equal(partitionAt(pair, 'gw-2'), undefined);
  checkNoLoss(group.letters);
  checkNoDuplicates(group.letters);
}
