/**
 * One process at a time for the files of one store: whoever writes, reads or may write the spill file has
 * the lock, from before it looks for the file until it has written its own. Else a store that is started
 * while the one before it still writes would find no file, begin anew, and the file would come back later
 * as copies that nobody knows.
 *
 *   free ─► taken      held by a process that lives ─ waited for, up to WAIT_MS ─► taken, or refused
 */
import { setTimeout as wait } from 'node:timers/promises';
import type { EventLog } from '../../platform/ports.js';
import { makeFolder } from '../../platform/node/make-folder.js';
import { FileInUseError, FileLock, machineId } from '../../platform/node/file-lock.js';
import { StoreStartError } from './store-start-error.js';
import path from 'node:path';

/** A file of some gigabytes is written in less; a second store of the same id is told soon enough. */
const WAIT_MS = 30_000;
const LOOK_MS = 100;

export interface StateLockOptions {
  readonly storeId: string;
  /** The lock stands beside it. */
  readonly file: string;
  readonly waitMs?: number;
}

export async function takeStateLock(
  { storeId, file, waitMs = WAIT_MS }: StateLockOptions, log: EventLog,
): Promise<FileLock> {
  const lock = `${file}.lock`;
  const startMs = performance.now();
  try {
    makeFolder(path.dirname(file));
    for (let tries = 0; ; tries += 1) {
      const taken = await tryToTake(lock);
      if (taken !== undefined) return taken;
      if (performance.now() - startMs >= waitMs) throw inUse(storeId, lock);
      if (tries === 0) {
        const fields = { store: storeId, file: lock };
        log.info('spill', 'another process has the files of this store: waiting for it to end', fields);
      }
      await wait(LOOK_MS);
    }
  } catch (error) {
    if (error instanceof StoreStartError) throw error;
    const code = (error as NodeJS.ErrnoException).code ?? String(error);
    throw new StoreStartError(
      `store ${storeId}: its files can't be locked by ${lock} (${code}): let this user write to that folder, `
        + `or name another state_dir`
    );
  }
}

async function tryToTake(file: string): Promise<FileLock | undefined> {
  try {
    return await FileLock.take({ file, machine: machineId() });
  } catch (error) {
    if (error instanceof FileInUseError) return undefined;
    throw error;
  }
}

function inUse(storeId: string, file: string): StoreStartError {
  return new StoreStartError(
    `store ${storeId}: another process of it still has its files (${file}): stop that one, or give this `
      + `store another id or state_dir`
  );
}
