/**
 * REFUSAL: one request, or one section of CHANGES, was not applied. From here on the copy refuses
 * everything until FENCE.
 *
 *   element  wire  field     meaning
 *   0        u53   sequence  of the request
 *   1        u31   handle    of the FENCE, 0 if none
 *   2        u8    reason    REFUSAL_… of reasons.ts
 *   3        u53   number    where the copy stands
 *   4        u32   digestA   its digest there
 *   5        u32   digestB
 *   6        str   text      for people: visible ASCII, up to 1,024 characters
 *
 * Comes in order, before any ACK past its sequence.
 */
import { HANDLE_MAX, between, isUint32, isWhole } from '../fields.js';
import type { MessageOf } from '../layout.js';
import { PLAIN_TEXT, layout } from '../layout.js';

const refusal = layout({
  sequence: isWhole,
  handle: between(0, HANDLE_MAX),
  reason: between(1, 255),
  number: isWhole,
  digestA: isUint32,
  digestB: isUint32,
  text: PLAIN_TEXT,
});
export type Refusal = MessageOf<typeof refusal>;
export const encodeRefusal = refusal.encode;
export const decodeRefusal = refusal.decode;
