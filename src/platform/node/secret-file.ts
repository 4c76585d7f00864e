/**
 * The text of a file that is a secret of ours: a private key, a password. Nobody but its owner and group may
 * read or write it.
 */
import { statSync } from 'node:fs';
import { readText } from './changing-files.js';

/** Others may read, or write. */
const OTHERS_MODE = 0o006;

/** Throws an Error that names the file; `what` it should be: "a key". */
export function readSecretFile(file: string, what: string, bytesMax: number): string {
  const stat = statSync(file, { throwIfNoEntry: false });
  if (stat !== undefined && !(stat.isFile() && stat.size <= bytesMax)) {
    throw new Error(`'${file}' is no file with ${what}`);
  }
  const text = readText(file);
  if (((stat?.mode ?? 0) & OTHERS_MODE) !== 0) {
    throw new Error(`everybody on this machine may read or write '${file}': chmod o-rw`);
  }
  return text;
}
