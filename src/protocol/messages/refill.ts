/**
 * REFILL: entries for a store that is filled; no numbers, they stand by their positions.
 *
 *   element  wire  field   meaning
 *   0        u31   handle  of the FENCE
 *   1        bin   rows    entry-rows.ts, 40 bytes each
 *
 * Answered by ACK or REFUSAL. The payloads follow as bodies, in the order of the rows.
 */
import { ENTRY_ROW_BYTES } from '../entry-rows.js';
import { isHandle, rowsOf } from '../fields.js';
import type { MessageOf } from '../layout.js';
import { layout } from '../layout.js';

const refill = layout({
  handle: isHandle,
  rows: rowsOf(ENTRY_ROW_BYTES),
});
export type Refill = MessageOf<typeof refill>;
export const encodeRefill = refill.encode;
export const decodeRefill = refill.decode;
