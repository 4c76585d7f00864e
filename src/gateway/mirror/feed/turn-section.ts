/**
 * What one partition changed in one turn of the event loop: rows of 24 bytes and their payloads, gathered
 * until the end of the turn and sent to every mirror as one section of a CHANGES frame (docs/PROTOCOL.md).
 *
 * Payloads are copied once, into slabs that all partitions of the turn share, and so are the rows when the
 * section is sealed; a section remembers pieces of slabs and holds the slabs until it is let go
 * (payload-slabs.ts). A DELETE of the entry right behind the one just deleted only raises the count of the
 * last row.
 */
import { CHANGE_ROW_BYTES, writeChangeRow } from '../../../protocol/change-rows.js';
import { NO_SLABS } from './payload-slabs.js';
import type { PayloadSlabs, Slab } from './payload-slabs.js';

/** Larger payloads get a buffer of their own: a slab would be mostly waste. */
const OWN_BUFFER_BYTES = 64 * 1024;

/** A sealed section: immutable, shared by the links it goes to. */
export interface SealedSection {
  readonly handle: number;
  readonly firstNumber: number;
  readonly lastNumber: number;
  readonly digestA: number;
  readonly digestB: number;
  readonly rows: Uint8Array;
  readonly pieces: readonly Uint8Array[];
  readonly payloadBytes: number;
  readonly creditBytes: number;
  /** Of the payload, what no credit pays for: notes. */
  readonly unpaidBytes: number;
  /** Bodies of the rows with BODY_ABSENT, in order: for stores that may lack them (whole-section.ts). */
  readonly absent: readonly (readonly Uint8Array[])[];
  /** Bytes that only `absent` keeps in memory. */
  readonly keptBytes: number;
  /** Where rows and pieces lie; held once each. */
  readonly slabs: readonly Slab[];
}

export const NO_BODIES: readonly (readonly Uint8Array[])[] = [];
const NO_PIECES: readonly Uint8Array[] = [];

/** With very many partitions most have a change or two in a turn. */
const INITIAL_ROWS = 8;
const KEPT_ROWS = 4096;
/** A section's objects, its rows' buffer and its part of a slab that is left over. */
export const SECTION_OVERHEAD_BYTES = 512;

export class TurnSection {
  rowCount = 0;
  creditBytes = 0;
  unpaidBytes = 0;
  payloadBytes = 0;
  keptBytes = 0;
  #absent: (readonly Uint8Array[])[] = [];
  #rows = new Uint8Array(INITIAL_ROWS * CHANGE_ROW_BYTES);
  #view = new DataView(this.#rows.buffer);
  /**
   * Undefined: none yet. A sealed section is kept for long, most often with one piece in one slab: so both
   * lists are made to measure.
   */
  #pieces: Uint8Array[] | undefined;
  #held: readonly Slab[] = NO_SLABS;
  #pieceSlab: Slab | undefined;
  #pieceStart = 0;
  #pieceEnd = 0;
  readonly #slabs: PayloadSlabs;

  constructor(slabs: PayloadSlabs) {
    this.#slabs = slabs;
  }

