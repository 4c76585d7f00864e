/**
 * CONFIRM: does the claim still stand, under the same boot of the store?
 *
 *   element  wire  field   meaning
 *   0        u31   handle  of the CLAIM
 *   1        u53   token   of the CLAIM
 *
 * Answered by CLAIMED.
 */
import type { Packer } from '../../platform/ports.js';
import { isHandle, isWhole, unpackControl } from '../fields.js';
import { InvalidMessage } from '../invalid.js';

export interface Confirm {
  readonly handle: number;
  readonly token: number;
}

export function encodeConfirm(packer: Packer, message: Confirm): Uint8Array {
  return packer.pack([message.handle, message.token]);
}

export function decodeConfirm(packer: Packer, control: Uint8Array): Confirm | InvalidMessage {
  const values = unpackControl(packer, control, 2);
  if (values instanceof InvalidMessage) return values;
  const [handle, token] = values;
  if (!isHandle(handle)) return new InvalidMessage('handle');
  if (!isWhole(token)) return new InvalidMessage('token');
  return { handle, token };
}
