/**
 * The log file of this process and the rotated ones beside it that are not compressed, a piece of whole lines
 * at a time. Only the part is read that can have lines of the time that is asked for, which is found by
 * halving: lines stand in the order of their times, but for those of several processes, and of a clock that
 * was set (SKEW_MS).
 *
 * Of a line that is longer than a piece nothing comes, but empty pieces, so that whoever reads can end it.
 *
 * All files are open before one is read: who renames or deletes them meanwhile takes nothing away. What is
 * written after that is not read.
 */
import { closeSync, constants, fstatSync, openSync, readSync, readdirSync, statSync } from 'node:fs';
import path from 'node:path';

const PIECE_BYTES = 1024 * 1024;
/** Many times the longest line. */
const PROBE_BYTES = 64 * 1024;
const SKEW_MS = 60_000;
/** While files are renamed, one may be missed by a look at the folder. */
const LOOKS_MAX = 5;
const LINE_FEED = 10;
const TIME = /"time":"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z)"/;
const COMPRESSED = /\.(gz|xz|zst|bz2|lz4)$/;

interface OpenFile {
  readonly fd: number;
  /** Of the file, whatever its name is. */
  readonly key: string;
  readonly bytes: number;
  /** When it was written last. */
  readonly writtenMs: number;
}

interface TimedLine {
  readonly start: number;
  readonly atMs: number;
}

export class LogPieces {
  /** Those that may have lines since then, and are compressed or can't be read. */
  readonly unreadCount: number;
  /** One became shorter while it was read (copytruncate). */
  wasCut = false;
  /** The newest first. */
  readonly #files: readonly OpenFile[];
  readonly #sinceMs: number;
  readonly #untilMs: number;

  /** Throws when there is no such file. */
  constructor(file: string, sinceMs: number, untilMs: number) {
    this.#sinceMs = sinceMs - SKEW_MS;
    this.#untilMs = untilMs + SKEW_MS;
    const { files, unread } = openAll(file);
    this.#files = files;
    this.unreadCount = unread.filter((name) => writtenMsOf(name) >= sinceMs).length;
  }

  /** Time of the oldest line that lies there; undefined: there is none. */
  get beginsMs(): number | undefined {
    const times = this.#files.flatMap((file) => this.#timedLine(file, 0, file.bytes)?.atMs ?? []);
    return times.length === 0 ? undefined : Math.min(...times);
  }

  /** Backwards; lines within a piece stand as they were written. */
  *newestFirst(): Generator<Buffer> {
    for (const file of this.#files) {
      const { from, to } = this.#part(file);
      for (let end = to; end > from;) {
        let start = Math.max(from, end - PIECE_BYTES);
        const bytes = this.#read(file, start, end);
        const cut = start === from ? 0 : bytes.indexOf(LINE_FEED) + 1;
        const isInside = start > from && (cut === 0 || cut === bytes.length);
        if (!isInside) start += cut;
        yield bytes.subarray(isInside ? bytes.length : cut);
        end = start;
      }
    }
  }

