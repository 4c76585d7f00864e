/**
 * The Message-ID header field of a content, for the mail log: people look for it. Only the first piece that
 * came from the client is searched, up to the end of the header and a bound; no header is parsed.
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
  const end = Math.min(piece.length, SEARCHED_BYTES_MAX);
  for (let line = 0; line < end; ) {
    const first = piece[line];
    if (first === CR || first === LF) return '';
    if ((first === 0x4d || first === 0x6d) && startsWithName(piece, line)) {
      return valueAt(piece, line + NAME.length, end, latin1Text);
    }
    const next = piece.indexOf(LF, line);
    if (next < 0) return '';
    line = next + 1;
  }
  return '';
}

function valueAt(piece: Uint8Array, from: number, end: number, latin1Text: Latin1Text): string {
  let at = from;
  while (at < end && (piece[at] === SPACE || piece[at] === TAB)) at += 1;
  const begin = at;
  for (; at < end && at - begin < VALUE_BYTES_MAX; at++) {
    const byte = piece[at];
    if (byte === CR || byte === LF) break;
  }
  return latin1Text(piece, begin, at).trimEnd();
}
