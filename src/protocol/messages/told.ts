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
import { isBoolean, isWhole } from '../fields.js';
import type { MessageOf } from '../layout.js';
import { layout } from '../layout.js';
import { isPartition } from '../partition-record.js';

const told = layout({
  partition: isPartition,
  epoch: isWhole,
  isKept: isBoolean,
});
export type Told = MessageOf<typeof told>;
export const encodeTold = told.encode;
export const decodeTold = told.decode;
