/**
 * Which partition a queue lives in: chosen by load when its first entry comes, kept while it has any.
 *
 *   load = queues at home there, against the mean + bytes stored there lately, against the mean
 *
 * So ten busy queues do not share a partition while nine stand empty, and ten thousand quiet ones are spread
 * evenly. A queue that runs empty moves only when its home has far more to do than the quietest partition:
 * else each message of a quick queue would dirty another one. Pure.
 */
import type { Partition } from '../mirror/set/partition.js';

/** An empty queue leaves a home whose load is more than so many times the least, and so much above it. */
const MOVE_FACTOR = 2;
const MOVE_LEAD = 1;

/** What a queue and a byte weigh among the partitions that are compared. */
interface Weights {
  readonly perQueue: number;
  readonly perByte: number;
}

function weightsOf(partitions: readonly Partition[]): Weights {
  let queues = 0;
  let bytes = 0;
  for (const partition of partitions) {
    queues += partition.queues.size;
    bytes += partition.recentBytes;
  }
  return {
    perQueue: queues === 0 ? 0 : partitions.length / queues,
    perByte: bytes === 0 ? 0 : partitions.length / bytes,
  };
}

/** About 2 on average. */
function loadOf(partition: Partition, { perQueue, perByte }: Weights): number {
  return partition.queues.size * perQueue + partition.recentBytes * perByte;
}

/** The partition with the least load; the first of equals. */
export function quietest(partitions: readonly Partition[]): Partition | undefined {
  const weights = weightsOf(partitions);
  let found: Partition | undefined;
  let least = Infinity;
  for (const partition of partitions) {
    const load = loadOf(partition, weights);
    if (load >= least) continue;
    found = partition;
    least = load;
  }
  return found;
}

/** Whether a queue that is empty should leave its home, which is one of these. */
export function shouldMove(home: Partition, partitions: readonly Partition[]): boolean {
  const weights = weightsOf(partitions);
  const own = loadOf(home, weights);
  let least = own;
  for (const partition of partitions) least = Math.min(least, loadOf(partition, weights));
  return own > least * MOVE_FACTOR && own > least + MOVE_LEAD;
}
