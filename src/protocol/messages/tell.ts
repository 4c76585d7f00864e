/**
 * TELL: a record that is settled in the register, to its members and to who left (rule 15 of docs/model).
 *
 *   element  wire      field      meaning
 *   0        str       partition  GATEWAY/N
 *   1        [record]  record     as settled
 *   2        bool      isOut      the copy here is no member's: it is dropped, unless the record says that it was given up
 *
 * Answered by TOLD.
 */
import type { Packer } from '../../platform/ports.js';
import { isBoolean, unpackControl } from '../fields.js';
import { InvalidMessage } from '../invalid.js';
import type { PartitionRecord } from '../partition-record.js';
import { isPartition } from '../partition-record.js';
import { packRecord, readRecord } from '../wire-record.js';

export interface Tell {
  readonly partition: string;
  readonly record: PartitionRecord;
  readonly isOut: boolean;
}

export function encodeTell(packer: Packer, message: Tell): Uint8Array {
  return packer.pack([message.partition, packRecord(message.record), message.isOut]);
}

export function decodeTell(packer: Packer, control: Uint8Array): Tell | InvalidMessage {
  const values = unpackControl(packer, control, 3);
  if (values instanceof InvalidMessage) return values;
  const [partition, packedRecord, isOut] = values;
  const record = readRecord(packedRecord);
  if (!isPartition(partition)) return new InvalidMessage('partition');
  if (record === undefined) return new InvalidMessage('record');
  if (!isBoolean(isOut)) return new InvalidMessage('isOut');
  return { partition, record, isOut };
}
