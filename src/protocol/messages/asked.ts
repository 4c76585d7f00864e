/**
 * ASKED: what a store knows of a partition.
 *
 *   element  wire      field        meaning
 *   0        str       partition    as asked
 *   1        bool      hasCopy      it holds a complete copy in this boot
 *   2        u32       leaseLeftMs  what is left of the lease of the holder asked for; 0: it has run out
 *   3        u53       termNumber   of the highest term taken here; 0: none. A holder of a higher one has
 *                                   not begun here, whatever lease its process has
 *   4        [record]  told         the newest record that was told here; [] when none was
 *
 * Answers ASK.
 */
import { isBoolean, isUint32, isWhole } from '../fields.js';
import type { MessageOf } from '../layout.js';
import { layout } from '../layout.js';
import { isPartition } from '../partition-record.js';
import { TOLD } from '../wire-record.js';

const asked = layout({
  partition: isPartition,
  hasCopy: isBoolean,
  leaseLeftMs: isUint32,
  termNumber: isWhole,
  told: TOLD,
});
export type Asked = MessageOf<typeof asked>;
export const encodeAsked = asked.encode;
export const decodeAsked = asked.decode;
