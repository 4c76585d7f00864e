/** The version of this package, for whoever shows it: `twinpost version`, status of gateways and stores. */
import { readFileSync } from 'node:fs';
import { PROJECT_FOLDER } from '../platform/node/project-folder.js';

export function packageVersion(): string {
  const text = readFileSync(new URL('package.json', PROJECT_FOLDER), 'utf8');
  return (JSON.parse(text) as { version: string }).version;
}
