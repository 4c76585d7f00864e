/** Plain text tables and colours for terminals. Colour only where the reader is a terminal. */

import { formatCount } from '../base/units.js';

export interface Column {
  readonly title: string;
  readonly right?: boolean;
}

/** Columns as wide as their widest cell; no trailing spaces. */
export function tableText(columns: readonly Column[], rows: readonly (readonly string[])[]): string {
  const widths =
    columns.map((column, i) => Math.max(column.title.length, ...rows.map((row) => (row[i] ?? '').length)));
  const line = (cells: readonly string[]): string =>
    cells.map((cell, i) => (columns[i]?.right === true
      ? cell.padStart(widths[i] ?? 0) : cell.padEnd(widths[i] ?? 0))).join('  ').trimEnd();
  return [line(columns.map((column) => column.title)), ...rows.map(line)].join('\n');
}

/** How many of what there are. */
export function counted(count: number, thing: string, things = `${thing}s`): string {
  return `${formatCount(count)} ${count === 1 ? thing : things}`;
}

/** Unix seconds, as people and programs read them. */
export function timeText(seconds: number): string {
  const date = new Date(seconds * 1000);
  return Number.isNaN(date.getTime()) ? '?' : date.toISOString().replace('.000', '');
}

/** "2026-01-31 10:00:00", in UTC, for lists of mail as other servers show them. */
export function listTimeText(seconds: number): string {
  const date = new Date(seconds * 1000);
  return Number.isNaN(date.getTime()) ? '?' : date.toISOString().slice(0, 19).replace('T', ' ');
}

export type Colour = 'red' | 'yellow' | 'green' | 'bold';

const CODES: Readonly<Record<Colour, string>> = { red: '31', yellow: '33', green: '32', bold: '1' };

export function paint(text: string, colour: Colour, isTty: boolean): string {
  return isTty ? `\u001b[${CODES[colour]}m${text}\u001b[0m` : text;
}

/** Nearly every text. */
const PLAIN = /^[\x20-\x7e]*$/;

/** Addresses and replies come from strangers: nothing in them may move the cursor. */
export function printable(text: string): string {
  if (PLAIN.test(text)) return text;
  let out = '';
  for (const letter of text) {
    const code = letter.codePointAt(0) ?? 0;
    const hostile = code < 0x20 || (code >= 0x7f && code <= 0x9f) || (code >= 0x200b && code <= 0x200f)
      || (code >= 0x2028 && code <= 0x202e) || (code >= 0x2060 && code <= 0x206f) || code === 0xfeff;
    out += hostile ? `\\u${code.toString(16).padStart(4, '0')}` : letter;
  }
  return out;
}
