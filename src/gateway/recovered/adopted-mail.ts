/**
 * Mail of a copy that was given up and is back, block by block: each entry is stored anew, under its id and
 * in its queue, as any mail is. It may be tried when every copy that counts has it (rule 16 of docs/model).
 *
 *   block ─ no credit, no memory ─► nothing of it is taken, it is asked for again
 *         ─ else: an entry that is not wanted, or of an id that its queue has ─► known: stored before
 *                 an entry whose checksum is wrong ─► damaged: another copy may have it sound
 *                 else ─► STORE, ANNOTATE with its note, in one section ─ at all copies ─► placed by its note
 *
 * It stands behind the mail that its queue took meanwhile: that came later, but is not held up for it (G3's
 * exception).
 */
import { formatMessageId } from '../../base/text-id.js';
import type { Crc32, EventLog } from '../../platform/ports.js';
import {
  ENTRY_ROW_BYTES, entryBodyBytes, entryCrc, entryHeadBytes, entryId, entryNoteBytes, entryNoteCrc,
  entryPosition, entryRoom,
} from '../../protocol/entry-rows.js';
import { ENTRY_CREDIT_BYTES } from '../mirror/set/partition.js';
import type { Partition } from '../mirror/set/partition.js';
import type { CommitWaiter } from '../mirror/wait-list.js';
import { ENTRY_BOOKKEEPING_BYTES } from '../queue/entries.js';
import type { Entries } from '../queue/entries.js';
import { EntryState } from '../queue/entry-table.js';
import type { MailQueue } from '../queue/mail-queue.js';
import type { MemoryGauge } from '../queue/memory-gauge.js';
import type { RecoveredQueues } from './recovered-queues.js';

const NO_BYTES = new Uint8Array(0);

export interface AdoptedMailPorts {
  readonly crc32: Crc32;
  readonly log: EventLog;
  readonly entries: Entries;
  readonly memory: MemoryGauge;
  readonly recovered: RecoveredQueues;
}

/** What came of a block. */
export interface AdoptedBlock {
  readonly stored: number;
  /** Positions of entries that can't be read. */
  readonly damaged: ReadonlySet<number>;
}

interface Stored {
  readonly queue: MailQueue;
  readonly row: number;
  readonly messageId: number;
}

/** Entries of one block: placed when every copy has them. */
class AdoptedEntries implements CommitWaiter {
  readonly stored: Stored[] = [];
  readonly #partition: Partition;
  readonly #ports: AdoptedMailPorts;
  readonly #onStored: () => void;

  constructor(partition: Partition, ports: AdoptedMailPorts, onStored: () => void) {
    this.#partition = partition;
    this.#ports = ports;
    this.#onStored = onStored;
  }

  onCommitted(): void {
    if (this.#partition.isForgotten) return;
    const { table } = this.#ports.entries;
    for (const { queue, row, messageId } of this.stored) {
      // An operator may have deleted it meanwhile.
      const isThere =
        table.index.find(messageId, queue.handle) === row && table.state(row) === EntryState.STORING;
      if (isThere) this.#ports.recovered.placeAdopted(queue, row);
    }
    this.#onStored();
  }
}

export class AdoptedMail {
  readonly #ports: AdoptedMailPorts;

  constructor(ports: AdoptedMailPorts) {
    this.#ports = ports;
  }

  /**
   * Takes a whole block or nothing: undefined when there is no room for it. `onStored` when every copy that
   * counts has it, maybe at once. `holderWallMs`: the clock that its times were written by, as it shows now;
   * 0: nobody knows. `isWanted` by position: the rest is in, from another copy.
   */
  take(
    partition: Partition, rows: Uint8Array, bodies: Uint8Array, holderWallMs: number,
    isWanted: (position: number) => boolean, onStored: () => void,
  ): AdoptedBlock | undefined {
    const view = new DataView(rows.buffer, rows.byteOffset, rows.byteLength);
    if (!this.#hasRoom(partition, view)) return undefined;
    this.#ports.recovered.beginAdopting(partition, holderWallMs);
    const adopted = new AdoptedEntries(partition, this.#ports, onStored);
    const damaged = new Set<number>();
    for (let offset = 0, at = 0; offset < view.byteLength; offset += ENTRY_ROW_BYTES) {
      const bodyBytes = entryBodyBytes(view, offset);
      const end = at + bodyBytes + entryHeadBytes(view, offset) + entryNoteBytes(view, offset);
      const position = entryPosition(view, offset);
      const entry = bodies.subarray(at, end);
      const isSound = !isWanted(position) || this.#store(partition, view, offset, entry, adopted);
      if (!isSound) damaged.add(position);
      at = end;
    }
    partition.awaitEnd(partition.lastNumber, adopted);
    return { stored: adopted.stored.length, damaged };
  }

  #hasRoom(partition: Partition, view: DataView): boolean {
    let bytes = 0;
    let creditBytes = 0;
    for (let offset = 0; offset < view.byteLength; offset += ENTRY_ROW_BYTES) {
      const own = entryBodyBytes(view, offset) + entryHeadBytes(view, offset) + entryRoom(view, offset);
      bytes += own + ENTRY_BOOKKEEPING_BYTES;
      creditBytes += own + ENTRY_CREDIT_BYTES;
    }
    if (partition.credit < creditBytes) {
      partition.askCredit(creditBytes);
      return false;
    }
    const { memory } = this.#ports;
    return memory.admits(bytes) && memory.admitsPassing(bytes + creditBytes);
  }

  /** `payload` is body ‖ head ‖ note. False when it is damaged. */
  #store(
    partition: Partition, view: DataView, offset: number, payload: Uint8Array, adopted: AdoptedEntries,
  ): boolean {
    const { entries, recovered, crc32, log } = this.#ports;
    const bodyBytes = entryBodyBytes(view, offset);
    const ownBytes = bodyBytes + entryHeadBytes(view, offset);
    const body = payload.subarray(0, bodyBytes);
    const head = payload.subarray(bodyBytes, ownBytes);
    const note = payload.subarray(ownBytes);
    const messageId = entryId(view, offset);
    const checksum = entryCrc(view, offset);
    if (crc32(payload.subarray(0, ownBytes), 0) !== checksum) {
      log.error('recovery', 'a message in a copy that was given up is damaged: its checksum is wrong', {
        partition: partition.name, queue_id: formatMessageId(messageId),
      });
      return false;
    }
    const noteCrc = entryNoteCrc(view, offset);
    const hasNote = note.length > 0 && crc32(note, 0) === noteCrc;
    const found = recovered.adoptedInto(partition, head, hasNote ? note : NO_BYTES);
    const { queue, arrivalSeconds, expirySeconds } = found;
    if (entries.table.index.find(messageId, queue.handle) !== 0) return true;
    const room = entryRoom(view, offset);
    const slot = entries.contents.storeOwn([body], bodyBytes, head, room);
    const row = entries.create(
      queue, messageId, slot, 0, bodyBytes, checksum, arrivalSeconds, expirySeconds, room,
    );
    entries.table.transition(row, EntryState.STORING);
    const position = partition.together(() => {
      const number = partition.store(messageId, 0, [body], bodyBytes, head, checksum, room);
      if (hasNote) partition.annotate(number, note, noteCrc);
      return number;
    });
    entries.table.position.set(row, position);
    if (hasNote) entries.setNote(row, note);
    queue.append(row, entries.bytes(row));
    adopted.stored.push({ queue, row, messageId });
    return true;
  }
}
