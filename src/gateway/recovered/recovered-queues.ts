/**
 * Partitions that come back from the stores: where recovery (src/recovery) meets queues and mirrors.
 *
 * It goes on at the number and digest of the copy that is read. Each entry says by its label which queue it
 * stands in. Entries become due as their blocks arrive, with their bodies or without; where memory is too
 * short for all envelopes, of an entry only its place in its queue is kept (absent-bodies.ts). A report that
 * is owed is made when every entry is here.
 */
import { DELAY_SECONDS_MAX } from '../../admin-api/queue-orders.js';
import { joinCrc } from '../../base/crc-join.js';
import { formatMessageId } from '../../base/text-id.js';
import type { Mirrors } from '../mirror/mirrors.js';
import type { Partition } from '../mirror/set/partition.js';
import type { Clock, Crc32, EventLog, Packer } from '../../platform/ports.js';
import { FLAG_BODY_ABSENT, FLAG_SHARED } from '../../protocol/change-rows.js';
import type { Fenced } from '../../protocol/messages/fenced.js';
import type { Fetched } from '../../protocol/messages/fetched.js';
import {
  ENTRY_ROW_BYTES, entryBodyBytes, entryBodyInFrame, entryCrc, entryFlags, entryHeadBytes, entryId,
  entryNoteBytes, entryNoteCrc, entryPosition, entryRoom,
} from '../../protocol/entry-rows.js';
import { TEXT_ROW_BYTES, textBytes, textOf, textPosition } from '../../protocol/text-rows.js';
import type { DueTimes } from '../queue/due-times.js';
import type { Entries } from '../queue/entries.js';
import { ENTRY_BOOKKEEPING_BYTES } from '../queue/entries.js';
import { EntryState, NEVER_SECONDS } from '../queue/entry-table.js';
import {
  headArrivalWallMs, headExpirySeconds, headFlags, headLabelAt, isKnownHead,
} from '../queue/envelope.js';
import { labelOf, readLabel } from '../queue/label.js';
import type { QueueName } from '../queue/label.js';
import type { MailQueue } from '../queue/mail-queue.js';
import type { Note } from '../queue/note.js';
import { addedSecondsIn, decodeNote, delayedUntilIn, noteRoom, TO_TRY, triesIn } from '../queue/note.js';
import type { MemoryGauge } from '../queue/memory-gauge.js';
import type { MessageHolds } from '../queue/message-holds.js';
import type { QueueRegistry } from '../queue/queue-registry.js';
import type { Reports } from '../queue/reports/report-job.js';
import type { Settlement } from '../queue/settlement.js';
import type { Route, Router } from '../mail-types.js';
import type { WallFrame } from '../queue/wall-frame.js';

export interface RecoveredOptions {
  /** The longest that a message of any class may live, and that a retry is put off. */
  readonly lifetimeMs: number;
  readonly longestRetryMs: number;
}

export interface RecoveredPorts {
  readonly clock: Clock;
  /** Of due times and expiry. */
  readonly frame: WallFrame;
  readonly crc32: Crc32;
  readonly packer: Packer;
  readonly log: EventLog;
  readonly registry: QueueRegistry;
  readonly mirrors: Mirrors;
  readonly entries: Entries;
  readonly router: Router;
  readonly dueTimes: DueTimes;
  readonly settlement: Settlement;
  readonly reports: Reports;
  readonly holds: MessageHolds;
  readonly memory: MemoryGauge;
  wake(queue: MailQueue): void;
  /** The body of an entry came later than its envelope. It may be over. */
  onBody(partition: Partition, row: number): void;
}

/** A partition that is not whole yet. */
interface Open {
  /** By how much our frame is ahead of that of its holder before us. */
  readonly aheadMs: number;
  /** Entries that are still to come. */
  left: number;
}

interface EntryTimes {
  readonly arrivalSeconds: number;
  readonly expirySeconds: number;
}

/** Where an entry of a copy that was given up goes. */
export interface AdoptedPlace {
  readonly queue: MailQueue;
  readonly arrivalSeconds: number;
  readonly expirySeconds: number;
}

const NO_BYTES = new Uint8Array(0);
/** Clocks that are kept by NTP differ by far less. */
const CLOCKS_DIFFER_MS = 10_000;
const CLOCKS_DIFFER =
  'the clock of the process that had this queue differs from ours: due times and expiry go by its clock';

