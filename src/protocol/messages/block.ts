/**
 * BLOCK: entries of a partition, answering PULL.
 *
 *   element  wire  field          meaning
 *   0        u31   handle         of its FENCE
 *   1        u53   afterPosition  as asked
 *   2        u53   nextPosition   position of the last row, from where to ask on; afterPosition if none
 *   3        bool  end            nothing is left up to untilPosition
 *   4        bin   rows           entry-rows.ts, 40 bytes each
 *   5        bin   texts          text-rows.ts, of those of them that have one, in their order; soft state
 *
 * The payloads follow as bodies, in the order of the rows.
 */
import {
  ENTRY_ROW_BYTES, checkEntryRow, entryBodyInFrame, entryHeadBytes, entryNoteBytes, entryPosition,
} from '../entry-rows.js';
import { isBoolean, isHandle, isWhole, rowsOf } from '../fields.js';
import type { MessageOf } from '../layout.js';
import { layout } from '../layout.js';
import { areTextRows } from '../text-rows.js';

const block = layout({
  handle: isHandle,
  afterPosition: isWhole,
  nextPosition: isWhole,
  end: isBoolean,
  rows: rowsOf(ENTRY_ROW_BYTES),
  texts: areTextRows,
});
export type Block = MessageOf<typeof block>;
export const encodeBlock = block.encode;
export const decodeBlock = block.decode;

/**
 * '' when the rows are such that the protocol allows, in order, and describe the bodies to the byte; else the
 * broken rule.
 */
export function blockRule(block: Block, bodyBytes: number): string {
  const { rows } = block;
  const view = new DataView(rows.buffer, rows.byteOffset, rows.length);
  let position = block.afterPosition;
  let bytes = 0;
  for (let at = 0; at < rows.length; at += ENTRY_ROW_BYTES) {
    const rule = checkEntryRow(view, at);
    if (rule !== '') return rule;
    if (entryPosition(view, at) <= position) return 'row order';
    position = entryPosition(view, at);
    bytes += entryBodyInFrame(view, at) + entryHeadBytes(view, at) + entryNoteBytes(view, at);
  }
  if (bytes !== bodyBytes) return 'bodies';
  if (block.nextPosition !== position) return 'nextPosition';
  // Whoever asks on from here would do so for ever.
  return rows.length > 0 || block.end ? '' : 'no row and no end';
}
