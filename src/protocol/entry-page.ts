/**
 * A page of entries as the admin HTTP of gateways and stores hands it out for `export`: the rows and payload
 * of a BLOCK without its frame.
 *
 *   offset  size      field
 *   0       4         rowsBytes, u32 little-endian
 *   4       rowsBytes entry rows (entry-rows.ts), without BODY_ABSENT
 *   …       rest      body ‖ head ‖ note of each row
 *
 * The header PAGE_NEXT of the answer names where the next page begins; without it this was the last.
 */
import { ENTRY_ROW_BYTES, checkEntryRow } from './entry-rows.js';

export const PAGE_NEXT = 'x-twinpost-next';
export const PAGE_TYPE = 'application/x-twinpost-entries';

export interface EntryPage {
  readonly rows: Uint8Array;
  readonly payload: Uint8Array;
}

export function encodeEntryPage(rows: Uint8Array, payload: Uint8Array): Uint8Array {
  const page = new Uint8Array(4 + rows.length + payload.length);
  new DataView(page.buffer).setUint32(0, rows.length, true);
  page.set(rows, 4);
  page.set(payload, 4 + rows.length);
  return page;
}

/** Undefined when the bytes are no such page. */
export function decodeEntryPage(page: Uint8Array): EntryPage | undefined {
  if (page.length < 4) return undefined;
  const view = new DataView(page.buffer, page.byteOffset, page.length);
  const rowsBytes = view.getUint32(0, true);
  if (rowsBytes % ENTRY_ROW_BYTES !== 0 || 4 + rowsBytes > page.length) return undefined;
  let payloadBytes = 0;
  for (let row = 4; row < 4 + rowsBytes; row += ENTRY_ROW_BYTES) {
    if (checkEntryRow(view, row) !== '') return undefined;
    payloadBytes += view.getUint32(row + 4, true) + view.getUint32(row + 8, true)
      + view.getUint32(row + 16, true);
  }
  if (4 + rowsBytes + payloadBytes !== page.length) return undefined;
  return { rows: page.subarray(4, 4 + rowsBytes), payload: page.subarray(4 + rowsBytes) };
}
