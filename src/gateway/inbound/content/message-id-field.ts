/**
 * The Message-ID header field of a content, for the mail log and for who looks through queues: people look
 * for it. The mail log has it of what came from the client, up to a bound; no header is parsed.
 */

import type { Latin1Text } from '../../../platform/ports.js';

/** Longest header part that is searched. */
export const SEARCHED_BYTES_MAX = 16 * 1024;
/** RFC 5322 allows 998 in a line; what is longer than this is nobody's key. */
const VALUE_BYTES_MAX = 250;
const NAME = 'message-id:';
const LF = 10;
const CR = 13;
const SPACE = 32;
const TAB = 9;

function startsWithName(piece: Uint8Array, at: number): boolean {
  for (let i = 0; i < NAME.length; i++) {
    const byte = piece[at + i] ?? 0;
    const lower = byte >= 0x41 && byte <= 0x5a ? byte + 32 : byte;
    if (lower !== NAME.charCodeAt(i)) return false;
  }
  return true;
}

/**
 * The value, without surrounding blanks; '' when there is none within the bound. `pieces`: of a content; the
 * first is the trace header. Nearly always the header is all in the second.
 */
export function messageIdField(pieces: readonly Uint8Array[], latin1Text: Latin1Text): string {
  const first = pieces[1];
  if (first === undefined) return '';
  const found = messageIdWithin(first.subarray(0, SEARCHED_BYTES_MAX), latin1Text);
  if (found !== undefined || pieces.length === 2 || first.length >= SEARCHED_BYTES_MAX) return found ?? '';
  return messageIdWithin(startOf(pieces), latin1Text) ?? '';
}

/** What came from the client, up to the bound. */
function startOf(pieces: readonly Uint8Array[]): Uint8Array {
  const start = new Uint8Array(SEARCHED_BYTES_MAX);
  let length = 0;
  for (let i = 1; i < pieces.length && length < start.length; i++) {
    const piece = pieces[i]?.subarray(0, start.length - length) ?? new Uint8Array(0);
    start.set(piece, length);
    length += piece.length;
  }
  return start.subarray(0, length);
}

/**
 * The same of all of the piece; undefined: it has neither all of the field nor the end of the header.
 * `looked`: counts lines, each of which takes some 0.3 µs.
 */
export function messageIdWithin(
  piece: Uint8Array, latin1Text: Latin1Text, looked?: { lines: number },
): string | undefined {
  const end = piece.length;
  for (let line = 0; line < end; ) {
    if (looked !== undefined) looked.lines += 1;
    const first = piece[line];
    if (first === CR || first === LF) return '';
    if ((first === 0x4d || first === 0x6d) && startsWithName(piece, line)) {
      return valueAt(piece, line + NAME.length, end, latin1Text);
    }
    const next = piece.indexOf(LF, line);
    if (next < 0) return undefined;
    line = next + 1;
  }
  return undefined;
}

function valueAt(
  piece: Uint8Array, from: number, end: number, latin1Text: Latin1Text,
): string | undefined {
  let at = from;
  // It may begin on the next line (RFC 5322 2.2.3), as long ones do.
  while (at < end && (isBlank(piece[at]) || isFold(piece, at))) at += 1;
  const begin = at;
  const last = Math.min(end, begin + VALUE_BYTES_MAX);
  while (at < last && piece[at] !== CR && piece[at] !== LF) at += 1;
  // It, or where it begins, stands in what is not here.
  if (at === begin ? at + 2 >= end : at === end) return undefined;
  return latin1Text(piece, begin, at).trimEnd();
}

function isBlank(byte: number | undefined): boolean {
  return byte === SPACE || byte === TAB;
}

/** A line end that a blank follows. */
function isFold(piece: Uint8Array, at: number): boolean {
  if (piece[at] === CR) return piece[at + 1] === LF && isBlank(piece[at + 2]);
  return piece[at] === LF && isBlank(piece[at + 1]);
}
