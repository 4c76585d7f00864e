/**
 * The Message-ID header field of a content, for the mail log and for who looks through queues: people look
 * for it. The mail log has it of the first piece that came from the client, up to a bound; no header is
 * parsed.
 */

import type { Latin1Text } from '../../../platform/ports.js';

/** Longest header part that is searched. */
export const SEARCHED_BYTES_MAX = 8 * 1024;
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

/** The value, without surrounding blanks; '' when the piece has none within the bound. */
export function messageIdField(piece: Uint8Array, latin1Text: Latin1Text): string {
  return messageIdWithin(piece.subarray(0, SEARCHED_BYTES_MAX), latin1Text) ?? '';
}

/** The same of all of the piece; undefined: it has neither the field nor the end of the header. */
export function messageIdWithin(piece: Uint8Array, latin1Text: Latin1Text): string | undefined {
  const end = piece.length;
  for (let line = 0; line < end; ) {
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

function valueAt(piece: Uint8Array, from: number, end: number, latin1Text: Latin1Text): string {
  let at = from;
  // It may begin on the next line (RFC 5322 2.2.3), as long ones do.
  while (at < end && (isBlank(piece[at]) || isFold(piece, at))) at += 1;
  const begin = at;
  for (; at < end && at - begin < VALUE_BYTES_MAX; at++) {
    const byte = piece[at];
    if (byte === CR || byte === LF) break;
  }
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
