/**
 * REFILL: entries for a store that is filled; no numbers, they stand by their positions.
 *
 *   element  wire  field   meaning
 *   0        u31   handle  of the FENCE
 *   1        bin   rows    entry-rows.ts, 40 bytes each
 *
 * Answered by ACK or REFUSAL. The payloads follow as bodies, in the order of the rows.
 */
import type { Packer } from '../../platform/ports.js';
import { isHandle, isRows, unpackControl } from '../fields.js';
import { InvalidMessage } from '../invalid.js';
import { ENTRY_ROW_BYTES } from '../entry-rows.js';

export interface Refill {
  readonly handle: number;
  readonly rows: Uint8Array;
}

export function encodeRefill(packer: Packer, message: Refill): Uint8Array {
  return packer.pack([message.handle, message.rows]);
}

export function decodeRefill(packer: Packer, control: Uint8Array): Refill | InvalidMessage {
  const values = unpackControl(packer, control, 2);
  if (values instanceof InvalidMessage) return values;
  const [handle, rows] = values;
  if (!isHandle(handle)) return new InvalidMessage('handle');
  if (!isRows(rows, ENTRY_ROW_BYTES)) return new InvalidMessage('rows');
  return { handle, rows };
}
