/**
 * The note of an entry: what has happened to it since it was stored, mirrored by ANNOTATE. An entry
 * without a note has never been tried.
 *
 * A MessagePack array:
 *   [version 1, attempts, dueWallMs, states bin (one byte a recipient), owedChange,
 *    tries, held since (milliseconds since 1970, 0 = not held), who holds it, why,
 *    recipient index, code, enhanced, text, …]      four elements for each recipient with a last result
 * `owedChange` is the number of the change that decided an outcome which still has to be reported
 * (docs/GUARANTEES.md "Reports"); 0 when nothing is owed. `tries` counts the processes that began work on the
 * message which may end them (report-job.ts); 0 when none does.
 */
import { cutText } from '../../base/cut-text.js';
import { invariant } from '../../base/invariant.js';
import type { Packer } from '../../platform/ports.js';

const NOTE_VERSION = 1;
const HOLD_AT = 5;
const FIXED_ELEMENTS = 9;
const ELEMENTS_PER_RESULT = 4;
/** What a hold may take at the mirrors for its texts: the log has all of them. */
const HOLD_WHO_BYTES_MAX = 64;
const HOLD_REASON_BYTES_MAX = 192;

/** Processes that began such work and ended with it, after which the message is held instead. */
export const TRIES_MAX = 2;

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

/** An operator keeps the entry back. */
export interface Hold {
  readonly sinceWallMs: number;
  readonly who: string;
  readonly reason: string;
}

/** The decoded note; `states` has one element a recipient of the envelope. */
export interface Note {
  readonly attempts: number;
  readonly dueWallMs: number;
  readonly states: Uint8Array;
  readonly owedChange: number;
  readonly tries: number;
  readonly hold: Hold | undefined;
  readonly results: readonly LastResult[];
}

/** The note of an entry that was never tried. */
export function freshNote(recipientCount: number): Note {
  const states = new Uint8Array(recipientCount);
  return { attempts: 0, dueWallMs: 0, states, owedChange: 0, tries: 0, hold: undefined, results: [] };
}

/** A hold as it is mirrored: its texts are cut. */
export function makeHold(who: string, reason: string, sinceWallMs: number): Hold {
  return { sinceWallMs, who: cutText(who, HOLD_WHO_BYTES_MAX), reason: cutText(reason, HOLD_REASON_BYTES_MAX) };
}

/** The bytes of a note. */
export function encodeNote(packer: Packer, note: Note): Uint8Array {
  const { hold } = note;
  const flat: unknown[] = [NOTE_VERSION, note.attempts, note.dueWallMs, note.states, note.owedChange];
  flat.push(note.tries, hold?.sinceWallMs ?? 0, hold?.who ?? '', hold?.reason ?? '');
  for (const result of note.results) flat.push(result.recipient, result.code, result.enhanced, result.text);
  return packer.pack(flat);
}

/** The note in bytes of our own making; undefined for a version this release does not know. */
export function decodeNote(packer: Packer, bytes: Uint8Array): Note | undefined {
  const values = packer.unpack(bytes);
  if (!Array.isArray(values) || values[0] !== NOTE_VERSION) return undefined;
  const [, attempts, dueWallMs, states, owedChange] = values as unknown[];
  const [tries, sinceWallMs, who, reason] = values.slice(HOLD_AT) as unknown[];
  invariant(typeof attempts === 'number' && typeof dueWallMs === 'number' && typeof owedChange === 'number', 'a note that we encoded holds numbers here');
  invariant(states instanceof Uint8Array, 'a note that we encoded holds the states as bytes');
  invariant(typeof tries === 'number' && typeof sinceWallMs === 'number', 'a note of ours holds tries and a time');
  invariant(typeof who === 'string' && typeof reason === 'string', 'a note of ours holds the texts of a hold');
  const hold = sinceWallMs === 0 ? undefined : { sinceWallMs, who, reason };
  const results: LastResult[] = [];
  for (let i = FIXED_ELEMENTS; i + ELEMENTS_PER_RESULT <= values.length; i += ELEMENTS_PER_RESULT) {
    const [recipient, code, enhanced, text] = values.slice(i, i + ELEMENTS_PER_RESULT) as unknown[];
    invariant(typeof recipient === 'number' && typeof code === 'number' && typeof enhanced === 'string' && typeof text === 'string', 'a note that we encoded holds results here');
    results.push({ recipient, code, enhanced, text });
  }
  return { attempts, dueWallMs, states: Uint8Array.from(states), owedChange, tries, hold, results };
}
