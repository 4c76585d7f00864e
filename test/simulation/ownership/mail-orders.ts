/**
 * The operator of the ownership world, over mail: holds queues by a rule in the register, holds, releases and deletes
 * single messages at their holder, and lets all go when faults have stopped.
 *
 *   hold of a queue   ─► rule in the register ─► told, or read by who takes over ─► its holder obeys: done
 *   hold, delete      ─► change by the holder of the message ─► acknowledged by all: done
 *   calm              ─► everything held is released, again and again until nothing is
 */
import { Prng } from '../../../src/base/prng.js';
import { isSameTerm } from '../../../src/protocol/partition-record.js';
import type { Part } from './sim-process.js';
import type { World } from './world.js';

const PERSON = 'person';
const LOOK_MS = 50;
/** An order that nobody has obeyed by then is not waited for any more; the rule stands. */
const PATIENCE_MS = 10_000;
const RELEASE_MS = 1000;

export class MailOrders {
  readonly #world: World;
  readonly #random: Prng;

  constructor(world: World) {
    this.#world = world;
    this.#random = new Prng(world.plan.seed * 32_452_843 + 17);
    this.#orderLater();
  }

  #orderLater(): void {
    const world = this.#world;
    world.events.after(this.#random.below(world.isCalm ? RELEASE_MS : 400), () => {
      if (world.isCalm) this.#releaseAll();
      else this.#order();
      this.#orderLater();
    });
  }

  #order(): void {
    const random = this.#random;
    const { partition } = random.pick(this.#world.partitions);
    switch (random.below(5)) {
      case 0: this.#holdQueue(partition); break;
      case 1: this.#releaseQueues(partition); break;
      case 2: this.#atHolder(partition, (part, id) => part.deleteByOrder(id)); break;
      case 3: this.#atHolder(partition, (part, id) => part.hold(id, true)); break;
      default: this.#atHolder(partition, (part, id) => part.hold(id, false));
    }
  }

  #atHolder(partition: string, order: (part: Part, id: number) => void): void {
    const part = this.#world.partsOf(partition).find(({ holder, process }) => holder.set !== undefined
      && holder.hasRules && !process.isFrozen);
    if (part !== undefined && part.entries.size > 0) order(part, this.#random.pick([...part.entries.keys()]));
  }

  // ── rules ───────────────────────────────────────────────────────────────────────────────────────

  #holdQueue(partition: string): void {
    const world = this.#world;
    const queue = this.#random.below(world.plan.queues);
    const untilMs = world.events.nowMs + PATIENCE_MS;
    world.register.request(PERSON, () => {
      world.register.setHeld(partition, (held) => new Set([...held, queue]));
      this.#tell(partition);
    }, () => { this.#awaitObeyed(partition, queue, untilMs); });
  }

  /** From when this is sent on, mail of these queues may go. */
  #releaseQueues(partition: string): void {
    const { register, custody } = this.#world;
    custody.queuesReleased(partition);
    if (register.rulesOf(partition).held.size === 0 && !this.#world.isCalm) return;
    register.request(PERSON, () => {
      register.setHeld(partition, () => new Set());
      // A hold that was obeyed since stands no more either.
      custody.queuesReleased(partition);
      this.#tell(partition);
    }, () => undefined);
  }

  /** Watches of the register: each hears of it soon, or not at all while it is cut off. */
  #tell(partition: string): void {
    const world = this.#world;
    for (const process of world.processes) {
      if (world.register.cutOff.has(process.key)) continue;
      world.events.after(1 + this.#random.below(100), () => {
        process.receive(() => { process.parts.get(partition)?.obey(world.register.rulesOf(partition)); });
      });
    }
  }

  /** Whoever holds the partition by the newest record obeys. */
  #awaitObeyed(partition: string, queue: number, untilMs: number): void {
    const world = this.#world;
    const { version, held } = world.register.rulesOf(partition);
    const truth = world.custody.truth(partition);
    if (!held.has(queue) || world.events.nowMs > untilMs) return;
    const isObeyed = truth !== undefined && world.partsOf(partition).some((part) => part.holder.set !== undefined
      && part.holder.hasRules && isSameTerm(part.holder.term, truth.term) && part.rules.version === version);
    if (!isObeyed) {
      world.events.after(LOOK_MS, () => { this.#awaitObeyed(partition, queue, untilMs); });
      return;
    }
    world.count('queue held');
    world.custody.queueHeld(partition, queue);
  }

  #releaseAll(): void {
    const world = this.#world;
    for (const { partition } of world.partitions) {
      this.#releaseQueues(partition);
      for (const part of world.partsOf(partition)) {
        if (part.holder.set === undefined || part.process.isFrozen) continue;
        for (const { id, isHeld } of part.entries.values()) if (isHeld) part.hold(id, false);
      }
    }
  }
}
