/** From rows and payload, as a page or a spill file has them, to files. */
import type { Packer } from '../../platform/ports.js';
import {
  ENTRY_ROW_BYTES, entryBodyBytes, entryBodyInFrame, entryHeadBytes, entryId, entryNoteBytes, entryPosition,
} from '../../protocol/entry-rows.js';
import type { ExportSource } from './exported-message.js';
import { exportedMessage } from './exported-message.js';
import type { ExportFolder } from './folder.js';

/** Finds a body that an earlier record brought; undefined when none did. */
export type BodyFinder = (id: number, bodyBytes: number) => Uint8Array | undefined;

/** Answers how many of the rows lacked their body. The rows were checked. */
export function exportRows(
  packer: Packer, folder: ExportFolder, source: ExportSource, rows: Uint8Array, payload: Uint8Array,
  find: BodyFinder,
): number {
  const view = new DataView(rows.buffer, rows.byteOffset, rows.length);
  let lacking = 0;
  let at = 0;
  for (let row = 0; row < rows.length; row += ENTRY_ROW_BYTES) {
    const inFrame = entryBodyInFrame(view, row);
    const headAt = at + inFrame;
    const noteAt = headAt + entryHeadBytes(view, row);
    const end = noteAt + entryNoteBytes(view, row);
    const body = inFrame === entryBodyBytes(view, row)
      ? payload.subarray(at, headAt) : find(entryId(view, row), entryBodyBytes(view, row));
    if (body === undefined) lacking += 1;
    else {
      const message = exportedMessage(
        packer, source, entryId(view, row), entryPosition(view, row), body.length,
        payload.subarray(headAt, noteAt), payload.subarray(noteAt, end),
      );
      folder.add(source, message, body);
    }
    at = end;
  }
  return lacking;
}
