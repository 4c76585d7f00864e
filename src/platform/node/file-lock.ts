/**
 * One process at a time for a file or folder: a lock file with a mark of the process that has it. For the
 * folder of a gateway (gateway/local/process-lock.ts) and for the register's file
 * (register/file/register-file.ts).
 *
 *   none                                   ─► made (O_EXCL), ours
 *   its process is gone (same boot and pid namespace, or the same machine in a later boot)
 *                                          ─► taken away, then as none
 *   its process lives                      ─► refused
 *   another machine or container, no /proc ─► watched: its owner touches it every 2 s;
 *                                             untouched for 10 s, it is taken away
 *
 * A process that stood still for longer than that, in another container, would go on writing: so it looks,
 * before each write, whether the file is still the one that it made (`isOurs`), and gives up when it is not.
 */
import { randomBytes } from 'node:crypto';
import {
  linkSync,
  openSync,
  closeSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  utimesSync,
  writeSync,
  fstatSync,
} from 'node:fs';
import { setTimeout as wait } from 'node:timers/promises';
import { z } from 'zod';
import { BrokenRule, readJson } from '../../base/json-shape.js';
import { PROC, processMark } from './process-table.js';
import type { ProcessTable } from './process-table.js';

const TOUCH_MS = 2_000;
/** Five touches: an owner that is only slow keeps it. */
const UNTOUCHED_MS = 10_000;
const LOOK_MS = 500;
/** Two that start at once may take it from each other's hands a few times; one of them then has it. */
const TRIES_MAX = 20;

/** Another process has the lock. */
export class FileInUseError extends Error {
  override readonly name = 'FileInUseError';
  /** For people: "process 123 (/folder/lock)". */
  readonly by: string;

  constructor(by: string) {
    super(`in use by ${by}`);
    this.by = by;
  }
}

const lockMark = processMark.extend({ machine: z.unknown() });

export interface FileLockOptions {
  readonly file: string;
  /** Of this machine; '' when it does not tell. */
  readonly machine: string;
  readonly untouchedMs?: number;
}

interface Found {
  readonly inode: number;
  readonly touchedMs: number;
  readonly text: string;
}

export class FileLock {
  readonly #file: string;
  readonly #inode: number;
  readonly #touching: NodeJS.Timeout;

  private constructor(file: string, inode: number) {
    this.#file = file;
    this.#inode = inode;
    this.#touching = setInterval(() => {
      this.#touch();
    }, TOUCH_MS);
    // The lock alone keeps no process.
    this.#touching.unref();
  }

  /** Rejects with a FileInUseError when another process has it. */
  static async take(options: FileLockOptions, table: ProcessTable = PROC): Promise<FileLock> {
    const { file, machine } = options;
    const self = table.self();
    const text = JSON.stringify({ ...(self ?? { pid: process.pid }), machine });
    for (let tries = 0; tries < TRIES_MAX; tries++) {
      const inode = make(file, text);
      if (inode !== undefined) return new FileLock(file, inode);
      const found = look(file);
      if (found === undefined) continue;
      const owner = judge(found.text, machine, table);
      if (owner === 'lives') throw inUse(file, found.text);
      if (owner === 'unknown' && !(await staysUntouched(file, found, options.untouchedMs ?? UNTOUCHED_MS))) {
        throw inUse(file, found.text);
      }
      takeAway(file, found);
    }
    throw new FileInUseError(`others, who take ${file} again and again`);
  }

  /** Whether it still is the one that this process made. */
  get isOurs(): boolean {
    return look(this.#file)?.inode === this.#inode;
  }

  release(): void {
    clearInterval(this.#touching);
    try {
      if (this.isOurs) rmSync(this.#file);
    } catch {
      // The next process sees that this one is gone.
    }
  }

  #touch(): void {
    try {
      if (this.isOurs) utimesSync(this.#file, new Date(), new Date());
    } catch {
      // Its next write will see it.
    }
  }
}

function make(file: string, text: string): number | undefined {
  let handle: number;
  try {
    handle = openSync(file, 'wx', 0o600);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'EEXIST') return undefined;
    throw error;
  }
  try {
    writeSync(handle, text);
    return fstatSync(handle).ino;
  } finally {
    closeSync(handle);
  }
}

function look(file: string): Found | undefined {
  try {
    const { ino, mtimeMs } = statSync(file);
    return { inode: ino, touchedMs: mtimeMs, text: readFileSync(file, 'utf8') };
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined;
    throw error;
  }
}

/** A mark that is not whole belongs to one that writes it just now, or died doing so. */
function judge(text: string, machine: string, table: ProcessTable): 'lives' | 'gone' | 'unknown' {
  const self = table.self();
  const mark = readJson(lockMark, text);
  if (self === undefined || mark instanceof BrokenRule) return 'unknown';
  const isSameMachine = machine !== '' && mark.machine === machine;
  if (mark.bootId !== self.bootId) return isSameMachine ? 'gone' : 'unknown';
  if (mark.pidNamespace !== self.pidNamespace) return 'unknown';
  return table.startTimeOf(mark.pid) === mark.startTime ? 'lives' : 'gone';
}

/** By our own clock and the file's change of time, whatever that time says. */
async function staysUntouched(file: string, first: Found, untouchedMs: number): Promise<boolean> {
  const startMs = performance.now();
  while (performance.now() - startMs < untouchedMs) {
    await wait(LOOK_MS);
    const now = look(file);
    if (now === undefined) return true;
    if (now.inode !== first.inode || now.touchedMs !== first.touchedMs) return false;
  }
  return true;
}

/** Renamed, so that of two only one takes it; and what was not the one that was judged is put back. */
function takeAway(file: string, judged: Found): void {
  const aside = `${file}.${randomBytes(6).toString('hex')}`;
  try {
    renameSync(file, aside);
  } catch {
    return;
  }
  if (look(aside)?.inode !== judged.inode) {
    try {
      linkSync(aside, file);
    } catch {
      // A third process has made one meanwhile; the owner of this one sees that it is not its own any more.
    }
  }
  rmSync(aside, { force: true });
}

function inUse(file: string, text: string): FileInUseError {
  const mark = readJson(lockMark, text);
  const who = mark instanceof BrokenRule ? 'another process' : `process ${String(mark.pid)}`;
  return new FileInUseError(`${who} (${file})`);
}

/** Of this machine, not of this boot; '' when it does not tell. */
export function machineId(): string {
  try {
    return readFileSync('/etc/machine-id', 'utf8').trim();
  } catch {
    return '';
  }
}
