/**
 * What leaves a copy that was given up is doubled before (rule 16 of docs/model): whoever counts as a member has
 * each message that is taken out there, unless that is over. A crash in between would lose it; chance makes one
 * too seldom.
 */
import type { PartitionRecord } from '../../src/protocol/partition-record.js';
import { hasEntry } from '../scenario/inspect.js';
import { GuaranteeBroken } from './broken.js';
import { idsInOrder } from './custody.js';
import type { Copy } from './ledger.js';
import type { World } from './world.js';

export class AdoptionWatch {
  private readonly world: World;
  /** By partition, store and boot: what was in the copy. */
  private readonly seen = new Map<string, readonly number[]>();

  constructor(world: World) {
    this.world = world;
  }

  look(): void {
    for (const { core } of this.world.gateways) {
      for (const { name, holder } of core?.registry.partitions ?? []) {
        const { record } = holder;
        if (record !== undefined && record.gaveUp.length > 0) this.lookAt(name, record);
      }
    }
  }

  private lookAt(partition: string, record: PartitionRecord): void {
    for (const { storeId, bootId } of record.gaveUp) {
      const store = this.world.stores.find(({ id }) => id === storeId)?.store;
      const copy = store?.bootId === bootId ? store.partitions.find(partition) : undefined;
      if (store === undefined || copy === undefined) continue;
      const key = `${partition} ${storeId} ${bootId}`;
      const ids = idsInOrder(store, copy);
      const left = new Set(ids);
      for (const id of this.seen.get(key) ?? []) {
        if (!left.has(id) && !this.isOver(id, partition)) this.checkDoubled(id, partition, record);
      }
      this.seen.set(key, ids);
    }
  }

  /** A report may stand for it by now. */
  private isOver(id: number, partition: string): boolean {
    const letter = this.world.ledger.letters.get(id);
    const isEnded = (copy: Copy): boolean => copy.isOver || copy.isTried || copy.failed.size > 0 || copy.isExcused;
    return letter === undefined || letter.copies.every((copy) => copy.queueKey !== partition || isEnded(copy));
  }

  private checkDoubled(id: number, partition: string, { members }: PartitionRecord): void {
    for (const { storeId, bootId } of members) {
      const store = this.world.stores.find((one) => one.id === storeId)?.store;
      const copy = store?.bootId === bootId ? store.partitions.find(partition) : undefined;
      if (store === undefined || copy === undefined || hasEntry(store, copy, id)) continue;
      throw new GuaranteeBroken(`G2: message ${String(id)} left the copy of ${partition} that was given up, and member ${storeId} lacks it`);
    }
  }
}
