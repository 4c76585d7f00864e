/** A partition that is held and has no copies, for tests of what stands in it: nothing that it changes goes anywhere. */
import assert from 'node:assert/strict';
import { Partition } from '../../../src/gateway/mirror/partition.js';
import type { DirtySink } from '../../../src/gateway/mirror/partition.js';
import { PayloadSlabs } from '../../../src/gateway/mirror/payload-slabs.js';
import type { EntryTable } from '../../../src/gateway/queue/entry-table.js';
import type { HolderPorts } from '../../../src/recovery/ownership/ports.js';
import { PartitionHolder } from '../../../src/recovery/ownership/holder.js';

export const QUIET: DirtySink = {
  onAdopted: () => {}, onDirty: () => {}, onLarge: () => {}, onCharged: () => {}, onPressing: () => {}, creditOf: () => Infinity, storeOf: () => undefined,
};

const nobody = (): never => assert.fail('a quiet partition asks nobody');

const PORTS: HolderPorts = {
  register: { read: nobody, change: nobody, tieSession: nobody, readRules: nobody },
  stores: { all: () => [], bootOf: () => '', ask: nobody, fence: nobody, found: nobody, release: nobody },
  members: {
    lastNumber: () => 0, isInHistory: () => false, hasTailFrom: () => false, lease: () => ({ bootId: '', endsMs: -Infinity }), isUp: () => false,
    chooseStore: () => undefined, align: nobody, startTail: nobody, startFill: nobody, tell: nobody, onCommitted: nobody,
  },
  memory: { read: nobody, readOn: nobody, begin: nobody, forget: nobody, stop: nobody, resume: nobody, adopt: nobody },
  isProvenDead: () => false, session: () => ({ id: 0, endsMs: -Infinity }), nonce: () => 1, trace: () => {},
};

/** In which nothing has happened. */
export function quietHolder(partition: string): PartitionHolder {
  return new PartitionHolder({
    partition, self: { gatewayId: 'gw-1', incarnation: 1 }, isOwn: true, replicas: 2, minReplicas: 1, dropAfterMs: 100, replaceAfterMs: 30_000, tellAgainMs: 1000,
    retryMs: 500, changeTimeoutMs: 2000, rescueDelayMs: 200, awayAfterMs: 5000, lookAgainMs: 15_000, foundWaitMs: 2000, longestLeaseMs: 10_300,
  }, PORTS);
}

export function quietPartition(table: EntryTable, handle = 1): Partition {
  const slabs = new PayloadSlabs({ mark: () => true, isPast: true });
  const name = `gw-1/${String(handle)}`;
  return new Partition({ handle, name, isOwn: true, minReplicas: 1 }, quietHolder(name), table.partitionColumns, slabs, QUIET);
}
