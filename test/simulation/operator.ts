/**
 * The operator: once faults have ended he does what the gateways tell him to, and nothing else. In some worlds he is
 * hasty before.
 *
 *   a partition waits for copies that are away, and they are nowhere any more ─► gives these up
 *   stores are lost for good, nothing waits, and not all drains ─► takes the lost stores out of the configuration, one gateway after the other
 */
import type { HolderId, PartitionRecord } from '../../src/protocol/partition-record.js';
import { isSameHolder } from '../../src/protocol/partition-record.js';
import type { GatewayMachine, World } from './world.js';

const LOOK_MS = 1000;
/** Mirrors are moved by then: replace_after is over. */
const CONFIGURED_ANEW_MS = 60_000;
const BETWEEN_RESTARTS_MS = 5000;

export class Operator {
  private readonly world: World;
  private nextLookMs: number;
  private nextRestartMs: number;
  private readonly done = new Set<GatewayMachine>();
  /** Partitions whose copies he gave up in haste. */
  inHaste = 0;

  constructor(world: World) {
    this.world = world;
    this.nextLookMs = world.scheduler.nowMs;
    this.nextRestartMs = this.nextLookMs + CONFIGURED_ANEW_MS;
  }

  /**
   * In the middle of faults, in haste: gives up copies whose stores are cut off, stand still, or are down with a file.
   * Only of a holder that is dead: one that lives would go on beside it.
   */
  lookInHaste(): void {
    const { world } = this;
    for (const gateway of world.gateways) this.giveUpEnded(gateway, () => true);
    const isDead = ({ holder }: PartitionRecord): boolean =>
      !world.gateways.some(({ core }) => core !== undefined && isSameHolder(core.self, holder));
    for (const { core } of world.gateways) {
      for (const { partition, waitsFor, copies } of core?.holdings.waiting() ?? []) {
        const record = world.records().get(partition);
        if (core === undefined || waitsFor !== 'copies away' || record === undefined || !isDead(record)) continue;
        const given = core.holdings.giveUp(copies);
        for (const name of given) world.custody.noteGivenUp(name, core);
        this.inHaste += given.length;
      }
    }
  }

  look(): void {
    const { world } = this;
    const { nowMs } = world.scheduler;
    if (nowMs < this.nextLookMs) return;
    this.nextLookMs = nowMs + LOOK_MS;
    let isWaiting = false;
    for (const gateway of world.gateways) {
      if (this.givesUp(gateway)) isWaiting = true;
      this.giveUpEnded(gateway, (storeId) => world.lostStores.has(storeId));
    }
    if (world.lostStores.size > 0 && !isWaiting && nowMs >= this.nextRestartMs) this.configureAnew();
  }

  /** Partitions that have ended wait for these stores no more: no mail can be lost by it, whether they come back or not. */
  private giveUpEnded({ core }: GatewayMachine, isMeant: (storeId: string) => boolean): void {
    const ends = core?.holdings.untoldEnds().filter(({ stores }) => stores.every(isMeant)) ?? [];
    if (ends.length === 0) return;
    const storeIds = [...new Set(ends.flatMap(({ stores }) => stores))];
    core?.holdings.giveUpEnded(storeIds, { who: 'ann', reason: 'burnt' }, ({ ended }) => {
      if (ended.length > 0) this.world.onFired('give-up-ended');
    });
  }

  /** True when something there waits for copies that are nowhere any more. */
  private givesUp({ core }: GatewayMachine): boolean {
    const { world } = this;
    let isWaiting = false;
    // He names what status shows: after a rollback that may be another record than the last one.
    for (const { partition, waitsFor, copies } of core?.holdings.waiting() ?? []) {
      const record = world.records().get(partition);
      if (core === undefined || waitsFor !== 'copies away' || record === undefined) continue;
      if (!this.isNowhere(record) && !this.isEmpty(partition, record)) continue;
      isWaiting = true;
      world.scheduler.trace(`the operator gives the copies of ${partition} up`);
      for (const name of core.holdings.giveUp(copies)) world.custody.noteGivenUp(name, core);
    }
    return isWaiting;
  }

  /** He has looked: each copy was at a store that is lost, or in a boot that is over, and its holder is dead. */
  private isNowhere({ holder, members }: PartitionRecord): boolean {
    const { stores, lostStores } = this.world;
    if (this.isAlive(holder)) return false;
    return members.every(({ storeId, bootId }) => lostStores.has(storeId) || stores.some(({ id, node }) => id === storeId && node.isAlive && node.bootId !== bootId));
  }

  /** A record that was lost before all were told of it, begun anew: its copies hold nothing, and nobody counts on them. */
  private isEmpty(partition: string, { holder, members }: PartitionRecord): boolean {
    if (members.length === 0 || this.isAlive(holder)) return false;
    return members.every(({ storeId, bootId }) => {
      const { store } = this.world.stores.find(({ id }) => id === storeId)?.node ?? {};
      return store?.bootId === bootId && store.partitions.find(partition)?.count === 0;
    });
  }

  private isAlive(holder: HolderId): boolean {
    return this.world.gateways.some(({ core }) => core !== undefined && isSameHolder(core.self, holder));
  }

  /** One gateway at a time. */
  private configureAnew(): void {
    const { world } = this;
    const next = world.gateways.find((gateway) => !gateway.isTwin && !this.done.has(gateway));
    if (next === undefined) return;
    this.nextRestartMs = world.scheduler.nowMs + BETWEEN_RESTARTS_MS;
    this.done.add(next);
    for (const lost of world.lostStores) {
      const at = next.storeIds.indexOf(lost);
      if (at >= 0) next.storeIds.splice(at, 1);
    }
    world.stopGateway(next);
  }
}
