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
import { readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { makeFolder } from '../platform/node/make-folder.js';
import { PROC, parseProcessMark } from '../platform/node/process-table.js';
import type { ProcessMark, ProcessTable } from '../platform/node/process-table.js';

const FILE = 'lock';
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
    before = parseProcessMark(readFileSync(taken, 'utf8'));
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
