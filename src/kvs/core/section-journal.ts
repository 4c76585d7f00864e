/**
 * What a section has done so far, so that it can be taken back as a whole: a section is applied row by row
 * and then either committed (what it replaced is freed) or rolled back (what it made is freed, what it took
 * out stands where it stood). A refused section thereby changes nothing (docs/PROTOCOL.md "Applying a section").
 *
 *   LINKED    row                                       undo: unlink, free       commit: -
 *   UNLINKED  row position                              undo: link behind PREV   commit: free
 *   CUT       first last before count               undo: put back           commit: free; very many later, in steps
 *   CONTENT   row slot body head crc shared note        undo: put back           commit: free the old
 *   NOTE      row index of the old note in notes        undo: write it back      commit: -
 *
 * Operands stand before their op: both walks go backwards. One array of numbers, reused; notes that were
 * written over are copied beside it.
 */

import type { Segments } from '../../base/segments.js';
import type { StoredEntries } from './stored-entries.js';
import type { MirroredQueue } from './mirrored-queue.js';
import type { SharedBodies } from './shared-bodies.js';

const LINKED = 1;
const UNLINKED = 2;
const CONTENT = 3;
const NOTE = 4;
const CUT = 5;

/** More entries cut out at once are not freed within the turn, but in steps between turns (queue-table.ts): this many take about half a millisecond. */
const FREED_AT_ONCE_MAX = 1024;

/** A longer list, left by a section of very many changes, is given back. */
const KEPT_OPS = 65_536;

export class SectionJournal {
  readonly #ops: number[] = [];
  /** Of each op NOTE: the note before, and its checksum. */
  #notes: { readonly bytes: Uint8Array; readonly crc: number }[] = [];
  #length = 0;
  #refillRow = 0;
  #pullRow = 0;
  #epoch = 0;
  #role = 0;
  #members: readonly string[] = [];
  readonly #segments: Segments;
  readonly #entries: StoredEntries;
  readonly #shared: SharedBodies;
  readonly #discardLater: (first: number) => void;

  constructor(parts: {
    readonly segments: Segments; readonly entries: StoredEntries; readonly shared: SharedBodies; readonly discardLater: (first: number) => void;
  }) {
    this.#segments = parts.segments;
    this.#entries = parts.entries;
    this.#shared = parts.shared;
    this.#discardLater = parts.discardLater;
  }

  begin(queue: MirroredQueue): void {
    this.#length = 0;
    if (this.#notes.length > 0) this.#notes = [];
    if (this.#ops.length > KEPT_OPS) this.#ops.length = 0;
    this.#refillRow = queue.refillRow;
    this.#pullRow = queue.pullRow;
    this.#epoch = queue.epoch;
    this.#role = queue.role;
    this.#members = queue.members;
  }

  linked(row: number): void {
    this.#push(row);
    this.#push(LINKED);
  }

  unlinked(row: number, position: number): void {
    this.#push(row);
    this.#push(position);
    this.#push(UNLINKED);
  }

  /** A range of `count` rows taken out in one cut, and the row in front of it. */
  cut(first: number, last: number, before: number, count: number): void {
    this.#push(first);
    this.#push(last);
    this.#push(before);
    this.#push(count);
    this.#push(CUT);
  }

  /** Before content and note of the row are replaced. */
  content(row: number): void {
    const entries = this.#entries;
    this.#push(row);
    this.#push(entries.slotOf(row));
    this.#push(entries.bodyBytesOf(row));
    this.#push(entries.headBytesOf(row));
    this.#push(entries.crcOf(row));
    this.#push(entries.sharedOf(row));
    this.#push(entries.noteBytesOf(row));
    this.#push(CONTENT);
  }

  /** Before the note of the row is written over. */
  note(row: number): void {
    const entries = this.#entries;
    const bytes = new Uint8Array(entries.noteBytesOf(row));
    this.#push(row);
    this.#push(this.#notes.length);
    this.#push(NOTE);
    this.#notes.push({ bytes, crc: bytes.length === 0 ? 0 : entries.copyNote(row, bytes, 0) });
  }

  /** Frees what the section replaced. */
  commit(): void {
    while (this.#length > 0) {
      const op = this.#pop();
      if (op === LINKED) {
        this.#length -= 1;
      } else if (op === UNLINKED) {
        this.#length -= 1;
        this.#entries.discard(this.#pop());
      } else if (op === CONTENT) {
        this.#length -= 1;
        const shared = this.#pop();
        this.#length -= 3;
        const slot = this.#pop();
        this.#length -= 1;
        this.#free(slot, shared);
      } else if (op === CUT) {
        const count = this.#pop();
        this.#length -= 2;
        const first = this.#pop();
        if (count > FREED_AT_ONCE_MAX) this.#discardLater(first);
        else this.#entries.discardChain(first, count);
      } else {
        this.#length -= 2;
      }
    }
  }

  /** Puts everything back. */
  rollback(queue: MirroredQueue): void {
    const entries = this.#entries;
    while (this.#length > 0) {
      const op = this.#pop();
      if (op === LINKED) {
        const row = this.#pop();
        entries.unlink(queue, row);
        entries.discard(row);
      } else if (op === UNLINKED) {
        const position = this.#pop();
        const row = this.#pop();
        entries.link(queue, row, position, entries.prevOf(row));
      } else if (op === CONTENT) {
        this.#putBackContent(queue);
      } else if (op === CUT) {
        this.#length -= 1;
        const before = this.#pop();
        const last = this.#pop();
        entries.attach(queue, this.#pop(), last, before);
      } else {
        const before = this.#notes[this.#pop()];
        const row = this.#pop();
        if (before !== undefined) entries.setNote(row, before.bytes, before.crc);
      }
    }
    queue.refillRow = this.#refillRow;
    queue.pullRow = this.#pullRow;
    queue.epoch = this.#epoch;
    queue.role = this.#role;
    queue.members = this.#members;
  }

  #putBackContent(queue: MirroredQueue): void {
    const entries = this.#entries;
    const noteBytes = this.#pop();
    const shared = this.#pop();
    const crc = this.#pop();
    const headBytes = this.#pop();
    const bodyBytes = this.#pop();
    const slot = this.#pop();
    const row = this.#pop();
    this.#free(entries.slotOf(row), entries.sharedOf(row));
    entries.setContent(queue, row, slot, bodyBytes, headBytes, crc, shared, noteBytes);
  }

  #free(slot: number, shared: number): void {
    if (slot !== 0) this.#segments.free(slot);
    if (shared !== 0) this.#shared.release(shared);
  }

  #push(value: number): void {
    this.#ops[this.#length] = value;
    this.#length += 1;
  }

  #pop(): number {
    this.#length -= 1;
    return this.#ops[this.#length] ?? 0;
  }
}
