/**
 * Proof that the process of this gateway before us is gone: then its queues are claimed at once. Without it a new
 * process waits until every lease that an older one may hold has ended (recovery/bulk-recovery.ts).
 *
 *   state_dir/lock   {pid, start time, boot id of the machine, pid namespace} of the last process that started
 *
 *   gone      same boot and namespace, and no such process, or another one under its number, or a dead one not yet
 *             buried
 *   lives     it is there: it will stop when a store tells it FENCED; asked again until it is gone
 *   unknown   no file, another machine or container, another boot (a shared folder looks the same), no /proc
 *
 * The file is taken away before it is read: of two that start at once one finds it, the other has no proof.
 */
import { readFileSync, readlinkSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { makeFolder } from '../platform/node/make-folder.js';

const FILE = 'lock';
/** Fields of /proc/PID/stat behind the name in brackets, which may hold anything: state is the first, start time the twentieth. */
const STAT_STATE = 0;
const STAT_START_TIME = 19;

/** One process of one machine, for ever. */
export interface ProcessMark {
  readonly pid: number;
  readonly startTime: string;
  readonly bootId: string;
  readonly pidNamespace: string;
}

export interface ProcessTable {
  /** Undefined when this machine does not tell. */
  self(): ProcessMark | undefined;
  /** Start time of a process that lives; '' for none. */
  startTimeOf(pid: number): string;
}

export type OlderProcess = 'gone' | 'lives' | 'unknown';

export class ProcessLock {
  private older: OlderProcess = 'unknown';
  private readonly table: ProcessTable;
  private readonly mark: ProcessMark | undefined;
  private readonly before: ProcessMark | undefined;

  /** Takes the lock of `stateDir`; undefined: there is none, and never a proof. */
  constructor(stateDir: string | undefined, table: ProcessTable = PROC) {
    this.table = table;
    this.mark = table.self();
    this.before = stateDir === undefined || this.mark === undefined ? undefined : exchange(stateDir, this.mark);
    this.look();
  }

  /** What is known of the process before us, looked at anew. */
  look(): OlderProcess {
    const { mark, before } = this;
    if (this.older === 'gone' || mark === undefined || before === undefined) return this.older;
    if (before.bootId !== mark.bootId || before.pidNamespace !== mark.pidNamespace) return this.older;
    this.older = this.table.startTimeOf(before.pid) === before.startTime ? 'lives' : 'gone';
    return this.older;
  }
}

/** Puts our mark into the folder and returns the one that was there. */
function exchange(stateDir: string, mark: ProcessMark): ProcessMark | undefined {
  const file = join(stateDir, FILE);
  const taken = `${file}.${String(mark.pid)}`;
  let before: ProcessMark | undefined;
  try {
    makeFolder(stateDir);
    renameSync(file, taken);
    before = parse(readFileSync(taken, 'utf8'));
    rmSync(taken);
  } catch {
    // There was none, or it can't be had: no proof.
  }
  try {
    writeFileSync(`${taken}.new`, JSON.stringify(mark));
    renameSync(`${taken}.new`, file);
  } catch {
    // The next process will have no proof and wait.
  }
  return before;
}

function parse(text: string): ProcessMark | undefined {
  try {
    const value: unknown = JSON.parse(text);
    if (typeof value !== 'object' || value === null) return undefined;
    const { pid, startTime, bootId, pidNamespace } = value as Readonly<Record<string, unknown>>;
    if (typeof pid !== 'number' || typeof startTime !== 'string' || typeof bootId !== 'string' || typeof pidNamespace !== 'string') return undefined;
    return startTime === '' ? undefined : { pid, startTime, bootId, pidNamespace };
  } catch {
    return undefined;
  }
}

/** The process table of Linux. */
const PROC: ProcessTable = {
  self() {
    try {
      const startTime = startTimeOf(process.pid);
      const bootId = readFileSync('/proc/sys/kernel/random/boot_id', 'utf8').trim();
      const pidNamespace = readlinkSync('/proc/self/ns/pid');
      return startTime === '' ? undefined : { pid: process.pid, startTime, bootId, pidNamespace };
    } catch {
      return undefined;
    }
  },
  startTimeOf,
};

function startTimeOf(pid: number): string {
  try {
    const stat = readFileSync(`/proc/${String(pid)}/stat`, 'utf8');
    const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
    const state = fields[STAT_STATE] ?? '';
    return state === 'Z' || state === 'X' ? '' : (fields[STAT_START_TIME] ?? '');
  } catch {
    return '';
  }
}
