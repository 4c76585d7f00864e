/**
 * Plays the story of a seed (plots.ts) beside its faults: each step of it waits for a time, or for something to be
 * true, and gives up when that does not come about. What a story did to the network and to processes ends with it.
 *
 *   play ─► next() ─ yields ms ─────────────────► after so many ms ─► next() …
 *                  └ yields a condition ─► looked at every LOOK_MS ─► true: next() │ PATIENCE_MS over: the end
 */
import type { Partition } from '../../src/gateway/mirror/set/partition.js';
import type { Prng } from '../../src/base/prng.js';
import type { FaultKind, PlotName } from './plan.js';
import type { Letter } from './ledger.js';
import { PLOT_SCRIPTS } from './plots.js';
import type { GatewayMachine, StoreMachine, World } from './world.js';

/** What a story asks of the swarm. */
export interface Extras {
  /** Next hops are down for so long; 0 ends it. */
  holdMail(ms: number): void;
  /** So many messages, to the queue of this name or to any; small ones, unless their size is said. */
  send(gateway: GatewayMachine, count: number, name?: string, bytes?: number): Letter[];
  fire(kind: FaultKind): void;
}

/** Shorter than a message takes to its store and back. */
const LOOK_MS = 0.5;
const PATIENCE_MS = 15_000;

export class Stage {
  readonly world: World;
  readonly extras: Extras;
  readonly prng: Prng;
  private isOver = false;

  constructor(world: World, extras: Extras) {
    this.world = world;
    this.extras = extras;
    this.prng = world.prng.fork();
  }

  play(name: PlotName): void {
    this.world.scheduler.trace(name);
    const script = PLOT_SCRIPTS[name](this);
    const goOn = (): void => {
      if (this.isOver) return;
      const { done, value } = script.next();
      if (done === true) {
        this.extras.fire(name);
        this.world.scheduler.trace(`${name} is told`);
      } else if (typeof value === 'number') this.world.scheduler.after(value, goOn);
      else this.await(value, goOn, this.world.scheduler.nowMs + PATIENCE_MS);
    };
    goOn();
  }

  /** Faults end. */
  end(): void {
    this.isOver = true;
  }

  private await(condition: () => boolean, goOn: () => void, untilMs: number): void {
    if (this.isOver) return;
    if (condition()) goOn();
    else if (this.world.scheduler.nowMs < untilMs) this.world.scheduler.after(LOOK_MS, () => { this.await(condition, goOn, untilMs); });
    else this.world.scheduler.trace('a story is given up');
  }

  // ---- what stories look at ----

  /** A partition of its own that this gateway holds whole, with mail in it and two members in step. */
  partitionOf(gateway: GatewayMachine): Partition | undefined {
    return gateway.core?.registry.partitions.find((one) => one.ownerId === gateway.gatewayId && one.length > 0 && one.set?.records.isSettled === true && one.inSyncCount >= 2);
  }

  /** The gateway that has taken it over, if another one has. */
  takerOf(gateway: GatewayMachine, partition: string): GatewayMachine | undefined {
    return this.world.gateways.find((other) => other.gatewayId !== gateway.gatewayId && other.core?.registry.partitions.some(({ name }) => name === partition) === true);
  }

  storesOf(partition: Partition): StoreMachine[] {
    return this.world.stores.filter(({ id }) => partition.rows.some((row) => row.isRecorded && row.storeId === id));
  }

  // ---- what stories do ----

  /** Nothing passes between the gateway and the stores, or only answers wait. */
  hold(gateway: GatewayMachine, stores: readonly StoreMachine[], held: boolean, what: 'both' | 'answers' = 'both'): void {
    const { network } = this.world;
    for (const { id } of stores) {
      if (what === 'both') network.holdRequests(gateway.id, id, held);
      network.holdAnswers(gateway.id, id, held);
    }
  }

  start(machine: GatewayMachine): void {
    if (!this.isOver && !machine.node.isAlive) machine.node.start();
  }
}
