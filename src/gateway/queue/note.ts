/**
 * The note of an entry: what has happened to it since it was stored, mirrored by ANNOTATE. An entry
 * without a note has never been tried.
 *
 * Its size follows from the number of recipients alone, so that the entry is stored with room for it
 * (noteRoom): whatever happens later takes no memory, at the stores or here. Little-endian:
 *
 *   offset size field
 *   0      1    version      3
 *   1      1    attempts     255 stands for more
 *   2      6    dueWallMs    u48
 *   8      6    owedChange   u48, number of the change that decided an outcome which still has to be reported
 *                            (docs/GUARANTEES.md "Reports"); 0 when nothing is owed
 *   14     1    tries        processes that began work on the message which may end them (report-job.ts);
 *                            0 when none does
 *   15     6    heldSince    u48, milliseconds since 1970, by an operator; 0 when not held
 *   21     1    1: the sender was told of the delay (delay-reports.ts); 2: dueWallMs is of an operator, who
 *               delays it (message-holds.ts); 4: heldSince is of a hold that stands
 *               (orders/standing-orders.ts), and it goes on when none does
 *   22     4    addedSeconds u32, by which it lives longer than its head says: held, or delayed
 *   26     6    for each recipient: state u8, reply code u16, enhanced status code u24 (class, 10 bits
 *               subject, 10 bits detail); codes of 0 when there was no result
 *
 * What a next hop said besides, and who holds the entry and why, are words: not here but in entry-texts.ts,
 * for they may get lost.
 */
import { invariant } from '../../base/invariant.js';
import { NOTE_CRC_BYTES, ROOM_BYTES_MAX } from '../../protocol/change-rows.js';
import type { Envelope } from '../mail-types.js';
import { ALIAS_EXPANDED } from '../mail-types.js';

const NOTE_VERSION = 3;
const FIXED_BYTES = 26;
const DUE_AT = 2;
const OWED_AT = 8;
const TRIES_AT = 14;
const FLAGS_AT = 21;
const FLAG_DELAY_TOLD = 1;
const FLAG_DELAYED = 2;
const FLAG_HELD_BY_RULE = 4;
const ADDED_AT = 22;
const RECIPIENT_BYTES = 6;
const BYTE_MAX = 0xff;
const HIGH_WORD = 2 ** 32;

/** Processes that began such work and ended with it, after which the message is held instead. */
export const TRIES_MAX = 2;

/** States of a recipient within an entry; only TO_TRY is ever tried again. */
export const TO_TRY = 0;
export const DONE = 1; // delivered to the next hop
export const ENDED = 2; // failed or expired; reported, or no report is due
export const OWED_FAILURE = 3; // failed; the report is owed
export const OWED_SUCCESS = 4; // delivered; a success report (RFC 3461 NOTIFY=SUCCESS) is owed

/** By these numbers, as operators read them. */
export const RECIPIENT_STATE_NAMES =
  ['waiting', 'delivered', 'ended', 'failed, report owed', 'delivered, report owed'] as const;

/** Of one who has failed and is not to be reported, or was: a list was expanded for it all the same. */
export function failedState({ reversePath, recipients }: Envelope, index: number): number {
  const bits = recipients[index]?.notify ?? 0;
  return (bits & ALIAS_EXPANDED) !== 0 && reversePath !== '' ? OWED_SUCCESS : ENDED;
}

/** The last thing a next hop said of a recipient, in numbers. */
export interface LastResult {
  readonly recipient: number;
  readonly code: number;
  readonly enhanced: string;
}

/** The decoded note; `states` has one element a recipient of the envelope. */
export interface Note {
  readonly attempts: number;
  readonly dueWallMs: number;
  readonly states: Uint8Array;
  readonly owedChange: number;
  readonly tries: number;
  /** Since when an operator keeps the entry back; 0 when none does. */
  readonly heldSinceWallMs: number;
  /** It is held by a hold that stands, and goes on when none does. */
  readonly isHeldByRule: boolean;
  readonly isDelayTold: boolean;
  /** An operator wants it tried not before dueWallMs. What is over by then is said by no change. */
  readonly isDelayed: boolean;
  /** By which it lives longer than its head says. */
  readonly addedSeconds: number;
  readonly results: readonly LastResult[];
}

/**
 * What an entry with so many recipients keeps for its note and a checksum: told to the stores,
 * and paid for, with STORE.
 */
export function noteRoom(recipientCount: number): number {
  const room = NOTE_CRC_BYTES + FIXED_BYTES + recipientCount * RECIPIENT_BYTES;
  const isEnough = room <= ROOM_BYTES_MAX;
  invariant(isEnough, 'no message has more recipients than a note can tell of (config: recipient_limit)');
  return room;
}

/** The note of an entry that was never tried. */
export function freshNote(recipientCount: number): Note {
  const states = new Uint8Array(recipientCount);
  return {
    attempts: 0, dueWallMs: 0, states,
    owedChange: 0, tries: 0, heldSinceWallMs: 0, isHeldByRule: false, isDelayTold: false, isDelayed: false,
    addedSeconds: 0, results: [],
  };
}

/** By which an entry with this note lives longer than its head says. */
export function addedSecondsIn(note: Uint8Array): number {
  if (note[0] !== NOTE_VERSION || note.length < FIXED_BYTES) return 0;
  return new DataView(note.buffer, note.byteOffset, note.length).getUint32(ADDED_AT, true);
}

