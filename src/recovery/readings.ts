/**
 * Partitions that are taken over come in, block after block, a few side by side (the paper's section IV.D).
 *
 *   READY ─ a turn, memory ─► PULL … BLOCK ⟲ ─ block with `end` ─► whole
 *     ▲                         │ the source is away / rests till its holder names a source (rule 14 of docs/model)
 *     └── switchTo() ───────────┘ damaged, and another copy is equal / goes on there
 *
 * A block is asked for only while there is memory for it: above the mark the pull rests, and goes on as mail is
 * delivered and its memory gets free. So a process may take over more than it can hold: what has not come yet
 * stays at the stores, in order, and cannot be overtaken, because blocks come by ascending position.
 */
import type { EventLog } from '../platform/ports.js';
import { ENTRY_ROW_BYTES, entryBodyBytes } from '../protocol/entry-rows.js';
import type { Block } from '../protocol/messages/block.js';
import type { Pull } from '../protocol/messages/pull.js';

export interface ReadingOptions {
  readonly blockEntries: number;
  readonly blockBytes: number;
  /** The largest message that clients may send: a block has one entry at least, whatever its size. */
  readonly largestBytes?: number;
}

export interface ReadingPorts {
  readonly log: EventLog;
  /** Sends it behind the FENCE that bound the handle; false while the store can't be asked. */
  pull(storeId: string, pull: Pull): boolean;
  /** Writes what was asked without waiting for the end of the turn. */
  flush(storeId: string): void;
  /** Whether one more block may come now, with so many on their way and this much arrived that is not counted yet. */
  mayPull(isOwn: boolean, pulling: number, inHandBytes: number): boolean;
  /**
   * Entry rows by ascending position, their payloads and texts; false when a checksum is wrong, and another
   * copy can be asked.
   */
  onBlock(handle: number, rows: Uint8Array, bodies: Uint8Array, texts: Uint8Array, isLastSource: boolean): boolean;
  /** A copy that is equal to the one that is read, and none of these; '' when there is none. */
  otherSource(handle: number, damaged: ReadonlySet<string>): string;
  /** The copy that is read is damaged: the other one counts as the source from here on. */
  onSwitched(handle: number, storeId: string): void;
  /** Everything is here. */
  onWhole(handle: number): void;
}

const PULLS_AT_ONCE = 8;
/**
 * Entries of the first block; each later one may have twice as many, up to the block size. Code that has not run yet
 * takes ten times as long for an entry, in one turn; and the first delivery waits for the first block alone.
 */
const FIRST_ENTRIES = 64;
/** What this software adds to a message that was as large as it may be: trace headers, the text of a report around it. */
const ADDED_BYTES = 64 * 1024;

class Reading {
  readonly handle: number;
  readonly name: string;
  readonly isOwn: boolean;
  /** Entries are read up to this position: later ones are made here. */
  readonly untilPosition: number;
  source: string;
  cursor = 0;
  /** A block is on its way. */
  isAsked = false;
  /** That it waits for memory was told, once for all its blocks. */
  isShortTold = false;
  /** Stores that gave a block with a wrong checksum. */
  readonly damaged = new Set<string>();

  constructor(handle: number, name: string, isOwn: boolean, source: string, untilPosition: number) {
    this.handle = handle;
    this.name = name;
    this.isOwn = isOwn;
    this.source = source;
    this.untilPosition = untilPosition;
  }
}

export class Readings {
  readonly #options: ReadingOptions;
  readonly #ports: ReadingPorts;
  readonly #readings = new Map<number, Reading>();
  #entriesMax = FIRST_ENTRIES;
  #isLargeTold = false;

  constructor(options: ReadingOptions, ports: ReadingPorts) {
    this.#options = options;
    this.#ports = ports;
  }

  get count(): number {
    return this.#readings.size;
  }

  /** Reads all entries up to this position from the copy at this store. */
  begin(handle: number, name: string, isOwn: boolean, source: string, untilPosition: number): void {
    this.#readings.set(handle, new Reading(handle, name, isOwn, source, untilPosition));
    this.start();
  }

