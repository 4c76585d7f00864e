/**
 * Daemons of Debian packages that can't be installed beside others, such as a second mail server: unpacked into a
 * folder of their own (.ci/run), and run where their compiled-in paths and users are true. That is a mount namespace
 * of their own, in which `etc`, `run`, `var/lib`, `var/log` and `var/spool` of a test's folder lie over those of the
 * machine, and programs of the package over /usr/sbin and /usr/libexec. In a process namespace too: all of the
 * daemon's processes end with the first.
 */
import { spawn, type ChildProcess } from 'node:child_process';
import { chmodSync, chownSync, copyFileSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

import { unpackedFolder } from '../outside-sets.js';
import { pause } from '../process/cluster.js';
import { answers, mustRun } from './support.js';

const READY_MS = 20_000;
const POLL_MS = 50;
/** Of the users that a package brings. They own files in the test's folder only. */
const FIRST_ID = 61_001;

/**
 * Run by sh within the namespaces: the test's folder, the package's folder, the command. sh stays as the first process,
 * which the kernel ends with `unshare`: of one that is set-user-ID, as Exim is, it would not know that it should.
 */
const ENTER = `root=$1 package=$2
shift 2
for place in usr/sbin usr/libexec; do [ ! -d "$package/$place" ] || mount --bind "$package/$place" "/$place"; done
for place in etc run var/lib var/log var/spool; do mount --bind "$root/$place" "/$place"; done
"$@"
exit`;

export interface UnpackedOptions {
  /** Name of the Debian package. */
  readonly package: string;
  /** It must stay in the foreground. */
  readonly command: readonly string[];
  /** It answers there when it is ready. */
  readonly port: number;
  /** Users and groups of the same names, in this order. */
  readonly users: readonly string[];
  /** Certificates of the authorities that the machine trusts. */
  readonly caFile: string;
  /** Files to be there: path → text. */
  readonly files: Readonly<Record<string, string>>;
  /** Of some of them: path → permissions. */
  readonly modes?: Readonly<Record<string, number>>;
  /** Folders to be there: path → the user who owns it, or ''. */
  readonly folders: Readonly<Record<string, string>>;
}

export interface Unpacked {
  /** All that it said on stdout and stderr. */
  said(): string;
  /** Full path, on the machine, of a file that it knows by `path`. */
  at(path: string): string;
  /** Runs another program of the package beside it, in the group of one of the users. */
  run(group: string, program: string, args: readonly string[]): Promise<string>;
  stop(): Promise<void>;
}

export async function startUnpacked(options: UnpackedOptions): Promise<Unpacked> {
  const root = mkdtempSync(join(tmpdir(), `twinpost-${options.package}-`));
  const at = (path: string): string => join(root, path);
  furnish(at, options);
  const within = ['--mount', '--pid', '--fork', '--kill-child', 'sh', '-ec', ENTER, 'sh', root, unpackedFolder(options.package)];
  const child = spawn('unshare', [...within, ...options.command], { stdio: ['ignore', 'pipe', 'pipe'] });
  const chunks: Buffer[] = [];
  for (const stream of [child.stdout, child.stderr]) stream.on('data', (chunk: Buffer) => chunks.push(chunk));
  const said = (): string => Buffer.concat(chunks).toString('latin1');
  const endNow = (): void => void child.kill('SIGKILL');
  process.once('exit', endNow);
  const stop = async (): Promise<void> => {
    await ended(child);
    process.removeListener('exit', endNow);
    rmSync(root, { recursive: true, force: true });
  };
  const endMs = performance.now() + READY_MS;
  while (!(await answers(options.port))) {
    if (child.exitCode !== null || performance.now() > endMs) {
      await stop();
      throw new Error(`${options.package} did not start\n${said()}`);
    }
    await pause(POLL_MS);
  }
  const run = (group: string, program: string, args: readonly string[]): Promise<string> =>
    mustRun('nsenter', ['--mount', '--target', String(child.pid), '--setgid', String(idOf(options, group)), program, ...args]);
  return { said, at, run, stop };
}

/** Of a user, and of the group of its name. */
function idOf({ users }: UnpackedOptions, user: string): number {
  return FIRST_ID + users.indexOf(user);
}

/** Lays out what the daemon finds on its machine. */
function furnish(at: (path: string) => string, options: UnpackedOptions): void {
  const { users, caFile, files, folders } = options;
  for (const place of ['etc/ssl/certs', 'run', 'var/lib', 'var/log', 'var/spool']) mkdirSync(at(place), { recursive: true });
  const named = (line: (user: string, id: number) => string): string => users.map((user) => `${line(user, idOf(options, user))}\n`).join('');
  const written: Readonly<Record<string, string>> = {
    'etc/passwd': `root:x:0:0:root:/root:/bin/sh\n${named((user, id) => `${user}:x:${id}:${id}::/nonexistent:/usr/sbin/nologin`)}`,
    'etc/group': `root:x:0:\nmail:x:8:\n${named((user, id) => `${user}:x:${id}:`)}`,
    'etc/hosts': '127.0.0.1 localhost gateway.test\n',
    'etc/nsswitch.conf': 'passwd: files\ngroup: files\nhosts: files\n',
    'etc/resolv.conf': '',
    ...files,
  };
  copyFileSync(caFile, at('etc/ssl/certs/ca-certificates.crt'));
  chmodSync(at('etc/ssl/certs/ca-certificates.crt'), 0o644);
  for (const [path, user] of Object.entries(folders)) {
    mkdirSync(at(path), { recursive: true });
    // OpenSMTPD insists on it.
    chmodSync(at(path), 0o711);
    if (user !== '') chownSync(at(path), idOf(options, user), idOf(options, user));
  }
  for (const [path, text] of Object.entries(written)) writeFileSync(at(path), text);
  for (const [path, mode] of Object.entries(options.modes ?? {})) chmodSync(at(path), mode);
}

/** Ends the first process, and all others with it. */
async function ended(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  const gone = new Promise<void>((resolve) => child.once('close', () => { resolve(); }));
  child.kill('SIGKILL');
  await gone;
}
