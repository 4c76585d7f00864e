/**
 * Copies spread evenly over the stores that there are, by weight: a new store takes its part, by itself and
 * slowly, or now by an operator's order (`twinpost rebalance`).
 *
 *   by itself   a store has less than half of its part ─► one copy at a time, a pause behind each, paced
 *   ordered     a few copies side by side, as fast as the links allow, until nothing is left to move
 *   misplaced   a copy on the gateway's own host, as a hand-back brings it: before all others, by itself, as
 *               fast as by order, whatever else lacks a copy: its mail is on fewer machines than it should be
 *
 * A copy moves as it does from a drained store: filled at its new store, then replaced in one change of the
 * record (recovery/ownership/partition-set.ts). Nothing moves while any partition here lacks a copy; a move
 * that is under way is given up when its partition loses one, or its new store goes: the old copy has stayed
 * a member all the while.
 *
 * It comes to an end, and does not swing: a copy moves only if its new store has less for its weight, that
 * copy included, than the old one had; so the way back never does.
 */
import type { EventLog } from '../../../platform/ports.js';
import type { Mirrors } from '../mirrors.js';
import type { Partition } from './partition.js';
import type { RefillPace } from '../feed/refill-pace.js';
import type { StorePort } from '../link/store-port.js';

export interface RebalanceOptions {
  /** By itself no faster than this; 0: never by itself. */
  readonly bytesPerSecond: number;
}

export interface RebalancePorts {
  readonly log: EventLog;
  readonly mirrors: Mirrors;
  readonly pace: RefillPace;
}

/** One copy that goes to another store. */
export interface CopyMove {
  readonly partition: Partition;
  readonly from: string;
  readonly to: string;
}

interface Moving extends CopyMove {
  readonly isMisplaced: boolean;
  /** When its new copy was last seen being filled. */
  fedMs: number;
}

/** Side by side, when ordered, or misplaced. */
const ORDERED_MAX = 4;
/** Behind each copy that moved by itself, and each that did not arrive. */
const PAUSE_MS = 5_000;
/** By itself, when a store has had so little for so long: one that comes and goes is left alone. */
const SETTLED_MS = 30_000;
const LOOK_MS = 1_000;
const FEW_SHARE = 0.5;
/**
 * Without a new copy that is filled the old one stays. Before its partition would let
 * it go (partition-set.ts).
 */
const UNFED_MS = 500;

const LEAVES = 'a copy leaves the host of this gateway, with which it would be lost';
const STAYS =
  'a copy stays where it is: its partition has lost another one, or its new store takes none';

export class Rebalance {
  readonly #options: RebalanceOptions;
  readonly #ports: RebalancePorts;
  /** By the name of the partition. */
  readonly #moving = new Map<string, Moving>();
  #isOrdered = false;
  /** A store was found much emptier than others: all is made even before it is looked again. */
  #isEvening = false;
  #unevenSinceMs = Infinity;
  #nextMs = -Infinity;
  #lookMs = -Infinity;

  constructor(options: RebalanceOptions, ports: RebalancePorts) {
    this.#options = options;
    this.#ports = ports;
  }

