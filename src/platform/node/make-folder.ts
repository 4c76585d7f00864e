/**
 * Makes a folder and those above it that are missing. Not by mkdir's own `recursive`: in a file system that
 * takes no folders and answers ENOENT, such as /proc, that of Node tries for ever (it makes the parent,
 * which is there, and begins again).
 */
import { existsSync, mkdirSync, statSync } from 'node:fs';
import path from 'node:path';

/**
 * Throws the system's error for the first one that can't be made; ENOTDIR when what is there is no folder.
 */
export function makeFolder(folder: string, mode = 0o777): void {
  const missing: string[] = [];
  for (let at = path.resolve(folder); !existsSync(at); at = path.dirname(at)) missing.unshift(at);
  for (const one of missing) {
    try {
      mkdirSync(one, { mode });
    } catch (error) {
      // Somebody else has made it meanwhile.
      if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error;
    }
  }
  if (!statSync(folder).isDirectory()) {
    throw Object.assign(new Error(`ENOTDIR: '${folder}' is there, and is no folder`), { code: 'ENOTDIR' });
  }
}
