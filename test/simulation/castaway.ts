/**
 * A store that no gateway reaches any more, all at once and for good as it seems: it counts as lost, and the operator has
 * the group go on without it where that is asked for. What it has lives on, and in the calm it is there again, when nothing
 * is held any more and new mail has been accepted, of which nothing is delivered yet: none of that may be lost, whoever
 * serves it by then. The checkers judge; what an order excuses is custody.ts.
 *
 *   strand ─► faults end ─► orders, until nothing is held ─► it may end, or leave a file ─► mail, while next hops are down
 *          ─► it is back │ all go on, or other stores are cut off or restart, or gateways are killed and started, or rescued
 *          ─► next hops take all
 */
import type { Prng } from '../../src/base/prng.js';
import type { Letter } from './ledger.js';
import type { Extras } from './stage.js';
import type { GatewayMachine, StoreMachine, World } from './world.js';

/** A queue finds its mirrors. */
export const LEFT_MIN = 2;
const HELD_MS = 600_000;
const LETTERS_MAX = 3;
const PAUSE_MS = 3000;
/** Nothing has been held for so long: orders have had their effect. */
const IDLE_MS = 4000;
/** After replace_after what is silent is told of. */
const TOLD_MS = 4000;
const PATIENCE_MS = 15_000;

type Wait = number | (() => boolean);
type Return = 'all go on' | 'others cut off' | 'others restart' | 'killed' | 'rescued';
const RETURNS: readonly Return[] = ['all go on', 'others cut off', 'others restart', 'killed', 'killed', 'rescued'];

export class Castaway {
  private readonly world: World;
  private readonly extras: Extras;
  private readonly prng: Prng;
  private script: Generator<Wait, void, void> | undefined;
  private wait: Wait = 0;
  private waitEndsMs = 0;
  private busyMs = 0;
  /** Gateways may be down that nobody is to start, and mail waits: the operator is not to look. */
  isUnderWay = false;

  constructor(world: World, extras: Extras) {
    this.world = world;
    this.extras = extras;
    this.prng = world.prng.fork();
  }

  /** One of a world, and only one that a group can do without. */
  strand(machine: StoreMachine): void {
    const { world } = this;
    if (world.stranded !== undefined || world.lostStores.has(machine.id) || world.stores.length - world.lostStores.size <= LEFT_MIN) return;
    machine.process.trace('is cut off from all');
    world.stranded = machine;
    world.lostStores.add(machine.id);
    const isTold = this.prng.below(2) === 0;
    for (const { id } of world.gateways) {
      if (isTold) world.network.reset(id, machine.id);
      world.network.strand(id, machine.id, true);
    }
  }

  /** It is still away, or what goes with its return is not over. */
  get isOpen(): boolean {
    return this.world.stranded !== undefined || this.isUnderWay;
  }

  /** Once faults have ended; `isHeld`: the operator still has orders to give. */
  look(isHeld: boolean): void {
    const { nowMs } = this.world.scheduler;
    if (this.world.stranded !== undefined) this.script ??= this.comeBack(this.world.stranded);
    if (isHeld) this.busyMs = nowMs;
    while (this.script !== undefined && (typeof this.wait === 'number' ? nowMs >= this.waitEndsMs : this.wait() || nowMs >= this.waitEndsMs)) {
      const { done, value } = this.script.next();
      if (done === true) {
        this.script = undefined;
        this.isUnderWay = false;
        return;
      }
      this.wait = value;
      this.waitEndsMs = nowMs + (typeof value === 'number' ? value : this.isUnderWay ? PATIENCE_MS : Infinity);
    }
  }

  private *comeBack(machine: StoreMachine): Generator<Wait, void, void> {
    const { world, extras, prng } = this;
    const { leaseMs, replaceAfterMs } = world.plan;
    yield prng.pick([0, replaceAfterMs + TOLD_MS]);
    yield () => world.scheduler.nowMs - this.busyMs > IDLE_MS;
    this.isUnderWay = true;
    if (prng.below(6) === 0) world.killStore(machine);
    else if (prng.below(4) === 0) world.stopStore(machine, 0, true);
    extras.holdMail(HELD_MS);
    const letters = this.mail();
    yield () => letters.every(({ outcome }) => outcome !== 0);
    const how = prng.pick(RETURNS);
    const isEarly = prng.below(2) === 0;
    machine.process.trace(`comes back, ${how}`);
    if (isEarly) this.heal(machine);
    const down = how === 'killed' ? this.some() : how === 'rescued' ? [prng.pick(world.gateways)] : [];
    for (const gateway of down) {
      world.keptDown.add(gateway.node);
      world.killGateway(gateway);
    }
    if (how === 'others cut off') this.holdOthers(machine, true);
    if (how === 'others restart') for (const other of world.stores) if (other !== machine) world.killStore(other);
    yield how === 'rescued' ? () => this.areTaken(down) : prng.below(PAUSE_MS);
    if (!isEarly) this.heal(machine);
    yield prng.below(PAUSE_MS);
    world.keptDown.clear();
    if (how === 'others cut off') this.holdOthers(machine, false);
    yield prng.below(2 * leaseMs);
    extras.holdMail(0);
    if (letters.some((letter) => letter.isAccepted)) extras.fire('strand-store');
  }

  private heal(machine: StoreMachine): void {
    const { world } = this;
    world.stranded = undefined;
    world.returned = machine;
    world.lostStores.delete(machine.id);
    for (const { id } of world.gateways) world.network.strand(id, machine.id, false);
    world.startStore(machine);
  }

  private mail(): Letter[] {
    const { world, extras, prng } = this;
    return world.gateways.flatMap((gateway) => world.plan.queues.flatMap(({ name }) => extras.send(gateway, 1 + prng.below(LETTERS_MAX), name)));
  }

  /** All gateways, or some. */
  private some(): readonly GatewayMachine[] {
    const { gateways } = this.world;
    return this.prng.below(2) === 0 ? gateways : gateways.filter(() => this.prng.below(2) === 0);
  }

  private areTaken(down: readonly GatewayMachine[]): boolean {
    return down.every(({ gatewayId }) => this.world.gateways.some((other) => other.gatewayId !== gatewayId && other.core?.registry.partitions.some(({ identity }) => identity.ownerId === gatewayId) === true));
  }

  /** What all other stores and the gateways send one another waits. */
  private holdOthers(machine: StoreMachine, held: boolean): void {
    const { network, gateways, stores } = this.world;
    for (const gateway of gateways) {
      for (const store of stores) {
        if (store === machine) continue;
        network.holdRequests(gateway.id, store.id, held);
        network.holdAnswers(gateway.id, store.id, held);
      }
    }
  }
}
