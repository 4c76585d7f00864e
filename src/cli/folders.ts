/**
 * What `config check` says of folders that a process will write into: its state_dir, and that of its log. A
 * file in the way is an error, as for the start. A folder that the user who checks may not write is none: the
 * service may run as another one.
 */
import { accessSync, constants, existsSync, statSync } from 'node:fs';
import path from 'node:path';
import type { GatewayConfig, StoreConfig } from '../config/types.js';

interface FolderFindings {
  readonly errors: readonly string[];
  readonly warnings: readonly string[];
}

type Section = Pick<GatewayConfig | StoreConfig, 'id' | 'stateDir' | 'log'>;

export function judgeFolders(configFile: string, sections: readonly Section[]): FolderFindings {
  const errors: string[] = [];
  const warnings: string[] = [];
  for (const { id, stateDir, log: { file } } of sections) {
    const folders = [['state_dir', stateDir], ['log.file', file && path.dirname(file)]] as const;
    for (const [key, folder] of folders) {
      if (folder === undefined) continue;
      const at = nearest(folder);
      const place = `${configFile}: ${id}: ${key}`;
      if (!statSync(at).isDirectory()) {
        const wanted = 'a folder, or a name at which one can be made';
        errors.push(`${place}: expected ${wanted}, found: '${at}' is a file`);
      } else if (!mayWrite(at)) {
        warnings.push(`${place}: warning: you may not write to '${at}': may the user of the service?`);
      }
    }
  }
  return { errors, warnings };
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
