/**
 * PULL: asks for the entries of a partition, by position, as many as fit.
 *
 *   element  wire  field          meaning
 *   0        u31   handle         of its FENCE
 *   1        u53   afterPosition  entries behind this one; 0 from the first
 *   2        u53   untilPosition  up to this one
 *   3        u32   entriesMax     at most so many, ≥ 1
 *   4        u32   bytesMax       stop when the payload passes this; one entry always comes
 *   5        bool  withBodies     false: heads and notes alone, every row with BODY_ABSENT
 *
 * Answered by BLOCK.
 */
import type { Packer } from '../../platform/ports.js';
import { isBetween, isBoolean, isHandle, isUint32, isWhole, unpackControl } from '../fields.js';
import { InvalidMessage } from '../invalid.js';

export interface Pull {
  readonly handle: number;
  readonly afterPosition: number;
  readonly untilPosition: number;
  readonly entriesMax: number;
  readonly bytesMax: number;
  readonly withBodies: boolean;
}

export function encodePull(packer: Packer, message: Pull): Uint8Array {
  return packer.pack([
    message.handle, message.afterPosition, message.untilPosition, message.entriesMax, message.bytesMax,
    message.withBodies,
  ]);
}

export function decodePull(packer: Packer, control: Uint8Array): Pull | InvalidMessage {
  const values = unpackControl(packer, control, 6);
  if (values instanceof InvalidMessage) return values;
  const [handle, afterPosition, untilPosition, entriesMax, bytesMax, withBodies] = values;
  if (!isHandle(handle)) return new InvalidMessage('handle');
  if (!isWhole(afterPosition)) return new InvalidMessage('afterPosition');
  if (!isWhole(untilPosition)) return new InvalidMessage('untilPosition');
  if (!isBetween(entriesMax, 1, 0xffff_ffff)) return new InvalidMessage('entriesMax');
  if (!isUint32(bytesMax)) return new InvalidMessage('bytesMax');
  if (!isBoolean(withBodies)) return new InvalidMessage('withBodies');
  return { handle, afterPosition, untilPosition, entriesMax, bytesMax, withBodies };
}
