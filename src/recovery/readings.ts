/**
 * Partitions that are taken over come in, a few side by side (the paper's section IV.D): first what entries
 * there are, by position, block after block; then the bodies that did not come with them, as they are needed.
 *
 *   READING ─ a turn, memory ─► PULL … BLOCK ⟲ ─ block with `end` ─► INDEXED ─ no body is missing ─► whole
 *      │ ▲                        │                                     │
 *      │ └── FETCH … FETCHED ⟲ ◄──┴── a body is wanted ─────────────────┘ or memory is plenty
 *      ├─ the source is away: rests till its holder names another (rule 14), switchTo() ─► there; a later
 *      │  boot of its store is none before it is named: it knows nothing of what was read
 *      └─ damaged, and another copy is equal ─► on there; that copy is away just now: rests till it can be
 *         asked, or counts no more ─► what is damaged is held
 *
 * Bodies come along with the blocks while all that is to come is little, and there is memory for it. Else
 * a block has heads and notes alone: so half a million messages for one dead next hop delay no other
 * queue's first delivery. A process may take over more than it can hold: what has not come yet stays at
 * the stores, and cannot be overtaken. Where memory is too short for the envelopes, blocks pass through,
 * and of each entry only its place in its queue is kept (gateway/recovered/recovered-queues.ts); where it is
 * too short even for that, reading rests till mail has ended.
 */
import type { EventLog } from '../platform/ports.js';
import { ENTRY_ROW_BYTES, entryBodyBytes, entryHeadBytes } from '../protocol/entry-rows.js';
import type { Block } from '../protocol/messages/block.js';
import type { Fetch } from '../protocol/messages/fetch.js';
import { FETCH_POSITIONS_MAX, packPositions } from '../protocol/messages/fetch.js';
import type { Fetched } from '../protocol/messages/fetched.js';
import type { Pull } from '../protocol/messages/pull.js';
import type { RecordedMember } from '../protocol/partition-record.js';

export interface ReadingOptions {
  readonly blockEntries: number;
  readonly blockBytes: number;
  /** The largest message that clients may send: a block has one entry at least, whatever its size. */
  readonly largestBytes?: number;
  /** When no more than this is to come, bodies come along. Undefined: LITTLE_BYTES. */
  readonly littleBytes?: number;
}

export interface ReadingPorts {
  readonly log: EventLog;
  /** Sends it behind the FENCE that bound the handle; false while the store can't be asked, in this boot. */
  pull(source: RecordedMember, pull: Pull): boolean;
  /** As pull(). */
  fetch(source: RecordedMember, fetch: Fetch): boolean;
  /** Writes what was asked without waiting for the end of the turn. */
  flush(storeId: string): void;
  /**
   * How large one more block may be that comes now, with so many on their way and this much arrived that is
   * not counted yet; undefined: none may come.
   */
  blockRoom(isOwn: boolean, pulling: number, inHandBytes: number): BlockRoom | undefined;
  /** Whether there is memory for its bodies, too. */
  mayBringBodies(isOwn: boolean, pulling: number, inHandBytes: number): boolean;
  /**
   * Entry rows by ascending position, their payloads and texts; false when a checksum is wrong, and another
   * copy can be asked.
   */
  onBlock(
    handle: number, rows: Uint8Array, bodies: Uint8Array, texts: Uint8Array, isLastSource: boolean,
  ): boolean;
  /**
   * Positions of bodies to be asked for next, ascending, as memory allows. `withRest`: also those that nobody
   * waits for.
   */
  nextBodies(handle: number, limits: FetchLimits, withRest: boolean): readonly number[];
  /**
   * Entries that were asked for, or not all of them; false when one is damaged or missing, and another copy
   * can be asked.
   */
  onFetched(handle: number, fetched: Fetched, bodies: Uint8Array, isLastSource: boolean): boolean;
  /** What was asked for is not answered any more. */
  askAgain(handle: number): void;
  /** Bodies that are still at the stores. */
  absentCount(handle: number): number;
  /** A copy that is equal to the one that is read, and at none of these stores. */
  otherSource(handle: number, damaged: ReadonlySet<string>): RecordedMember | undefined;
  /** There may be one at a store that can't be asked just now. */
  mayHaveOther(handle: number, damaged: ReadonlySet<string>): boolean;
  /** The copy that is read is damaged: the other one counts as the source from here on. */
  onSwitched(handle: number, source: RecordedMember): void;
  /** Every entry is here, and bodies may still be missing. */
  onIndexed(handle: number): void;
  /** Everything is here. */
  onWhole(handle: number): void;
}

