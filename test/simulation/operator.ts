/**
 * The operator of a world in which stores are lost for good: once faults have ended he does what the gateways tell him to,
 * and nothing else.
 *
 *   a partition waits for copies that are away, all of them at lost stores ─► gives these up
 *   nothing waits any more, and not all drains ─► takes the lost stores out of the configuration, one gateway after the other
 */
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

  constructor(world: World) {
    this.world = world;
    this.nextLookMs = world.scheduler.nowMs;
    this.nextRestartMs = this.nextLookMs + CONFIGURED_ANEW_MS;
  }

  look(): void {
    const { world } = this;
    const { nowMs } = world.scheduler;
    if (world.lostStores.size === 0 || nowMs < this.nextLookMs) return;
    this.nextLookMs = nowMs + LOOK_MS;
    let isWaiting = false;
    for (const gateway of world.gateways) if (this.givesUp(gateway)) isWaiting = true;
    if (!isWaiting && nowMs >= this.nextRestartMs) this.configureAnew();
  }

  /** True when something there waits for copies at lost stores. */
  private givesUp({ core }: GatewayMachine): boolean {
    const { world } = this;
    const waiting = core?.holdings.waiting().filter(({ waitsFor }) => waitsFor === 'copies away') ?? [];
    if (core === undefined || waiting.length === 0) return false;
    world.scheduler.trace('the operator gives copies up');
    for (const partition of core.holdings.giveUp([...world.lostStores])) world.custody.noteDisaster(partition);
    return true;
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
