/**
 * One mail log, read a piece at a time: a file, a compressed one, or what comes by stdin. A file that is
 * followed has no end: what is appended is read, and when another file gets its name (rotation), or it is cut
 * (copytruncate), the new one is read from its start.
 *
 *   read ─► lines, at the end of the file ─┬─ not followed ─► the rest as a line, then ENDED
 *                                          └─ followed: same file ─► DRY; another one ─► its lines
 */
import { createReadStream } from 'node:fs';
import { open, stat } from 'node:fs/promises';
import type { FileHandle } from 'node:fs/promises';
import { pipeline } from 'node:stream';
import { createGunzip } from 'node:zlib';
import { STDIN_FILE } from '../context.js';
import { LineSplitter } from './line-splitter.js';

/** Nothing more now; nothing more ever. */
export const DRY = 'dry';
export const ENDED = 'ended';

export interface LogSource {
  readonly name: string;
  /** Lines that were too long to be any. */
  readonly passed: number;
  read(): Promise<readonly string[] | typeof DRY | typeof ENDED>;
  close(): Promise<void>;
}

const STDIN_FD = 0;
const CHUNK_BYTES = 256 * 1024;
/** Of a file that is followed from its end so much is shown first. */
const TAIL_BYTES = 4096;

export interface FollowOptions {
  /** Also what is there already. */
  readonly fromStart: boolean;
}

/** `follow` undefined: to its end, once. */
export function logSource(name: string, follow: FollowOptions | undefined): LogSource {
  if (name === STDIN_FILE) {
    return new StreamSource('stdin', createReadStream('', { fd: STDIN_FD, autoClose: false }));
  }
  if (!name.endsWith('.gz')) return new FileSource(name, follow);
  const gunzip = createGunzip({ chunkSize: CHUNK_BYTES });
  // An error comes out of the one that is read.
  pipeline(createReadStream(name), gunzip, () => undefined);
  return new StreamSource(name, gunzip);
}

class StreamSource implements LogSource {
  readonly name: string;
  readonly #chunks: AsyncIterator<Buffer>;
  readonly #splitter = new LineSplitter();
  #isOver = false;

  constructor(name: string, stream: AsyncIterable<Buffer>) {
    this.name = name;
    this.#chunks = stream[Symbol.asyncIterator]();
  }

  get passed(): number {
    return this.#splitter.passed;
  }

  async read(): Promise<readonly string[] | typeof ENDED> {
    if (this.#isOver) return ENDED;
    const next = await this.#chunks.next();
    if (next.done !== true) return this.#splitter.push(next.value);
    this.#isOver = true;
    return this.#splitter.end();
  }

  async close(): Promise<void> {
    await this.#chunks.return?.();
  }
}

class FileSource implements LogSource {
  readonly name: string;
  readonly #follow: FollowOptions | undefined;
  readonly #splitter = new LineSplitter();
  readonly #buffer = Buffer.allocUnsafe(CHUNK_BYTES);
  #handle: FileHandle | undefined;
  /** Null: it is no file with places in it, but a pipe. */
  #position: number | null = 0;
  /** The line that is read now began before the place where reading began. */
  #isTorn = false;
  #isOver = false;
  #wasLookedFor = false;

  constructor(name: string, follow: FollowOptions | undefined) {
    this.name = name;
    this.#follow = follow;
  }

  get passed(): number {
    return this.#splitter.passed;
  }

  async read(): Promise<readonly string[] | typeof DRY | typeof ENDED> {
    if (this.#isOver) return ENDED;
    if (this.#handle === undefined && !await this.#open()) return DRY;
    // Looked at before: what came to the old file until then is read from it.
    const isReplaced = this.#follow !== undefined && await this.#isReplaced();
    const lines = await this.#more();
    if (lines !== undefined) return lines;
    if (this.#follow !== undefined && !isReplaced) return DRY;
    this.#isOver = this.#follow === undefined;
    await this.close();
    return this.#splitter.end();
  }

  async close(): Promise<void> {
    await this.#handle?.close();
    this.#handle = undefined;
  }

  /** False: a file that is followed is not there yet. */
  async #open(): Promise<boolean> {
    const isFirst = !this.#wasLookedFor;
    this.#wasLookedFor = true;
    try {
      this.#handle = await open(this.name, 'r');
    } catch (error) {
      if (this.#follow !== undefined && (error as NodeJS.ErrnoException).code === 'ENOENT') return false;
      throw error;
    }
    const kind = await this.#handle.stat();
    const isLate = isFirst && this.#follow?.fromStart === false;
    this.#position = kind.isFile() ? (isLate ? Math.max(0, kind.size - TAIL_BYTES) : 0) : null;
    this.#isTorn = this.#position !== null && this.#position > 0;
    return true;
  }

  /** Undefined at the end of the file. */
  async #more(): Promise<readonly string[] | undefined> {
    const read = await this.#handle?.read(this.#buffer, 0, CHUNK_BYTES, this.#position);
    if (read === undefined || read.bytesRead === 0) return undefined;
    if (this.#position !== null) this.#position += read.bytesRead;
    const lines = this.#splitter.push(this.#buffer.subarray(0, read.bytesRead));
    if (!this.#isTorn || lines.length === 0) return lines;
    this.#isTorn = false;
    return lines.slice(1);
  }

  /** Another file has its name, or it was cut. */
  async #isReplaced(): Promise<boolean> {
    const [named, own] = await Promise.all([stat(this.name).catch(() => undefined), this.#handle?.stat()]);
    if (named === undefined || own === undefined) return false;
    if (named.ino !== own.ino || named.dev !== own.dev) return true;
    return this.#position !== null && own.size < this.#position;
  }
}
