/** Messages that are odd in what a signature depends on: blanks, folds, line ends, doubled and empty fields, 8-bit octets. */
import { Prng } from '../../../src/base/prng.js';

const NAMES = [
  'To', 'Cc', 'Subject', 'Date', 'Message-ID', 'Reply-To', 'In-Reply-To', 'References', 'MIME-Version', 'Content-Type',
  'Content-Transfer-Encoding', 'Sender', 'List-Id', 'List-Unsubscribe', 'Resent-From', 'Received', 'X-Odd', 'SUBJECT', 'to', 'list-POST',
] as const;
const VALUES = [
  '', ' ', '\t', ' plain', 'close', '  two  blanks  ', ' tab\there\t', ' folded\r\n here', ' folded\r\n\t\t  twice\r\n \there ', ' blank line\r\n \t\r\n behind',
  '\r\n only behind', ' 8-bit \u00e4\u00ff\u0080', ` ${'long '.repeat(300)}`, ` ${'x'.repeat(2000)}`, ' a:b;c=d', ' =?utf-8?q?=c3=a4?=', ' \u00a0 no blank \u00a0', ' <a@b.example>,\r\n <c@d.example>',
] as const;
const LINES = [
  '', ' ', '\t', ' \t ', 'plain', 'two  blanks', ' in front', 'behind ', 'behind \t \t', '.', '..', '. ', 'From x', '--', '\u00e4\u00ff', 'a\tb', 'x'.repeat(3000), `${'y '.repeat(500)}`, 'Subject: in the body',
] as const;

/** `from` stands somewhere in its header. One in ten ends with its header, or with no empty line. */
export function oddMail(seed: number, from: string): string {
  const prng = new Prng(seed);
  const fields = Array.from({ length: prng.below(12) }, () => `${prng.pick(NAMES)}:${prng.pick(VALUES)}`);
  fields.splice(prng.below(fields.length + 1), 0, `From:${from}`);
  const header = `${fields.join('\r\n')}\r\n`;
  const kind = prng.below(20);
  if (kind === 0) return header;
  if (kind === 1) return `${header}\r\n`;
  const lines = Array.from({ length: prng.below(30) }, () => prng.pick(LINES));
  return `${header}\r\n${lines.map((line) => `${line}\r\n`).join('')}`;
}
