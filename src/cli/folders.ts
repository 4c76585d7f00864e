/**
 * Folders that a process will write into: its state_dir, and that of its log.
 *
 *   config check   a file in the way is an error. A folder that the user who checks may not write is none:
 *                  the service may run as another one
 *   the start      its state_dir is made, and must be writable to this very process
 *
 * What is wrong is told as for any other key: FILE:LINE: key: expected ….
 */
import { accessSync, constants, existsSync, statSync } from 'node:fs';
import path from 'node:path';
import type { GatewayConfig, Places, StoreConfig } from '../config/types.js';
import { makeFolder } from '../platform/node/make-folder.js';
import { CliError } from './context.js';

interface FolderFindings {
  readonly errors: readonly string[];
  readonly warnings: readonly string[];
}

type Section = Pick<GatewayConfig | StoreConfig, 'stateDir' | 'log'> & {
  readonly places: Places;
  /** Of a store; a gateway has one name in each file. */
  readonly section?: string;
};

const WANTED = 'a folder, or a name at which one can be made';

export function judgeFolders(sections: readonly Section[]): FolderFindings {
  const errors: string[] = [];
  const warnings: string[] = [];
  for (const { stateDir, log: { file }, section = 'gateway', places } of sections) {
    const folders = [['state_dir', stateDir], ['log.file', file && path.dirname(file)]] as const;
    for (const [key, folder] of folders) {
      if (folder === undefined) continue;
      const at = nearest(folder);
      const place = placeOf(`${section}.${key}`, places);
      if (!statSync(at).isDirectory()) errors.push(`${place}: expected ${WANTED}, found: '${at}' is a file`);
      else if (!mayWrite(at)) {
        warnings.push(`${place}: warning: you may not write to '${at}': may the user of the service?`);
      }
    }
  }
  return { errors, warnings };
}

/** At the start; `given`: the folder was named on the command line. */
export function requireStateDir(
  { stateDir, section = 'gateway', places }: Omit<Section, 'log'>, given: string | undefined,
): void {
  if (stateDir === undefined) return;
  try {
    makeFolder(stateDir);
    accessSync(stateDir, constants.R_OK | constants.W_OK | constants.X_OK);
  } catch (error) {
    const { code = String(error) } = error as NodeJS.ErrnoException;
    const place = given === undefined ? placeOf(`${section}.state_dir`, places) : '--state-dir';
    const found = `found: '${stateDir}' (${code})`;
    throw new CliError(`${place}: expected ${WANTED}, that this user may read and write, ${found}`);
  }
}

function placeOf(key: string, places: Places): string {
  return `${places[key] ?? '?'}: ${key}`;
}

/** Itself, or the first above it that is there. */
function nearest(folder: string): string {
  let at = path.resolve(folder);
  while (!existsSync(at)) at = path.dirname(at);
  return at;
}

function mayWrite(folder: string): boolean {
  try {
    accessSync(folder, constants.W_OK | constants.X_OK);
    return true;
  } catch {
    return false;
  }
}
