/**
 * Change rows: the fixed-size description of one numbered change, inside CHANGES and TAILED
 * (docs/PROTOCOL.md, "Change rows"). Written and read in place at an offset of a DataView; a row is never
 * an object, because a store sees millions of them a second.
 *
 *   offset size field
 *   0      1    kind        1 STORE, 2 DELETE, 3 ANNOTATE, 4 WITHDRAW
 *   1      1    flags       1 BODY_ABSENT, 2 SHARED, 4 SKIPPED
 *   2      2    room        u16  STORE: bytes kept for the note, paid for now; else 0
 *   4      4    bodyBytes   u32  STORE; else 0
 *   8      4    headBytes   u32  STORE, ANNOTATE: bytes; DELETE: entries, ≥ 1; WITHDRAW 0
 *   12     4    crc         u32  STORE: of body ‖ head; ANNOTATE: of the head; else 0
 *   16     8    ref         f64  STORE: message id; else position of the entry
 *
 * The number of a change is not in its row: row i of a section is change firstNumber + i. Not here: the
 * sections (messages/changes.ts) and what a change does (kvs/core, gateway/mirror).
 */

export const CHANGE_ROW_BYTES = 24;

export const KIND_STORE = 1;
export const KIND_DELETE = 2;
export const KIND_ANNOTATE = 3;
export const KIND_WITHDRAW = 4;

/** The body does not follow: it is at the store already, under the message id of this row. */
export const FLAG_BODY_ABSENT = 1;
/** Other entries may name this body by its message id. */
export const FLAG_SHARED = 2;
/** Counts in number and digest, does nothing, has no payload. */
export const FLAG_SKIPPED = 4;

const FLAGS_KNOWN = FLAG_BODY_ABSENT | FLAG_SHARED | FLAG_SKIPPED;

/** Of the first word of a row what counts in the digest: kind and room, without the flags. */
export const DIGESTED = 0xffff00ff | 0;

/** Of an entry's room, for the checksum of its note. */
export const NOTE_CRC_BYTES = 4;
/** The room stands in 16 bits. */
export const ROOM_BYTES_MAX = 0xffff;

/** What an entry costs of the credit beside its bytes: row, indexes and slot of a store, rounded up. */
export const CREDIT_OVERHEAD_BYTES = 128;

/** A view for the readers below, made once for a whole rows field. */
export function viewOf(rows: Uint8Array): DataView {
  return new DataView(rows.buffer, rows.byteOffset, rows.byteLength);
}

export function writeChangeRow(
  view: DataView, offset: number,
  kind: number, flags: number, bodyBytes: number, headBytes: number, crc: number, ref: number, room = 0,
): void {
  view.setUint32(offset, kind | (flags << 8) | (room << 16), true);
  view.setUint32(offset + 4, bodyBytes, true);
  view.setUint32(offset + 8, headBytes, true);
  view.setUint32(offset + 12, crc, true);
  view.setFloat64(offset + 16, ref, true);
}

export function changeKind(view: DataView, offset: number): number {
  return view.getUint8(offset);
}

export function changeFlags(view: DataView, offset: number): number {
  return view.getUint8(offset + 1);
}

/** Kind and room, as Digest.add() takes them. */
export function changeDigested(view: DataView, offset: number): number {
  return view.getUint32(offset, true) & DIGESTED;
}

/** Bytes that the entry keeps for its note and the checksum of it. */
export function changeRoom(view: DataView, offset: number): number {
  return view.getUint16(offset + 2, true);
}

export function changeBodyBytes(view: DataView, offset: number): number {
  return view.getUint32(offset + 4, true);
}

/** DELETE: how many entries. */
export function changeHeadBytes(view: DataView, offset: number): number {
  return view.getUint32(offset + 8, true);
}

export function changeCrc(view: DataView, offset: number): number {
  return view.getUint32(offset + 12, true);
}

export function changeRef(view: DataView, offset: number): number {
  return view.getFloat64(offset + 16, true);
}

/** Bytes of this row's body that are in the frame: 0 when absent, skipped, or of a kind without one. */
export function changeBodyInFrame(view: DataView, offset: number): number {
  // Rows of other kinds have bodyBytes 0 by checkChangeRow.
  return (changeFlags(view, offset) & (FLAG_BODY_ABSENT | FLAG_SKIPPED)) === 0
    ? changeBodyBytes(view, offset) : 0;
}

/** Bytes of this row's head that are in the frame: 0 for DELETE, whose headBytes is a count. */
export function changeHeadInFrame(view: DataView, offset: number): number {
  const skipped = (changeFlags(view, offset) & FLAG_SKIPPED) !== 0;
  return skipped || changeKind(view, offset) === KIND_DELETE ? 0 : changeHeadBytes(view, offset);
}

/**
 * What a change takes of the credit that the store granted; 0 for kinds that are never refused for memory.
 */
export function creditCost(
  kind: number, flags: number, bodyBytes: number, headBytes: number, room: number,
): number {
  if (kind !== KIND_STORE) return 0;
  if ((flags & FLAG_SKIPPED) !== 0) return 0;
  return ((flags & FLAG_BODY_ABSENT) === 0 ? bodyBytes : 0) + headBytes + room + CREDIT_OVERHEAD_BYTES;
}

/**
 * '' when the row is one that the protocol allows, else the broken rule. Looks at the row alone: whether the
 * payload is there, its checksum and its position are the receiver's to check.
 */
export function checkChangeRow(view: DataView, offset: number): string {
  const kind = view.getUint8(offset);
  const flags = view.getUint8(offset + 1);
  const ref = view.getFloat64(offset + 16, true);
  if (kind < KIND_STORE || kind > KIND_WITHDRAW) return 'row kind';
  if (!Number.isSafeInteger(ref) || ref < 0) return 'row ref';
  if (kind === KIND_STORE) return (flags & ~FLAGS_KNOWN) === 0 ? '' : 'row flags';
  if (view.getUint16(offset + 2, true) !== 0) return 'row room of a kind that has none';
  if ((flags & ~FLAG_SKIPPED) !== 0) return 'row flags';
  if (view.getUint32(offset + 4, true) !== 0) return 'row body of a kind that has none';
  if (kind === KIND_ANNOTATE) return '';
  if (view.getUint32(offset + 12, true) !== 0) return 'row checksum of a kind without payload';
  const count = view.getUint32(offset + 8, true);
  if (kind === KIND_DELETE) return count >= 1 ? '' : 'row delete count';
  return count === 0 ? '' : 'row head of a kind that has none';
}
