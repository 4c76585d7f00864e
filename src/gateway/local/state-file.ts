/** A small file of state_dir that a restart has to find whole: written aside, fsynced, renamed. */
import { readFileSync } from 'node:fs';
import { open, rename } from 'node:fs/promises';
import { join } from 'node:path';
import { makeFolder } from '../../platform/node/make-folder.js';
import { syncFolder } from '../../platform/node/sync-folder.js';

/** Undefined without the file. Throws when it is there and can't be read. */
export function readStateFile(stateDir: string, name: string): string | undefined {
  try {
    return readFileSync(join(stateDir, name), 'utf8');
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined;
    throw error;
  }
}

/** Rejects when the disk does not take it: then the file is as it was. Pieces are made one at a time. */
export async function writeStateFile(
  stateDir: string, name: string, text: string | Iterable<string>,
): Promise<void> {
  makeFolder(stateDir);
  const file = join(stateDir, name);
  const handle = await open(`${file}.new`, 'w', 0o600);
  try {
    for (const piece of typeof text === 'string' ? [text] : text) await handle.writeFile(piece);
    await handle.sync();
  } finally {
    await handle.close();
  }
  await rename(`${file}.new`, file);
  await syncFolder(stateDir);
}
