/**
 * THE END OF A PARTITION that nobody needs any more: an orphan (orphans.ts) whose mail is all delivered, or
 * one of a retired gateway. Its record must not be deleted while anything of it may come back: a store that
 * still has a copy, or was told of it as it was, would be believed over a register that knows nothing (rule
 * 15 of docs/model), and what was delivered long ago would be delivered again. So, in this order:
 *
 *   1  its holder is alone with it, has it empty for a while, takes nothing new for it, and every member has
 *      acknowledged all (rule 13): it lets its leases go, forgets it, and changes the record by
 *      compare-and-set: held by nobody. As members stand the copies that there may still be: those of the
 *      record before, and those that had left and were not told, under whatever holder (`left`). What was
 *      sent and is not settled is settled first, as with a hand-back
 *   2  every store that is known, or that the record names, is told of that record, and drops what it has of
 *      the partition; one that is away, or not known here, is waited for, however long: the record stays
 *      meanwhile, and costs its few hundred bytes
 *   3  only when each has said that it keeps it: the record is deleted, by compare-and-set on what says
 *      that it ended
 *
 *   a disk is found late: a copy of a boot that passed for gone lies at a store (unrecorded.ts), and others
 *     say that the partition has ended ─► 2, without a record; else it would be mail when nobody knows that
 *
 *   a store of those is away, and an operator gives it up ─► its name, with partition and term of its end,
 *     into rules/given-up/STORE (given-up-rules.ts), known to have been written; it is waited for no more (3)
 *   that store is back ─ told of each ─► it drops what that end knew; then the lines go
 *
 * Whoever dies in between is followed by another gateway of the group: steps 2 and 3 are done by all that
 * meet the record, one after the other. A configuration that has the partition again may begin it at any
 * point: above the epoch of its end, which the record or the stores tell, and empty. Its record says of the
 * copies that were to be dropped that they left: who was not told of this end is named by the next one.
 */
import { encodeTell } from '../../protocol/messages/tell.js';
import type { Told } from '../../protocol/messages/told.js';
import { TELL } from '../../protocol/message-types.js';
import type { Packer } from '../../platform/ports.js';
import type { PartitionRecord } from '../../protocol/partition-record.js';
import type { EndedCopy, RetiredRule } from '../../register/records.js';
import type { Mirrors } from '../mirror/mirrors.js';
import type { StorePort } from '../mirror/link/store-port.js';
import { endedBy } from './given-up-rules.js';
import type { OwnershipRegister } from './ownership-register.js';

export interface EndedPorts {
  readonly packer: Packer;
  readonly mirrors: Pick<Mirrors, 'stores' | 'storeOf' | 'askFlush'>;
  readonly register: Pick<
    OwnershipRegister, 'partition' | 'deleteEnded' | 'givenUp' | 'addGivenUp' | 'removeGivenUp'
  >;
}

interface Ending {
  readonly record: PartitionRecord;
  /** When it is our turn, and each time again. */
  nextMs: number;
  /** Boots of stores that know. */
  readonly told: Map<string, string>;
}

/** A store that was given up is back. */
interface Returned {
  readonly bootId: string;
  readonly told: Set<string>;
  nextMs: number;
}

/** A partition that has ended, but for stores that are away: one of them may have a copy. */
export interface UntoldEnd {
  readonly partition: string;
  readonly stores: readonly string[];
}

/** What became of an order that gives up stores of which partitions that have ended wait. */
export interface GivenUpEnds {
  /** These wait for none of them any more. */
  readonly ended: readonly string[];
  /** Why not all: '' when there is nothing to be said. */
  readonly why: string;
}

/** Told, and asked to be deleted, again after so long. */
const AGAIN_MS = 1_000;
/** So long after each other gateways of a group take it up. */
const TURN_MS = 5_000;

export class EndedPartitions {
  readonly #ports: EndedPorts;
  readonly #endings = new Map<string, Ending>();
  readonly #returned = new Map<string, Returned>();

  constructor(ports: EndedPorts) {
    this.#ports = ports;
  }

  /**
   * Of a partition whose record says that it has ended; `turn` is our place among those that see it,
   * from 0 on.
   */
  goOn(partition: string, record: PartitionRecord, turn: number, nowMs: number): void {
    let ending = this.#endings.get(partition);
    if (ending?.record.epoch !== record.epoch) {
      ending = { record, nextMs: nowMs + turn * TURN_MS, told: new Map() };
      this.#endings.set(partition, ending);
    }
    if (nowMs < ending.nextMs) return;
    ending.nextMs = nowMs + AGAIN_MS;
    const { mirrors, register } = this.#ports;
    for (const store of mirrors.stores) {
      if (store.isUp && ending.told.get(store.storeId) !== store.bootId) this.#tell(store, partition, record);
    }
    const isOpen = this.#untold(partition, ending).length > 0;
    if (!isOpen && register.partition(partition)?.isEnded === true) register.deleteEnded(partition);
  }

