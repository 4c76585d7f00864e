/** A partition without mirrors, for tests of what stands in it: nothing that it changes goes anywhere. */
import { Partition } from '../../../src/gateway/mirror/partition.js';
import type { DirtySink } from '../../../src/gateway/mirror/partition.js';
import { PayloadSlabs } from '../../../src/gateway/mirror/payload-slabs.js';
import type { EntryTable } from '../../../src/gateway/queue/entry-table.js';

export const QUIET: DirtySink = { onAdopted: () => {}, onDirty: () => {}, onLarge: () => {}, onCharged: () => {}, onPressing: () => {}, creditOf: () => Infinity };

export function quietPartition(table: EntryTable, handle = 1): Partition {
  const slabs = new PayloadSlabs({ mark: () => true, isPast: true });
  return new Partition({ handle, identity: { ownerId: 'gw-1', birth: 1, serial: handle }, name: `p${String(handle)}` }, 1, table.partitionColumns, slabs, QUIET);
}