/** Until when an operator delays it, by the clock of who wrote it; 0 when none does. */
export function delayedUntilIn(note: Uint8Array): number {
  if (note[0] !== NOTE_VERSION || note.length < FIXED_BYTES) return 0;
  const view = new DataView(note.buffer, note.byteOffset, note.length);
  return (view.getUint8(FLAGS_AT) & FLAG_DELAYED) === 0 ? 0 : readUint48(view, DUE_AT);
}

/** A report is owed of the entry with this note. */
export function owesReportIn(note: Uint8Array): boolean {
  if (note[0] !== NOTE_VERSION || note.length < FIXED_BYTES) return false;
  return readUint48(new DataView(note.buffer, note.byteOffset, note.length), OWED_AT) !== 0;
}

/** Processes that began work on the entry with this note. */
export function triesIn(note: Uint8Array): number {
  return note[0] === NOTE_VERSION ? note[TRIES_AT] ?? 0 : 0;
}

/** The bytes of a note. */
export function encodeNote(note: Note): Uint8Array {
  const bytes = new Uint8Array(FIXED_BYTES + note.states.length * RECIPIENT_BYTES);
  const view = new DataView(bytes.buffer);
  bytes[0] = NOTE_VERSION;
  bytes[1] = Math.min(note.attempts, BYTE_MAX);
  writeUint48(view, DUE_AT, Math.max(0, Math.floor(note.dueWallMs)));
  writeUint48(view, OWED_AT, note.owedChange);
  bytes[TRIES_AT] = Math.min(note.tries, BYTE_MAX);
  writeUint48(view, 15, note.heldSinceWallMs);
  bytes[FLAGS_AT] = (note.isDelayTold ? FLAG_DELAY_TOLD : 0) | (note.isDelayed ? FLAG_DELAYED : 0)
    | (note.isHeldByRule ? FLAG_HELD_BY_RULE : 0);
  view.setUint32(ADDED_AT, note.addedSeconds, true);
  const { states } = note;
  for (let i = 0; i < states.length; i++) bytes[FIXED_BYTES + i * RECIPIENT_BYTES] = states[i] ?? TO_TRY;
  for (const { recipient, code, enhanced } of note.results) {
    const at = FIXED_BYTES + recipient * RECIPIENT_BYTES;
    view.setUint16(at + 1, code, true);
    const packed = packEnhanced(enhanced);
    view.setUint16(at + 3, packed, true);
    view.setUint8(at + 5, packed >>> 16);
  }
  return bytes;
}

/** The note in bytes of our own making; undefined for a version this release does not know. */
export function decodeNote(bytes: Uint8Array): Note | undefined {
  const recipients = (bytes.length - FIXED_BYTES) / RECIPIENT_BYTES;
  if (bytes[0] !== NOTE_VERSION || recipients < 0 || !Number.isInteger(recipients)) return undefined;
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  const states = new Uint8Array(recipients);
  const results: LastResult[] = [];
  for (let recipient = 0; recipient < recipients; recipient++) {
    const at = FIXED_BYTES + recipient * RECIPIENT_BYTES;
    states[recipient] = view.getUint8(at);
    const code = view.getUint16(at + 1, true);
    const packed = view.getUint16(at + 3, true) | (view.getUint8(at + 5) << 16);
    if (code !== 0 || packed !== 0) results.push({ recipient, code, enhanced: enhancedOf(packed) });
  }
  return {
    attempts: view.getUint8(1), dueWallMs: readUint48(view, DUE_AT), states,
    owedChange: readUint48(view, OWED_AT), tries: triesIn(bytes), heldSinceWallMs: readUint48(view, 15),
    isDelayTold: (view.getUint8(FLAGS_AT) & FLAG_DELAY_TOLD) !== 0,
    isDelayed: (view.getUint8(FLAGS_AT) & FLAG_DELAYED) !== 0,
    isHeldByRule: (view.getUint8(FLAGS_AT) & FLAG_HELD_BY_RULE) !== 0,
    addedSeconds: view.getUint32(ADDED_AT, true), results,
  };
}

function writeUint48(view: DataView, at: number, value: number): void {
  invariant(value < HIGH_WORD * 0x1_0000, 'a time or the number of a change is below 2^48');
  view.setUint32(at, value % HIGH_WORD, true);
  view.setUint16(at + 4, value / HIGH_WORD, true);
}

function readUint48(view: DataView, at: number): number {
  return view.getUint32(at, true) + view.getUint16(at + 4, true) * HIGH_WORD;
}

/** "5.1.1" as 24 bits (RFC 3463 2: a digit, and twice up to three digits); 0 for what is none. */
function packEnhanced(enhanced: string): number {
  const [kind = 0, subject = 0, detail = 0, more] = enhanced.split('.').map(Number);
  const isInRange = kind >= 1 && kind <= 9 && subject >= 0 && subject <= 999 && detail >= 0 && detail <= 999;
  return more === undefined && isInRange ? (kind << 20) | (subject << 10) | detail : 0;
}

function enhancedOf(packed: number): string {
  if (packed === 0) return '';
  return `${String(packed >>> 20)}.${String((packed >>> 10) & 0x3ff)}.${String(packed & 0x3ff)}`;
}
