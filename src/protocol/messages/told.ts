/**
 * TOLD: the store keeps the record that it was told, or knows a newer one.
 *
 *   element  wire  field      meaning
 *   0        str   partition  as told
 *   1        u53   epoch      of the record told
 *   2        bool  isKept     false: a newer one is known here
 *
 * Answers TELL.
 */
import type { Packer } from '../../platform/ports.js';
import { isBoolean, isWhole, unpackControl } from '../fields.js';
import { InvalidMessage } from '../invalid.js';
import { isPartition } from '../partition-record.js';

export interface Told {
  readonly partition: string;
  readonly epoch: number;
  readonly isKept: boolean;
}

export function encodeTold(packer: Packer, message: Told): Uint8Array {
  return packer.pack([message.partition, message.epoch, message.isKept]);
}

export function decodeTold(packer: Packer, control: Uint8Array): Told | InvalidMessage {
  const values = unpackControl(packer, control, 3);
  if (values instanceof InvalidMessage) return values;
  const [partition, epoch, isKept] = values;
  if (!isPartition(partition)) return new InvalidMessage('partition');
  if (!isWhole(epoch)) return new InvalidMessage('epoch');
  if (!isBoolean(isKept)) return new InvalidMessage('isKept');
  return { partition, epoch, isKept };
}
