/** Files that an operator replaces while a process runs: what they hold, and whether they have changed. */
import { readFileSync, statSync } from 'node:fs';

/** Throws an Error that names the file. */
export function readText(file: string): string {
  try {
    return readFileSync(file, 'utf8');
  } catch (error) {
    throw new Error(`'${file}' can't be read: ${(error as NodeJS.ErrnoException).code ?? String(error)}`);
  }
}

/** Changes when one of the files is replaced or can be read no more. */
export function stampOf(...files: readonly (string | undefined)[]): string {
  return files.map((file) => {
    const stat = file === undefined ? undefined : statSync(file, { throwIfNoEntry: false });
    return stat === undefined ? 'none' : `${String(stat.mtimeMs)} ${String(stat.ino)} ${String(stat.size)}`;
  }).join();
}
