/**
 * Which partition a queue lives in: chosen by load when its first entry comes, kept while it has any.
 *
 *   load = queues at home there, against the mean + bytes stored there lately, against the mean
 *
 * So ten busy queues do not share a partition while nine stand empty, and ten thousand quiet ones are spread
 * evenly. A queue that runs empty moves only when its home has far more to do than the quietest partition:
 * else each message of a quick queue would dirty another one. Pure.
 */
import type { Partition } from '../mirror/partition.js';

/** An empty queue leaves a home whose load is more than so many times the least, and so much above it. */
const MOVE_FACTOR = 2;
const MOVE_LEAD = 1;

/** Load of each partition, in their order; about 2 on average. */
function loads(partitions: readonly Partition[]): number[] {
  let queues = 0;
  let bytes = 0;
  for (const partition of partitions) {
    queues += partition.queues.size;
    bytes += partition.recentBytes;
  }
  const perQueue = queues === 0 ? 0 : partitions.length / queues;
  const perByte = bytes === 0 ? 0 : partitions.length / bytes;
  return partitions.map((partition) => partition.queues.size * perQueue + partition.recentBytes * perByte);
}

/** The partition with the least load; the first of equals. */
export function quietest(partitions: readonly Partition[]): Partition | undefined {
  const all = loads(partitions);
  let least = 0;
  for (let i = 1; i < all.length; i++) if ((all[i] ?? 0) < (all[least] ?? 0)) least = i;
  return partitions[least];
}

/** Whether a queue that is empty should leave its home, which is one of these. */
export function shouldMove(home: Partition, partitions: readonly Partition[]): boolean {
  const all = loads(partitions);
  const own = all[partitions.indexOf(home)] ?? 0;
  const least = Math.min(...all);
  return own > least * MOVE_FACTOR && own > least + MOVE_LEAD;
}
