/** The version of this package, for whoever shows it: `twinpost version`, status of gateways and stores. */
import { existsSync, readFileSync } from 'node:fs';

/** Of the package that this file was built into, wherever the build put it. */
export function packageVersion(): string {
  for (const up of ['../../../package.json', '../../package.json']) {
    const file = new URL(up, import.meta.url);
    if (existsSync(file)) return (JSON.parse(readFileSync(file, 'utf8')) as { version: string }).version;
  }
  return 'unknown';
}
