/**
 * Stores that are to be left: those that an operator drains, and those that are about to stop. Which copies
 * that concerns is looked at by each partition (ownership/holding.ts): filled elsewhere first, then replaced
 * in one change.
 */
import type { EventLog } from '../../../platform/ports.js';
import type { Mirrors } from '../mirrors.js';
import type { Partition } from './partition.js';
import type { StorePort } from '../link/store-port.js';

export interface LeavingStoresPorts {
  readonly log: EventLog;
  readonly mirrors: Mirrors;
}

export class LeavingStores {
  readonly #ports: LeavingStoresPorts;

  constructor(ports: LeavingStoresPorts) {
    this.#ports = ports;
  }

  /** All copies move away from the store, and no new one goes there; false when it is drained already. */
  drain(storeId: string): boolean {
    const { mirrors, log } = this.#ports;
    const { drained } = mirrors.placement;
    if (drained.has(storeId)) return false;
    drained.add(storeId);
    mirrors.stateVersion += 1;
    log.info('drain', 'the copies at a store move away', { store: storeId, copies: this.copiesAt(storeId) });
    return true;
  }

  /** What has not left the store stays. */
  undrain(storeId: string): boolean {
    const { mirrors, log } = this.#ports;
    if (!mirrors.placement.drained.delete(storeId)) return false;
    mirrors.stateVersion += 1;
    log.info('drain', 'a store is used again', { store: storeId });
    return true;
  }

  /** The store has said that it is about to stop. */
  onStopping(store: StorePort): void {
    const { mirrors, log } = this.#ports;
    mirrors.placement.stopping.add(store.storeId);
    mirrors.stateVersion += 1;
    const copies = mirrors.copiesAt(store);
    log.info('drain', 'a store is about to stop: its copies move away', { store: store.storeId, copies });
  }

  /** 0 when it is drained. */
  copiesAt(storeId: string): number {
    const store = this.#ports.mirrors.storeOf(storeId);
    return store === undefined ? 0 : this.#ports.mirrors.copiesAt(store);
  }

  /** Copies that stay although their store is to be left: no other takes them, and too few would be left. */
  stuckAt(storeId: string): number {
    const { mirrors } = this.#ports;
    let count = 0;
    for (const partition of mirrors.all()) {
      if (stayingOf(partition) >= Math.max(1, mirrors.options.minReplicas)) continue;
      for (const row of partition.rows) {
        if (row.storeId !== storeId || !row.isUnwanted) continue;
        const stores = partition.rows.map((other) => mirrors.storeOf(other.storeId));
        const taken = stores.filter((store) => store !== undefined);
        const isMoving = partition.rows.some((other) => !other.isRecorded && other.isFed);
        const staying = taken.filter((store) => store.storeId !== storeId);
        const others = mirrors.placement.choose(1, taken, staying, partition.ownerId);
        if (!isMoving && others.length === 0) count += 1;
      }
    }
    return count;
  }

  /** Copies fewer than configured, not counting those that are about to leave. */
  copiesMissing(): number {
    const { mirrors } = this.#ports;
    let count = 0;
    for (const partition of mirrors.all()) {
      count += Math.max(0, mirrors.options.replicas - stayingOf(partition));
    }
    return count;
  }

  /** Partitions with mail that no store has whole, but for those that are to be left. */
  uncopied(): number {
    let count = 0;
    for (const partition of this.#ports.mirrors.all()) {
      if (partition.length > 0 && stayingOf(partition) === 0) count += 1;
    }
    return count;
  }
}

function stayingOf({ rows }: Partition): number {
  return rows.filter((row) => row.isRecorded && row.isInStep && !row.isUnwanted).length;
}
