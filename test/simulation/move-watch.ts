/**
 * A copy that moves to another store (rebalance, drain) stays a member until its successor is one, if there is a
 * store for one: nobody may have fewer copies for being tidy. What is told of each partition is what its holder
 * knows at one look and at the next.
 */
import type { Partition } from '../../src/gateway/mirror/set/partition.js';
import { GuaranteeBroken } from './broken.js';
import type { World } from './world.js';

/** Members that are to leave for another store, of a record. */
interface Leaving {
  readonly partition: Partition;
  readonly epoch: number;
  readonly members: number;
  readonly stores: readonly string[];
}

export class MoveWatch {
  private readonly world: World;
  private readonly leaving = new Map<string, Leaving>();

  constructor(world: World) {
    this.world = world;
  }

  look(): void {
    for (const { id, core } of this.world.gateways) {
      if (core === undefined) continue;
      for (const { partition, from } of core.mirrors.rebalance.moving) {
        const key = `${id} ${partition.name}`;
        const { record } = partition.holder;
        if (record === undefined || partition.set?.records.isSettled !== true) continue;
        const before = this.leaving.get(key);
        if (before?.partition === partition && record.epoch > before.epoch) this.check(id, before, partition);
        const isSound = partition.rows.every((row) => !row.isRecorded || row.isInStep);
        const isAvoided = core.mirrors.placement.isAvoided(from);
        if (!isSound || isAvoided) this.leaving.delete(key);
        else this.leaving.set(key, { partition, epoch: record.epoch, members: record.members.length, stores: [from] });
      }
    }
  }

  private check(id: string, { stores, members }: Leaving, { name, holder, rows }: Partition): void {
    const now = holder.record?.members ?? [];
    const isLeft = stores.some((from) => !now.some(({ storeId }) => storeId === from));
    const isSound = rows.every((row) => !row.isRecorded || row.isInStep);
    if (isLeft && isSound && now.length < members) {
      throw new GuaranteeBroken(`G2b: ${id} let the copy of ${name} at ${stores.join()} go before another was in step`);
    }
  }
}
