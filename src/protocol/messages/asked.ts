/**
 * ASKED: what a store knows of a partition.
 *
 *   element  wire      field        meaning
 *   0        str       partition    as asked
 *   1        bool      hasCopy      it holds a complete copy in this boot
 *   2        u32       leaseLeftMs  what is left of the lease of the holder that was asked for; 0: it has run out
 *   3        [record]  told         the newest record that was told here; [] when none was
 *
 * Answers ASK.
 */
import type { Packer } from '../../platform/ports.js';
import { isBoolean, isUint32, unpackControl } from '../fields.js';
import { InvalidMessage } from '../invalid.js';
import type { PartitionRecord } from '../partition-record.js';
import { isPartition } from '../partition-record.js';
import { packTold, readTold } from '../wire-record.js';

export interface Asked {
  readonly partition: string;
  readonly hasCopy: boolean;
  readonly leaseLeftMs: number;
  readonly told: PartitionRecord | undefined;
}

export function encodeAsked(packer: Packer, message: Asked): Uint8Array {
  return packer.pack([message.partition, message.hasCopy, message.leaseLeftMs, packTold(message.told)]);
}

export function decodeAsked(packer: Packer, control: Uint8Array): Asked | InvalidMessage {
  const values = unpackControl(packer, control, 4);
  if (values instanceof InvalidMessage) return values;
  const [partition, hasCopy, leaseLeftMs, packedTold] = values;
  const told = readTold(packedTold);
  if (!isPartition(partition)) return new InvalidMessage('partition');
  if (!isBoolean(hasCopy)) return new InvalidMessage('hasCopy');
  if (!isUint32(leaseLeftMs)) return new InvalidMessage('leaseLeftMs');
  if (told instanceof InvalidMessage) return told;
  return { partition, hasCopy, leaseLeftMs, told };
}
