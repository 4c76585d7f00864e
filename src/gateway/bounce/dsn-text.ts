/**
 * Text of others made safe for a report: one line, folded, dates (RFC 5322), xtext (RFC 3461 4).
 */

/** Lines of a report stay well below the 78 that RFC 5322 2.1.1 asks for, words permitting. */
const LINE_CHARACTERS = 76;
/** A word without a space is cut here: lines end at 998 (RFC 5322 2.1.1), in bytes, and UTF-8 takes up to 3 a unit. */
const WORD_CHARACTERS_MAX = 300;

/**
 * Text as part of one line: no control characters, so nothing can end the line; without `isUtf8` only ASCII
 * ("?" for the rest); with it whole characters only.
 */
export function oneLine(text: string, isUtf8: boolean): string {
  let safe = '';
  for (const character of text) {
    const point = character.codePointAt(0) ?? 0;
    const isControl = point < 32 || (point >= 127 && point < 160) || point === 0x2028 || point === 0x2029;
    const isHalf = point >= 0xd800 && point <= 0xdfff;
    if (point === 9 || point === 10 || point === 13) safe += ' ';
    else if (isControl || isHalf || (!isUtf8 && point > 126)) safe += '?';
    else safe += character;
  }
  return safe;
}

/** Breaks one line at spaces; lines after the first begin with `indent`. No line is empty or only white. */
export function fold(line: string, indent: string): string[] {
  const lines: string[] = [];
  let current = '';
  for (const long of line.split(' ')) {
    if (long === '') continue;
    for (let at = 0; at < long.length; at += WORD_CHARACTERS_MAX) {
      const word = long.slice(at, at + WORD_CHARACTERS_MAX);
      if (current === '') {
        current = word;
      } else if (current.length + 1 + word.length <= LINE_CHARACTERS && at === 0) {
        current += ` ${word}`;
      } else {
        lines.push(current);
        current = indent + word;
      }
    }
  }
  lines.push(current);
  return lines;
}

/** "Sat, 21 Nov 2026 02:40:30 +0000". */
export function headerDate(wallMs: number): string {
  return new Date(wallMs).toUTCString().replace('GMT', '+0000');
}

/** xtext ("+3D" for "=") as plain text; what is no xtext stays as it is. */
export function xtextDecoded(xtext: string): string {
  return xtext.replace(/\+([0-9A-F]{2})/g, (_, hex: string) => String.fromCharCode(Number.parseInt(hex, 16)));
}
