/**
 * TEXTS: what next hops said of entries, best effort: a store keeps what it has room for, passes the rest
 * over, and refuses nothing. Sent behind the changes of a turn, and only when nothing waits.
 *
 *   element  wire  field   meaning
 *   0        u31   handle  of its FENCE
 *   1        bin   rows    text-rows.ts, of its entries
 *   2 …                    the next partition, up to 1,024 of them
 *
 * Answered by ACK, whatever became of it. By a handle whose term the copy does not admit nothing is taken.
 */
import type { Packer } from '../../platform/ports.js';
import { isHandle } from '../fields.js';
import { readFlatArray } from '../flat-array.js';
import { InvalidMessage } from '../invalid.js';
import { areTextRows } from '../text-rows.js';

export const TEXTS_PARTITIONS_MAX = 1024;

export interface TextsOfPartition {
  readonly handle: number;
  readonly rows: Uint8Array;
}

export type Texts = readonly TextsOfPartition[];

export function encodeTexts(packer: Packer, texts: Texts): Uint8Array {
  const flat: unknown[] = [];
  for (const { handle, rows } of texts) flat.push(handle, rows);
  return packer.pack(flat);
}

/** The rows are views of `control`. */
export function decodeTexts(_packer: Packer, control: Uint8Array): Texts | InvalidMessage {
  const values = readFlatArray(control);
  if (values instanceof InvalidMessage) return values;
  if (values.length === 0 || values.length % 2 !== 0) return new InvalidMessage('element count');
  if (values.length > 2 * TEXTS_PARTITIONS_MAX) return new InvalidMessage('partition count');
  const texts: TextsOfPartition[] = [];
  for (let i = 0; i < values.length; i += 2) {
    const handle = values[i];
    const rows = values[i + 1];
    if (!isHandle(handle)) return new InvalidMessage('handle');
    if (!areTextRows(rows)) return new InvalidMessage('rows');
    texts.push({ handle, rows });
  }
  return texts;
}