  *oldestFirst(): Generator<Buffer> {
    for (const file of [...this.#files].reverse()) {
      const { from, to } = this.#part(file);
      for (let start = from; start < to;) {
        const bytes = this.#read(file, start, Math.min(to, start + PIECE_BYTES));
        if (bytes.length === 0) break;
        const isLast = start + bytes.length >= to;
        const cut = isLast ? bytes.length : bytes.lastIndexOf(LINE_FEED) + 1;
        yield bytes.subarray(0, cut);
        start += cut > 0 ? cut : bytes.length;
      }
    }
  }

  close(): void {
    for (const { fd } of this.#files) closeSync(fd);
  }

  /** Where lines of that time can stand. */
  #part(file: OpenFile): { readonly from: number; readonly to: number } {
    if (file.writtenMs < this.#sinceMs) return { from: 0, to: 0 };
    const { before } = this.#halve(file, this.#sinceMs);
    return { from: before, to: this.#halve(file, this.#untilMs).after };
  }

  /** Starts of lines: all that stands before `before` is older, what stands from `after` on is not. */
  #halve(file: OpenFile, ms: number): { readonly before: number; readonly after: number } {
    let before = 0;
    let after = file.bytes;
    while (after - before > PROBE_BYTES) {
      const line = this.#timedLine(file, Math.floor((before + after) / 2), after);
      if (line === undefined) break;
      if (line.atMs < ms) before = line.start;
      else after = line.start;
    }
    return { before, after };
  }

  /** The first line with a time that begins behind `from` (at 0: there), and not at `to` or later. */
  #timedLine(file: OpenFile, from: number, to: number): TimedLine | undefined {
    const bytes = this.#read(file, from, Math.min(from + PROBE_BYTES, file.bytes));
    let at = from === 0 ? 0 : bytes.indexOf(LINE_FEED) + 1;
    if (from > 0 && at === 0) return undefined;
    while (at < bytes.length && from + at < to) {
      const end = bytes.indexOf(LINE_FEED, at);
      const atMs = lineTimeMs(bytes.toString('latin1', at, end < 0 ? bytes.length : end));
      if (atMs !== undefined) return { start: from + at, atMs };
      if (end < 0) break;
      at = end + 1;
    }
    return undefined;
  }

  /** Less when the file became shorter. */
  #read({ fd }: OpenFile, start: number, end: number): Buffer {
    const bytes = Buffer.allocUnsafe(end - start);
    let length = 0;
    while (length < bytes.length) {
      const read = readSync(fd, bytes, length, bytes.length - length, start + length);
      if (read === 0) {
        this.wasCut = true;
        break;
      }
      length += read;
    }
    return bytes.subarray(0, length);
  }
}

/** In milliseconds since 1970; undefined: it says none. */
export function lineTimeMs(line: string): number | undefined {
  const [, time] = TIME.exec(line) ?? [];
  const ms = time === undefined ? NaN : Date.parse(time);
  return Number.isNaN(ms) ? undefined : ms;
}

interface Opened {
  readonly files: readonly OpenFile[];
  /** Names of others. */
  readonly unread: readonly string[];
}

function openAll(file: string): Opened {
  const folder = path.dirname(file);
  const own = path.basename(file);
  const files = new Map<string, OpenFile>();
  let unread: string[] = [];
  for (let look = 0, before = -1; look < LOOKS_MAX && files.size > before; look++) {
    before = files.size;
    // NAME.1, NAME-20260131: as logrotate and `up` call them.
    const others = readdirSync(folder).filter((name) =>
      name.startsWith(`${own}.`) || name.startsWith(`${own}-`));
    unread = [];
    for (const name of [own, ...others]) {
      const one = COMPRESSED.test(name) ? undefined : openFile(path.join(folder, name));
      if (one === undefined) unread.push(path.join(folder, name));
      else if (files.has(one.key)) closeSync(one.fd);
      else files.set(one.key, one);
    }
  }
  if (files.size === 0) throw new Error(`${file} can not be read back`);
  return { files: [...files.values()].sort((a, b) => b.writtenMs - a.writtenMs), unread };
}

function writtenMsOf(name: string): number {
  return statSync(name, { throwIfNoEntry: false })?.mtimeMs ?? 0;
}

/** Undefined: it is gone, may not be read, or is a pipe or device. */
function openFile(name: string): OpenFile | undefined {
  let fd: number;
  try {
    fd = openSync(name, constants.O_RDONLY | constants.O_NONBLOCK);
  } catch {
    return undefined;
  }
  const found = fstatSync(fd);
  const { dev, ino, size, mtimeMs } = found;
  if (found.isFile()) return { fd, key: `${String(dev)} ${String(ino)}`, bytes: size, writtenMs: mtimeMs };
  closeSync(fd);
  return undefined;
}
