/**
 * RELEASE: the holder hands the partition of this handle back: it delivers nothing of it any more, so nobody has to
 * wait for what it was leased here (rule 13 of docs/model).
 *
 *   element  wire  field   meaning
 *   0        u31   handle  of the FENCE
 *
 * Answered by ACK.
 */
import type { Packer } from '../../platform/ports.js';
import { isHandle, unpackControl } from '../fields.js';
import { InvalidMessage } from '../invalid.js';

export interface Release {
  readonly handle: number;
}

export function encodeRelease(packer: Packer, message: Release): Uint8Array {
  return packer.pack([message.handle]);
}

export function decodeRelease(packer: Packer, control: Uint8Array): Release | InvalidMessage {
  const values = unpackControl(packer, control, 1);
  if (values instanceof InvalidMessage) return values;
  const [handle] = values;
  return isHandle(handle) ? { handle } : new InvalidMessage('handle');
}
