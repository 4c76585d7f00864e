/**
 * Numbers and tables as the report writes them. Pure.
 */
import type { Spread } from './statistics.js';

/** 13,245 or 3.25: three digits that mean something. */
export function figure(value: number): string {
  const size = Math.abs(value);
  if (size >= 100) return Math.round(value).toLocaleString('en');
  return size >= 10 ? value.toFixed(1) : value.toFixed(2);
}

/** The median, with the range behind it when there were several rounds that differ. */
export function spread(of: Spread | undefined): string {
  if (of === undefined) return '';
  return of.least === of.most ? figure(of.median) : `${figure(of.median)} (${figure(of.least)}-${figure(of.most)})`;
}

export function table(head: readonly string[], rows: readonly (readonly string[])[]): string {
  const line = (cells: readonly string[]): string => `| ${cells.map((cell) => cell.replaceAll('|', '\\|')).join(' | ')} |`;
  return [line(head), `|${head.map(() => '---').join('|')}|`, ...rows.map(line), ''].join('\n');
}

/** The values of `rows` in the order of first appearance, once each. */
export function distinct<Row, Value>(rows: readonly Row[], of: (row: Row) => Value): Value[] {
  return [...new Set(rows.map(of))];
}
