/**
 * Entry rows: a partition's entries as they are now, inside BLOCK (pulled by a gateway) and REFILL (sent to a
 * store that is filled), by ascending position (docs/PROTOCOL.md, "Entry rows"). Read and written in place.
 *
 *   offset size field
 *   0      1    flags       1 BODY_ABSENT, 2 SHARED, 4 DAMAGED (alone)
 *   1      1    0
 *   2      2    room        u16  bytes kept for the note: with its checksum it has no more
 *   4      4    bodyBytes   u32
 *   8      4    headBytes   u32
 *   12     4    crc         u32  of body ‖ head
 *   16     4    noteBytes   u32
 *   20     4    noteCrc     u32
 *   24     8    id          f64  message id
 *   32     8    position    f64  ≥ 1
 *
 * The payload of a row is body ‖ head ‖ note; the body is left out with BODY_ABSENT.
 * FLAG_BODY_ABSENT and FLAG_SHARED are those of change-rows.ts. With DAMAGED the bytes are not what was
 * accepted: crc is of that, so that whoever reads them finds it out again.
 */
import { FLAG_BODY_ABSENT, FLAG_SHARED, NOTE_CRC_BYTES } from './change-rows.js';

export const ENTRY_ROW_BYTES = 40;

/** Its bytes are damaged for good: they are kept for a person as they are, without a look at the checksum. */
export const FLAG_DAMAGED = 4;

const FLAGS_KNOWN = FLAG_BODY_ABSENT | FLAG_SHARED | FLAG_DAMAGED;

export function writeEntryRow(
  view: DataView, offset: number,
  flags: number, bodyBytes: number, headBytes: number, crc: number,
  noteBytes: number, noteCrc: number, id: number, position: number, room: number,
): void {
  view.setUint32(offset, flags | (room << 16), true);
  view.setUint32(offset + 4, bodyBytes, true);
  view.setUint32(offset + 8, headBytes, true);
  view.setUint32(offset + 12, crc, true);
  view.setUint32(offset + 16, noteBytes, true);
  view.setUint32(offset + 20, noteCrc, true);
  view.setFloat64(offset + 24, id, true);
  view.setFloat64(offset + 32, position, true);
}

export function entryFlags(view: DataView, offset: number): number {
  return view.getUint8(offset);
}

/** Bytes that the entry keeps for its note and the checksum of it. */
export function entryRoom(view: DataView, offset: number): number {
  return view.getUint16(offset + 2, true);
}

export function entryBodyBytes(view: DataView, offset: number): number {
  return view.getUint32(offset + 4, true);
}

export function entryHeadBytes(view: DataView, offset: number): number {
  return view.getUint32(offset + 8, true);
}

export function entryCrc(view: DataView, offset: number): number {
  return view.getUint32(offset + 12, true);
}

export function entryNoteBytes(view: DataView, offset: number): number {
  return view.getUint32(offset + 16, true);
}

export function entryNoteCrc(view: DataView, offset: number): number {
  return view.getUint32(offset + 20, true);
}

export function entryId(view: DataView, offset: number): number {
  return view.getFloat64(offset + 24, true);
}

export function entryPosition(view: DataView, offset: number): number {
  return view.getFloat64(offset + 32, true);
}

/** Bytes of this row's body that are in the frame. */
export function entryBodyInFrame(view: DataView, offset: number): number {
  return (entryFlags(view, offset) & FLAG_BODY_ABSENT) === 0 ? entryBodyBytes(view, offset) : 0;
}

/**
 * '' when the row is one that the protocol allows, else the broken rule. Ascending order is the receiver's to
 * check.
 */
export function checkEntryRow(view: DataView, offset: number): string {
  const id = view.getFloat64(offset + 24, true);
  const position = view.getFloat64(offset + 32, true);
  const noteBytes = view.getUint32(offset + 16, true);
  // Half a word holds the flags and the byte that must be 0.
  const flags = view.getUint16(offset, true);
  if ((flags & ~FLAGS_KNOWN) !== 0 || flags > FLAG_DAMAGED) return 'row flags';
  if (!Number.isSafeInteger(id) || id < 0) return 'row id';
  if (!Number.isSafeInteger(position) || position < 1) return 'row position';
  if (noteBytes === 0 && view.getUint32(offset + 20, true) !== 0) return 'row checksum without a note';
  if (noteBytes > 0 && noteBytes + NOTE_CRC_BYTES > entryRoom(view, offset)) {
    return 'row note beyond its room';
  }
  return '';
}
