/**
 * The results of all parts of `bench all`, as the report reads them; a part that has not run is not there.
 */
import type { EnduranceRow } from './endurance.js';
import type { GrowthRow } from './growth.js';
import type { MemoryRow } from './memory.js';
import type { NodeRow } from './nodes.js';
import type { PartResult } from './options.js';
import type { PeerRow } from './peers.js';
import type { FirstDeliveryRow, RecoveryRow } from './recovery.js';
import type { RelayRow } from './relay.js';
import type { StoreRow } from './store.js';
import type { WorkersRow } from './workers.js';

export interface Results {
  readonly relay?: PartResult<RelayRow>;
  readonly store?: PartResult<StoreRow>;
  readonly peers?: PartResult<PeerRow>;
  readonly recovery?: PartResult<RecoveryRow | FirstDeliveryRow>;
  readonly growth?: PartResult<GrowthRow>;
  readonly memory?: PartResult<MemoryRow>;
  readonly workers?: PartResult<WorkersRow>;
  readonly nodes?: PartResult<NodeRow>;
  /** From runs of their own: memory.ts, endurance.ts. */
  readonly longest?: PartResult<MemoryRow>;
  readonly endurance?: PartResult<EnduranceRow>;
}
