/**
 * REFILL_BEGIN: the queue is emptied, stands at this number and digest, and is no member.
 *
 *   element  wire  field    meaning
 *   0        u31   handle   the queue
 *   1        u53   number   live changes go on from here
 *   2        u32   digestA  at that number
 *   3        u32   digestB
 *
 * Answered by ACK or REFUSAL.
 */
import type { Packer } from '../../platform/ports.js';
import { isHandle, isUint32, isWhole, unpackControl } from '../fields.js';
import { InvalidMessage } from '../invalid.js';

export interface RefillBegin {
  readonly handle: number;
  readonly number: number;
  readonly digestA: number;
  readonly digestB: number;
}

export function encodeRefillBegin(packer: Packer, message: RefillBegin): Uint8Array {
  return packer.pack([message.handle, message.number, message.digestA, message.digestB]);
}

export function decodeRefillBegin(packer: Packer, control: Uint8Array): RefillBegin | InvalidMessage {
  const values = unpackControl(packer, control, 4);
  if (values instanceof InvalidMessage) return values;
  const [handle, number, digestA, digestB] = values;
  if (!isHandle(handle)) return new InvalidMessage('handle');
  if (!isWhole(number)) return new InvalidMessage('number');
  if (!isUint32(digestA)) return new InvalidMessage('digestA');
  if (!isUint32(digestB)) return new InvalidMessage('digestB');
  return { handle, number, digestA, digestB };
}
