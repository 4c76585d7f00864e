/**
 * RELEASE: gives a claim back; the queue is its owner's, who claims it before it writes.
 *
 *   element  wire  field   meaning
 *   0        u31   handle  of the CLAIM
 *   1        u53   token   of the CLAIM
 *   2        bool  unused  from version 2 on: the queue was never served by this claim
 *
 * Answered by ACK.
 */
import type { Packer } from '../../platform/ports.js';
import { isBoolean, isHandle, isWhole, unpackControl } from '../fields.js';
import { InvalidMessage } from '../invalid.js';

export interface Release {
  readonly handle: number;
  readonly token: number;
  /** Undefined in version 1, which does not tell. */
  readonly unused: boolean | undefined;
}

const ELEMENTS = 2;
const ELEMENTS_WITH_UNUSED = 3;

export function encodeRelease(packer: Packer, message: Release): Uint8Array {
  return packer.pack(message.unused === undefined ? [message.handle, message.token] : [message.handle, message.token, message.unused]);
}

export function decodeRelease(packer: Packer, control: Uint8Array): Release | InvalidMessage {
  const values = unpackControl(packer, control, ELEMENTS, true);
  if (values instanceof InvalidMessage) return values;
  if (values.length > ELEMENTS_WITH_UNUSED) return new InvalidMessage('element count');
  const [handle, token, unused] = values;
  if (!isHandle(handle)) return new InvalidMessage('handle');
  if (!isWhole(token)) return new InvalidMessage('token');
  if (values.length === ELEMENTS) return { handle, token, unused: undefined };
  if (!isBoolean(unused)) return new InvalidMessage('unused');
  return { handle, token, unused };
}
