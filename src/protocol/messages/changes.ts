/**
 * CHANGES: what changed in one or many partitions in one turn of the gateway. The hot message: neither side
 * makes an object for a section or a row.
 *
 *   element  wire  field        meaning
 *   0        u31   handle       of the FENCE           ┐
 *   1        u53   firstNumber  of the first row, ≥ 1  │ a section; up to 8,192 of them,
 *   2        u32   digestA      after the last row     │ a partition at most once
 *   3        u32   digestB                             │
 *   4        bin   rows         change-rows.ts, ≥ 1    ┘
 *   5 …                         the next section
 *
 * The payloads follow as bodies, in the order of sections and rows.
 *
 * Answered by ACK; by a REFUSAL for each section that was not applied. That a partition comes once is the
 * sender's promise; for a receiver a second section is one with the next number.
 */
import type { Packer } from '../../platform/ports.js';
import { CHANGE_ROW_BYTES, ROOM_BYTES_MAX } from '../change-rows.js';
import { isHandle, isRows, isUint32, isWhole } from '../fields.js';
import { type FlatElement, readFlatArray } from '../flat-array.js';
import { InvalidMessage } from '../invalid.js';

const SECTION_ELEMENTS = 5;
/** More partitions than one turn touches, with room in the element limit of bounds.ts. */
export const SECTIONS_MAX = 8192;

/**
 * Payload that no credit pays for, notes: a frame is ended when it has so much. With the
 * longest note behind it that is below what a store holds of one frame however full it is (UNPAID_BYTES_MAX).
 */
export const UNPAID_TARGET_BYTES = 16 * 1024;
/** Two sections of a frame, each up to its target, and the note that reaches it in the second. */
export const UNPAID_BYTES_MAX = 2 * UNPAID_TARGET_BYTES + ROOM_BYTES_MAX;

/**
 * Of reports, what a gateway has at a store beyond its credit at most: the longest one, alone. A store keeps
 * room for it that refills leave, so that no report, and no change that stands behind it, is refused for
 * memory.
 */
export const REPORTS_BEYOND_CREDIT_BYTES_MAX = 512 * 1024;

/** Flat: handle, firstNumber, digestA, digestB, rows, handle, … Read it with the functions below. */
export type Changes = readonly FlatElement[];

export function encodeChanges(packer: Packer, changes: Changes): Uint8Array {
  return packer.pack(changes);
}

/** The rows are views of `control`. Rows themselves are not looked at: checkChangeRow, while walking them. */
export function decodeChanges(_packer: Packer, control: Uint8Array): Changes | InvalidMessage {
  const values = readFlatArray(control);
  if (values instanceof InvalidMessage) return values;
  const count = values.length;
  if (count === 0 || count % SECTION_ELEMENTS !== 0) return new InvalidMessage('element count');
  if (count > SECTIONS_MAX * SECTION_ELEMENTS) return new InvalidMessage('section count');
  for (let i = 0; i < count; i += SECTION_ELEMENTS) {
    const rows = values[i + 4];
    const firstNumber = values[i + 1];
    if (!isHandle(values[i])) return new InvalidMessage('handle');
    if (!isWhole(firstNumber) || firstNumber === 0) return new InvalidMessage('firstNumber');
    if (!isUint32(values[i + 2])) return new InvalidMessage('digestA');
    if (!isUint32(values[i + 3])) return new InvalidMessage('digestB');
    if (!isRows(rows, CHANGE_ROW_BYTES) || rows.length === 0) return new InvalidMessage('rows');
  }
  return values;
}

export function sectionCount(changes: Changes): number {
  return changes.length / SECTION_ELEMENTS;
}

export function sectionHandle(changes: Changes, section: number): number {
  return changes[section * SECTION_ELEMENTS] as number;
}

export function sectionFirstNumber(changes: Changes, section: number): number {
  return changes[section * SECTION_ELEMENTS + 1] as number;
}

export function sectionDigestA(changes: Changes, section: number): number {
  return changes[section * SECTION_ELEMENTS + 2] as number;
}

export function sectionDigestB(changes: Changes, section: number): number {
  return changes[section * SECTION_ELEMENTS + 3] as number;
}

export function sectionRows(changes: Changes, section: number): Uint8Array {
  return changes[section * SECTION_ELEMENTS + 4] as Uint8Array;
}
