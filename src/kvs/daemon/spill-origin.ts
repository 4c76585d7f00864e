/**
 * Whether a spill file (spill-file.ts) may speak for its store. It does once, for the very next process: the
 * store that goes on from it has mail that an older file lacks, and says so to nobody but its gateways. In
 * an older one everything is sound, its boot counts in the records, and a takeover that reads it loses mail
 * in silence. Two marks tell:
 *
 *   born    the file says when it was made. A file that was copied, or put back from a backup, was made later
 *   used    who has gone on from a file takes away the right to write it
 *
 * Neither is seen of a whole file system that is put back (a snapshot of a volume or of a virtual machine),
 * nor where the file system does not tell when files were made. Then gateways that live find it out:
 * recovery/ownership/partition-set.ts.
 *
 * A person who knows better renames FILE to FILE.moved. Only who has the lock (state-lock.ts) may do any of
 * it.
 */
import { chmodSync, existsSync, readdirSync } from 'node:fs';
import type { FileHandle } from 'node:fs/promises';
import { stat } from 'node:fs/promises';
import path from 'node:path';
import { setTimeout as wait } from 'node:timers/promises';
import type { SpillHead } from '../../protocol/spill-records.js';
import type { Store } from '../core/store.js';
import { StoreStartError } from './store-start-error.js';

const MODE = 0o600;
const USED_MODE = 0o400;
const OWNER_WRITES = 0o200n;
/** Clocks of file systems go on every few milliseconds. */
const LOOK_MS = 1;
const LOOKS_MAX = 100;
/** Partitions that are named in one line. */
const NAMES_MAX = 10;

/**
 * When a file that was just made was made. Some systems answer with the time of the last change instead,
 * which renaming moves on: so the file is changed until that has moved, and '' is answered when both have.
 */
export async function bornNsOf(handle: FileHandle): Promise<string> {
  const first = await handle.stat({ bigint: true });
  for (let looks = 0; looks < LOOKS_MAX; looks++) {
    await wait(LOOK_MS);
    try {
      await handle.chmod(MODE);
    } catch {
      return '';
    }
    const now = await handle.stat({ bigint: true });
    if (now.ctimeNs === first.ctimeNs) continue;
    return now.birthtimeNs === first.birthtimeNs && now.birthtimeNs > 0n ? String(now.birthtimeNs) : '';
  }
  return '';
}

/** The file that is to be gone on from; undefined: none. `isOrdered`: a person says that it may be. */
export function spillFileAt(
  file: string, storeId: string,
): { readonly file: string; readonly isOrdered: boolean } | undefined {
  const moved = `${file}.moved`;
  if (!existsSync(moved)) return existsSync(file) ? { file, isOrdered: false } : undefined;
  if (!existsSync(file)) return { file: moved, isOrdered: true };
  throw new StoreStartError(
    `store ${storeId}: ${file} and ${moved} are both there, and only one can be what it held when it `
      + `stopped: move the other one away`
  );
}

/** Of a sound file that nobody has ordered: throws when it is not what the process before has left. */
export async function requireOwnFile(file: string, head: SpillHead, store: Store): Promise<void> {
  const { birthtimeNs, mode } = await stat(file, { bigint: true });
  // Of a file system that told it once, and does not now, nothing is concluded.
  const isCopy = head.bornNs !== '' && birthtimeNs > 0n && String(birthtimeNs) !== head.bornNs;
  const isUsed = (mode & OWNER_WRITES) === 0n;
  if (!isCopy && !isUsed) return;
  const why = isUsed
    ? 'a process of this store has gone on from it before'
    : 'it is a copy, or was put back from a backup';
  throw new StoreStartError(
    `store ${head.storeId}: ${file} of ${new Date(head.wallMs).toISOString()} is not read: ${why}, so that `
      + `it may lack mail that came later. ${heldIn(store)}. Let the store run that has the newest; or move `
      + `the file away: this one starts empty, and its gateways fill it from other copies. Only if no `
      + `process has run on this store since that time, as when its folder was moved to another disk: rename `
      + `it to ${path.basename(file)}.moved`
  );
}

function heldIn({ partitions, entries }: Store): string {
  const names: string[] = [];
  for (const { partition } of partitions.copies()) {
    if (names.push(partition) === NAMES_MAX) break;
  }
  const more = partitions.count - names.length;
  const others = more > 0 ? ` and ${String(more)} more` : '';
  const held = names.length === 0 ? '' : `: ${names.join(', ')}${others}`;
  return `It has ${String(entries.count)} messages in ${String(partitions.count)} partitions${held}`;
}

/** The file is used up. */
export function markUsed(file: string): void {
  setMode(file, USED_MODE);
}

/** It is as good as before. */
export function markUnused(file: string): void {
  setMode(file, MODE);
}

function setMode(file: string, mode: number): void {
  try {
    chmodSync(file, mode);
  } catch {
    // A file system without modes: its name alone says that it was used.
  }
}

/**
 * A folder with what another store held, and without a trace of this one, is most likely that of the other:
 * throws. Stores that share a folder have each been there.
 */
export function requireOwnFolder(file: string, storeId: string): void {
  const folder = path.dirname(file);
  const own = path.basename(file);
  const names = existsSync(folder) ? readdirSync(folder) : [];
  if (names.some((name) => name.startsWith(own) && name !== `${own}.lock`)) return;
  const foreign = names.find((name) => name.startsWith('store-') && /\.spill(\.moved)?$/.test(name));
  if (foreign === undefined) return;
  const other = decodedId(foreign);
  throw new StoreStartError(
    `store ${storeId}: its state_dir ${folder} has what store ${other} held when it stopped (${foreign}), `
      + `and nothing of store ${storeId}; nothing was read. If this is to be store ${other}: give it that `
      + `id. Else name another state_dir, and leave this one to store ${other}`
  );
}

/** The name may be anything that somebody has put there. */
function decodedId(name: string): string {
  const encoded = name.replace(/^store-/, '').replace(/\.spill(\.moved)?$/, '');
  return /^[\w%-]+$/.test(encoded) ? encoded : 'of another id';
}
