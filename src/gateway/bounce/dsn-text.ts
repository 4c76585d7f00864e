/**
 * Text of others made safe for a report: one line, folded, dates (RFC 5322), xtext (RFC 3461 4).
 */
import { utf8Octets } from '../../base/utf8.js';

/** Lines of a report stay well below the 78 that RFC 5322 2.1.1 asks for, words permitting. */
const LINE_CHARACTERS = 76;
/**
 * A word without a space is cut here: lines end at 998 (RFC 5322 2.1.1), in bytes, and UTF-8 takes up to 3 a
 * unit.
 */
const WORD_CHARACTERS_MAX = 300;
export const LINE_OCTETS_MAX = 998;

const SPACE = 32;
const PLAIN = /^[\x20-\x7e]*$/;

/** Marks, embeddings, overrides and isolates: they make a line read as another. */
const DIRECTION = /[\u200e\u200f\u202a-\u202e\u2066-\u2069]/;

/**
 * Text as part of one line: no control characters, so nothing can end the line; without `isUtf8` only ASCII
 * ("?" for the rest); with it whole characters only, and none that turns the direction of others.
 */
export function oneLine(text: string, isUtf8: boolean): string {
  // Nearly every text. Character by character, a report on 1,000 recipients would hold the process for 0.2 s.
  if (PLAIN.test(text)) return text;
  let safe = '';
  for (const character of text) {
    const point = character.codePointAt(0) ?? 0;
    const isControl = point < 32 || (point >= 127 && point < 160) || point === 0x2028 || point === 0x2029;
    const isHalf = point >= 0xd800 && point <= 0xdfff;
    if (point === 9 || point === 10 || point === 13) safe += ' ';
    else if (isControl || isHalf || (!isUtf8 && point > 126) || DIRECTION.test(character)) safe += '?';
    else safe += character;
  }
  return safe;
}

/**
 * Breaks one line at spaces; lines after the first begin with `indent`. No line is empty or only white. By
 * cutting, not by adding word to word: a report on 1,000 recipients has 200,000 words.
 */
export function fold(line: string, indent: string): string[] {
  const text = line.replace(/ {2,}/g, ' ').trim();
  const lines: string[] = [];
  for (let at = 0; at < text.length || lines.length === 0; ) {
    const width = lines.length === 0 ? LINE_CHARACTERS : LINE_CHARACTERS - indent.length;
    let end = text.length - at <= width ? text.length : text.lastIndexOf(' ', at + width);
    if (end <= at && end < text.length) end = Math.min(wordEnd(text, at), at + WORD_CHARACTERS_MAX);
    lines.push(lines.length === 0 ? text.slice(at, end) : indent + text.slice(at, end));
    at = text.charCodeAt(end) === SPACE ? end + 1 : end;
  }
  return lines;
}

/**
 * A field whose value is somebody's own, each blank of it (RFC 3461 4.4, RFC 3464 2.2.1, 2.3.1): where lines
 * that are put together again would give another one, it is one line, if it is not too long for that.
 */
export function foldExactly(line: string): string[] {
  const lines = fold(line, ' ');
  return lines.join('') === line || utf8Octets(line) > LINE_OCTETS_MAX ? lines : [line];
}

function wordEnd(text: string, at: number): number {
  const space = text.indexOf(' ', at);
  return space < 0 ? text.length : space;
}

/** xtext ("+3D" for "=") as plain text; what is no xtext stays as it is. */
export function xtextDecoded(xtext: string): string {
  return xtext.replace(/\+([0-9A-F]{2})/g, (_, hex: string) => String.fromCharCode(Number.parseInt(hex, 16)));
}
