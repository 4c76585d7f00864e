/**
 * The head of an entry in the control queue: one named record as the bytes that are mirrored.
 *
 *   offset  size  field
 *   0       1     version, 1
 *   1       …     MessagePack array [name str, value bin]
 *
 * What a value means is known to the file that set it. Not here: bounds and lives of records (control-records.ts).
 */
import type { Packer } from '../../platform/ports.js';
import { checkControl } from '../../protocol/bounds.js';

const HEAD_VERSION = 1;

export interface NamedValue {
  readonly name: string;
  readonly value: Uint8Array;
}

export function encodeRecordHead(packer: Packer, name: string, value: Uint8Array): Uint8Array {
  const packed = packer.pack([name, value]);
  const head = new Uint8Array(1 + packed.length);
  head[0] = HEAD_VERSION;
  head.set(packed, 1);
  return head;
}

/** The record, its value copied; undefined for damaged bytes and for a version that this release does not know. */
export function decodeRecordHead(packer: Packer, head: Uint8Array): NamedValue | undefined {
  if (head[0] !== HEAD_VERSION) return undefined;
  const packed = head.subarray(1);
  if (checkControl(packed) !== '') return undefined;
  const values = packer.unpack(packed);
  if (!Array.isArray(values)) return undefined;
  const [name, value] = values as readonly unknown[];
  if (typeof name !== 'string' || !(value instanceof Uint8Array)) return undefined;
  return { name, value: value.slice() };
}
