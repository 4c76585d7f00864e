/**
 * DECLINED: a FENCE was not accepted, and what is known here instead. Nothing was changed.
 *
 *   element  wire      field   meaning
 *   0        u31       handle  as asked
 *   1        u8        reason  DECLINED_… of reasons.ts
 *   2        [term]    asked   the term of the FENCE
 *   3        [term]    known   the highest that was accepted here; [0, 0]: none
 *   4        [record]  told    the newest record that was told here; [] when none was
 *
 * Answers FENCE.
 */
import { between, isHandle } from '../fields.js';
import type { MessageOf } from '../layout.js';
import { layout } from '../layout.js';
import { DECLINED_FULL, DECLINED_LOWER } from '../reasons.js';
import { TERM, TOLD } from '../wire-record.js';

const declined = layout({
  handle: isHandle,
  reason: between(DECLINED_LOWER, DECLINED_FULL),
  asked: TERM,
  known: TERM,
  told: TOLD,
});
export type Declined = MessageOf<typeof declined>;
export const encodeDeclined = declined.encode;
export const decodeDeclined = declined.decode;
