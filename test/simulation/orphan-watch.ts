/**
 * Partitions of a gateway that is retired are shown: each process that knows of the order names those that the
 * register has, until they have ended. Else mail could lie there, and nobody would be told. And the record of one
 * that has ended goes last: while it stands, a copy that comes back is known to be none (ended-partitions.ts).
 *
 * Looked at only where the register answers all the time: what a process can't know it can't show.
 */
import { isEnded, ownerOf } from '../../src/protocol/partition-record.js';
import type { PartitionRecord } from '../../src/protocol/partition-record.js';
import { GuaranteeBroken } from './broken.js';
import type { FaultKind } from './plan.js';
import type { GatewayMachine, World } from './world.js';

/** A watch tells what has changed in a moment. */
const TOLD_MS = 1_500;
const LOOK_MS = 50;
const REGISTER_FAULTS: readonly FaultKind[] = [
  'register-away', 'register-slow', 'register-late', 'register-loses', 'register-cut', 'register-rollback',
];

export class OrphanWatch {
  private readonly world: World;
  private readonly isOff: boolean;
  /** By process and partition: since when it is not shown. */
  private readonly hiddenSinceMs = new Map<string, number>();
  private readonly ended = new Set<string>();
  private nextMs = 0;

  constructor(world: World) {
    this.world = world;
    const { kinds, plot } = world.plan;
    const isAsked = (kinds.has('retire') && plot !== 'plot-change-in-doubt') || plot === 'plot-ended-without';
    this.isOff = !isAsked || REGISTER_FAULTS.some((kind) => kinds.has(kind));
  }

  look(): void {
    const { world } = this;
    const { nowMs } = world.scheduler;
    if (this.isOff || nowMs < this.nextMs) return;
    this.nextMs = nowMs + LOOK_MS;
    const present = new Map(world.present());
    for (const gateway of world.gateways) this.lookAtShown(gateway, present, nowMs);
    for (const name of this.ended) if (!present.has(name)) this.checkGone(name);
    this.ended.clear();
    for (const [name, record] of present) if (isEnded(record)) this.ended.add(name);
  }

  private lookAtShown(
    { id, gatewayId, core, process }: GatewayMachine, present: ReadonlyMap<string, PartitionRecord>, nowMs: number,
  ): void {
    const shown = new Set(core?.holdings.orphans().map(({ partition }) => partition));
    for (const [name, record] of present) {
      const key = `${id} ${name}`;
      const owner = ownerOf(name);
      const isMissed = core?.holdings.retired.has(owner) === true && owner !== gatewayId && !process.isFrozen;
      if (!isMissed || isEnded(record) || shown.has(name)) {
        this.hiddenSinceMs.delete(key);
        continue;
      }
      const sinceMs = this.hiddenSinceMs.get(key) ?? nowMs;
      this.hiddenSinceMs.set(key, sinceMs);
      if (nowMs - sinceMs > TOLD_MS) throw new GuaranteeBroken(`orphans: ${id} does not show ${name}`);
    }
  }

  /** Copies that a process made to begin it anew are empty, and may be left when another came first. */
  private checkGone(name: string): void {
    for (const { id, store, filed } of this.world.stores) {
      if (this.world.lostStores.has(id)) continue;
      const count = store === undefined ? filed?.ids.get(name)?.length : store.partitions.find(name)?.count;
      if (count === undefined || count === 0 || this.world.register.isGivenUp(id, name)) continue;
      throw new GuaranteeBroken(`orphans: the record of ${name} is gone, and ${id} has mail of it`);
    }
  }
}
