/**
 * The sets of tests that need a program from outside npm: what each needs, and whether that is here. The
 * table itself is test/outside-sets.json, so that .ci/run can read the Debian packages before anything is
 * built. A set's tests are in test/thirdparty/<set>/.
 */
import { spawnSync } from 'node:child_process';
import { accessSync, constants, existsSync, readFileSync } from 'node:fs';
import { delimiter, dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

export interface OutsideSet {
  readonly set: string;
  /** Must be on PATH (or in the folders where Debian keeps daemons). */
  readonly program: string;
  /** More programs that it needs. */
  readonly also?: readonly string[];
  /** Debian packages that bring it. */
  readonly packages: readonly string[];
  /** Those that can't be installed beside another set's: .ci/run unpacks each into unpackedFolder(). `program` is in the first. */
  readonly unpacked?: readonly string[];
  /** A package of npm that is installed into the set's folder alone, by the lock there: .ci/run does so. */
  readonly npm?: string;
  /** Bound in time; default 5. */
  readonly minutes?: number;
  /** Files at the same time; default 1. */
  readonly concurrency?: number;
  /** It keeps all processors busy: no other set runs beside it. */
  readonly alone?: boolean;
  /** The set starts daemons that insist on root. */
  readonly root?: boolean;
  /** Python modules that must be found by one of the interpreters. */
  readonly probe?: readonly string[];
  /** Network namespaces must be permitted. */
  readonly namespaces?: boolean;
}

const PROJECT = join(dirname(fileURLToPath(import.meta.url)), '..', '..');

/** Folders of daemons, which a plain user's PATH may lack. */
const DAEMON_FOLDERS = ['/usr/local/sbin', '/usr/sbin', '/sbin'];

export function readOutsideSets(projectFolder: string): readonly OutsideSet[] {
  return JSON.parse(readFileSync(join(projectFolder, 'test', 'outside-sets.json'), 'utf8')) as OutsideSet[];
}

/** Where a Debian package is unpacked that can't be installed. */
export function unpackedFolder(name: string): string {
  return join(process.env['TWINPOST_UNPACKED'] ?? '/opt/twinpost-unpacked', name);
}

/** Where a package of npm lies that is installed for one set alone. */
export function npmFolder(set: string, name: string): string {
  return join(PROJECT, 'test', 'thirdparty', set, 'node_modules', name);
}

/** '' when the set can run, else why not. */
export function whyNot(set: OutsideSet): string {
  const [unpacked] = set.unpacked ?? [];
  const installed = [...(unpacked === undefined ? [set.program] : []), ...(set.also ?? [])];
  for (const program of installed) if (findProgram(program) === undefined) return `${program} not found`;
  if (unpacked !== undefined) return whyNotUnpacked(unpacked, set.program);
  if (set.npm !== undefined && !existsSync(npmFolder(set.set, set.npm))) return `${set.npm} not found: npm ci --prefix test/thirdparty/${set.set}`;
  if (set.root === true && process.getuid?.() !== 0) return 'needs root';
  for (const module of set.probe ?? []) if (findPythonWith(module) === undefined) return `Python module ${module} not found`;
  return set.namespaces === true ? whyNoNamespaces() : '';
}

function whyNotUnpacked(name: string, program: string): string {
  if (process.getuid?.() !== 0) return 'needs root';
  const folder = unpackedFolder(name);
  if (!isExecutable(join(folder, 'usr', 'sbin', program))) return `${program} not found: unpack ${name} into ${folder}`;
  const { status, stderr, error } = spawnSync('unshare', ['--mount', '--pid', '--fork', 'mount', '--bind', '/tmp', '/tmp'], { encoding: 'utf8', timeout: 10_000 });
  return status === 0 ? '' : `mount namespaces are not permitted here: ${firstLine(error?.message ?? stderr)}`;
}

function firstLine(text: string): string {
  return text.trim().split('\n')[0] ?? '';
}

/** '' when a network namespace with a pair of interfaces and a rule can be made: a container may forbid any of them. */
function whyNoNamespaces(): string {
  const name = `twinpost-test-${process.pid}-probe`;
  const run = (program: string, ...args: string[]): string => {
    const { status, stderr, error } = spawnSync(findProgram(program) ?? program, args, { encoding: 'utf8', timeout: 10_000 });
    return status === 0 ? '' : `network namespaces are not permitted here: ${program}: ${firstLine(error?.message ?? stderr)}`;
  };
  const made = run('ip', 'netns', 'add', name);
  if (made !== '') return made;
  const linked = run('ip', '-n', name, 'link', 'add', 'one', 'type', 'veth', 'peer', 'name', 'other');
  const ruled = run('ip', 'netns', 'exec', name, 'iptables', '-A', 'INPUT', '-m', 'statistic', '--mode', 'random', '--probability', '0.5', '-j', 'DROP');
  run('ip', 'netns', 'delete', name);
  return linked === '' ? ruled : linked;
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
