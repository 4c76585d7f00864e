/**
 * Stores that came back with less than they had acknowledged, in the same boot: the folder of what they held
 * was put back to an older state in a way that the store itself can't see (kvs/daemon/spill-origin.ts). What
 * is done about it is done for each partition (recovery/ownership/partition-set.ts): it gets what it lacks
 * before it counts again. Here all that is found of one store within a second becomes one line of the log.
 */
import type { EventLog } from '../../platform/ports.js';

const TELL_AFTER_MS = 1_000;
/** Partitions that are named in one line. */
const NAMES_MAX = 10;

interface Found {
  readonly sinceMs: number;
  readonly names: string[];
  partitions: number;
  changes: number;
}

export class GoneBack {
  readonly #log: EventLog;
  readonly #found = new Map<string, Found>();

  constructor(log: EventLog) {
    this.#log = log;
  }

  note(storeId: string, partition: string, changes: number, nowMs: number): void {
    const found = this.#found.get(storeId) ?? { sinceMs: nowMs, names: [], partitions: 0, changes: 0 };
    this.#found.set(storeId, found);
    found.partitions += 1;
    found.changes += changes;
    if (found.names.length < NAMES_MAX) found.names.push(partition);
  }

  tick(nowMs: number): void {
    for (const [store, { sinceMs, names, partitions, changes }] of this.#found) {
      if (nowMs - sinceMs < TELL_AFTER_MS) continue;
      this.#found.delete(store);
      const text = 'a store lacks changes that it had acknowledged: its state_dir was put back to an '
        + 'older state. It is sent what it lacks, or filled, before its copies count again; put no older '
        + 'state back';
      const more = partitions > names.length ? ` and ${String(partitions - names.length)} more` : '';
      this.#log.error('mirror', text, { store, changes, partitions: `${names.join(' ')}${more}` });
    }
  }
}
