/**
 * LIST: of which partitions has this store a copy that counts, by the newest record that it was told? Changes
 * nothing. Asked for a register that was lost, with records of gateways that are gone too.
 *
 *   element  wire  field  meaning
 *   0        str   after  those behind this name, in the order of their code points; '' from the first on
 *
 * Answered by LISTED.
 */
import type { MessageOf } from '../layout.js';
import { layout } from '../layout.js';
import { isPartition } from '../partition-record.js';

const list = layout({
  after: isPartitionOrNone,
});
export type List = MessageOf<typeof list>;
export const encodeList = list.encode;
export const decodeList = list.decode;

export function isPartitionOrNone(value: unknown): value is string {
  return value === '' || isPartition(value);
}
