/**
 * What a section has done so far, so that it can be taken back as a whole: a section is applied row by row
 * and then either committed (what it replaced is freed) or rolled back (what it made is freed, what it took
 * out stands where it stood). A refused section thereby changes nothing (docs/PROTOCOL.md "Applying a
 * section").
 *
 *   LINKED    row                                       undo: unlink, free       commit: -
 *   UNLINKED  row position                              undo: link behind PREV   commit: free
 *   CUT       first last before count               undo: put back           commit: free; very many in steps
 *   NOTE      row index of the old note in notes        undo: write it back      commit: -
 *
 * Operands stand before their op: both walks go backwards. One array of numbers, reused; notes that were
 * written over are copied beside it.
 */

import type { StoredEntries } from './stored-entries.js';
import type { MirroredPartition } from './mirrored-partition.js';

const LINKED = 1;
const UNLINKED = 2;
const CUT = 3;
const NOTE = 4;

/**
 * More entries cut out at once are not freed within the turn, but in steps between turns
 * (partition-table.ts): this many take about half a millisecond.
 */
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
  readonly #entries: StoredEntries;
  readonly #discardLater: (first: number) => void;

  constructor(parts: { readonly entries: StoredEntries; readonly discardLater: (first: number) => void }) {
    this.#entries = parts.entries;
    this.#discardLater = parts.discardLater;
  }

  begin(copy: MirroredPartition): void {
    this.#length = 0;
    if (this.#notes.length > 0) this.#notes = [];
    if (this.#ops.length > KEPT_OPS) this.#ops.length = 0;
    this.#refillRow = copy.refillRow;
    this.#pullRow = copy.pullRow;
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
  rollback(copy: MirroredPartition): void {
    const entries = this.#entries;
    while (this.#length > 0) {
      const op = this.#pop();
      if (op === LINKED) {
        const row = this.#pop();
        entries.unlink(copy, row);
        entries.discard(row);
      } else if (op === UNLINKED) {
        const position = this.#pop();
        const row = this.#pop();
        entries.link(copy, row, position, entries.prevOf(row));
      } else if (op === CUT) {
        this.#length -= 1;
        const before = this.#pop();
        const last = this.#pop();
        entries.attach(copy, this.#pop(), last, before);
      } else {
        const before = this.#notes[this.#pop()];
        const row = this.#pop();
        if (before !== undefined) entries.setNote(row, before.bytes, before.crc);
      }
    }
    copy.refillRow = this.#refillRow;
    copy.pullRow = this.#pullRow;
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