  /** Goes on from this store: another one that is equal, or the same that is back. */
  switchTo(handle: number, source: string): void {
    const reading = this.#readings.get(handle);
    if (reading === undefined) return;
    if (reading.source !== source) {
      this.#ports.log.warn('recovery', 'a partition is read on from another copy', { partition: reading.name, store: reading.source, next: source, from: reading.cursor });
    }
    reading.source = source;
    reading.isAsked = false;
    this.start();
  }

  remove(handle: number): void {
    this.#readings.delete(handle);
  }

  /** What was asked there has no answer any more. */
  onConnectionLost(storeId: string): void {
    for (const reading of this.#readings.values()) if (reading.source === storeId) reading.isAsked = false;
  }

  /** Begins what may begin, and goes on where memory was short. */
  start(): void {
    let asked = this.#askedCount;
    for (const reading of this.#readings.values()) {
      if (asked >= PULLS_AT_ONCE) return;
      if (reading.isAsked) continue;
      this.#pull(reading, 0);
      if (reading.isAsked) asked += 1;
    }
  }

  onBlock(storeId: string, block: Block, bodies: Uint8Array): void {
    const reading = this.#readings.get(block.handle);
    if (reading === undefined || !reading.isAsked) return;
    if (reading.source !== storeId || block.afterPosition !== reading.cursor) return;
    this.#tellLarge(reading, block.rows, bodies.length);
    const before = reading.cursor;
    reading.cursor = block.nextPosition;
    reading.isAsked = false;
    if (this.#entriesMax < this.#options.blockEntries) this.#entriesMax *= 2;
    // The next block travels while this one is taken in, if there is memory for both.
    if (!block.end) {
      this.#pull(reading, block.rows.length + bodies.length);
      this.#ports.flush(storeId);
    }
    const other = this.#ports.otherSource(reading.handle, reading.damaged);
    const isLast = other === '' || other === storeId;
    if (!this.#ports.onBlock(reading.handle, block.rows, bodies, block.texts, isLast)) {
      reading.cursor = before;
      reading.damaged.add(storeId);
      this.#ports.onSwitched(reading.handle, other);
      this.switchTo(reading.handle, other);
      return;
    }
    if (!block.end || !this.#readings.delete(reading.handle)) return;
    this.#ports.onWhole(reading.handle);
    this.start();
  }

  /** Blocks on their way. */
  get #askedCount(): number {
    let asked = 0;
    for (const reading of this.#readings.values()) if (reading.isAsked) asked += 1;
    return asked;
  }

  #pull(reading: Reading, inHandBytes: number): void {
    const { handle, cursor, untilPosition, source } = reading;
    if (!this.#ports.mayPull(reading.isOwn, this.#askedCount, inHandBytes)) {
      this.#tellShort(reading);
      return;
    }
    const { blockEntries, blockBytes } = this.#options;
    const entriesMax = Math.min(blockEntries, this.#entriesMax);
    reading.isAsked = this.#ports.pull(source, { handle, afterPosition: cursor, untilPosition, entriesMax, bytesMax: blockBytes });
  }

  /** Not for a block that others on their way hold up: their end is near. */
  #tellShort(reading: Reading): void {
    if (reading.isShortTold || this.#askedCount > 0) return;
    reading.isShortTold = true;
    this.#ports.log.info('recovery', 'a partition that comes back waits at its stores: this gateway has no memory for it; it goes on as mail is delivered', { partition: reading.name, from: reading.cursor });
  }

  /** Nobody tells a gateway what clients of another may send: that it is more shows in such a message. Once a process. */
  #tellLarge(reading: Reading, rows: Uint8Array, bodyBytes: number): void {
    const { largestBytes = 0 } = this.#options;
    if (this.#isLargeTold || largestBytes === 0 || bodyBytes <= largestBytes + ADDED_BYTES) return;
    const view = new DataView(rows.buffer, rows.byteOffset, rows.byteLength);
    let bytes = 0;
    for (let at = 0; at + ENTRY_ROW_BYTES <= rows.length; at += ENTRY_ROW_BYTES) bytes = Math.max(bytes, entryBodyBytes(view, at));
    if (bytes <= largestBytes + ADDED_BYTES) return;
    this.#isLargeTold = true;
    this.#ports.log.warn('recovery', 'a message that comes back is larger than message_size_limit here: all gateways of a group need the same, or one that takes over goes beyond its memory limit by the difference', { partition: reading.name, bytes, message_size_limit: largestBytes });
  }
}
