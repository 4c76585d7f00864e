/**
 * While the register is away, or takes no change, for all or for its holder, a partition whose holder lives and reaches all copies that
 * count is delivered as before: nothing that was begun with the register, as a hand-back, ends the right to deliver.
 *
 *   a look, with the register   / who holds the record's term, by partition
 *   a look, without             / that process and its copies undisturbed for GRACE_MS: it may deliver
 */
import type { Term } from '../../../src/protocol/partition-record.js';
import { isSameTerm } from '../../../src/protocol/partition-record.js';
import { HolderState } from '../../../src/recovery/ownership/holder.js';
import { PropertyBroken } from './property-broken.js';
import type { Part } from './sim-process.js';
import type { World } from './world.js';

const LOOK_MS = 200;
/** A link that was cut is made again, and what was sent to the register has waited long enough. */
const GRACE_MS = 3000;
/** As long as a holder believes in a register that has answered. */
const JUST_MS = 3000 + LOOK_MS;

interface Held {
  readonly part: Part;
  readonly term: Term;
  /** Its state and the lives of the stores of its copies, as they were at the last look; and since when nothing has disturbed them. */
  lives: string;
  quietMs: number;
  /** The first look without the register. */
  awayMs: number;
}

export class OutageWatch {
  readonly #world: World;
  readonly #held = new Map<string, Held>();

  constructor(world: World) {
    this.#world = world;
    this.#lookLater();
  }

  #lookLater(): void {
    this.#world.events.after(LOOK_MS, () => {
      for (const { partition } of this.#world.partitions) this.#look(partition);
      this.#lookLater();
    });
  }

  #look(partition: string): void {
    const held = this.#held.get(partition);
    if (held !== undefined && this.#isAway(held.part)) {
      const truth = this.#world.custody.truth(partition);
      const stands = truth !== undefined && isSameTerm(held.term, truth.term) && held.part.process.isAlive
        && this.#world.register.record(partition) === truth;
      if (stands) this.#check(held, partition);
      else this.#held.delete(partition);
      return;
    }
    const part = this.#holderOf(partition);
    if (part === undefined) this.#held.delete(partition);
    else {
      const { term } = part.holder;
      const { nowMs } = this.#world.events;
      this.#held.set(partition, { part, term, lives: '', quietMs: nowMs, awayMs: Infinity });
    }
  }

  /**
   * Not one that has yet to read what operators have decided: it starts nothing before (17). Nor one that has read
   * too little to know its history: if its source goes and comes back, the takeover begins anew, by the register.
   */
  #holderOf(partition: string): Part | undefined {
    const { custody } = this.#world;
    const truth = custody.truth(partition);
    if (truth === undefined) return undefined;
    return this.#world.partsOf(partition).find(({ holder }) =>
      holder.set?.isHistoryKnown === true && holder.hasRules && isSameTerm(holder.term, truth.term));
  }

  #isAway({ process }: Part): boolean {
    const { register } = this.#world;
    return register.isAway || register.refusesChanges || register.cutOff.has(process.key);
  }

  #check(held: Held, partition: string): void {
    const world = this.#world;
    const { holder, process } = held.part;
    held.awayMs = Math.min(held.awayMs, world.events.nowMs);
    // A source died just when the register went, or while it takes no change and says so only then: the takeover
    // has begun anew, and can't go on.
    const isJust = world.events.nowMs - held.awayMs < JUST_MS || world.register.refusesChanges;
    if (holder.state === HolderState.CLAIMING && isJust) {
      this.#held.delete(partition);
      return;
    }
    const lives = this.#livesOf(held.part, partition);
    // A person has given up its copies, while none could be reached: what it read is dropped.
    if (holder.state === HolderState.FOUNDING && lives === '') {
      this.#held.delete(partition);
      return;
    }
    // What ends is empty: there is nothing to deliver.
    if (process.holdings?.isGivenToNobody(partition) === true) {
      this.#held.delete(partition);
      return;
    }
    if (lives !== held.lives || lives === '' || process.isFrozen || holder.set?.isEmptyPossible === true) {
      held.lives = lives;
      held.quietMs = world.events.nowMs;
    }
    if (world.events.nowMs - held.quietMs < GRACE_MS) return;
    world.count('register away, served');
    if (holder.mayDeliver(process.now())) return;
    throw new PropertyBroken(`register away: nobody delivers ${world.describe(partition)}`);
  }

  /** Of all copies that may count, and what it is about: a hand-back pauses. '' when one of them can't be reached. */
  #livesOf({ holder, process }: Part, partition: string): string {
    const world = this.#world;
    const counted = holder.set?.rows.filter((row) => row.isPossible) ?? world.custody.truth(partition)?.members ?? [];
    const lives: string[] = [String(holder.state)];
    for (const { storeId, bootId } of counted) {
      const store = world.stores.find((each) => each.storeId === storeId);
      const isThere = store?.isUp === true && store.bootId === bootId && !store.isFrozen
        && !world.isCutOff(process.self.gatewayId, storeId);
      if (!isThere) return '';
      lives.push(`${storeId}/${String(store.life)}`);
    }
    return lives.join(' ');
  }
}
