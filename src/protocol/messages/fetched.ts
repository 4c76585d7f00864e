/**
 * FETCHED: entries of a partition with their bodies, answering FETCH.
 *
 *   element  wire  field          meaning
 *   0        u31   handle         of its FENCE
 *   1        u53   ask            as asked
 *   2        u53   untilPosition  the last position that this answers for: what is behind it is asked again
 *   3        bin   rows           entry-rows.ts, 40 bytes each, none with BODY_ABSENT; an entry that was
 *                                 asked for, up to untilPosition, and has no row is not in the copy
 *
 * The payloads follow as bodies, in the order of the rows.
 */
import { FLAG_BODY_ABSENT } from '../change-rows.js';
import {
  ENTRY_ROW_BYTES, checkEntryRow, entryBodyBytes, entryFlags, entryHeadBytes, entryNoteBytes, entryPosition,
} from '../entry-rows.js';
import { isHandle, isWhole, rowsOf } from '../fields.js';
import type { MessageOf } from '../layout.js';
import { layout } from '../layout.js';

const fetched = layout({
  handle: isHandle,
  ask: isWhole,
  untilPosition: isWhole,
  rows: rowsOf(ENTRY_ROW_BYTES),
});
export type Fetched = MessageOf<typeof fetched>;
export const encodeFetched = fetched.encode;
export const decodeFetched = fetched.decode;

/**
 * '' when the rows are such that the protocol allows, in order, and describe the bodies to the byte; else the
 * broken rule.
 */
export function fetchedRule({ rows, untilPosition }: Fetched, bodyBytes: number): string {
  const view = new DataView(rows.buffer, rows.byteOffset, rows.length);
  let position = 0;
  let bytes = 0;
  for (let at = 0; at < rows.length; at += ENTRY_ROW_BYTES) {
    const rule = checkEntryRow(view, at);
    if (rule !== '') return rule;
    if ((entryFlags(view, at) & FLAG_BODY_ABSENT) !== 0) return 'row without its body';
    if (entryPosition(view, at) <= position) return 'row order';
    position = entryPosition(view, at);
    bytes += entryBodyBytes(view, at) + entryHeadBytes(view, at) + entryNoteBytes(view, at);
  }
  if (bytes !== bodyBytes) return 'bodies';
  return position <= untilPosition ? '' : 'untilPosition';
}