/** Of a block without bodies. */
export interface BlockRoom {
  readonly entriesMax: number;
  readonly bytesMax: number;
}

export interface FetchLimits {
  readonly countMax: number;
  readonly bytesMax: number;
}

const PULLS_AT_ONCE = 8;
/** Of bodies that nobody waits for. */
const FETCHES_AT_ONCE = 8;
/**
 * All of it is here in about a second, and sooner than envelopes and bodies apart: 7 µs of CPU less a
 * message.
 */
const LITTLE_BYTES = 640 * 1024 * 1024;
/**
 * Entries of the first block; each later one may have twice as many, up to the block size. Code that has not
 * run yet takes ten times as long for an entry, in one turn; and the first delivery waits for the first block
 * alone.
 */
const FIRST_ENTRIES = 64;
/**
 * What this software adds to a message that was as large as it may be: trace headers, the text of a report
 * around it.
 */
const ADDED_BYTES = 64 * 1024;

class Reading {
  readonly handle: number;
  readonly name: string;
  readonly isOwn: boolean;
  /** Entries are read up to this position: later ones are made here. */
  readonly untilPosition: number;
  source: RecordedMember;
  cursor = 0;
  /** A block is on its way. */
  isAsked = false;
  /** What is asked for by position; undefined: nothing is. */
  fetch: Fetch | undefined;
  /** Every entry is here. */
  isIndexed = false;
  /** Of content and head, that are still to come. */
  leftBytes: number;
  /** Even for places of its entries there is no memory: it goes on when there is. */
  isShort = false;
  /** That it waits for memory was told, once for all its blocks. */
  isShortTold = false;
  /** Nothing more is asked: what is damaged here may be sound at a copy that is away. */
  awaitsOther = false;
  /** Stores that gave a block with a wrong checksum. */
  readonly damaged = new Set<string>();

  constructor(
    handle: number, name: string, isOwn: boolean, source: RecordedMember, untilPosition: number,
    bytes: number,
  ) {
    this.handle = handle;
    this.name = name;
    this.isOwn = isOwn;
    this.source = source;
    this.untilPosition = untilPosition;
    this.leftBytes = bytes;
  }
}

export class Readings {
  readonly #options: ReadingOptions;
  readonly #ports: ReadingPorts;
  readonly #readings = new Map<number, Reading>();
  #entriesMax = FIRST_ENTRIES;
  #isLargeTold = false;
  #asks = 0;
  /** Entries of all partitions that are still to come, in bytes. */
  #leftBytes = 0;

  constructor(options: ReadingOptions, ports: ReadingPorts) {
    this.#options = options;
    this.#ports = ports;
  }

  get count(): number {
    return this.#readings.size;
  }

  /** Partitions whose entries are not all known, because there is no memory even for their places. */
  get shortCount(): number {
    let short = 0;
    for (const { isShort, isIndexed } of this.#readings.values()) if (isShort && !isIndexed) short += 1;
    return short;
  }

  /** Reads all entries up to this position from this copy, which has so many bytes of content and head. */
  begin(
    handle: number, name: string, isOwn: boolean, source: RecordedMember, untilPosition: number,
    bytes: number,
  ): void {
    this.remove(handle);
    this.#readings.set(handle, new Reading(handle, name, isOwn, source, untilPosition, bytes));
    this.#leftBytes += bytes;
    this.start();
  }

  /** Goes on from this copy: another one that is equal, or the same that is back. */
  switchTo(handle: number, source: RecordedMember): void {
    const reading = this.#readings.get(handle);
    if (reading === undefined) return;
    const { storeId } = reading.source;
    if (storeId !== source.storeId || reading.source.bootId !== source.bootId) {
      this.#ports.log.warn(
        'recovery', 'a partition is read on from another copy',
        { partition: reading.name, store: storeId, next: source.storeId, from: reading.cursor },
      );
    }
    reading.source = source;
    reading.awaitsOther = false;
    this.#unanswered(reading);
    this.start();
  }

  remove(handle: number): void {
    const reading = this.#readings.get(handle);
    if (reading === undefined) return;
    this.#readings.delete(handle);
    this.#leftBytes -= reading.leftBytes;
  }

  /** What was asked there has no answer any more. */
  onConnectionLost(storeId: string): void {
    for (const reading of this.#readings.values()) {
      if (reading.source.storeId === storeId) this.#unanswered(reading);
    }
  }

