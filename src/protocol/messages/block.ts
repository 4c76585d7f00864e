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
import type { Packer } from '../../platform/ports.js';
import { isBoolean, isBytes, isHandle, isRows, isWhole, unpackControl } from '../fields.js';
import { InvalidMessage } from '../invalid.js';
import {
  ENTRY_ROW_BYTES, checkEntryRow, entryBodyInFrame, entryHeadBytes, entryNoteBytes, entryPosition,
} from '../entry-rows.js';
import { areTextRows } from '../text-rows.js';

export interface Block {
  readonly handle: number;
  readonly afterPosition: number;
  readonly nextPosition: number;
  readonly end: boolean;
  readonly rows: Uint8Array;
  readonly texts: Uint8Array;
}

export function encodeBlock(packer: Packer, message: Block): Uint8Array {
  return packer.pack([
    message.handle, message.afterPosition, message.nextPosition, message.end, message.rows, message.texts,
  ]);
}

export function decodeBlock(packer: Packer, control: Uint8Array): Block | InvalidMessage {
  const values = unpackControl(packer, control, 6);
  if (values instanceof InvalidMessage) return values;
  const [handle, afterPosition, nextPosition, end, rows, texts] = values;
  if (!isHandle(handle)) return new InvalidMessage('handle');
  if (!isWhole(afterPosition)) return new InvalidMessage('afterPosition');
  if (!isWhole(nextPosition)) return new InvalidMessage('nextPosition');
  if (!isBoolean(end)) return new InvalidMessage('end');
  if (!isRows(rows, ENTRY_ROW_BYTES)) return new InvalidMessage('rows');
  if (!isBytes(texts) || !areTextRows(texts)) return new InvalidMessage('texts');
  return { handle, afterPosition, nextPosition, end, rows, texts };
}

/** '' when the rows are such that the protocol allows, in order, and describe the bodies to the byte; else the broken rule. */
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