  addRow(
    kind: number, flags: number, bodyBytes: number, headBytes: number, checksum: number, ref: number,
    room: number,
  ): void {
    const offset = this.rowCount * CHANGE_ROW_BYTES;
    if (offset === this.#rows.length) this.#growRows();
    writeChangeRow(this.#view, offset, kind, flags, bodyBytes, headBytes, checksum, ref, room);
    this.rowCount += 1;
  }

  /** What it costs here beyond the credit of its entries: notes, and rows of what ends. */
  get uncountedBytes(): number {
    const bytes = this.payloadBytes + this.keptBytes + this.rowCount * CHANGE_ROW_BYTES;
    return Math.max(0, bytes + SECTION_OVERHEAD_BYTES - this.creditBytes);
  }

  /** One entry more for the DELETE row at the end. */
  extendLastDelete(): void {
    const at = (this.rowCount - 1) * CHANGE_ROW_BYTES + 8;
    this.#view.setUint32(at, this.#view.getUint32(at, true) + 1, true);
  }

  addPayload(bytes: Uint8Array): void {
    const length = bytes.length;
    if (length === 0) return;
    this.payloadBytes += length;
    if (length > OWN_BUFFER_BYTES) {
      this.#closePiece();
      this.#addPiece(bytes.slice());
      return;
    }
    const slabs = this.#slabs;
    slabs.reserve(length);
    if (this.#pieceSlab !== slabs.current || this.#pieceEnd !== slabs.used) {
      this.#closePiece();
      this.#pieceSlab = slabs.current;
      this.#pieceStart = slabs.used;
    }
    this.#hold(slabs.current);
    slabs.current.bytes.set(bytes, slabs.used);
    slabs.used += length;
    this.#pieceEnd = slabs.used;
  }

  /** The row just added names a body that another row brings: kept, in case it is to be sent after all. */
  addAbsent(body: readonly Uint8Array[], keptBytes: number): void {
    this.#absent.push(body);
    this.keptBytes += keptBytes;
  }

  /** The bodies of absent rows, given away. */
  takeAbsent(): readonly (readonly Uint8Array[])[] {
    if (this.#absent.length === 0) return NO_BODIES;
    const absent = this.#absent;
    this.#absent = [];
    return absent;
  }

  /** A copy of the rows, given away. */
  takeRows(): Uint8Array {
    const rows = this.rowBytes();
    const length = rows.length;
    if (length > OWN_BUFFER_BYTES) return rows.slice();
    const slabs = this.#slabs;
    slabs.reserve(length);
    this.#hold(slabs.current);
    const at = slabs.used;
    slabs.current.bytes.set(rows, at);
    slabs.used += length;
    return slabs.current.bytes.subarray(at, at + length);
  }

  /** The slabs with rows and pieces, given away: after takeRows() and takePieces(). */
  takeSlabs(): readonly Slab[] {
    const held = this.#held;
    this.#held = NO_SLABS;
    return held;
  }

  /** Rows as they are now; valid until the next addRow or reset. */
  rowBytes(): Uint8Array {
    return this.#rows.subarray(0, this.rowCount * CHANGE_ROW_BYTES);
  }

  rowView(): DataView {
    return this.#view;
  }

  /** The payload pieces, given away. */
  takePieces(): readonly Uint8Array[] {
    this.#closePiece();
    const pieces = this.#pieces ?? NO_PIECES;
    this.#pieces = undefined;
    return pieces;
  }

  /** Ready for the next turn; memory of an unusually large turn is given back. */
  reset(): void {
    if (this.#rows.length > KEPT_ROWS * CHANGE_ROW_BYTES) {
      this.#rows = new Uint8Array(INITIAL_ROWS * CHANGE_ROW_BYTES);
      this.#view = new DataView(this.#rows.buffer);
    }
    this.rowCount = 0;
    this.creditBytes = 0;
    this.unpaidBytes = 0;
    this.payloadBytes = 0;
    this.keptBytes = 0;
  }

  #closePiece(): void {
    if (this.#pieceSlab !== undefined && this.#pieceEnd > this.#pieceStart) {
      this.#addPiece(this.#pieceSlab.bytes.subarray(this.#pieceStart, this.#pieceEnd));
    }
    this.#pieceSlab = undefined;
    this.#pieceStart = 0;
    this.#pieceEnd = 0;
  }

  #addPiece(piece: Uint8Array): void {
    if (this.#pieces === undefined) this.#pieces = [piece];
    else this.#pieces.push(piece);
  }

  #hold(slab: Slab): void {
    const held = this.#held;
    if (held[held.length - 1] === slab) return;
    slab.holders += 1;
    this.#held = held.length === 0 ? slab.alone : [...held, slab];
  }

  #growRows(): void {
    const grown = new Uint8Array(this.#rows.length * 2);
    grown.set(this.#rows);
    this.#rows = grown;
    this.#view = new DataView(grown.buffer);
  }
}
