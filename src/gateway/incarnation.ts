/**
 * The incarnation of a gateway: a number above that of every process of it that ever ran, with a random nonce,
 * so that stores can tell an old process from a new one (docs/PROTOCOL.md "Handshake", "Claims").
 *
 * max(file + a step, Unix milliseconds) + 1, kept in a small file. A store that has seen a higher one refuses this
 * process at the handshake and tells it: a process whose clock went back and whose file is gone begins anew above what
 * it was told (bin/gateway-process.ts). Without the file the clock alone decides, enough while it runs forward.
 */
import { readFileSync, renameSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { makeFolder } from '../platform/node/make-folder.js';
import type { Random } from '../platform/ports.js';

const ORDINAL_FILE = 'ordinal';
const SEATS = 64;
/** Counts from 1 on: ordinals stay below 2^24. */
const COUNT_MAX = 2 ** 18 - 1;
const FILE = 'incarnation';
/** While the clock is behind: message ids begin with the incarnation, and those of the process before go on from its own. */
const STEP_MS = 60_000;

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

/** Written whole or not at all: a torn number could be lower than one already used. */
function write(stateDir: string, file: string, number: number): void {
  makeFolder(stateDir);
  writeFileSync(`${file}.new`, `${String(number)}\n`);
  renameSync(`${file}.new`, file);
}

/**
 * Draws the next incarnation, above `told`; `stateDir` undefined: nothing is kept. A full or broken disk is no reason
 * not to start: mail waits at the stores, and they refuse a number that is too low.
 */
export function nextIncarnation(stateDir: string | undefined, wallMs: number, told = 0): Incarnation {
  const byClock = Math.floor(wallMs) + 1;
  if (stateDir === undefined) return { number: above(told, byClock), unkept: '' };
  const file = join(stateDir, FILE);
  const number = above(Math.max(readLast(file), told), byClock);
  try {
    write(stateDir, file, number);
  } catch (error) {
    return { number, unkept: error instanceof Error ? error.message : String(error) };
  }
  return { number, unkept: '' };
}

function above(last: number, byClock: number): number {
  return last < byClock ? byClock : last + STEP_MS;
}

/**
 * The next ordinal of a gateway in its group; `stateDir` undefined: nothing is kept. A count that can't be written
 * is used all the same.
 */
export function nextOrdinal(
  stateDir: string | undefined, gatewayId: string, group: readonly string[], random: Random,
): number {
  const file = stateDir === undefined ? '' : join(stateDir, ORDINAL_FILE);
  const last = file === '' ? 0 : readLast(file);
  const count = last === 0 || last >= COUNT_MAX ? 1 + Math.floor(random() * COUNT_MAX) : last + 1;
  try {
    if (stateDir !== undefined) write(stateDir, file, count);
  } catch {
    // A full or broken disk: the next process begins anew at random, or draws this one again.
  }
  return count * SEATS + seatOf(gatewayId, group);
}

function seatOf(gatewayId: string, group: readonly string[]): number {
  return [...new Set([...group, gatewayId])].sort().indexOf(gatewayId) % SEATS;
}
