/**
 * FETCH: asks for entries of a partition whose positions are known, because their bodies were left out of a BLOCK.
 *
 *   element  wire  field      meaning
 *   0        u31   handle     of its FENCE
 *   1        u53   ask        of the asker's choice: the answer repeats it
 *   2        bin   positions  f64 each, little-endian, whole, ≥ 1, ascending; 1 to 4,096 of them
 *
 * Answered by FETCHED.
 */
import type { Packer } from '../../platform/ports.js';
import { isHandle, isRows, isWhole, unpackControl } from '../fields.js';
import { InvalidMessage } from '../invalid.js';

export interface Fetch {
  readonly handle: number;
  readonly ask: number;
  readonly positions: Uint8Array;
}

const POSITION_BYTES = 8;
/** Of the smallest messages as many as a block has; larger ones are bounded by their bytes. */
export const FETCH_POSITIONS_MAX = 4096;

export function encodeFetch(packer: Packer, message: Fetch): Uint8Array {
  return packer.pack([message.handle, message.ask, message.positions]);
}

export function decodeFetch(packer: Packer, control: Uint8Array): Fetch | InvalidMessage {
  const values = unpackControl(packer, control, 3);
  if (values instanceof InvalidMessage) return values;
  const [handle, ask, positions] = values;
  if (!isHandle(handle)) return new InvalidMessage('handle');
  if (!isWhole(ask)) return new InvalidMessage('ask');
  if (!isRows(positions, POSITION_BYTES) || !areAscending(positions)) return new InvalidMessage('positions');
  return { handle, ask, positions };
}

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
  return new DataView(positions.buffer, positions.byteOffset, positions.length).getFloat64(index * POSITION_BYTES, true);
}

function areAscending(positions: Uint8Array): boolean {
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
