/**
 * PULL_BODIES: asks for entries with their bodies, named one by one. Recovery brings envelopes first; the
 * bodies come as delivery needs them.
 *
 *   element  wire  field      meaning
 *   0        u31   handle     the queue
 *   1        bin   positions  f64 little-endian each, at most 65,536
 *
 * Answered by BLOCK: rows in the order asked, one that is gone is left out.
 */
import type { Packer } from '../../platform/ports.js';
import { isHandle, isRows, unpackControl } from '../fields.js';
import { InvalidMessage } from '../invalid.js';

const POSITION_BYTES = 8;
/** Far above a block; keeps the work for one request in bounds. */
export const PULL_BODIES_MAX = 65_536;

export interface PullBodies {
  readonly handle: number;
  /** Packed positions: packPositions writes them, positionAt reads them. */
  readonly positions: Uint8Array;
}

export function encodePullBodies(packer: Packer, message: PullBodies): Uint8Array {
  return packer.pack([message.handle, message.positions]);
}

export function decodePullBodies(packer: Packer, control: Uint8Array): PullBodies | InvalidMessage {
  const values = unpackControl(packer, control, 2);
  if (values instanceof InvalidMessage) return values;
  const [handle, positions] = values;
  if (!isHandle(handle)) return new InvalidMessage('handle');
  if (!isRows(positions, POSITION_BYTES)) return new InvalidMessage('positions');
  const count = positions.length / POSITION_BYTES;
  if (count > PULL_BODIES_MAX) return new InvalidMessage('position count');
  const view = new DataView(positions.buffer, positions.byteOffset, positions.byteLength);
  for (let i = 0; i < count; i++) {
    const position = view.getFloat64(i * POSITION_BYTES, true);
    if (!Number.isSafeInteger(position) || position < 1) return new InvalidMessage('position');
  }
  return { handle, positions };
}

export function packPositions(positions: ArrayLike<number>): Uint8Array {
  const packed = new Uint8Array(positions.length * POSITION_BYTES);
  const view = new DataView(packed.buffer);
  for (let i = 0; i < positions.length; i++) view.setFloat64(i * POSITION_BYTES, positions[i] ?? 0, true);
  return packed;
}

export function positionCount(packed: Uint8Array): number {
  return packed.length / POSITION_BYTES;
}

export function positionAt(packed: Uint8Array, i: number): number {
  return new DataView(packed.buffer, packed.byteOffset, packed.byteLength).getFloat64(i * POSITION_BYTES, true);
}
