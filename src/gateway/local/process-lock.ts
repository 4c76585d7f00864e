/**
 * The state_dir of a gateway belongs to one process at a time, and knows which incarnations ran in it. The
 * next process takes at once what one of them held, if it is proven here that exactly that one is dead;
 * without the proof it waits for leases and sessions to run out.
 *
 *   state_dir/lock         who has the folder now (platform/node/file-lock.ts): a second process is refused
 *   state_dir/processes    machine, folder, and of each incarnation that ran here: its ordinal, the mark of
 *                          its process, and whether it ended in good order
 *
 *   an incarnation is     proven dead when
 *   named here            it ended in good order, or
 *                         its process is not there: this boot and pid namespace, or
 *                         the machine was booted since, and neither of the two runs in a container
 *   not named here        never: a gateway that ran elsewhere meanwhile has another incarnation
 *
 * A file of another machine, or in a copied folder, proves only that what ended in good order has ended.
 */
import { readFileSync, renameSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { z } from 'zod';
import { errorText } from '../../base/error-text.js';
import { BrokenRule, readJson, readShape } from '../../base/json-shape.js';
import { FileInUseError, FileLock, machineId } from '../../platform/node/file-lock.js';
import { makeFolder } from '../../platform/node/make-folder.js';
import { MACHINE_PID_NAMESPACE, PROC, processMark } from '../../platform/node/process-table.js';
import type { ProcessMark, ProcessTable } from '../../platform/node/process-table.js';
import type { IncarnationRecord } from '../../register/records.js';

const LOCK_FILE = 'lock';
const PROCESSES_FILE = 'processes';
/** The newest ones: what an older one held, others have taken long since. */
const LIVES_MAX = 64;

/** One process of this gateway. */
const life = z.object({
  incarnation: z.int().min(0),
  ordinal: z.int().min(0),
  mark: processMark,
  hasEnded: z.boolean(),
});
type Life = Readonly<z.output<typeof life>>;

const processes = z.object({
  machine: z.string(),
  /** Its inode: a copy has another one. */
  folder: z.string(),
  lives: z.array(z.unknown()),
});
type Place = Readonly<Omit<z.output<typeof processes>, 'lives'>>;
interface Processes extends Place {
  readonly lives: readonly Life[];
}

export interface ProcessLockOptions {
  readonly stateDir: string;
  readonly table?: ProcessTable;
  /** Default: what /etc/machine-id says. */
  readonly machine?: string;
  /** See FileLock. */
  readonly untouchedMs?: number;
}

export class ProcessLock {
  readonly #file: string;
  readonly #lock: FileLock;
  readonly #table: ProcessTable;
  readonly #here: Place;
  readonly #before: Processes;
  #own: Life | undefined;

  private constructor(stateDir: string, lock: FileLock, table: ProcessTable, machine: string) {
    this.#file = join(stateDir, PROCESSES_FILE);
    this.#lock = lock;
    this.#table = table;
    this.#here = { machine, folder: String(statSync(stateDir, { bigint: true }).ino) };
    this.#before = readProcesses(this.#file);
  }

  /** Rejects when another process has the folder, or it can't be used: the text says what to do. */
  static async take(options: ProcessLockOptions): Promise<ProcessLock> {
    const { stateDir, table = PROC, machine = machineId(), untouchedMs } = options;
    try {
      makeFolder(stateDir);
      const file = join(stateDir, LOCK_FILE);
      const patience = untouchedMs === undefined ? {} : { untouchedMs };
      const lock = await FileLock.take({ file, machine, ...patience }, table);
      return new ProcessLock(stateDir, lock, table, machine);
    } catch (error) {
      const isInUse = error instanceof FileInUseError;
      throw new Error(isInUse ? inUseText(stateDir, error) : unusableText(stateDir, error));
    }
  }

  /** The highest numbers that ran here: a register that was rolled back must not give them out again. */
  get last(): IncarnationRecord {
    const { lives } = this.#before;
    return {
      incarnation: Math.max(0, ...lives.map(({ incarnation }) => incarnation)),
      ordinal: Math.max(0, ...lives.map(({ ordinal }) => ordinal)),
    };
  }

  /**
   * This process runs as this incarnation, before anybody else hears of it. '' or why it could not be kept.
   */
  record({ incarnation, ordinal }: IncarnationRecord): string {
    const mark = this.#table.self();
    if (mark === undefined) return 'this machine does not tell its processes (/proc)';
    this.#own = { incarnation, ordinal, mark, hasEnded: false };
    return this.#write(this.#own);
  }

  /** Exactly this incarnation is dead. */
  proves(incarnation: number): boolean {
    const lives = this.#before.lives.filter((life) => life.incarnation === incarnation);
    return lives.length > 0 && lives.every((life) => life.hasEnded || this.#isGone(life.mark));
  }

  /** `hasEnded`: in good order, and nothing of it goes on. */
  release(hasEnded: boolean): void {
    if (this.#own !== undefined && hasEnded && this.#lock.isOurs) this.#write({ ...this.#own, hasEnded });
    this.#lock.release();
  }

  #isGone(mark: ProcessMark): boolean {
    const self = this.#table.self();
    const { machine, folder } = this.#before;
    if (self === undefined || machine !== this.#here.machine || folder !== this.#here.folder) return false;
    if (mark.bootId === self.bootId) {
      return mark.pidNamespace === self.pidNamespace && this.#table.startTimeOf(mark.pid) !== mark.startTime;
    }
    // Images of containers may all have one machine-id.
    return machine !== '' && [mark, self].every(({ pidNamespace }) => pidNamespace === MACHINE_PID_NAMESPACE);
  }

  #write(own: Life): string {
    const { machine, folder, lives } = this.#before;
    const isHere = machine === this.#here.machine && folder === this.#here.folder;
    const kept = lives.filter((life) => isHere || life.hasEnded);
    const content: Processes = { ...this.#here, lives: [...kept, own].slice(-LIVES_MAX) };
    try {
      writeFileSync(`${this.#file}.new`, `${JSON.stringify(content)}\n`, { mode: 0o600 });
      renameSync(`${this.#file}.new`, this.#file);
      return '';
    } catch (error) {
      return errorText(error);
    }
  }
}

/** What can't be read proves nothing. */
function readProcesses(file: string): Processes {
  let text = '';
  try {
    text = readFileSync(file, 'utf8');
  } catch {
    // No file, or none for us.
  }
  const read = readJson(processes, text);
  if (read instanceof BrokenRule) return { machine: '', folder: '', lives: [] };
  const lives = read.lives.slice(-LIVES_MAX).flatMap((raw) => {
    const one = readShape(life, raw);
    return one instanceof BrokenRule ? [] : [one];
  });
  return { ...read, lives };
}

function inUseText(stateDir: string, { by }: FileInUseError): string {
  return `state_dir ${stateDir} is in use by ${by}: two gateways can't share one state_dir; `
    + 'stop that process, or give this gateway a state_dir of its own';
}

function unusableText(stateDir: string, error: unknown): string {
  const { code = String(error) } = error as NodeJS.ErrnoException;
  return `state_dir ${stateDir} can't be used: ${code}: give this user the right to read and write it`;
}
