/**
 * The stores that an operator has drained, as a file of state_dir: a restart knows them.
 *
 *   drained-stores.json   {STORE: since when, milliseconds since 1970}, written aside, fsynced, renamed
 */
import { readFileSync } from 'node:fs';
import { open, rename } from 'node:fs/promises';
import { join } from 'node:path';
import { z } from 'zod';
import { BrokenRule, readJson } from '../../base/json-shape.js';
import { makeFolder } from '../../platform/node/make-folder.js';
import { syncFolder } from '../../platform/node/sync-folder.js';

const FILE = 'drained-stores.json';

/** Store id → since when it is drained, in milliseconds since 1970. */
export type DrainedSince = ReadonlyMap<string, number>;

/** Empty without the file. Throws when it is there and can't be read, or is none of ours. */
export function readDrained(stateDir: string): DrainedSince {
  let text: string;
  try {
    text = readFileSync(join(stateDir, FILE), 'utf8');
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return new Map();
    throw error;
  }
  const read = readJson(z.record(z.string(), z.number()), text);
  if (read instanceof BrokenRule) throw new Error(`${FILE} does not say what is drained: ${read.rule}`);
  return new Map(Object.entries(read));
}

/** Rejects when the disk does not take it: then the file is as it was. */
export async function writeDrained(stateDir: string, drained: DrainedSince): Promise<void> {
  makeFolder(stateDir);
  const file = join(stateDir, FILE);
  const handle = await open(`${file}.new`, 'w', 0o600);
  try {
    await handle.writeFile(`${JSON.stringify(Object.fromEntries(drained))}\n`);
    await handle.sync();
  } finally {
    await handle.close();
  }
  await rename(`${file}.new`, file);
  await syncFolder(stateDir);
}
