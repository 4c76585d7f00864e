/**
 * A store that runs, as admin HTTP, metrics and the composition root see it (store-daemon.ts makes it).
 */
import type { StoreCounters } from '../core/counters.js';
import type { Store } from '../core/store.js';
import type { StoreConnection } from '../core/store-connection.js';

/** What other parts see of a store that runs. */
export interface RunningStore {
  readonly store: Store;
  readonly counters: StoreCounters;
  readonly bootId: Uint8Array;
  /** Ports bound, in the order of the paths. */
  readonly ports: readonly number[];
  readonly adminPort: number;
  /** Told to stop: it waits for its gateways to move their partitions away. */
  readonly isStopping: boolean;
  readonly connections: ReadonlySet<StoreConnection>;
  stop(): Promise<void>;
}
