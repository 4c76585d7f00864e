/**
 * Folders that a process will write into: its state_dir, and that of its log.
 *
 *   config check   a file in the way is an error, and so is a folder that can't be made, or where the log
 *                  is to be. One that the user who checks may not write is none: the service may run as
 *                  another one
 *   the start      both are made; state_dir, and the log file, must be writable to this very process
 *
 * What is wrong is told as for any other key: FILE:LINE: key: expected ….
 */
import {
  accessSync, closeSync, constants, existsSync, mkdtempSync, openSync, rmdirSync, statSync,
} from 'node:fs';
import path from 'node:path';
import type { GatewayConfig, Places, StoreConfig } from '../config/types.js';
import { LOG_FILE_MODE } from '../platform/node/log-destination.js';
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
    if (file !== undefined && existsSync(file) && statSync(file).isDirectory()) {
      errors.push(`${placeOf(`${section}.log.file`, places)}: expected a file, found: '${file}' is a folder`);
    }
    const folders = [['state_dir', stateDir], ['log.file', file && path.dirname(file)]] as const;
    for (const [key, folder] of folders) {
      if (folder === undefined) continue;
      const at = nearest(folder);
      const place = placeOf(`${section}.${key}`, places);
      if (!statSync(at).isDirectory()) errors.push(`${place}: expected ${WANTED}, found: '${at}' is a file`);
      else if (!mayWrite(at)) {
        warnings.push(`${place}: warning: you may not write to '${at}': may the user of the service?`);
      } else if (at !== path.resolve(folder)) {
        const code = whyNotMade(at);
        if (code === '') continue;
        errors.push(`${place}: expected ${WANTED}, found: none can be made in '${at}' (${code})`);
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

/** At the start; `given`: the file was named on the command line. */
export function requireLogFile(
  { log: { file }, section = 'gateway', places }: Omit<Section, 'stateDir'>, given: string | undefined,
): void {
  if (file === undefined) return;
  try {
    makeFolder(path.dirname(file));
    closeSync(openSync(file, 'a', LOG_FILE_MODE));
  } catch (error) {
    const { code = String(error) } = error as NodeJS.ErrnoException;
    const place = given === undefined ? placeOf(`${section}.log.file`, places) : '--log-file';
    throw new CliError(`${place}: expected a file that this user may write, found: '${file}' (${code})`);
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

/** By making one: some file systems, such as /proc, take none, though who asks may write there. */
function whyNotMade(folder: string): string {
  try {
    rmdirSync(mkdtempSync(path.join(folder, '.twinpost-')));
    return '';
  } catch (error) {
    return (error as NodeJS.ErrnoException).code ?? String(error);
  }
}

function mayWrite(folder: string): boolean {
  try {
    accessSync(folder, constants.W_OK | constants.X_OK);
    return true;
  } catch {
    return false;
  }
}
