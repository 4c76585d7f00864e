/**
 * The note of an entry: what has happened to it since it was stored, mirrored by ANNOTATE. An entry
 * without a note has never been tried.
 *
 * A MessagePack array:
 *   [version 1, attempts, dueWallMs, states bin (one byte a recipient), owedChange,
 *    recipient index, code, enhanced, text, …]      four elements for each recipient with a last result
 * `owedChange` is the number of the change that decided an outcome which still has to be reported
 * (docs/GUARANTEES.md "Reports"); 0 when nothing is owed.
 */
import { invariant } from '../../base/invariant.js';
import type { Packer } from '../../platform/ports.js';

const NOTE_VERSION = 1;
const FIXED_ELEMENTS = 5;
const ELEMENTS_PER_RESULT = 4;

/** States of a recipient within an entry; only TO_TRY is ever tried again. */
export const TO_TRY = 0;
export const DONE = 1; // delivered to the next hop
export const ENDED = 2; // failed or expired; reported, or no report is due
export const OWED_FAILURE = 3; // failed; the report is owed
export const OWED_SUCCESS = 4; // delivered; a success report (RFC 3461 NOTIFY=SUCCESS) is owed

/** The last thing a next hop said of a recipient. */
export interface LastResult {
  readonly recipient: number;
  readonly code: number;
  readonly enhanced: string;
  readonly text: string;
}

/** The decoded note; `states` has one element a recipient of the envelope. */
export interface Note {
  readonly attempts: number;
  readonly dueWallMs: number;
  readonly states: Uint8Array;
  readonly owedChange: number;
  readonly results: readonly LastResult[];
}

/** The note of an entry that was never tried. */
export function freshNote(recipientCount: number): Note {
  return { attempts: 0, dueWallMs: 0, states: new Uint8Array(recipientCount), owedChange: 0, results: [] };
}

/** The bytes of a note. */
export function encodeNote(packer: Packer, note: Note): Uint8Array {
  const flat: unknown[] = [NOTE_VERSION, note.attempts, note.dueWallMs, note.states, note.owedChange];
  for (const result of note.results) flat.push(result.recipient, result.code, result.enhanced, result.text);
  return packer.pack(flat);
}

/** The note in bytes of our own making; undefined for a version this release does not know. */
export function decodeNote(packer: Packer, bytes: Uint8Array): Note | undefined {
  const values = packer.unpack(bytes);
  if (!Array.isArray(values) || values[0] !== NOTE_VERSION) return undefined;
  const [, attempts, dueWallMs, states, owedChange] = values as unknown[];
  invariant(typeof attempts === 'number' && typeof dueWallMs === 'number' && typeof owedChange === 'number', 'a note that we encoded holds numbers here');
  invariant(states instanceof Uint8Array, 'a note that we encoded holds the states as bytes');
  const results: LastResult[] = [];
  for (let i = FIXED_ELEMENTS; i + ELEMENTS_PER_RESULT <= values.length; i += ELEMENTS_PER_RESULT) {
    const [recipient, code, enhanced, text] = values.slice(i, i + ELEMENTS_PER_RESULT) as unknown[];
    invariant(typeof recipient === 'number' && typeof code === 'number' && typeof enhanced === 'string' && typeof text === 'string', 'a note that we encoded holds results here');
    results.push({ recipient, code, enhanced, text });
  }
  return { attempts, dueWallMs, states: Uint8Array.from(states), owedChange, results };
}
