/**
 * What one queue changed in one turn of the event loop: rows of 24 bytes and their payloads, gathered until
 * the end of the turn and sent to every mirror as one section of a CHANGES frame (docs/PROTOCOL.md).
 *
 * Payloads are copied once, into slabs that all queues of the turn share; a section remembers pieces of
 * slabs. A slab is never written again where a piece lies, so that the socket may read it at leisure.
 * A DELETE of the entry right behind the one just deleted only raises the count of the last row.
 */
import { CHANGE_ROW_BYTES, writeChangeRow } from '../../protocol/change-rows.js';

const SLAB_BYTES = 256 * 1024;
/** Larger payloads get a buffer of their own: a slab would be mostly waste. */
const OWN_BUFFER_BYTES = 64 * 1024;

/** Memory for payloads of a turn. */
export class PayloadSlabs {
  slab = new Uint8Array(SLAB_BYTES);
  used = 0;

  /** Makes room for `bytes` in one piece; the caller writes at slab[used] and raises used. */
  reserve(bytes: number): void {
    if (this.used + bytes <= this.slab.length) return;
    this.slab = new Uint8Array(SLAB_BYTES);
    this.used = 0;
  }
}

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
  /** Bodies of the rows with BODY_ABSENT, in their order: whoever can't be sure that the store has them sends them (whole-section.ts). */
  readonly absent: readonly (readonly Uint8Array[])[];
  /** Bytes that only `absent` keeps in memory. */
  readonly keptBytes: number;
}

export const NO_BODIES: readonly (readonly Uint8Array[])[] = [];

const INITIAL_ROWS = 64;

export class TurnSection {
  rowCount = 0;
  creditBytes = 0;
  payloadBytes = 0;
  keptBytes = 0;
  private absent: (readonly Uint8Array[])[] = [];
  private rows = new Uint8Array(INITIAL_ROWS * CHANGE_ROW_BYTES);
  private view = new DataView(this.rows.buffer);
  private pieces: Uint8Array[] = [];
  private pieceSlab: Uint8Array | undefined;
  private pieceStart = 0;
  private pieceEnd = 0;
  private readonly slabs: PayloadSlabs;

  constructor(slabs: PayloadSlabs) {
    this.slabs = slabs;
  }

  addRow(kind: number, flags: number, bodyBytes: number, headBytes: number, checksum: number, ref: number): void {
    const offset = this.rowCount * CHANGE_ROW_BYTES;
    if (offset === this.rows.length) this.growRows();
    writeChangeRow(this.view, offset, kind, flags, bodyBytes, headBytes, checksum, ref);
    this.rowCount += 1;
  }

  /** One entry more for the DELETE row at the end. */
  extendLastDelete(): void {
    const at = (this.rowCount - 1) * CHANGE_ROW_BYTES + 8;
    this.view.setUint32(at, this.view.getUint32(at, true) + 1, true);
  }

  addPayload(bytes: Uint8Array): void {
    const length = bytes.length;
    if (length === 0) return;
    this.payloadBytes += length;
    if (length > OWN_BUFFER_BYTES) {
      this.closePiece();
      this.pieces.push(bytes.slice());
      return;
    }
    const slabs = this.slabs;
    slabs.reserve(length);
    if (this.pieceSlab !== slabs.slab || this.pieceEnd !== slabs.used) {
      this.closePiece();
      this.pieceSlab = slabs.slab;
      this.pieceStart = slabs.used;
    }
    slabs.slab.set(bytes, slabs.used);
    slabs.used += length;
    this.pieceEnd = slabs.used;
  }

  /** The row just added names a body that another queue's row brings: kept here, in case it must be sent after all. */
  addAbsent(body: readonly Uint8Array[], keptBytes: number): void {
    this.absent.push(body);
    this.keptBytes += keptBytes;
  }

  /** The bodies of absent rows, given away. */
  takeAbsent(): readonly (readonly Uint8Array[])[] {
    if (this.absent.length === 0) return NO_BODIES;
    const absent = this.absent;
    this.absent = [];
    return absent;
  }

  /** Rows as they are now; valid until the next addRow or reset. */
  rowBytes(): Uint8Array {
    return this.rows.subarray(0, this.rowCount * CHANGE_ROW_BYTES);
  }

  rowView(): DataView {
    return this.view;
  }

  /** The payload pieces, given away. */
  takePieces(): Uint8Array[] {
    this.closePiece();
    const pieces = this.pieces;
    this.pieces = [];
    return pieces;
  }

  /** Ready for the next turn; memory of an unusually large turn is given back. */
  reset(): void {
    if (this.rows.length > 64 * INITIAL_ROWS * CHANGE_ROW_BYTES) {
      this.rows = new Uint8Array(INITIAL_ROWS * CHANGE_ROW_BYTES);
      this.view = new DataView(this.rows.buffer);
    }
    this.rowCount = 0;
    this.creditBytes = 0;
    this.payloadBytes = 0;
    this.keptBytes = 0;
  }

  private closePiece(): void {
    if (this.pieceSlab !== undefined && this.pieceEnd > this.pieceStart) this.pieces.push(this.pieceSlab.subarray(this.pieceStart, this.pieceEnd));
    this.pieceSlab = undefined;
    this.pieceStart = 0;
    this.pieceEnd = 0;
  }

  private growRows(): void {
    const grown = new Uint8Array(this.rows.length * 2);
    grown.set(this.rows);
    this.rows = grown;
    this.view = new DataView(grown.buffer);
  }
}
