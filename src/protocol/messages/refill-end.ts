/**
 * REFILL_END: the refill is over.
 *
 *   element  wire  field   meaning
 *   0        u31   handle  of the FENCE
 *   1        u53   count   entries sent in REFILL since FENCE how=FILL
 *
 * Answered by ACK, or REFUSAL (COUNT).
 */
import type { Packer } from '../../platform/ports.js';
import { isHandle, isWhole, unpackControl } from '../fields.js';
import { InvalidMessage } from '../invalid.js';

export interface RefillEnd {
  readonly handle: number;
  readonly count: number;
}

export function encodeRefillEnd(packer: Packer, message: RefillEnd): Uint8Array {
  return packer.pack([message.handle, message.count]);
}

export function decodeRefillEnd(packer: Packer, control: Uint8Array): RefillEnd | InvalidMessage {
  const values = unpackControl(packer, control, 2);
  if (values instanceof InvalidMessage) return values;
  const [handle, count] = values;
  if (!isHandle(handle)) return new InvalidMessage('handle');
  if (!isWhole(count)) return new InvalidMessage('count');
  return { handle, count };
}
