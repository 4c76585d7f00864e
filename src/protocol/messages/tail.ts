/**
 * TAIL: asks for the changes that follow a number, as far as the store still has them.
 *
 *   element  wire  field    meaning
 *   0        u31   handle   of its FENCE
 *   1        u53   number   the last one that the asker has
 *   2        u32   digestA  at that number
 *   3        u32   digestB
 *
 * Answered by TAILED.
 */
import { isHandle, isUint32, isWhole } from '../fields.js';
import type { MessageOf } from '../layout.js';
import { layout } from '../layout.js';

const tail = layout({
  handle: isHandle,
  number: isWhole,
  digestA: isUint32,
  digestB: isUint32,
});
export type Tail = MessageOf<typeof tail>;
export const encodeTail = tail.encode;
export const decodeTail = tail.decode;
