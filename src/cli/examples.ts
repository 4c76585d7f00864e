/**
 * An example of a command that is too long for half a line: it stands on one of its own, unbroken, so that it
 * can be copied with what is quoted in it; what it is for follows below. yargs would break both into columns.
 */
import type { Argv } from 'yargs';

export function longExample<T>(args: Argv<T>, command: string, what: string): Argv<T> {
  return args.example(command, '').example(`    ${what}`, '');
}
