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
import type { Packer } from '../../platform/ports.js';
import { isBoolean, isHandle, isRows, isUint32, isWhole, unpackControl } from '../fields.js';
import { InvalidMessage } from '../invalid.js';
import { CHANGE_ROW_BYTES, changeBodyInFrame, changeHeadInFrame, checkChangeRow, viewOf } from '../change-rows.js';

export interface Tailed {
  readonly handle: number;
  readonly found: boolean;
  readonly firstNumber: number;
  readonly digestA: number;
  readonly digestB: number;
  readonly rows: Uint8Array;
}

export function encodeTailed(packer: Packer, message: Tailed): Uint8Array {
  return packer.pack([
    message.handle, message.found, message.firstNumber, message.digestA, message.digestB, message.rows,
  ]);
}

export function decodeTailed(packer: Packer, control: Uint8Array): Tailed | InvalidMessage {
  const values = unpackControl(packer, control, 6);
  if (values instanceof InvalidMessage) return values;
  const [handle, found, firstNumber, digestA, digestB, rows] = values;
  if (!isHandle(handle)) return new InvalidMessage('handle');
  if (!isBoolean(found)) return new InvalidMessage('found');
  if (!isWhole(firstNumber)) return new InvalidMessage('firstNumber');
  if (!isUint32(digestA)) return new InvalidMessage('digestA');
  if (!isUint32(digestB)) return new InvalidMessage('digestB');
  if (!isRows(rows, CHANGE_ROW_BYTES)) return new InvalidMessage('rows');
  return { handle, found, firstNumber, digestA, digestB, rows };
}

/** '' when the rows are such that the protocol allows and describe the bodies to the byte; else the broken rule. */
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
