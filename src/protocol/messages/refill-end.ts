/**
 * REFILL_END: the refill is over.
 *
 *   element  wire  field   meaning
 *   0        u31   handle  of the FENCE
 *   1        u53   count   entries sent in REFILL since FENCE how=FILL
 *
 * Answered by ACK, or REFUSAL (COUNT).
 */
import { isHandle, isWhole } from '../fields.js';
import type { MessageOf } from '../layout.js';
import { layout } from '../layout.js';

const refillEnd = layout({
  handle: isHandle,
  count: isWhole,
});
export type RefillEnd = MessageOf<typeof refillEnd>;
export const encodeRefillEnd = refillEnd.encode;
export const decodeRefillEnd = refillEnd.decode;
