/**
 * FENCED: the term counts at this store, and where the copy stands.
 *
 *   element  wire    field         meaning
 *   0        u31     handle        as asked
 *   1        [term]  term          as asked
 *   2        u8      how           as asked
 *   3        bool    isComplete    the copy has all entries below its number; false while it is filled
 *   4        u53     number        its last change
 *   5        u32     digestA       at that number
 *   6        u32     digestB
 *   7        [term]  lastTerm      of the last change applied here, or of the founding or filling of the copy
 *   8        u32     olderLeaseMs  what is left of leases by lower terms; 0: nobody delivers by one any more
 *   9        u53     count         entries
 *   10       u53     bytes         of bodies, heads and notes
 *   11       u53     holderWallMs  what the wall clock of the process that wrote it last shows; 0: not known
 *
 * Answers FENCE.
 */
import { between, isBoolean, isHandle, isUint32, isWhole } from '../fields.js';
import type { MessageOf } from '../layout.js';
import { layout } from '../layout.js';
import { TERM } from '../wire-record.js';
import { FENCE_FILL, FENCE_JOIN } from './fence.js';

const fenced = layout({
  handle: isHandle,
  term: TERM,
  how: between(FENCE_JOIN, FENCE_FILL),
  isComplete: isBoolean,
  number: isWhole,
  digestA: isUint32,
  digestB: isUint32,
  lastTerm: TERM,
  olderLeaseMs: isUint32,
  count: isWhole,
  bytes: isWhole,
  holderWallMs: isWhole,
});
export type Fenced = MessageOf<typeof fenced>;
export const encodeFenced = fenced.encode;
export const decodeFenced = fenced.decode;