  /** Under way. */
  get moving(): readonly CopyMove[] {
    return [...this.#moving.values()];
  }

  /** The copy is on its way to another store. */
  isLeaving(partition: string, storeId: string): boolean {
    return this.#moving.get(partition)?.from === storeId;
  }

  /** Where the partition's next copy is to go; '' when that is all the same. */
  targetOf(partition: string): string {
    return this.#moving.get(partition)?.to ?? '';
  }

  /** An operator wants it now. */
  order(): void {
    this.#isOrdered = true;
    this.#nextMs = -Infinity;
    this.#lookMs = -Infinity;
  }

  /** Why nothing moves now although it should; '' when it may. */
  why(): string {
    const { mirrors } = this.#ports;
    for (const partition of mirrors.all()) {
      if (!this.#moving.has(partition.name) && !isComplete(partition, mirrors.options.replicas)) {
        return `${partition.name} does not have all its copies in step`;
      }
    }
    return '';
  }

  /** All that is left to be moved, in order. What is under way counts as done. */
  plan(): readonly CopyMove[] {
    const { mirrors } = this.#ports;
    const stores = mirrors.stores.filter((store) => mirrors.placement.mayTake(store));
    const at = new Map<string, Set<string>>();
    const load = new Map(stores.map(({ storeId }) => [storeId, 0]));
    const partitions = [...mirrors.all()].sort((a, b) => a.bytes - b.bytes);
    for (const { name, rows } of partitions) {
      const held = new Set(rows.filter((row) => row.isRecorded).map((row) => row.storeId));
      const move = this.#moving.get(name);
      if (move !== undefined && held.delete(move.from)) held.add(move.to);
      at.set(name, held);
      for (const storeId of held) if (load.has(storeId)) load.set(storeId, (load.get(storeId) ?? 0) + 1);
    }
    const moves: CopyMove[] = [];
    const settled = new Set(this.#moving.keys());
    for (;;) {
      const open = partitions.filter(({ name }) => !settled.has(name));
      const move = this.#misplacedMove(open, at, load, stores) ?? this.#nextMove(open, at, load, stores);
      if (move === undefined) return moves;
      moves.push(move);
      const { partition: { name }, from, to } = move;
      settled.add(name);
      at.get(name)?.delete(from);
      at.get(name)?.add(to);
      load.set(from, (load.get(from) ?? 0) - 1);
      load.set(to, (load.get(to) ?? 0) + 1);
    }
  }

  tick(nowMs: number): void {
    for (const move of this.#moving.values()) this.#goOn(move, nowMs);
    if (nowMs < this.#lookMs) return;
    this.#lookMs = nowMs + LOOK_MS;
    if (nowMs < this.#nextMs) return;
    const mayEven = this.#isWanted(nowMs) && this.why() === '';
    if (!mayEven && !this.#hasMisplaced()) return;
    const plan = this.plan();
    if (mayEven && plan.length === 0 && this.#moving.size === 0) {
      this.#isOrdered = false;
      this.#isEvening = false;
    }
    for (const move of plan) {
      const isMisplaced = this.#isMisplaced(move.from);
      const isReady = isMisplaced ? this.#mayLeave(move.partition) : mayEven;
      const most = isMisplaced || this.#isOrdered ? ORDERED_MAX : 1;
      if (isReady && this.#moving.size < most) this.#start({ ...move, isMisplaced, fedMs: nowMs });
    }
  }

  #isMisplaced(storeId: string): boolean {
    return this.#ports.mirrors.placement.isOnOwnHost(storeId);
  }

  #hasMisplaced(): boolean {
    for (const { rows } of this.#ports.mirrors.all()) {
      if (rows.some((row) => row.isRecorded && this.#isMisplaced(row.storeId))) return true;
    }
    return false;
  }

  #mayLeave(partition: Partition): boolean {
    return !partition.isLeaving && isComplete(partition, this.#ports.mirrors.options.replicas);
  }

  #isWanted(nowMs: number): boolean {
    const isUneven = this.#options.bytesPerSecond > 0 && this.#hasFew();
    if (!isUneven) this.#unevenSinceMs = Infinity;
    else if (this.#unevenSinceMs === Infinity) this.#unevenSinceMs = nowMs;
    if (isUneven && nowMs - this.#unevenSinceMs >= SETTLED_MS) this.#isEvening = true;
    return this.#isOrdered || this.#isEvening;
  }

  /** A store has less than half of its part of the copies. */
  #hasFew(): boolean {
    const { mirrors } = this.#ports;
    const { placement } = mirrors;
    const stores = mirrors.stores.filter((store) =>
      placement.mayTake(store) && !placement.isOnOwnHost(store.storeId));
    const weights = stores.reduce((sum, store) => sum + mirrors.placement.weightOf(store), 0);
    const copies = stores.reduce((sum, store) => sum + mirrors.copiesAt(store), 0);
    return stores.some((store) =>
      mirrors.copiesAt(store) < FEW_SHARE * copies * mirrors.placement.weightOf(store) / weights);
  }

  /** From the gateway's own host to the store with the least for its weight that can take it. */
  #misplacedMove(
    partitions: readonly Partition[], at: ReadonlyMap<string, ReadonlySet<string>>,
    load: ReadonlyMap<string, number>, stores: readonly StorePort[],
  ): CopyMove | undefined {
    const { placement } = this.#ports.mirrors;
    const share = (store: StorePort): number => (load.get(store.storeId) ?? 0) / placement.weightOf(store);
    const byShare = [...stores].sort((a, b) => share(a) - share(b));
    for (const partition of partitions) {
      const held = at.get(partition.name) ?? new Set();
      for (const from of held) {
        const target = this.#isMisplaced(from)
          ? byShare.find((store) => this.#mayMove(partition, held, from, store)) : undefined;
        if (target !== undefined) return { partition, from, to: target.storeId };
      }
    }
    return undefined;
  }

  /** From the store with the most for its weight to the one with the least that can take it. */
  #nextMove(
    partitions: readonly Partition[], at: ReadonlyMap<string, ReadonlySet<string>>,
    load: ReadonlyMap<string, number>, stores: readonly StorePort[],
  ): CopyMove | undefined {
    const { placement } = this.#ports.mirrors;
    const share = (store: StorePort, more: number): number =>
      ((load.get(store.storeId) ?? 0) + more) / placement.weightOf(store);
    const byShare = [...stores].sort((a, b) => share(a, 0) - share(b, 0));
    for (const source of [...byShare].reverse()) {
      for (const target of byShare) {
        if (share(target, 1) >= share(source, 0)) break;
        const partition = partitions.find((one) =>
          this.#mayMove(one, at.get(one.name), source.storeId, target));
        if (partition !== undefined) return { partition, from: source.storeId, to: target.storeId };
      }
    }
    return undefined;
  }

  /** No host would have two copies, nor the gateway's own one, nor that of the partition's owner. */
  #mayMove(
    { ownerId }: Partition, held: ReadonlySet<string> | undefined, from: string, target: StorePort,
  ): boolean {
    if (held?.has(from) !== true || held.has(target.storeId)) return false;
    const { stores, placement } = this.#ports.mirrors;
    const staying = stores.filter(({ storeId }) => storeId !== from && held.has(storeId));
    return placement.mayStandBeside(target, staying, ownerId);
  }

  #start(move: Moving): void {
    const { partition, from, to, isMisplaced } = move;
    this.#moving.set(partition.name, move);
    const isPaced = !this.#isOrdered && !isMisplaced;
    if (isPaced) this.#ports.pace.limit(partition, this.#options.bytesPerSecond);
    this.#ports.log.info('rebalance', isMisplaced ? LEAVES : 'a copy moves to a store that has fewer', {
      partition: partition.name, from, to, messages: partition.length,
      by: this.#isOrdered ? 'order' : 'itself',
    });
  }

  #goOn(move: Moving, nowMs: number): void {
    const { mirrors, log } = this.#ports;
    const { partition, from, to } = move;
    const { rows, set } = partition;
    const [old, young] = [from, to].map((id) => rows.find((row) => row.storeId === id));
    const isDone = young?.isRecorded === true && young.isInStep && old?.isRecorded !== true;
    // The new one took the place of a third that had to leave: this one would leave without a successor.
    const isTaken = young?.isRecorded === true && old?.isRecorded === true;
    if (young?.isFed === true) move.fedMs = nowMs;
    const target = mirrors.storeOf(to);
    const mayGoOn = !isTaken && !partition.isForgotten && !partition.isLeaving && target?.isUp === true
      && !mirrors.placement.isAvoided(to) && nowMs - move.fedMs < UNFED_MS
      && !rows.some((row) => row.isRecorded && !row.isInStep);
    if (mayGoOn && !isDone) return;
    this.#moving.delete(partition.name);
    this.#ports.pace.free(partition);
    if (!isDone || !(this.#isOrdered || move.isMisplaced)) this.#nextMs = nowMs + PAUSE_MS;
    if (isDone) return;
    if (!mirrors.placement.isAvoided(from)) set?.stay(from);
    log.warn('rebalance', STAYS, {
      partition: partition.name, from, to,
    });
  }
}

/** Nothing of it is missing, being filled, read, adopted or changed. */
function isComplete({ rows, set, isPartial, holder }: Partition, replicas: number): boolean {
  if (isPartial || holder.givenUp.length > 0 || set?.records.isSettled !== true) return false;
  return rows.length === replicas && rows.every((row) => row.isRecorded && row.isInStep && !row.isUnwanted);
}
