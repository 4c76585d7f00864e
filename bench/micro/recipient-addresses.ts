/** The addresses that tables of recipients are measured with: over a hundred domains, each tenth with a next hop. */
import { closeSync, openSync, writeSync } from 'node:fs';

export const DOMAINS = 100;
const LINES_A_WRITE = 10_000;

export function addressOf(i: number): string {
  return `user${String(i)}@d${String(i % DOMAINS)}.example`;
}

/** The source of a table, as `twinpost table build` reads it. */
export function writeAddresses(file: string, count: number): void {
  const fd = openSync(file, 'w');
  let text = '';
  for (let i = 0; i < count; i++) {
    text += `${addressOf(i)}${i % 10 === 0 ? ` route=box-${String(i % 500)}` : ''}\n`;
    if (i % LINES_A_WRITE !== LINES_A_WRITE - 1) continue;
    writeSync(fd, text);
    text = '';
  }
  writeSync(fd, text);
  closeSync(fd);
}
