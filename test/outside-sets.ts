/**
 * The sets of tests that need a program from outside npm: what each needs, and whether that is here. The
 * table itself is test/outside-sets.json, so that .ci/run can read the Debian packages before anything is
 * built. A set's tests are in test/thirdparty/<set>/.
 */
import { spawnSync } from 'node:child_process';
import { accessSync, constants, readFileSync } from 'node:fs';
import { delimiter, join } from 'node:path';

export interface OutsideSet {
  readonly set: string;
  /** Must be on PATH (or in the folders where Debian keeps daemons). */
  readonly program: string;
  /** Debian packages that bring it. */
  readonly packages: readonly string[];
  /** The set starts daemons that insist on root. */
  readonly root?: boolean;
  /** Python modules that must be found by one of the interpreters. */
  readonly probe?: readonly string[];
}

/** Folders of daemons, which a plain user's PATH may lack. */
const DAEMON_FOLDERS = ['/usr/local/sbin', '/usr/sbin', '/sbin'];

export function readOutsideSets(projectFolder: string): readonly OutsideSet[] {
  return JSON.parse(readFileSync(join(projectFolder, 'test', 'outside-sets.json'), 'utf8')) as OutsideSet[];
}

/** '' when the set can run, else why not. */
export function whyNot(set: OutsideSet): string {
  if (findProgram(set.program) === undefined) return `${set.program} not found`;
  if (set.root === true && process.getuid?.() !== 0) return 'needs root';
  for (const module of set.probe ?? []) if (findPythonWith(module) === undefined) return `Python module ${module} not found`;
  return '';
}

/** The full path of a program, or undefined. */
export function findProgram(name: string): string | undefined {
  const folders = [...(process.env['PATH'] ?? '').split(delimiter), ...DAEMON_FOLDERS];
  return folders.map((folder) => join(folder, name)).find(isExecutable);
}

/** A Python interpreter that can import `module`: the first on PATH, else the system's. */
export function findPythonWith(module: string): string | undefined {
  const interpreters = [findProgram('python3'), '/usr/bin/python3'].filter((path) => path !== undefined);
  return interpreters.find((path) => spawnSync(path, ['-c', `import ${module}`], { timeout: 30_000 }).status === 0);
}

function isExecutable(path: string): boolean {
  try {
    accessSync(path, constants.X_OK);
    return true;
  } catch {
    return false;
  }
}
