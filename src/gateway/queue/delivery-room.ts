/**
 * Memory for what becomes of deliveries in flight, and of mail whose time is up (G7): each may change its
 * entry, and a change is kept until every copy has it. So while memory is full beyond all that takes new
 * things, no more deliveries are in flight, and no more entries expire, than changes have room for. The
 * others wait: what is acknowledged makes room.
 *
 *   take: admits ─► taken (its room is promised) ─► settled (the change is counted now, the promise is over)
 *           └ no: the queue waits ─ look(): there is room ─► woken
 *
 *   an entry whose time is up: admitsExpiry ─► its change is counted at once
 *           └ no: it rests, and the next round of the sweep asks again
 *
 * What the stores of one partition do not acknowledge must not hold up the others for ever. So one delivery
 * at a time may always go, of a partition whose copies have all there is; and of each such partition one
 * expiry, in a room that is theirs.
 */
import type { Partition } from '../mirror/set/partition.js';
import { CHANGE_ROW_BYTES } from '../../protocol/change-rows.js';
import { SECTION_OVERHEAD_BYTES } from '../mirror/feed/turn-section.js';
import type { MailQueue } from './mail-queue.js';
import type { MemoryGauge } from './memory-gauge.js';
import { noteRoom } from './note.js';

/** A look wakes so many queues at most; each asks again. */
const WOKEN_PER_LOOK = 64;

export interface DeliveryRoomPorts {
  readonly memory: MemoryGauge;
  wake(queue: MailQueue): void;
}

export class DeliveryRoom {
  readonly #ports: DeliveryRoomPorts;
  readonly #waiting = new Set<MailQueue>();

  constructor(ports: DeliveryRoomPorts) {
    this.#ports = ports;
  }

  /** Whether one more with `room` for its note may be in flight; else its queue is woken later. */
  admits(queue: MailQueue, room: number): boolean {
    const { memory } = this.#ports;
    if (memory.admitsDelivery(room + CHANGE_BYTES) || this.#isOnlyOne(queue.partition)) return true;
    this.#waiting.add(queue);
    return false;
  }

  taken(recipientCount: number): void {
    this.#ports.memory.promisedBytes += changeBytes(recipientCount);
  }

  settled(recipientCount: number): void {
    this.#ports.memory.promisedBytes -= changeBytes(recipientCount);
  }

  /** Whether the end of an entry with `room` for its note may be decided, its time being up. */
  admitsExpiry({ ackedNumber, lastNumber }: Partition, room: number): boolean {
    const { memory } = this.#ports;
    const bytes = room + CHANGE_BYTES;
    return memory.admitsDelivery(bytes) || (ackedNumber >= lastNumber && memory.admitsExpiryAlone(bytes));
  }

  /** Called a few times in a tenth of a second. */
  look(): void {
    if (this.#waiting.size === 0) return;
    const isRoom = this.#ports.memory.admitsDelivery(CHANGE_BYTES);
    let woken = 0;
    for (const queue of this.#waiting) {
      if (!isRoom && !this.#isOnlyOne(queue.partition)) continue;
      this.#waiting.delete(queue);
      this.#ports.wake(queue);
      woken += 1;
      if (woken === WOKEN_PER_LOOK) return;
    }
  }

  forget(partition: Partition): void {
    for (const queue of this.#waiting) if (queue.partition === partition) this.#waiting.delete(queue);
  }

  #isOnlyOne(partition: Partition): boolean {
    return this.#ports.memory.promisedBytes === 0 && partition.ackedNumber >= partition.lastNumber;
  }
}

/** Of a change besides its note: its row, in a section of its own. */
const CHANGE_BYTES = CHANGE_ROW_BYTES + SECTION_OVERHEAD_BYTES;

function changeBytes(recipientCount: number): number {
  return noteRoom(recipientCount) + CHANGE_BYTES;
}