const BODY_DAMAGED =
  'a message is held: its body is gone, or its checksum is wrong, at the last mirror that has it';
const CHECKSUM_WRONG = 'a message is held: its checksum is wrong at the last mirror that has it';
const NO_ROUTE =
  'no route leads out of this queue any more: its mail is held; add a route with its name or move the mail';
const KNOWN =
  'a partition is known: bodies come from the stores as they are needed, and as memory allows';

const SHARED_LOOKED_MIN = 4096;
/** Reports of a partition that is whole, begun in a tick: some 10 µs each, and there may be a million. */
const BEGUN_PER_TICK = 256;

/** A report that it owes needs it here. */
function isMovable(note: Uint8Array): boolean {
  return note.length === 0 || decodeNote(note)?.owedChange === 0;
}

/** Its body is still at the store. */
function isWithoutBody(view: DataView, offset: number): boolean {
  return (entryFlags(view, offset) & FLAG_BODY_ABSENT) !== 0;
}

/** Names what is shared: message ids are unique among those of one owner. */
function sharedKey(ownerId: string, messageId: number): string {
  return `${ownerId}/${String(messageId)}`;
}

/** For entries whose label can't be read: they are held. */
const UNREADABLE: QueueName = { queueClass: 'mail', name: 'unreadable' };

/** Nothing is sent by it: the mail of its queue is held. */
function noRoute({ queueClass, name }: QueueName): Route {
  return {
    queueName: name, queueClass, label: labelOf({ queueClass, name }),
    nextHop: { protocol: 'smtp', host: 'invalid', port: 25 }, ordering: 'fifo', concurrency: 1, lengthMax: 0,
  };
}

export class RecoveredQueues {
  /** Entries taken in so far, for progress and metrics. */
  entryCount = 0;
  readonly #options: RecoveredOptions;
  readonly #ports: RecoveredPorts;
  /** Shared bodies met so far: owner and message id → content row. Only during recovery. */
  readonly #sharedBodies = new Map<string, number>();
  /** With so many, those are looked for that nobody has any more. */
  #sharedLooked = SHARED_LOOKED_MIN;
  /** Entries of queues taken over since the last block came, and their bytes. */
  readonly #expected = { entries: 0, bytes: 0 };
  /** Partitions taken over, of which entries are still to come. */
  readonly #open = new Map<Partition, Open>();
  #left = 0;
  /** Of the block that is taken in: memory has room for envelopes. */
  #hasRoomForHeads = true;
  /** Of partitions that take in a copy which was given up (adopted-mail.ts), the same. */
  readonly #adopting = new Map<Partition, number>();
  /** Sources that owe a report of which nothing is made, by row: begun once their partition is whole. */
  readonly #owing = new Map<Partition, Map<number, MailQueue>>();
  /** The queue that the last entry stands in: most follow others of theirs. */
  #lastQueue: MailQueue | undefined;
  readonly #unrouted = new Map<string, Route>();

  constructor(options: RecoveredOptions, ports: RecoveredPorts) {
    this.#options = options;
    this.#ports = ports;
  }

  /** A partition is about to come back from the copy that stands so. */
  begin(partition: Partition, copy: Fenced, holderWallMs: number): void {
    partition.isRecovering = true;
    partition.isPartial = true;
    this.#ports.entries.absent.begin(partition, copy.number);
    this.#open.set(partition, { aheadMs: this.#aheadNow(partition, holderWallMs), left: copy.count });
    this.#left += copy.count;
    this.#expected.entries += copy.count;
    this.#expected.bytes += copy.bytes;
  }

  /** What places of the entries will take that are still to come: kept free for them. */
  get comingBytes(): number {
    return this.#left * ENTRY_BOOKKEEPING_BYTES;
  }

  /** Memory that is used grows by so much at once. */
  get grainBytes(): number {
    return this.#ports.entries.grainBytes;
  }

