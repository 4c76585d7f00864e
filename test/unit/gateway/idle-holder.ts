/** A partition's holder that does nothing: for tests of what stands in a partition, not of who holds it. */
import type { CopyPosition } from '../../../src/recovery/ownership/ports.js';
import { PartitionHolder } from '../../../src/recovery/ownership/holder.js';

const nothing = (): void => {};

export function idleHolder(partition = 'gw-1/1'): PartitionHolder {
  return new PartitionHolder(
    {
      partition, self: { gatewayId: 'gw-1', incarnation: 1 }, isOwn: true, replicas: 2, minReplicas: 1, dropAfterMs: 500, replaceAfterMs: 60_000,
      tellAgainMs: 1000, retryMs: 500, changeTimeoutMs: 2000, rescueDelayMs: 0, awayAfterMs: 5000, lookAgainMs: 5000, foundWaitMs: 50, longestLeaseMs: 10_000,
    },
    {
      register: { read: nothing, change: nothing, tieSession: nothing, readRules: nothing },
      stores: { all: () => [], areAllKnown: () => true, bootOf: () => '', ask: nothing, fence: nothing, found: nothing, release: nothing },
      members: {
        lastNumber: () => 0, isInHistory: (_at: CopyPosition) => true, lease: () => ({ bootId: '', endsMs: -Infinity }),
        isUp: () => false, chooseStore: () => undefined, align: nothing, startTail: nothing, startFill: nothing, tell: nothing, onCommitted: nothing, onWentBack: nothing,
      },
      memory: { read: nothing, readOn: nothing, begin: nothing, noteLoss: nothing, forget: nothing, stop: nothing, resume: nothing, adopt: nothing },
      mayBegin: () => true, isProvenDead: () => false,
      session: () => ({ id: 1, endsMs: Infinity }),
      nonce: () => 1, wallSeconds: () => 0,
      trace: nothing,
    },
  );
}
