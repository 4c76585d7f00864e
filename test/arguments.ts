/**
 * Arguments of the programs among the tests: what is wrong with them is one line and exit code 2, --help the text that the
 * program's own file begins with. Nothing of it is a stack trace: that is for what breaks in a run.
 */
import { readFileSync } from 'node:fs';
import { parseArgs } from 'node:util';
import type { ParseArgsConfig } from 'node:util';

/** Of the operator's making. */
export class ArgumentError extends Error {
  override readonly name = 'ArgumentError';
}

/** What parseArgs reads; a mistake is an ArgumentError. */
export function readArguments<const T extends NonNullable<ParseArgsConfig['options']>>(options: T): ReturnType<typeof parseArgs<{ options: T }>>['values'] {
  try {
    return parseArgs({ options }).values;
  } catch (error) {
    // Node adds advice about positionals behind the first sentence.
    throw new ArgumentError(error instanceof Error ? (error.message.split(/\. |\n/, 1)[0] ?? '') : String(error));
  }
}

/** A number of the option's own kind. */
export function numberOf(name: string, text: string, kind: 'whole' | 'positive'): number {
  const number = text.trim() === '' ? NaN : Number(text);
  if (kind === 'whole' && !(Number.isSafeInteger(number) && number >= 0)) throw new ArgumentError(`--${name} takes a whole number, got '${text}'`);
  if (kind === 'positive' && !(Number.isFinite(number) && number > 0)) throw new ArgumentError(`--${name} takes a number above 0, got '${text}'`);
  return number;
}

/** The comment that a source file begins with, as text. `url` is that of its compiled file, which keeps it. */
function headOf(url: string): string {
  const [head = ''] = readFileSync(new URL(url), 'utf8').split('*/', 1);
  return head.replace(/^\/\*\*\n/, '').replace(/^ \* ?/gm, '').trimEnd();
}

/** Runs the program; `url` is its import.meta.url. */
export async function runProgram(name: string, url: string, main: () => Promise<void>): Promise<void> {
  if (process.argv.slice(2).some((argument) => argument === '--help' || argument === '-h')) {
    process.stdout.write(`${headOf(url)}\n`);
    return;
  }
  try {
    await main();
  } catch (error) {
    if (!(error instanceof ArgumentError)) throw error;
    process.stderr.write(`${name}: ${error.message}; --help shows what there is\n`);
    process.exitCode = 2;
  }
}