  /** Stores that were given up with copies of partitions that have ended, and are back. */
  tick(nowMs: number): void {
    const { mirrors, register } = this.#ports;
    for (const [storeId, copies] of register.givenUp()) {
      const store = mirrors.storeOf(storeId);
      if (store?.isUp !== true) {
        this.#returned.delete(storeId);
        continue;
      }
      const returned = this.#returnedAt(store, nowMs);
      if (nowMs < returned.nextMs) continue;
      returned.nextMs = nowMs + AGAIN_MS;
      const open = copies.filter((copy) => !returned.told.has(keyOf(copy)));
      for (const copy of open) this.#tell(store, copy.partition, endedBy(copy));
      if (open.length === 0) register.removeGivenUp(storeId, copies);
    }
  }

  /** Partitions that are told of everywhere but at stores that are away. */
  untold(): readonly UntoldEnd[] {
    const { mirrors } = this.#ports;
    const ends: UntoldEnd[] = [];
    for (const [partition, ending] of this.#endings) {
      const stores = this.#untold(partition, ending);
      const isAway = stores.every((storeId) => mirrors.storeOf(storeId)?.isUp !== true);
      if (stores.length > 0 && isAway) ends.push({ partition, stores });
    }
    return ends;
  }

  /** These stores do not come back: partitions that wait for none but them end without. */
  giveUp(storeIds: readonly string[], by: RetiredRule, done: (result: GivenUpEnds) => void): void {
    const ends = this.untold().filter(({ stores }) => stores.every((storeId) => storeIds.includes(storeId)));
    const wanted = storeIds.map(
      (storeId) => [storeId, ends.filter(({ stores }) => stores.includes(storeId))] as const,
    )
      .filter(([, of]) => of.length > 0);
    let left = wanted.length;
    let why = '';
    const failed = new Set<string>();
    if (left === 0) return done({ ended: [], why });
    for (const [storeId, of] of wanted) {
      const copies = of.flatMap(({ partition }) => this.#copyOf(partition));
      this.#ports.register.addGivenUp(storeId, by, copies, (trouble, waiting) => {
        if (trouble !== '') why = `${storeId}: ${trouble}`;
        for (const { partition } of waiting) failed.add(partition);
        left -= 1;
        const ended = ends.map(({ partition }) => partition).filter((name) => !failed.has(name));
        if (left === 0) done({ ended, why });
      });
    }
  }

  onTold({ storeId, bootId }: StorePort, { partition, epoch }: Told): void {
    const ending = this.#endings.get(partition);
    // Who does not keep it has a copy of what it was told and this end does not know: that is met without a
    // record, when the record of this end is gone (unrecorded.ts).
    if (ending?.record.epoch === epoch) ending.told.set(storeId, bootId);
    const returned = this.#returned.get(storeId);
    // Who knows something newer has nothing of what has ended.
    if (returned?.bootId === bootId) returned.told.add(keyOf({ partition, epoch }));
  }

  /** These stores, in the boots that are up, were told that it has ended. */
  isToldAt(storeIds: readonly string[], partition: string): boolean {
    const told = this.#endings.get(partition)?.told;
    return storeIds.every((storeId) => told?.get(storeId) === this.#ports.mirrors.storeOf(storeId)?.bootId);
  }

  forget(partition: string): void {
    this.#endings.delete(partition);
  }

  /** Stores that may have a copy, and were not told that it is none; but for those given up. */
  #untold(partition: string, { record, told }: Ending): readonly string[] {
    const { mirrors } = this.#ports;
    // One that is down when this process starts has no key to be found by.
    const storeIds = new Set([...mirrors.stores, ...record.members].map(({ storeId }) => storeId));
    return [...storeIds].filter((storeId) => {
      const store = mirrors.storeOf(storeId);
      if (store?.isUp === true) return told.get(storeId) !== store.bootId;
      // Who was told keeps it as long as its boot lasts.
      return !told.has(storeId) && !this.#isGivenUp(storeId, partition, record.epoch);
    });
  }

  #isGivenUp(storeId: string, partition: string, epoch: number): boolean {
    const copies = this.#ports.register.givenUp().get(storeId) ?? [];
    return copies.some((copy) => copy.partition === partition && copy.epoch === epoch);
  }

  #copyOf(partition: string): readonly EndedCopy[] {
    const record = this.#endings.get(partition)?.record;
    if (record === undefined) return [];
    return [{ partition, epoch: record.epoch, nonce: record.term.nonce, line: [...record.line] }];
  }

  #returnedAt({ storeId, bootId }: StorePort, nowMs: number): Returned {
    const known = this.#returned.get(storeId);
    if (known?.bootId === bootId) return known;
    const returned = { bootId, told: new Set<string>(), nextMs: nowMs };
    this.#returned.set(storeId, returned);
    return returned;
  }

  #tell(store: StorePort, partition: string, record: PartitionRecord): void {
    store.request(TELL, encodeTell(this.#ports.packer, { partition, record, isOut: true }), [], 0);
    this.#ports.mirrors.askFlush();
  }
}

function keyOf({ partition, epoch }: { readonly partition: string; readonly epoch: number }): string {
  return `${partition} ${String(epoch)}`;
}
