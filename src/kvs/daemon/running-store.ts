/**
 * A store that runs, as admin HTTP, metrics and the composition root see it (store-daemon.ts makes it).
 */
import type { ConfigurationAnswer } from '../../admin-api/pages.js';
import type { StoreCounters } from '../core/counters.js';
import type { LogLosses } from '../../platform/ports.js';
import type { Store } from '../core/store.js';
import type { StoreConnection } from '../core/store-connection.js';
import type { StoreDaemonOptions } from './store-daemon.js';

/** How it stands in the register of its group. */
export interface InRegister {
  /** All gateways of the group can find this store. */
  readonly isNamed: boolean;
  /** Why the register does not answer; '' while it does. */
  readonly away: string;
}

/** What a store that runs follows (config/changes.ts). */
export type RenewedStore = Pick<StoreDaemonOptions, 'gateways' | 'groupSecret' | 'configurationHash'>;

/** What other parts see of a store that runs. */
export interface RunningStore {
  readonly store: Store;
  readonly counters: StoreCounters;
  readonly bootId: Uint8Array;
  /** Ports bound, in the order of the paths. */
  readonly ports: readonly number[];
  readonly adminPort: number;
  /** Unix time in milliseconds, by use. */
  readonly certificateEnds: ReadonlyMap<string, number>;
  readonly logLosses: LogLosses | undefined;
  /** What it runs by; undefined where there is no file. */
  readonly configuration: ConfigurationAnswer | undefined;
  /** Told to stop: it waits for its gateways to move their partitions away. */
  readonly isStopping: boolean;
  readonly connections: ReadonlySet<StoreConnection>;
  /** Undefined: gateways know it by their own files. */
  readonly presence: InRegister | undefined;
  /** Goes by these from now on; connections that stand stay. */
  renew(options: RenewedStore): void;
  /** For status: why its file is not taken. */
  refused(why: string): void;
  stop(): Promise<void>;
}