  /** A clock that differs is told of: what was written by it is reckoned by it. */
  #aheadNow({ name, ownerId }: Partition, holderWallMs: number): number {
    const { frame, log } = this.#ports;
    if (holderWallMs === 0) return 0;
    const aheadMs = frame.wallMs() - holderWallMs;
    if (Math.abs(aheadMs) >= CLOCKS_DIFFER_MS) {
      const aheadS = Math.round(aheadMs / 1000);
      log.warn('clock', CLOCKS_DIFFER, { partition: name, owner: ownerId, ahead_s: aheadS });
    }
    return aheadMs;
  }

  /**
   * Entry rows by ascending position, and the texts of some of them; false when a checksum is wrong and
   * another mirror can be asked.
   */
  onBlock(
    handle: number, rows: Uint8Array, bodies: Uint8Array, texts: Uint8Array, lastSource: boolean,
  ): boolean {
    const { mirrors, entries } = this.#ports;
    const partition = mirrors.partitionOf(handle);
    if (partition === undefined) return true;
    const view = new DataView(rows.buffer, rows.byteOffset, rows.byteLength);
    if (this.#expected.entries > 0) this.#makeRoom(partition.isOwn, view, bodies.length);
    const payload = new DataView(bodies.buffer, bodies.byteOffset, bodies.byteLength);
    const { memory } = this.#ports;
    const headsMax = memory.entriesBytes(partition.isOwn) - this.comingBytes;
    this.#hasRoomForHeads = memory.usedBytes + bodies.length <= headsMax;
    // The whole block is checked before any of it is taken: so another mirror can be asked for all of it.
    const sound = this.#isSound(view, bodies);
    if (!sound && !lastSource) return false;
    let textAt = 0;
    for (let offset = 0, at = 0; offset < view.byteLength; offset += ENTRY_ROW_BYTES) {
      const ownEnd = at + entryBodyInFrame(view, offset) + entryHeadBytes(view, offset);
      const end = ownEnd + entryNoteBytes(view, offset);
      const own = bodies.subarray(at, ownEnd);
      const note = end === ownEnd ? NO_BYTES : bodies.subarray(ownEnd, end);
      const isSound = sound || this.#checkEntry(view, offset, own, note);
      const row = this.#takeEntry(partition, view, offset, own, note, payload, at, isSound);
      at = end;
      if (textAt < texts.length && textPosition(texts, textAt) === entryPosition(view, offset)) {
        if (row !== 0 && this.#keepsTexts(row)) entries.texts.put(row, textOf(texts, textAt));
        textAt += TEXT_ROW_BYTES + textBytes(texts, textAt);
      }
    }
    this.#noteTaken(partition, rows.length / ENTRY_ROW_BYTES);
    return true;
  }

  #noteTaken(partition: Partition, entries: number): void {
    const open = this.#open.get(partition);
    if (open === undefined) return;
    const taken = Math.min(open.left, entries);
    open.left -= taken;
    this.#left -= taken;
  }

  #keepsTexts(row: number): boolean {
    const { entries } = this.#ports;
    return entries.hasNote(row) && !entries.isAllAbsent(row);
  }

  /**
   * For all partitions that are taken over together: memory is made in few pieces. The first block shows
   * whether bodies come along, or envelopes alone. What comes and goes, for there is no room for all of it,
   * has no use of that.
   */
  #makeRoom(isOwn: boolean, rows: DataView, bytes: number): void {
    const expected = this.#expected;
    const count = rows.byteLength / ENTRY_ROW_BYTES;
    const hasBodies = count === 0 || entryBodyInFrame(rows, 0) > 0 || entryBodyBytes(rows, 0) === 0;
    const envelopesBytes = hasBodies ? expected.bytes : Math.ceil((bytes / count) * expected.entries);
    const { memory } = this.#ports;
    const comingBytes = Math.min(expected.bytes, envelopesBytes);
    const isRoom = memory.usedBytes + comingBytes + this.comingBytes <= memory.entriesBytes(isOwn);
    this.#ports.entries.expect(expected.entries, isRoom ? comingBytes : 0, memory.limitBytes);
    expected.entries = 0;
    expected.bytes = 0;
  }

  /** Every entry is here: its queues are complete, and bodies may still be missing. */
  onIndexed(handle: number): void {
    const { mirrors, entries, log } = this.#ports;
    const partition = mirrors.partitionOf(handle);
    if (partition === undefined) return;
    partition.endRecovery();
    this.#close(partition);
    const absent = entries.absent.countOf(partition);
    if (absent > 0) {
      log.info('recovery', KNOWN, {
        partition: partition.name, messages: partition.length, queues: partition.queues.size, absent,
      });
    }
    for (const queue of partition.queues.values()) this.#ports.wake(queue);
    mirrors.askFlush();
  }

  /** Everything is here. */
  onWhole(handle: number): void {
    const partition = this.#ports.mirrors.partitionOf(handle);
    if (partition === undefined) return;
    partition.isPartial = false;
    this.#ports.entries.absent.end(partition);
    this.#ports.log.info('recovery', 'a partition is back', {
      partition: partition.name, owner: partition.ownerId,
      messages: partition.length, queues: partition.queues.size,
      epoch: partition.epoch, transactions: partition.lastNumber,
    });
    this.#ports.mirrors.askFlush();
  }

  /**
   * Entries whose bodies were asked for; false when one is damaged, or not there, and another mirror can be
   * asked. At the last one what is damaged or gone is held.
   */
  onFetched(
    handle: number, { rows, untilPosition }: Fetched, bodies: Uint8Array, lastSource: boolean,
  ): boolean {
    const partition = this.#ports.mirrors.partitionOf(handle);
    if (partition === undefined) return true;
    const { absent } = this.#ports.entries;
    const view = new DataView(rows.buffer, rows.byteOffset, rows.byteLength);
    if (!lastSource && !this.#areAllSound(partition, view, bodies, untilPosition)) return false;
    for (let offset = 0, at = 0; offset < view.byteLength; offset += ENTRY_ROW_BYTES) {
      const bodyBytes = entryBodyBytes(view, offset);
      const row = absent.askedAt(partition, entryPosition(view, offset));
      const end = at + bodyBytes + entryHeadBytes(view, offset) + entryNoteBytes(view, offset);
      if (row !== 0) this.#takeFetched(partition, row, view, offset, bodies.subarray(at, end));
      at = end;
    }
    for (const row of absent.askedUntil(partition, untilPosition)) this.#loseBody(row);
    // A refill may have waited for them.
    if (partition.isFilling) this.#ports.mirrors.askFlush();
    return true;
  }

  #areAllSound(partition: Partition, view: DataView, bodies: Uint8Array, untilPosition: number): boolean {
    const { absent } = this.#ports.entries;
    let found = 0;
    for (let offset = 0, at = 0; offset < view.byteLength; offset += ENTRY_ROW_BYTES) {
      const bodyBytes = entryBodyBytes(view, offset);
      const row = absent.askedAt(partition, entryPosition(view, offset));
      const end = at + bodyBytes + entryHeadBytes(view, offset) + entryNoteBytes(view, offset);
      if (row !== 0 && !this.#isSoundFor(row, view, offset, bodies.subarray(at, end))) return false;
      if (row !== 0) found += 1;
      at = end;
    }
    return found === absent.askedUntil(partition, untilPosition).length;
  }

  /** `bytes` is body ‖ head ‖ note. A head that came before is checked now: one checksum covers both. */
  #isSoundFor(row: number, view: DataView, offset: number, bytes: Uint8Array): boolean {
    const { entries, crc32 } = this.#ports;
    const { table } = entries;
    const bodyBytes = entryBodyBytes(view, offset);
    if (bodyBytes !== table.bodyBytes.get(row)) return false;
    if (!entries.isAllAbsent(row)) {
      return crc32(entries.head(row), crc32(bytes.subarray(0, bodyBytes), 0)) === table.checksum.get(row);
    }
    const ownEnd = bodyBytes + entryHeadBytes(view, offset);
    if (ownEnd !== entries.bytes(row) || entryRoom(view, offset) !== entries.room(row)) return false;
    const note = bytes.subarray(ownEnd);
    return crc32(bytes.subarray(0, ownEnd), 0) === table.checksum.get(row)
      && (note.length === 0 || crc32(note, 0) === entryNoteCrc(view, offset))
      && this.#isOfItsQueue(row, bytes, bodyBytes, ownEnd);
  }

  /** The head that told its queue was not checked then. */
  #isOfItsQueue(row: number, bytes: Uint8Array, from: number, to: number): boolean {
    const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
    const label = isKnownHead(view, from, to - from) ? readLabel(view, headLabelAt(from), to) : undefined;
    return label !== undefined && labelOf(label) === this.#ports.registry.queueOf(row)?.label;
  }

  #takeFetched(partition: Partition, row: number, view: DataView, offset: number, bytes: Uint8Array): void {
    const { entries, registry } = this.#ports;
    const queue = registry.queueOf(row);
    if (queue === undefined) return;
    const bodyBytes = entryBodyBytes(view, offset);
    const body = bytes.subarray(0, bodyBytes);
    if (!this.#isSoundFor(row, view, offset, bytes)) {
      this.#loseBody(row, entries.isAllAbsent(row) ? bytes : body);
      return;
    }
    const isShared = (entryFlags(view, offset) & FLAG_SHARED) !== 0;
    const shared = isShared ? this.#sharedBody(partition.ownerId, entries.table.messageId(row), body) : 0;
    if (entries.isAllAbsent(row)) {
      const ownEnd = bodyBytes + entryHeadBytes(view, offset);
      entries.putAll(queue, row, bytes.subarray(0, ownEnd), bytes.subarray(ownEnd), shared);
    } else entries.putBody(queue, row, body, shared);
    if (entries.table.state(row) === EntryState.READY) this.#ports.wake(queue);
    this.#ports.onBody(partition, row);
  }

  /** No mirror has it as it was: what there is of it is kept for an operator. */
  #loseBody(row: number, found: Uint8Array = NO_BYTES): void {
    const { entries, registry, settlement, log } = this.#ports;
    const { table } = entries;
    const queue = registry.queueOf(row);
    if (queue === undefined) return;
    const isAll = entries.isAllAbsent(row);
    const kept = new Uint8Array(isAll ? entries.bytes(row) : table.bodyBytes.get(row));
    kept.set(found.subarray(0, kept.length));
    if (isAll) entries.putAll(queue, row, kept, NO_BYTES, 0);
    else entries.putBody(queue, row, kept, 0);
    if (table.state(row) === EntryState.REPORTING) {
      queue.unblock(row);
      this.#owing.get(queue.partition)?.delete(row);
    }
    settlement.withdrawFromWaiting(queue, row);
    if (table.state(row) !== EntryState.HELD) table.transition(row, EntryState.HELD);
    queue.heldCount += 1;
    // Nothing that damaged bytes say is believed.
    table.expirySeconds.set(row, NEVER_SECONDS);
    log.error('recovery', BODY_DAMAGED, {
      queue: queue.name, queue_id: formatMessageId(table.messageId(row)),
    });
    // Deliveries waited for it; those behind it go on.
    this.#ports.wake(queue);
  }

  /** Of this partition nothing comes any more; with the last one, of none. */
  #close(partition: Partition): void {
    this.#lastQueue = undefined;
    this.#left -= this.#open.get(partition)?.left ?? 0;
    this.#open.delete(partition);
    if (this.#open.size === 0) this.#ports.entries.expectNoMore();
  }

  /** No queue is being read any more. */
  onAllRead(): void {
    this.#sharedBodies.clear();
  }

  /** A source that owes a report, of which nothing has been made. */
  noteOwing(queue: MailQueue, row: number): void {
    const rows = this.#owing.get(queue.partition);
    if (rows === undefined) this.#owing.set(queue.partition, new Map([[row, queue]]));
    else rows.set(row, queue);
  }

  /** A block of a copy that was given up is about to be stored anew in this partition. */
  beginAdopting(partition: Partition, holderWallMs: number): void {
    this.#lastQueue = undefined;
    this.#adopting.set(partition, holderWallMs === 0 ? 0 : this.#ports.frame.wallMs() - holderWallMs);
  }

  /** Where an adopted entry goes, by its head, and its times. */
  adoptedInto(partition: Partition, head: Uint8Array, note: Uint8Array): AdoptedPlace {
    const view = new DataView(head.buffer, head.byteOffset, head.byteLength);
    if (!isKnownHead(view, 0, head.length)) {
      return { queue: this.#queueOf(partition, undefined), arrivalSeconds: 0, expirySeconds: NEVER_SECONDS };
    }
    return {
      queue: this.#queueOf(partition, readLabel(view, headLabelAt(0), head.length)),
      arrivalSeconds: Math.floor(headArrivalWallMs(view, 0) / 1000),
      expirySeconds: this.#expirySeconds(partition, headExpirySeconds(view, 0), note),
    };
  }

  /** Every copy has an adopted entry: it waits for what its note says. */
  placeAdopted(queue: MailQueue, row: number): void {
    const { entries } = this.#ports;
    const head = entries.head(row);
    const view = new DataView(head.buffer, head.byteOffset, head.byteLength);
    const flags = isKnownHead(view, 0, head.length) ? headFlags(view, 0) : undefined;
    this.#place(queue, row, flags, entries.note(row), true);
  }

  /** The partition leaves: what was found in it goes with it. */
  forget(partition: Partition): void {
    this.#adopting.delete(partition);
    if (this.#open.has(partition)) this.#close(partition);
    this.#owing.delete(partition);
  }

  /** Called a few times in a tenth of a second: reports that were under way are made (report-job.ts). */
  tick(): void {
    const { entries, holds, reports } = this.#ports;
    let left = BEGUN_PER_TICK;
    for (const [partition, rows] of this.#owing) {
      if (partition.isRecovering) continue;
      for (const [row, queue] of rows) {
        if (left === 0) return;
        left -= 1;
        rows.delete(row);
        if (!holds.holdsReport(queue, row, triesIn(entries.note(row)))) reports.resume(queue, row);
      }
      this.#owing.delete(partition);
    }
  }

  /**
   * Whether the payload is what its rows say: by one checksum over all of it (base/crc-join.ts), for one of
   * each entry would cost as much as the copy.
   */
  #isSound(view: DataView, bodies: Uint8Array): boolean {
    let crc = 0;
    let bytes = 0;
    for (let offset = 0; offset < view.byteLength; offset += ENTRY_ROW_BYTES) {
      const noteBytes = entryNoteBytes(view, offset);
      if (isWithoutBody(view, offset)) return this.#areSound(view, bodies);
      const ownBytes = entryBodyBytes(view, offset) + entryHeadBytes(view, offset);
      crc = joinCrc(crc, entryCrc(view, offset), ownBytes);
      if (noteBytes > 0) crc = joinCrc(crc, entryNoteCrc(view, offset), noteBytes);
      bytes += ownBytes + noteBytes;
    }
    return bytes === bodies.length && crc >>> 0 === this.#ports.crc32(bodies, 0);
  }

  /** The same with a call for each. */
  #areSound(view: DataView, bodies: Uint8Array): boolean {
    for (let offset = 0, at = 0; offset < view.byteLength; offset += ENTRY_ROW_BYTES) {
      const noteAt = at + entryBodyInFrame(view, offset) + entryHeadBytes(view, offset);
      const own = bodies.subarray(at, noteAt);
      at = noteAt + entryNoteBytes(view, offset);
      if (!this.#checkEntry(view, offset, own, bodies.subarray(noteAt, at))) return false;
    }
    return true;
  }

  /** A head without its body is checked when that comes: one checksum covers both. */
  #checkEntry(view: DataView, offset: number, own: Uint8Array, note: Uint8Array): boolean {
    const { crc32 } = this.#ports;
    const isOwnSound = isWithoutBody(view, offset) || crc32(own, 0) === entryCrc(view, offset);
    return isOwnSound && (note.length === 0 || crc32(note, 0) === entryNoteCrc(view, offset));
  }

  /**
   * `own` is body ‖ head, or the head alone, and lies at `at` of the block's payload. Answers the row, 0 when
   * the entry has ended at once.
   */
  #takeEntry(
    partition: Partition, view: DataView, offset: number, own: Uint8Array, note: Uint8Array,
    payload: DataView, at: number, sound: boolean,
  ): number {
    const { entries } = this.#ports;
    const bodyBytes = entryBodyBytes(view, offset);
    const bodyHere = entryBodyInFrame(view, offset);
    const isAbsent = isWithoutBody(view, offset);
    const headAt = at + bodyHere;
    const id = entryId(view, offset);
    // Nothing that damaged bytes say is believed: such an entry never expires, and shares no body.
    const known = sound && isKnownHead(payload, headAt, own.length - bodyHere);
    const label = known ? readLabel(payload, headLabelAt(headAt), at + own.length) : undefined;
    const queue = this.#queueOf(partition, label);
    const isShared = sound && !isAbsent && (entryFlags(view, offset) & FLAG_SHARED) !== 0;
    const shared = isShared ? this.#sharedBody(partition.ownerId, id, own.subarray(0, bodyBytes)) : 0;
    const arrivalSeconds = known ? Math.floor(headArrivalWallMs(payload, headAt) / 1000) : 0;
    const expirySeconds = known
      ? this.#expirySeconds(partition, headExpirySeconds(payload, headAt), note)
      : NEVER_SECONDS;
    const times = { arrivalSeconds, expirySeconds };
    const row = isAbsent && known && !this.#hasRoomForHeads && isMovable(note)
      ? this.#createAllAbsent(queue, view, offset, times)
      : this.#createEntry(queue, view, offset, own, shared, times);
    entries.table.position.set(row, entryPosition(view, offset));
    if (sound && note.length > 0 && !entries.isAllAbsent(row)) entries.setNote(row, note);
    queue.appendRecovered(row, entries.bytes(row));
    this.entryCount += 1;
    this.#place(queue, row, known ? headFlags(payload, headAt) : undefined, note, sound);
    return entries.table.state(row) === EntryState.FREE ? 0 : row;
  }

  /** Of which body ‖ head, or the head alone, is here. */
  #createEntry(
    queue: MailQueue, view: DataView, offset: number, own: Uint8Array, shared: number,
    { arrivalSeconds, expirySeconds }: EntryTimes,
  ): number {
    const { entries } = this.#ports;
    const room = entryRoom(view, offset);
    const bodyBytes = entryBodyBytes(view, offset);
    const [id, crc] = [entryId(view, offset), entryCrc(view, offset)];
    const slot = entries.contents.storeBytes(shared === 0 ? own : own.subarray(bodyBytes), room);
    return isWithoutBody(view, offset)
      ? entries.createAbsent(queue, id, slot, bodyBytes, crc, arrivalSeconds, expirySeconds, room)
      : entries.create(queue, id, slot, shared, bodyBytes, crc, arrivalSeconds, expirySeconds, room);
  }

  /** Of which only the place is kept here. */
  #createAllAbsent(
    queue: MailQueue, view: DataView, offset: number, { arrivalSeconds, expirySeconds }: EntryTimes,
  ): number {
    return this.#ports.entries.createAllAbsent(
      queue, entryId(view, offset), entryHeadBytes(view, offset), entryNoteBytes(view, offset),
      entryBodyBytes(view, offset), entryCrc(view, offset), arrivalSeconds, expirySeconds,
      entryRoom(view, offset),
    );
  }

  /** The queue that an entry's label names, made if need be. */
  #queueOf(partition: Partition, label: QueueName | undefined): MailQueue {
    const { registry, router, log } = this.#ports;
    const { queueClass, name } = label ?? UNREADABLE;
    const last = this.#lastQueue;
    const isOfName = last?.name === name && last.route.queueClass === queueClass;
    if (isOfName && last.partition === partition) return last;
    const text = labelOf({ queueClass, name });
    let queue = partition.queues.get(text);
    if (queue === undefined) {
      const found = router.routeOfQueue(name, queueClass);
      const route = found ?? this.#unrouted.get(text) ?? noRoute({ queueClass, name });
      if (found === undefined) {
        this.#unrouted.set(text, route);
        log.warn('recovery', NO_ROUTE, { queue: name });
      }
      queue = registry.queueIn(partition, route, found !== undefined, true);
    }
    this.#lastQueue = queue;
    return queue;
  }

  /** The content row of a body that several queues name. */
  #sharedBody(ownerId: string, id: number, body: Uint8Array): number {
    const { contents } = this.#ports.entries;
    const key = sharedKey(ownerId, id);
    if (this.#sharedBodies.size >= this.#sharedLooked) this.#forgetEnded();
    const known = this.#sharedBodies.get(key);
    // Deliveries go on meanwhile: the entries that brought the body may have ended, and the body with them.
    if (known !== undefined && contents.holdsShared(known, id)) return known;
    const made = contents.storeShared([body], body.length, id);
    this.#sharedBodies.set(key, made);
    return made;
  }

  /** More than memory holds goes through it: of bodies that nobody has any more not even the name is kept. */
  #forgetEnded(): void {
    const { contents } = this.#ports.entries;
    for (const [key, content] of this.#sharedBodies) {
      const id = Number(key.slice(key.lastIndexOf('/') + 1));
      if (!contents.holdsShared(content, id)) this.#sharedBodies.delete(key);
    }
    this.#sharedLooked = Math.max(SHARED_LOOKED_MIN, 2 * this.#sharedBodies.size);
  }

  /** Decides what a recovered entry waits for. */
  #place(
    queue: MailQueue, row: number, flags: number | undefined, noteBytes: Uint8Array, sound: boolean,
  ): void {
    const { entries, clock, dueTimes, log } = this.#ports;
    const note = !sound || noteBytes.length === 0 ? undefined : decodeNote(noteBytes);
    // A report that is owed is made even where no route leads out of the queue.
    const isReport = note !== undefined && note.owedChange !== 0;
    const isUnreadable = !sound || flags === undefined || (noteBytes.length > 0 && note === undefined);
    // What an operator holds stays held, and its lifetime stands still, also where its route is gone.
    const isUnderHold = note !== undefined && note.heldSinceWallMs !== 0;
    const isStray = !queue.routed && !isReport && !isUnderHold;
    if (isUnreadable || isStray || entries.room(row) < noteRoom(1)) {
      entries.table.transition(row, EntryState.HELD);
      queue.heldCount += 1;
      if (!sound) {
        log.error('recovery', CHECKSUM_WRONG, {
          queue: queue.name, queue_id: formatMessageId(entries.table.messageId(row)),
        });
      }
      return;
    }
    if (note !== undefined && this.#placeEnding(queue, row, note)) return;
    if (this.#ports.holds.holdsBack(queue, row, note, this.#aheadOf(queue.partition))) return;
    this.#ports.wake(queue);
    const isDelayed = note?.isDelayed === true;
    const delayMs = note === undefined ? 0 : this.#delayMs(queue.partition, note);
    const isStrict = queue.route.ordering === 'strict' && !(isDelayed && delayMs > 0);
    if (isStrict && note !== undefined && note.dueWallMs !== 0 && !isDelayed && !queue.isBlocked) {
      queue.makeReadyFirst(row);
      queue.blockBy(row, clock.nowMs() + delayMs);
      dueTimes.wakeAt(queue, queue.blockedUntilMs);
    } else if (delayMs === 0 || isStrict) queue.makeReady(row, true);
    else {
      entries.table.transition(row, EntryState.DEFERRED);
      queue.countDeferred(row, isDelayed);
      dueTimes.schedule(row, delayMs);
    }
  }

  /** From now until a due time that its holder wrote: at most what it may be, whatever clocks show. */
  #delayMs(partition: Partition, { dueWallMs, isDelayed }: Note): number {
    if (dueWallMs === 0) return 0;
    const { frame } = this.#ports;
    const leftMs = dueWallMs + this.#aheadOf(partition) - frame.wallMs();
    const mostMs = isDelayed ? DELAY_SECONDS_MAX * 1000 : this.#options.longestRetryMs;
    return Math.min(mostMs, Math.max(0, leftMs));
  }

  /**
   * When an entry ends that its holder wrote this expiry into. Whatever the clocks of both showed: not before
   * a retry could have been made, so that nothing is bounced untried because of a clock, and not later than a
   * lifetime from now, or from when it is due that an operator delays.
   */
  #expirySeconds(partition: Partition, writtenSeconds: number, note: Uint8Array): number {
    const { longestRetryMs, lifetimeMs } = this.#options;
    const nowMs = this.#ports.frame.wallMs();
    const aheadMs = this.#aheadOf(partition);
    const endMs = (writtenSeconds + addedSecondsIn(note)) * 1000 + aheadMs;
    const delayMs = Math.max(0, delayedUntilIn(note) + aheadMs - nowMs);
    const beginsMs = nowMs + Math.min(DELAY_SECONDS_MAX * 1000, delayMs);
    return Math.ceil(Math.min(beginsMs + lifetimeMs, Math.max(beginsMs + longestRetryMs, endMs)) / 1000);
  }

  /** By how much our frame is ahead of the holder's that wrote the entries; 0 when no store knows. */
  #aheadOf(partition: Partition): number {
    return this.#open.get(partition)?.aheadMs ?? this.#adopting.get(partition) ?? 0;
  }

  /** An entry that owes a report, or has nobody left to try. */
  #placeEnding(queue: MailQueue, row: number, note: Note): boolean {
    const { entries, settlement } = this.#ports;
    entries.table.attempts.set(row, Math.min(255, note.attempts));
    const goesOn = note.states.includes(TO_TRY);
    // An operator holds it since its report was put aside: that is made when it is released.
    if (goesOn && note.heldSinceWallMs !== 0) return false;
    if (note.owedChange !== 0) {
      // What an operator delays heads no queue.
      const isStrict = queue.route.ordering === 'strict' && goesOn && !note.isDelayed;
      // Ended in part before its turn: it keeps its place (mail-queue.ts).
      if (isStrict && note.dueWallMs === 0) queue.makeReady(row, true);
      else if (isStrict && !queue.isBlocked) queue.blockBy(row, Infinity);
      entries.table.transition(row, EntryState.REPORTING);
      this.noteOwing(queue, row);
      return true;
    }
    if (goesOn) return false;
    // The crash came between "reported" and the end of the entry.
    entries.table.transition(row, EntryState.REPORTING);
    settlement.end(queue, row);
    return true;
  }
}
