/**
 * FETCH: asks for entries of a partition whose positions are known, because their bodies were left out of a
 * BLOCK.
 *
 *   element  wire  field      meaning
 *   0        u31   handle     of its FENCE
 *   1        u53   ask        of the asker's choice: the answer repeats it
 *   2        bin   positions  f64 each, little-endian, whole, ≥ 1, ascending; 1 to 4,096 of them
 *
 * Answered by FETCHED.
 */
import { isHandle, isRows, isWhole } from '../fields.js';
import type { MessageOf } from '../layout.js';
import { layout } from '../layout.js';

const POSITION_BYTES = 8;
/** Of the smallest messages as many as a block has; larger ones are bounded by their bytes. */
export const FETCH_POSITIONS_MAX = 4096;

const fetch = layout({
  handle: isHandle,
  ask: isWhole,
  positions: arePositions,
});
export type Fetch = MessageOf<typeof fetch>;
export const encodeFetch = fetch.encode;
export const decodeFetch = fetch.decode;

/** As the field has them. */
export function packPositions(positions: readonly number[]): Uint8Array {
  const bytes = new Uint8Array(positions.length * POSITION_BYTES);
  const view = new DataView(bytes.buffer);
  positions.forEach((position, i) => { view.setFloat64(i * POSITION_BYTES, position, true); });
  return bytes;
}

export function positionCount(positions: Uint8Array): number {
  return positions.length / POSITION_BYTES;
}

export function positionAt(positions: Uint8Array, index: number): number {
  return new DataView(positions.buffer, positions.byteOffset, positions.length).getFloat64(
    index * POSITION_BYTES, true,
  );
}

function arePositions(positions: unknown): positions is Uint8Array {
  if (!isRows(positions, POSITION_BYTES)) return false;
  const count = positionCount(positions);
  if (count < 1 || count > FETCH_POSITIONS_MAX) return false;
  let before = 0;
  for (let i = 0; i < count; i += 1) {
    const position = positionAt(positions, i);
    if (!Number.isSafeInteger(position) || position <= before) return false;
    before = position;
  }
  return true;
}
