/**
 * THE END OF A PARTITION that nobody needs any more: an orphan (orphans.ts) whose mail is all delivered, or
 * one of a retired gateway. Its record must not be deleted while anything of it may come back: a store that
 * still has a copy, or was told of it as it was, would be believed over a register that knows nothing (rule
 * 15 of docs/model), and what was delivered long ago would be delivered again. So, in this order:
 *
 *   1  its holder is alone with it, has it empty for a while, takes nothing new for it, and every member has
 *      acknowledged all (rule 13): it lets its leases go, forgets it, and changes the record by
 *      compare-and-set: held by nobody. As members stand the copies that there may still be: those of the
 *      record before, and those that had left and were not told. What was sent and is not settled is settled
 *      first, as with a hand-back
 *   2  every store that is known, or that the record names, is told of that record, and drops what it has of
 *      the partition; one that is away, or not known here, is waited for, however long: the record stays
 *      meanwhile, and costs its few hundred bytes
 *   3  only when each has said that it keeps it: the record is deleted, by compare-and-set on what says
 *      that it ended
 *
 * Whoever dies in between is followed by another gateway of the group: steps 2 and 3 are done by all that
 * meet the record, one after the other. A configuration that has the partition again may begin it at any
 * point: above the epoch of its end, which the record or the stores tell, and empty.
 */
import { encodeTell } from '../../protocol/messages/tell.js';
import type { Told } from '../../protocol/messages/told.js';
import { TELL } from '../../protocol/message-types.js';
import type { Packer } from '../../platform/ports.js';
import type { PartitionRecord } from '../../protocol/partition-record.js';
import type { Mirrors } from '../mirror/mirrors.js';
import type { StorePort } from '../mirror/store-port.js';
import type { OwnershipRegister } from './ownership-register.js';

export interface EndedPorts {
  readonly packer: Packer;
  readonly mirrors: Mirrors;
  readonly register: OwnershipRegister;
}

interface Ending {
  readonly epoch: number;
  /** When it is our turn, and each time again. */
  nextMs: number;
  /** Boots of stores that know. */
  readonly told: Map<string, string>;
}

/** Told, and asked to be deleted, again after so long. */
const AGAIN_MS = 1_000;
/** So long after each other gateways of a group take it up. */
const TURN_MS = 5_000;

export class EndedPartitions {
  readonly #ports: EndedPorts;
  readonly #endings = new Map<string, Ending>();

  constructor(ports: EndedPorts) {
    this.#ports = ports;
  }

  /**
   * Of a partition whose record says that it has ended; `turn` is our place among those that see it,
   * from 0 on.
   */
  goOn(partition: string, record: PartitionRecord, turn: number, nowMs: number): void {
    let ending = this.#endings.get(partition);
    if (ending === undefined || ending.epoch !== record.epoch) {
      ending = { epoch: record.epoch, nextMs: nowMs + turn * TURN_MS, told: new Map() };
      this.#endings.set(partition, ending);
    }
    if (nowMs < ending.nextMs) return;
    ending.nextMs = nowMs + AGAIN_MS;
    const { mirrors, register } = this.#ports;
    // One that is down when this process starts has no key to be found by.
    let areAllTold = record.members.every(({ storeId }) => mirrors.storeOf(storeId) !== undefined);
    for (const store of mirrors.stores) {
      if (store.isUp && ending.told.get(store.storeId) === store.bootId) continue;
      areAllTold = false;
      if (store.isUp) this.#tell(store, partition, record);
    }
    if (areAllTold && register.partition(partition)?.isEnded === true) register.deleteEnded(partition);
  }

  onTold({ storeId, bootId }: StorePort, { partition, epoch, isKept }: Told): void {
    const ending = this.#endings.get(partition);
    if (isKept && ending?.epoch === epoch) ending.told.set(storeId, bootId);
  }

  forget(partition: string): void {
    this.#endings.delete(partition);
  }

  #tell(store: StorePort, partition: string, record: PartitionRecord): void {
    store.request(TELL, encodeTell(this.#ports.packer, { partition, record, isOut: true }), [], 0);
    this.#ports.mirrors.askFlush();
  }
}
