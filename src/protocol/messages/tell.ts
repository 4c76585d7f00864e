/**
 * TELL: a record that is settled in the register, to its members and to who left (rule 15 of docs/model).
 *
 *   element  wire      field      meaning
 *   0        str       partition  GATEWAY/N
 *   1        [record]  record     as settled
 *   2        bool      isOut      the copy here is no member's: it is dropped, unless it was given up
 *
 * Answered by TOLD.
 */
import { isBoolean } from '../fields.js';
import type { MessageOf } from '../layout.js';
import { layout } from '../layout.js';
import { isPartition } from '../partition-record.js';
import { RECORD } from '../wire-record.js';

const tell = layout({
  partition: isPartition,
  record: RECORD,
  isOut: isBoolean,
});
export type Tell = MessageOf<typeof tell>;
export const encodeTell = tell.encode;
export const decodeTell = tell.decode;
