/**
 * TAIL: asks for the changes that follow a number, as far as the store still has them.
 *
 *   element  wire  field    meaning
 *   0        u31   handle   of its FENCE
 *   1        u53   number   the last one that the asker has
 *   2        u32   digestA  at that number
 *   3        u32   digestB
 *
 * Answered by TAILED.
 */
import type { Packer } from '../../platform/ports.js';
import { isHandle, isUint32, isWhole, unpackControl } from '../fields.js';
import { InvalidMessage } from '../invalid.js';

export interface Tail {
  readonly handle: number;
  readonly number: number;
  readonly digestA: number;
  readonly digestB: number;
}

export function encodeTail(packer: Packer, message: Tail): Uint8Array {
  return packer.pack([message.handle, message.number, message.digestA, message.digestB]);
}

export function decodeTail(packer: Packer, control: Uint8Array): Tail | InvalidMessage {
  const values = unpackControl(packer, control, 4);
  if (values instanceof InvalidMessage) return values;
  const [handle, number, digestA, digestB] = values;
  if (!isHandle(handle)) return new InvalidMessage('handle');
  if (!isWhole(number)) return new InvalidMessage('number');
  if (!isUint32(digestA)) return new InvalidMessage('digestA');
  if (!isUint32(digestB)) return new InvalidMessage('digestB');
  return { handle, number, digestA, digestB };
}
