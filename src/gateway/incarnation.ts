/**
 * The incarnation of a gateway: a number above that of every process of it that ever ran, with a random nonce,
 * so that stores can tell an old process from a new one (DESIGN "Lease and claim").
 *
 * max(file, Unix milliseconds) + 1, kept in a small file. A store that has seen a higher one refuses this
 * process at the handshake; without the file the clock alone decides, which is enough while it runs forward.
 */
import { mkdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

const FILE = 'incarnation';

function readLast(file: string): number {
  try {
    const number = Number(readFileSync(file, 'utf8').trim());
    return Number.isSafeInteger(number) && number > 0 ? number : 0;
  } catch {
    return 0;
  }
}

/** Draws the next incarnation; `stateDir` undefined: nothing is kept. Throws when the folder can't be written. */
export function nextIncarnation(stateDir: string | undefined, wallMs: number): number {
  if (stateDir === undefined) return Math.floor(wallMs) + 1;
  mkdirSync(stateDir, { recursive: true });
  const file = join(stateDir, FILE);
  const incarnation = Math.max(readLast(file), Math.floor(wallMs)) + 1;
  // Written whole or not at all: a torn number could be lower than one already used.
  writeFileSync(`${file}.new`, `${String(incarnation)}\n`);
  renameSync(`${file}.new`, file);
  return incarnation;
}
