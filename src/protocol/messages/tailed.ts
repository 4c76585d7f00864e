/**
 * TAILED: the changes after a number, or that the store has them no more.
 *
 *   element  wire  field        meaning
 *   0        u31   handle       of its FENCE
 *   1        bool  found        the store still has what follows the number with this digest
 *   2        u53   firstNumber  number of the first row
 *   3        u32   digestA      after the last row
 *   4        u32   digestB
 *   5        bin   rows         change-rows.ts, 24 bytes each
 *
 * The payloads follow as bodies, as in CHANGES. An empty `rows` with found: nothing follows.
 */
import {
  CHANGE_ROW_BYTES, changeBodyInFrame, changeHeadInFrame, checkChangeRow, viewOf,
} from '../change-rows.js';
import { isBoolean, isHandle, isUint32, isWhole, rowsOf } from '../fields.js';
import type { MessageOf } from '../layout.js';
import { layout } from '../layout.js';

const tailed = layout({
  handle: isHandle,
  found: isBoolean,
  firstNumber: isWhole,
  digestA: isUint32,
  digestB: isUint32,
  rows: rowsOf(CHANGE_ROW_BYTES),
});
export type Tailed = MessageOf<typeof tailed>;
export const encodeTailed = tailed.encode;
export const decodeTailed = tailed.decode;

/**
 * '' when the rows are such that the protocol allows and describe the bodies to the byte; else the broken
 * rule.
 */
export function tailedRule(tailed: Tailed, bodyBytes: number): string {
  // The rest means nothing then.
  if (!tailed.found) return bodyBytes === 0 ? '' : 'bodies';
  const view = viewOf(tailed.rows);
  let bytes = 0;
  for (let at = 0; at < tailed.rows.length; at += CHANGE_ROW_BYTES) {
    const rule = checkChangeRow(view, at);
    if (rule !== '') return rule;
    bytes += changeBodyInFrame(view, at) + changeHeadInFrame(view, at);
  }
  return bytes === bodyBytes ? '' : 'bodies';
}
