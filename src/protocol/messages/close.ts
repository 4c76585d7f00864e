/**
 * CLOSE: why this connection ends.
 *
 *   element  wire  field   meaning
 *   0        u8    reason  CLOSE_… of reasons.ts; unknown ones are taken
 *   1        str   text    for people: visible ASCII, up to 1,024 characters
 *   2        u53   detail  FENCED: the highest incarnation seen; STOPPING: 1 on an active connection that
 *                          goes on until another CLOSE; else 0
 *
 * Either side sends it; the sender closes after it, but after STOPPING with 1.
 */
import { between, isWhole } from '../fields.js';
import type { MessageOf } from '../layout.js';
import { PLAIN_TEXT, layout } from '../layout.js';

const close = layout({
  reason: between(1, 255),
  text: PLAIN_TEXT,
  detail: isWhole,
});
export type Close = MessageOf<typeof close>;
export const encodeClose = close.encode;
export const decodeClose = close.decode;
