/**
 * REFUSAL: one request, or one section of CHANGES, was not applied. From here on the copy refuses
 * everything until FENCE.
 *
 *   element  wire  field     meaning
 *   0        u53   sequence  of the request
 *   1        u31   handle    of the FENCE, 0 if none
 *   2        u8    reason    REFUSAL_… of reasons.ts
 *   3        u53   number    where the copy stands
 *   4        u32   digestA   its digest there
 *   5        u32   digestB
 *   6        str   text      for people: visible ASCII, up to 1,024 characters
 *
 * Comes in order, before any ACK past its sequence.
 */
import type { Packer } from '../../platform/ports.js';
import { HANDLE_MAX, isBetween, isText, isUint32, isWhole, plainText, unpackControl } from '../fields.js';
import { InvalidMessage } from '../invalid.js';

export interface Refusal {
  readonly sequence: number;
  readonly handle: number;
  readonly reason: number;
  readonly number: number;
  readonly digestA: number;
  readonly digestB: number;
  readonly text: string;
}

export function encodeRefusal(packer: Packer, message: Refusal): Uint8Array {
  return packer.pack([
    message.sequence, message.handle, message.reason, message.number, message.digestA, message.digestB,
    plainText(message.text),
  ]);
}

export function decodeRefusal(packer: Packer, control: Uint8Array): Refusal | InvalidMessage {
  const values = unpackControl(packer, control, 7);
  if (values instanceof InvalidMessage) return values;
  const [sequence, handle, reason, number, digestA, digestB, text] = values;
  if (!isWhole(sequence)) return new InvalidMessage('sequence');
  if (!isBetween(handle, 0, HANDLE_MAX)) return new InvalidMessage('handle');
  if (!isBetween(reason, 1, 255)) return new InvalidMessage('reason');
  if (!isWhole(number)) return new InvalidMessage('number');
  if (!isUint32(digestA)) return new InvalidMessage('digestA');
  if (!isUint32(digestB)) return new InvalidMessage('digestB');
  if (!isText(text)) return new InvalidMessage('text');
  return { sequence, handle, reason, number, digestA, digestB, text };
}
