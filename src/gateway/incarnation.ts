/**
 * The incarnation of a gateway: a number above that of every process of it that ever ran, with a random nonce,
 * so that stores can tell an old process from a new one (docs/PROTOCOL.md "Handshake", "Claims").
 *
 * max(file, Unix milliseconds) + 1, kept in a small file. A store that has seen a higher one refuses this
 * process at the handshake and tells it: a process whose clock went back and whose file is gone keeps what it was
 * told and ends; the next one is above it. Without the file the clock alone decides, enough while it runs forward.
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

export interface Incarnation {
  readonly number: number;
  /** Why the file could not be written, '' when it was or none is wanted. */
  readonly unkept: string;
}

/**
 * Every store refused this process before one took it, the highest incarnation being `told`: its clock is behind.
 * True when that is kept: the next process draws a number above it.
 */
export function keepTold(stateDir: string | undefined, told: number): boolean {
  if (stateDir === undefined) return false;
  const file = join(stateDir, FILE);
  try {
    return readLast(file) >= told || write(stateDir, file, told);
  } catch {
    return false;
  }
}

/** Written whole or not at all: a torn number could be lower than one already used. */
function write(stateDir: string, file: string, number: number): true {
  mkdirSync(stateDir, { recursive: true });
  writeFileSync(`${file}.new`, `${String(number)}\n`);
  renameSync(`${file}.new`, file);
  return true;
}

/**
 * Draws the next incarnation; `stateDir` undefined: nothing is kept. A full or broken disk is no reason not to start:
 * mail waits at the stores, and they refuse a number that is too low.
 */
export function nextIncarnation(stateDir: string | undefined, wallMs: number): Incarnation {
  const byClock = Math.floor(wallMs) + 1;
  if (stateDir === undefined) return { number: byClock, unkept: '' };
  const file = join(stateDir, FILE);
  const number = Math.max(readLast(file) + 1, byClock);
  try {
    write(stateDir, file, number);
  } catch (error) {
    return { number, unkept: error instanceof Error ? error.message : String(error) };
  }
  return { number, unkept: '' };
}