  /** Begins what may begin, and goes on where memory was short. */
  start(): void {
    let asked = this.#askedCount;
    let fetching = 0;
    let isIndexed = true;
    for (const reading of this.#readings.values()) {
      if (reading.awaitsOther) this.#leaveDamaged(reading);
      if (this.#endWhole(reading)) continue;
      const mayAsk = !reading.isIndexed && !reading.isAsked && asked < PULLS_AT_ONCE;
      if (mayAsk && this.#pull(reading, 0)) asked += 1;
      if (reading.fetch === undefined) this.#fetch(reading, false);
      if (reading.fetch !== undefined) fetching += 1;
      if (!reading.isIndexed) isIndexed = false;
    }
    // Heads of all queues first: what nobody waits for takes no memory from them.
    if (!isIndexed) return;
    for (const reading of this.#readings.values()) {
      if (fetching >= FETCHES_AT_ONCE) return;
      if (reading.fetch === undefined && this.#fetch(reading, true)) fetching += 1;
    }
  }

  onBlock(storeId: string, block: Block, bodies: Uint8Array): void {
    const reading = this.#readings.get(block.handle);
    if (reading === undefined || !reading.isAsked) return;
    if (reading.source.storeId !== storeId || block.afterPosition !== reading.cursor) return;
    this.#tellLarge(reading, block.rows);
    const before = reading.cursor;
    const leftBefore = reading.leftBytes;
    reading.cursor = block.nextPosition;
    reading.isAsked = false;
    this.#setLeft(reading, Math.max(0, leftBefore - bytesOf(block.rows)));
    if (this.#entriesMax < this.#options.blockEntries) this.#entriesMax *= 2;
    // Behind the others: a long partition delays no other's first entries.
    this.#readings.delete(reading.handle);
    this.#readings.set(reading.handle, reading);
    // The next block travels while this one is taken in, if there is memory for both.
    if (!block.end) this.#pullNext(block.rows.length + bodies.length);
    if (!this.#ports.onBlock(reading.handle, block.rows, bodies, block.texts, this.#isLastSource(reading))) {
      reading.cursor = before;
      this.#setLeft(reading, leftBefore);
      this.#leaveDamaged(reading);
      return;
    }
    if (!block.end || this.#readings.get(reading.handle) !== reading) return;
    reading.isIndexed = true;
    this.#setLeft(reading, 0);
    this.#ports.onIndexed(reading.handle);
    this.#endWhole(reading);
    this.start();
  }

  onFetched(storeId: string, fetched: Fetched, bodies: Uint8Array): void {
    const reading = this.#readings.get(fetched.handle);
    // A path that failed over repeats what was asked: its answer may come when something else is.
    if (reading?.source.storeId !== storeId || reading.fetch?.ask !== fetched.ask) return;
    this.#tellLarge(reading, fetched.rows);
    if (!this.#ports.onFetched(reading.handle, fetched, bodies, this.#isLastSource(reading))) {
      this.#leaveDamaged(reading);
      return;
    }
    // What did not fit into the answer.
    this.#unanswered(reading);
    // Behind the others: memory for one body at a time goes round.
    this.#readings.delete(reading.handle);
    this.#readings.set(reading.handle, reading);
    this.start();
    this.#ports.flush(storeId);
  }

  /** Whether it is whole: the last body came, or its entry has ended. */
  #endWhole(reading: Reading): boolean {
    if (!reading.isIndexed || this.#ports.absentCount(reading.handle) > 0) return false;
    this.remove(reading.handle);
    this.#ports.onWhole(reading.handle);
    return true;
  }

  /** What is damaged there is damaged for good. */
  #isLastSource({ handle, source: { storeId }, damaged }: Reading): boolean {
    const other = this.#ports.otherSource(handle, damaged);
    const isOnly = other === undefined || other.storeId === storeId;
    return isOnly && !this.#ports.mayHaveOther(handle, damaged);
  }

  /** On at the other copy, when that is there; or, when there is none any more, here. */
  #leaveDamaged(reading: Reading): void {
    const { handle, source: { storeId }, damaged } = reading;
    const other = this.#ports.otherSource(handle, damaged);
    if (other === undefined || other.storeId === storeId) {
      reading.awaitsOther = this.#ports.mayHaveOther(handle, damaged);
      this.#unanswered(reading);
      return;
    }
    damaged.add(storeId);
    this.#ports.onSwitched(handle, other);
    this.switchTo(handle, other);
  }

  #unanswered(reading: Reading): void {
    reading.isAsked = false;
    if (reading.fetch === undefined) return;
    reading.fetch = undefined;
    this.#ports.askAgain(reading.handle);
  }

  #setLeft(reading: Reading, bytes: number): void {
    this.#leftBytes += bytes - reading.leftBytes;
    reading.leftBytes = bytes;
  }

  /** Blocks on their way. */
  get #askedCount(): number {
    let asked = 0;
    for (const reading of this.#readings.values()) if (reading.isAsked) asked += 1;
    return asked;
  }

  /** Of the partition that has waited longest. */
  #pullNext(inHandBytes: number): void {
    for (const reading of this.#readings.values()) {
      if (reading.isIndexed || reading.isAsked || reading.awaitsOther) continue;
      if (!this.#pull(reading, inHandBytes)) continue;
      this.#ports.flush(reading.source.storeId);
      return;
    }
  }

  /** Whether the next block is on its way. */
  #pull(reading: Reading, inHandBytes: number): boolean {
    const { handle, cursor, untilPosition, source } = reading;
    if (reading.awaitsOther) return false;
    const room = this.#ports.blockRoom(reading.isOwn, this.#askedCount, inHandBytes);
    reading.isShort = room === undefined && this.#askedCount === 0;
    if (room === undefined) {
      this.#tellShort(reading);
      return false;
    }
    const { bytesMax } = room;
    const entriesMax = Math.min(room.entriesMax, this.#entriesMax);
    const isLittle = this.#leftBytes <= (this.#options.littleBytes ?? LITTLE_BYTES);
    const withBodies = isLittle && this.#ports.mayBringBodies(reading.isOwn, this.#askedCount, inHandBytes);
    const pull = { handle, afterPosition: cursor, untilPosition, entriesMax, bytesMax, withBodies };
    reading.isAsked = this.#ports.pull(source, pull);
    return reading.isAsked;
  }

  /** Whether bodies are on their way now. */
  #fetch(reading: Reading, withRest: boolean): boolean {
    const { handle, source } = reading;
    if (reading.awaitsOther) return false;
    const { blockBytes } = this.#options;
    const positions = this.#ports.nextBodies(
      handle, { countMax: FETCH_POSITIONS_MAX, bytesMax: blockBytes }, withRest,
    );
    if (positions.length === 0) return false;
    this.#asks += 1;
    const fetch = { handle, ask: this.#asks, positions: packPositions(positions) };
    if (this.#ports.fetch(source, fetch)) reading.fetch = fetch;
    else this.#ports.askAgain(handle);
    return reading.fetch !== undefined;
  }

  /** Not for a block that others on their way hold up: their end is near. */
  #tellShort(reading: Reading): void {
    if (reading.isShortTold || this.#askedCount > 0) return;
    reading.isShortTold = true;
    const text = 'a partition that comes back waits at its stores: this gateway has no memory left even for '
      + 'an index of it; what is known is delivered, and it goes on as that makes room; give gateways more '
      + 'memory to have it sooner';
    this.#ports.log.warn('recovery', text, { partition: reading.name, from: reading.cursor });
  }

  /**
   * Nobody tells a gateway what clients of another may send: that it is more shows in such a message. Once a
   * process.
   */
  #tellLarge(reading: Reading, rows: Uint8Array): void {
    const { largestBytes = 0 } = this.#options;
    if (this.#isLargeTold || largestBytes === 0 || bytesOf(rows) <= largestBytes + ADDED_BYTES) return;
    const view = new DataView(rows.buffer, rows.byteOffset, rows.byteLength);
    let bytes = 0;
    for (let at = 0; at + ENTRY_ROW_BYTES <= rows.length; at += ENTRY_ROW_BYTES) {
      bytes = Math.max(bytes, entryBodyBytes(view, at));
    }
    if (bytes <= largestBytes + ADDED_BYTES) return;
    this.#isLargeTold = true;
    const text = 'a message that comes back is larger than message_size_limit here: all gateways of a group '
      + 'need the same, or one that takes over goes beyond its memory limit by the difference';
    const fields = { partition: reading.name, bytes, message_size_limit: largestBytes };
    this.#ports.log.warn('recovery', text, fields);
  }
}

/** Of content and head of all these entries, here or not. */
function bytesOf(rows: Uint8Array): number {
  const view = new DataView(rows.buffer, rows.byteOffset, rows.byteLength);
  let bytes = 0;
  for (let at = 0; at < rows.length; at += ENTRY_ROW_BYTES) {
    bytes += entryBodyBytes(view, at) + entryHeadBytes(view, at);
  }
  return bytes;
}
