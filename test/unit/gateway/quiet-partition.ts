/** A partition without copies, for tests of what stands in it: nothing that it changes goes anywhere. */
import { Partition } from '../../../src/gateway/mirror/set/partition.js';
import type { DirtySink } from '../../../src/gateway/mirror/set/partition.js';
import { PayloadSlabs } from '../../../src/gateway/mirror/feed/payload-slabs.js';
import type { EntryTable } from '../../../src/gateway/queue/entry-table.js';
import { idleHolder } from './idle-holder.js';

export const QUIET: DirtySink = {
  onAdopted: () => {}, onDirty: () => {}, onLarge: () => {}, onCharged: () => {}, onPressing: () => {}, creditOf: () => Infinity, storeOf: () => undefined,
};

export function quietPartition(table: EntryTable, handle = 1): Partition {
  const slabs = new PayloadSlabs({ mark: () => true, isPast: true });
  const name = `gw-1/${String(handle)}`;
  return new Partition({ handle, name, isOwn: true, minReplicas: 1 }, idleHolder(name), table.partitionColumns, slabs, QUIET);
}
