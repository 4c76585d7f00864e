/**
 * Looks into the processes of the scenario world: what each store holds of a partition, entry by entry, and whether two
 * hold the same; in which state a gateway has a message.
 */
import assert from 'node:assert/strict';
import type { GatewayCore } from '../../src/gateway/daemon/core.js';
import type { Partition } from '../../src/gateway/mirror/set/partition.js';
import type { MailQueue } from '../../src/gateway/queue/mail-queue.js';
import type { MirroredPartition } from '../../src/kvs/core/mirrored-partition.js';
import type { Store } from '../../src/kvs/core/store.js';
import { crc32 } from '../../src/platform/node/checksum.js';
import type { Letter } from './letters.js';

/** Changes of its record since it was begun by this holder. */
export function changesSinceBegun({ epoch, holder }: Partition): number {
  return epoch - holder.term.number;
}

/** Which queue the first mail of a partition was for: in these worlds no two share one. */
const firstQueue = new Map<string, string>();

/** A world begins: what another one had is of no account. */
export function forgetQueues(): void {
  firstQueue.clear();
}

/** To be called when mail was submitted. */
export function noteQueues(core: GatewayCore): void {
  for (const partition of core.registry.partitions) {
    for (const { route } of partition.queues.values()) {
      if (route.queueClass === 'mail' && !firstQueue.has(partition.name)) firstQueue.set(partition.name, route.queueName);
    }
  }
}

/** The copies of the partition of this name, or of the queue of this name, at a store. */
export function copiesOf(store: Store, name?: string): MirroredPartition[] {
  return [...store.partitions.copies()].filter(({ partition }) => name === undefined || partition === name || firstQueue.get(partition) === name);
}

/** One copy in words: state, then every entry with its checksums over the bytes as they lie there. */
export function contentOf(store: Store, queue: MirroredPartition): string[] {
  const rows: string[] = [];
  const { entries } = store;
  let before = 0;
  for (let row = queue.first; row !== 0; row = entries.nextOf(row)) {
    assert.ok(entries.positionOf(row) > before, 'entries stand by ascending position');
    before = entries.positionOf(row);
  }
  const block = store.blocks.pull(queue, 0, Number.MAX_SAFE_INTEGER, 100_000, 16 * 1024 * 1024);
  assert.ok(block.end, 'a scenario queue fits one block');
  for (let at = 0; at < block.rows.length; at += 40) rows.push([...block.rows.subarray(at, at + 40)].join());
  return [`number ${String(queue.number)} digest ${String(queue.digestA)} ${String(queue.digestB)} count ${String(queue.count)} bytes ${String(queue.bytes)} payload ${String(crc32(block.bodies, 0))}`, ...rows];
}

/** Whether the store has an entry of this message in a queue of this name. Looks from the newest on. */
export function hasEntry(store: Store, queue: MirroredPartition, messageId: number): boolean {
  const { entries } = store;
  for (let row = queue.last; row !== 0; row = entries.prevOf(row)) if (entries.idOf(row) === messageId) return true;
  return false;
}

/** Ids of all messages in complete copies. */
export function memberIds(store: Store): Set<number> {
  const ids = new Set<number>();
  for (const queue of copiesOf(store)) {
    if (!queue.isComplete) continue;
    for (let row = queue.first; row !== 0; row = store.entries.nextOf(row)) ids.add(store.entries.idOf(row));
  }
  return ids;
}

/** Of a gateway that lives. */
export function coreOf(world: { readonly gateway: { readonly core: GatewayCore | undefined } }): GatewayCore {
  const { core } = world.gateway;
  assert.ok(core !== undefined, 'the gateway lives');
  return core;
}

/** State of the message's entry in a queue of this name; undefined when it has none. */
export function stateOf(core: GatewayCore, name: string, letter: Letter): number | undefined {
  for (const mirror of core.registry.byName(name)) {
    const row = core.entries.table.index.find(letter.id, mirror.handle);
    if (row !== 0) return core.entries.table.state(row);
  }
  return undefined;
}

/** The one queue of mail in a partition: in these worlds no two share one. */
export function onlyQueue(partition: Partition): MailQueue {
  const queue = [...partition.queues.values()].find(({ route }) => route.queueClass !== 'bounce');
  assert.ok(queue !== undefined, `partition ${partition.name} has a queue`);
  return queue;
}

/** The same, by name. */
export function hasQueue(partition: Partition, name: string): boolean {
  return firstQueue.get(partition.name) === name || [...partition.queues.values()].some((queue) => queue.name === name);
}
