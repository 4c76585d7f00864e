/**
 * DROP: the queue is given up: its entries and its name go, the handle is free.
 *
 *   element  wire  field   meaning
 *   0        u31   handle  the queue
 *
 * Answered by ACK or REFUSAL.
 */
import type { Packer } from '../../platform/ports.js';
import { isHandle, unpackControl } from '../fields.js';
import { InvalidMessage } from '../invalid.js';

export interface Drop {
  readonly handle: number;
}

export function encodeDrop(packer: Packer, message: Drop): Uint8Array {
  return packer.pack([message.handle]);
}

export function decodeDrop(packer: Packer, control: Uint8Array): Drop | InvalidMessage {
  const values = unpackControl(packer, control, 1);
  if (values instanceof InvalidMessage) return values;
  const [handle] = values;
  if (!isHandle(handle)) return new InvalidMessage('handle');
  return { handle };
}
