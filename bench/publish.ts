/**
 * Puts a report into the project's documents: raw results and plots into docs/bench, the tables into
 * docs/PERFORMANCE.md between its two marks. The rest of that page is written by hand.
 */
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

import { reportOf } from './report.js';
import type { Results } from './results.js';

const BEGIN = '<!-- report: begin -->';
const END = '<!-- report: end -->';
/** Where plots lie, as seen from the page; through the top, so that the path is one of the project, too. */
const PLOTS = '../docs/bench/';

/** Resolves with the files that were written. */
export function publish(project: string, results: Results, plots: readonly (readonly [name: string, svg: string])[]): string[] {
  const folder = join(project, 'docs', 'bench');
  mkdirSync(folder, { recursive: true });
  const raw = join(folder, 'report.json');
  writeFileSync(raw, `${JSON.stringify(results, undefined, 1)}\n`);
  for (const [name, svg] of plots) writeFileSync(join(folder, `${name}.svg`), svg);
  const page = join(project, 'docs', 'PERFORMANCE.md');
  writeFileSync(page, withReport(readFileSync(page, 'utf8'), reportOf(results, PLOTS)));
  return [raw, ...plots.map(([name]) => join(folder, `${name}.svg`)), page];
}

/** The page with the report between its marks. */
export function withReport(page: string, report: string): string {
  const begin = page.indexOf(BEGIN);
  const end = page.indexOf(END);
  if (begin < 0 || end < begin) throw new Error(`the page has no ${BEGIN} before ${END}`);
  return `${page.slice(0, begin + BEGIN.length)}\n\n${report}\n${page.slice(end)}`;
}
