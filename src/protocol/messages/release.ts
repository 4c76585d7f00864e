/**
 * RELEASE: gives a claim back; the queue is its owner's, who claims it before it writes.
 *
 *   element  wire  field   meaning
 *   0        u31   handle  of the CLAIM
 *   1        u53   token   of the CLAIM
 *
 * Answered by ACK.
 */
import type { Packer } from '../../platform/ports.js';
import { isHandle, isWhole, unpackControl } from '../fields.js';
import { InvalidMessage } from '../invalid.js';
import { RELEASE } from '../message-types.js';

export const TYPE = RELEASE;

export interface Release {
  readonly handle: number;
  readonly token: number;
}

export function encodeRelease(packer: Packer, message: Release): Uint8Array {
  return packer.pack([message.handle, message.token]);
}

export function decodeRelease(packer: Packer, control: Uint8Array): Release | InvalidMessage {
  const values = unpackControl(packer, control, 2);
  if (values instanceof InvalidMessage) return values;
  const [handle, token] = values;
  if (!isHandle(handle)) return new InvalidMessage('handle');
  if (!isWhole(token)) return new InvalidMessage('token');
  return { handle, token };
}
