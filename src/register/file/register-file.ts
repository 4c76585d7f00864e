/**
 * The register's file on disk: read and checked when it is opened, replaced as a whole for each state.
 *
 *   keep    register.tmp ─ written, fsynced ─► renamed to register ─► folder fsynced
 *             │ fails: the old file stands │ fails from here on: either may
 *             ▼ 'refused'                  ▼ stand after a crash: 'unsure'
 *
 * A file that can't be read is never put aside, and never written over: the process does not start, and says
 * why. What the body holds is core/file-format.ts. A file made on another machine, or in another folder (a
 * copy), speaks of a state that others may have gone on from: it is opened as one of here, with the key
 * `moved` above all that it says (file/moved-map.ts).
 */
import { readFileSync, statSync } from 'node:fs';
import { open, rename } from 'node:fs/promises';
import { join } from 'node:path';
import { FileInUseError, FileLock, machineId } from '../../platform/node/file-lock.js';
import { makeFolder } from '../../platform/node/make-folder.js';
import type { Crc32 } from '../../platform/ports.js';
import { FILE_MAGIC, FILE_VERSION, decodeFileBody, encodeFileBody } from '../core/file-format.js';
import type { FileContent, Origin } from '../core/file-format.js';
import type { KeepResult } from '../core/map-host.js';
import { RegisterMap } from '../core/register-map.js';
import { BrokenRule } from '../../base/json-shape.js';
import { movedMap } from './moved-map.js';
import { RegisterFileError } from './register-file-error.js';

const FILE = 'register';
/** 65,536 entries of 2 KiB; a longer file is none of ours. */
const FILE_BYTES_MAX = 256 * 1024 * 1024;
const HEADER = /^([\w-]+) (\d{1,9}) (\d{1,9}) ([0-9a-f]{8})\n/;

export interface RegisterFileOptions {
  readonly stateDir: string;
  /** Of this machine; '' when it does not tell. Read from /etc/machine-id by default. */
  readonly machine?: string;
  /** How long the lock of an owner that can't be judged has to be untouched. */
  readonly untouchedMs?: number;
}

export class RegisterFile {
  /** What was read; the state to begin with. */
  readonly map: RegisterMap;
  /** Why it is one of another machine or folder; '' when it was made here, or is new. */
  readonly movedWhy: string;
  readonly #file: string;
  readonly #folder: string;
  readonly #lock: FileLock;
  readonly #here: Origin;
  readonly #crc32: Crc32;
  #keeping: Promise<void> = Promise.resolve();

  private constructor(
    stateDir: string,
    lock: FileLock,
    here: Origin,
    content: FileContent | undefined,
    crc32: Crc32,
  ) {
    this.#folder = stateDir;
    this.#file = join(stateDir, FILE);
    this.#lock = lock;
    this.#here = here;
    this.#crc32 = crc32;
    const map = content?.map ?? new RegisterMap();
    this.movedWhy = content === undefined ? '' : elsewhere(content.origin, here);
    this.map = this.movedWhy === '' ? map : movedMap(map, this.movedWhy);
  }

  /** Rejects with a RegisterFileError. */
  static async open(options: RegisterFileOptions, crc32: Crc32): Promise<RegisterFile> {
    const { stateDir, machine = machineId() } = options;
    const file = join(stateDir, FILE);
    try {
      makeFolder(stateDir);
      const lock = await FileLock.take({
        file: join(stateDir, 'register.lock'),
        machine,
        ...(options.untouchedMs === undefined ? {} : { untouchedMs: options.untouchedMs }),
      });
      try {
        const here = { machine, folder: String(statSync(stateDir, { bigint: true }).ino) };
        return new RegisterFile(stateDir, lock, here, readContent(file, crc32), crc32);
      } catch (error) {
        lock.release();
        throw error;
      }
    } catch (error) {
      if (error instanceof RegisterFileError) throw error;
      throw error instanceof FileInUseError ? inUse(error) : unreadable(file, error);
    }
  }

  /** Whether this process may still write it. */
  get isOurs(): boolean {
    return this.#lock.isOurs;
  }

  keep(map: RegisterMap, done: (result: KeepResult) => void): void {
    this.#keeping = this.#write(encodeFileBody({ origin: this.#here, map })).then(done);
  }

