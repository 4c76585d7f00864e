/**
 * The operator of a world in which stores are lost for good: once faults have ended he does what the gateways tell him to,
 * and nothing else. What a store had that is gone is not waited for.
 *
 *   looks at what is held ─► a store named there is lost ─► force, as the state tells: where the queue is served, at its owner
 *        first; if nowhere, at its owner; and if that has not helped, wherever it is held: a rescuer's claim may stand there
 *   a queue that was forced finds no store, for its owner has older copies ─► keeps that one down until it has a mirror
 *   a queue goes on at its owner, and another one keeps its memory of it ─► restarts that one
 *   nothing is held any more, and not all drains ─► takes the lost stores out of the configuration, one gateway after the other
 *
 * He names only stores that are lost: that one is back empty, and nobody else has had the queue, is no more than a guess.
 */
import type { Partition } from '../../src/gateway/mirror/partition.js';
import type { HeldPartition } from '../../src/recovery/waiting-queues.js';
import { keyOfMirror } from './custody.js';
import type { GatewayMachine, World } from './world.js';

const LOOK_MS = 1000;
const ELSEWHERE_MS = 40_000;
/** Mirrors are moved by then: replace_after is over. */
const CONFIGURED_ANEW_MS = 60_000;
const BETWEEN_RESTARTS_MS = 5000;

export class Operator {
  private readonly world: World;
  private readonly startMs: number;
  private nextLookMs: number;
  private nextRestartMs: number;
  private readonly done = new Set<GatewayMachine>();
  /** A lost store stood in the way of a queue when he looked last. */
  isHeld = false;

  constructor(world: World) {
    this.world = world;
    this.startMs = world.scheduler.nowMs;
    this.nextLookMs = this.startMs;
    this.nextRestartMs = this.startMs + CONFIGURED_ANEW_MS;
  }

  look(): void {
    const { world } = this;
    const { nowMs } = world.scheduler;
    if (world.lostStores.size === 0 || nowMs < this.nextLookMs) return;
    this.nextLookMs = nowMs + LOOK_MS;
    this.isHeld = false;
    for (const gateway of world.gateways) {
      for (const held of gateway.core?.recovery.held() ?? []) if (this.forces(gateway, held)) this.isHeld = true;
    }
    for (const gateway of world.gateways) if (this.endsMemory(gateway)) this.isHeld = true;
    this.keepDown();
    if (world.keptDown.size > 0) this.isHeld = true;
    // One that is to come back stays configured.
    if (!this.isHeld && world.stranded === undefined && nowMs >= this.nextRestartMs) this.configureAnew();
  }

  /** A stand-in holds what its owner goes on with: what it has is of no use any more. */
  private endsMemory(gateway: GatewayMachine): boolean {
    const isOver = gateway.core?.recovery.held().some(({ key, owner }) => owner !== gateway.gatewayId && this.serving(key).some((one) => one === gateway) && this.serving(key).some((one) => one.gatewayId === owner && goesOn(one, key))) === true;
    if (isOver) this.world.stopGateway(gateway);
    return isOver;
  }

  /** Owners whose older copies keep a queue of theirs from having a mirror. */
  private keepDown(): void {
    const { world } = this;
    world.keptDown.clear();
    for (const gateway of world.gateways) {
      for (const { state, owner } of gateway.core?.recovery.held() ?? []) {
        const machine = world.gateways.find((one) => one.gatewayId === owner && one !== gateway);
        if (state !== 'no store free' || machine === undefined) continue;
        world.keptDown.add(machine.node);
        world.stopGateway(machine);
      }
    }
  }

  /** Gateways that have the queue in memory. */
  private serving(key: string): GatewayMachine[] {
    return this.world.gateways.filter((gateway) => mirrorIn(gateway, key) !== undefined);
  }

  /** True when a lost store stands in the way of this queue. */
  private forces({ id, gatewayId, core }: GatewayMachine, held: HeldPartition): boolean {
    const { key, partition: queue, owner, state } = held;
    const lost = [...storesIn(held)].filter((store) => this.world.lostStores.has(store));
    if (lost.length === 0) return false;
    const serving = this.serving(key);
    const first = serving.find((gateway) => gateway.gatewayId === owner) ?? serving[0];
    const isHere = state === 'stranded' || (first === undefined ? gatewayId === owner || this.world.scheduler.nowMs > this.startMs + ELSEWHERE_MS : first.id === id);
    if (!isHere) return false;
    for (const missing of lost) {
      this.world.scheduler.trace(`${id} is to take ${queue} without ${missing}`);
      // All queues of that name are meant.
      const others = core?.recovery.held().filter((one) => one.partition === queue && storesIn(one).has(missing)).map((one) => one.key) ?? [];
      const forced = core?.recovery.force({ partition: queue, owner, missing, reason: 'lost for good', who: 'operator' }) ?? [];
      if (forced.some((one) => one.partition === queue)) for (const one of new Set([key, ...others])) this.world.custody.onForced(one, missing, core);
    }
    return true;
  }

  /** One gateway at a time, when all that it serves has a mirror in sync. */
  private configureAnew(): void {
    const { world } = this;
    const next = world.gateways.find((gateway) => !gateway.isTwin && !this.done.has(gateway));
    if (next?.core === undefined || !next.core.registry.partitions.every((mirror) => mirror.inSyncCount > 0)) return;
    this.done.add(next);
    this.nextRestartMs = world.scheduler.nowMs + BETWEEN_RESTARTS_MS;
    next.process.trace('is configured anew');
    world.stopGateway(next);
    next.storeIds.splice(0, next.storeIds.length, ...next.storeIds.filter((id) => !world.lostStores.has(id)));
  }
}

function mirrorIn(gateway: GatewayMachine, key: string): Partition | undefined {
  return gateway.core?.registry.partitions.find((mirror) => keyOfMirror(mirror) === key);
}

/** Those that it waits for, or that the command tells to give up. */
function storesIn({ stores, why }: HeldPartition): ReadonlySet<string> {
  return new Set([...stores, ...[...why.matchAll(/--missing (\S+)/g)].map(([, store]) => store ?? '')]);
}

function goesOn(gateway: GatewayMachine, key: string): boolean {
  return (mirrorIn(gateway, key)?.inSyncCount ?? 0) > 0;
}