  /** Ends with the state that is being kept. */
  async close(): Promise<void> {
    await this.#keeping;
    this.#lock.release();
  }

  async #write(text: string): Promise<KeepResult> {
    const body = Buffer.from(text, 'utf8');
    const header = `${FILE_MAGIC} ${String(FILE_VERSION)} ${String(body.length)} ${
      hex(this.#crc32(body, 0))
    }\n`;
    const temporary = `${this.#file}.tmp`;
    let kind: 'refused' | 'unsure' = 'refused';
    try {
      const handle = await open(temporary, 'w', 0o600);
      try {
        await handle.writeFile(Buffer.concat([Buffer.from(header), body]));
        await handle.sync();
      } finally {
        await handle.close();
      }
      if (!this.#lock.isOurs) return { kind: 'refused', why: LOCK_LOST };
      kind = 'unsure';
      await rename(temporary, this.#file);
      const folder = await open(this.#folder, 'r');
      try {
        await folder.sync();
      } finally {
        await folder.close();
      }
      return { kind: 'kept' };
    } catch (error) {
      return {
        kind,
        why: `the register file ${this.#file} can't be written: ${
          reasonOf(error)
        }: look at the disk of state_dir (space, rights, errors)`,
      };
    }
  }
}

export const LOCK_LOST = 'another process has taken the register file: this one stood still for too long';

/** Undefined: there is no file. */
function readContent(file: string, crc32: Crc32): FileContent | undefined {
  let bytes: Buffer;
  try {
    if (statSync(file).size > FILE_BYTES_MAX) {
      throw damaged(file, `more than ${String(FILE_BYTES_MAX)} bytes`);
    }
    bytes = readFileSync(file);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined;
    throw error;
  }
  const [line, magic, version, length, checksum] = HEADER.exec(bytes.toString('latin1', 0, 64)) ?? [];
  if (line === undefined || magic !== FILE_MAGIC) {
    throw damaged(file, 'its first line is not that of a register file');
  }
  if (Number(version) > FILE_VERSION) {
    throw new RegisterFileError(
      'newer',
      `the register file ${file} was written by a newer version of Twinpost (format ${String(version)}, `
        + `this one reads ${String(FILE_VERSION)}): start that version, or a newer one`,
    );
  }
  const body = bytes.subarray(line.length);
  if (body.length !== Number(length)) {
    throw damaged(file, `it has ${String(body.length)} bytes of ${String(length)}`);
  }
  if (hex(crc32(body, 0)) !== checksum) throw damaged(file, 'its checksum is wrong');
  const content = decodeFileBody(body.toString('utf8'));
  if (content instanceof BrokenRule) throw damaged(file, content.rule);
  return content;
}

function damaged(file: string, rule: string): RegisterFileError {
  return new RegisterFileError(
    'damaged',
    `the register file ${file} is damaged (${rule}) and was left as it is: move it away by hand, `
      + 'then start again; it is made anew from what the stores know',
  );
}

function inUse({ by }: FileInUseError): RegisterFileError {
  return new RegisterFileError(
    'in use',
    `the register file is in use by ${by}: two gateways can't share one state_dir; `
      + 'stop that process, or give this gateway a state_dir of its own',
  );
}

function unreadable(file: string, error: unknown): RegisterFileError {
  return new RegisterFileError(
    'unreadable',
    `the register file ${file} can't be read: ${
      reasonOf(error)
    }: give this user the right to read and write it and its folder, `
      + 'then start again; nothing was changed',
  );
}

function reasonOf(error: unknown): string {
  return error instanceof Error ? ((error as NodeJS.ErrnoException).code ?? error.message) : String(error);
}

/** '' or why a file made at `origin` is not of here. What the machine does not tell is taken for the same. */
function elsewhere(origin: Origin, here: Origin): string {
  if (origin.machine !== here.machine && origin.machine !== '' && here.machine !== '') {
    return 'it was made on another machine';
  }
  return origin.folder === here.folder ? '' : 'it was made in another folder, of which this is a copy';
}

function hex(crc: number): string {
  return crc.toString(16).padStart(8, '0');
}
