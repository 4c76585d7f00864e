/**
 * Where log lines go: an asynchronous, bounded way to a file descriptor. A reader of stdout that stops
 * reading, or a disk that is full, must stop neither mail nor let memory grow: lines past the bound are lost
 * and counted, and the count is written as a line of its own when writing works again.
 *
 *   write(line) ──► waiting (≤ bufferedBytesMax) ── once a turn, or GATHER_MS ──► one batch ──► descriptor
 *        │ over the bound                                                  │ written: the next batch
 *        └──► lost++ , told later by the `lost` line                       └ a file fails: again each
 *                                                            FAILING_MS, from where it stopped
 *
 * A pipe or socket is written without blocking, through the event loop. A file or terminal goes through the
 * thread pool; a stopped terminal (Ctrl-S) so holds one thread of it, never the loop. A file that has been
 * renamed is opened anew, between two batches, or where one fails: no line is cut, and none is lost.
 *
 * Several processes append to one file. Where a disk was full it may end with half a line, of this process or
 * another: whoever writes it goes on with it if nothing stands behind it, else writes that line anew. Whoever
 * failed, or opens the file, begins on a new line. A line that another one has put right behind our half is
 * counted here, as it can't be read.
 *
 * Why not pino's own: docs/decisions/0052. What is not here: what a line says (log.ts).
 */
import fs from 'node:fs';
import { stat } from 'node:fs/promises';
import net from 'node:net';
import { promisify } from 'node:util';
import type { LogLosses } from '../ports.js';

const openFile = promisify(fs.open);
const NOTHING = Buffer.alloc(0);

/** About 20,000 lines: seconds of a busy gateway, and nothing beside its queues. */
const BUFFERED_BYTES_MAX = 4 * 1024 * 1024;
/** A batch is at most this many characters, so that a long backlog is no single huge copy. */
const BATCH_CHARACTERS = 256 * 1024;
/**
 * The first batch goes at the end of the turn, those right behind it gather for so long: each one wakes a
 * thread or the reader, which under load costs more than the lines.
 */
const GATHER_MS = 20;
/** So much does not wait. */
const GATHER_BYTES = 64 * 1024;
/** Addresses of senders and recipients stand in it. */
export const LOG_FILE_MODE = 0o640;
/** Between two looks at a terminal that takes nothing. */
const RETRY_MS = 50;
/** Between two tries of a file that can't be written, as on a full disk. */
const FAILING_MS = 1_000;
const LINE_END = 0x0a;
const NEW_LINE = Buffer.of(LINE_END);

/** Why lines are lost that found no room, while nothing fails. */
const SLOW = 'what takes the lines is too slow';
const READER_GONE = 'nobody reads them any more';

export interface LogDestinationOptions {
  /** A descriptor, 1 is stdout; or the path of a file. */
  readonly to: number | string;
  readonly bufferedBytesMax?: number;
  /** Makes the line, with its line end, that tells how many lines were lost, and why. */
  readonly lostLine?: (lost: number, why: string) => string;
}

/** Has the one method that pino asks of a stream. */
export class LogDestination implements LogLosses {
  #fd: number;
  /** Undefined: nothing that can be opened anew. */
  readonly #file: string | undefined;
  /** Opened, and taken from the next batch on. */
  #nextFd: number | undefined;
  readonly #bufferedBytesMax: number;
  readonly #lostLine: (lost: number, why: string) => string;
  /** Set for pipes and sockets, else the thread pool writes. */
  readonly #socket: net.Socket | undefined;
  readonly #isFile: boolean;
  #waiting: string[] = [];
  #waitingBytes = 0;
  /** On its way to the descriptor; empty when nothing is. */
  #batch = NOTHING;
  /** So much of it is in the file. */
  #batchAt = 0;
  /** Until a file that failed is tried again, and how long it was then. */
  #again: NodeJS.Timeout | undefined;
  /** Where the half line ended then that is to be gone on with; undefined: something stands behind it. */
  #halfEnd: number | undefined;
  /** Opened, and nothing is written to it yet. */
  #isUnseen = true;
  #failing = '';
  #scheduled = false;
  #writtenMs = -Infinity;
  /** The reader is gone for good (EPIPE): nothing more is kept for it. */
  #broken = false;
  #lost = 0;
  #lostWallMs: number | undefined;
  #lostUntold = 0;
  #lostWhy = '';
  #idle: (() => void)[] = [];
  /** Bound once: called for each batch. */
  readonly #flushBound = (): void => {
    this.#scheduled = false;
    this.#flush();
  };
  readonly #sentBound = (error?: Error | null): void => {
    // 'error' of the socket follows, and counts what is lost.
    if (error === undefined || error === null) this.#onWritten();
  };
  readonly #pooledBound = (error: NodeJS.ErrnoException | null, written: number): void => {
    this.#onPooled(error, written);
  };

  constructor(options: LogDestinationOptions) {
    const { to } = options;
    this.#file = typeof to === 'string' ? to : undefined;
    this.#fd = typeof to === 'string' ? fs.openSync(to, 'a', LOG_FILE_MODE) : to;
    this.#bufferedBytesMax = options.bufferedBytesMax ?? BUFFERED_BYTES_MAX;
    this.#lostLine = options.lostLine ?? ((lost, why) => `${String(lost)} log lines were lost: ${why}\n`);
    const kind = fs.fstatSync(this.#fd);
    this.#isFile = kind.isFile();
    if (kind.isFIFO() || kind.isSocket()) {
      this.#socket = new PipeWriter({ fd: this.#fd, readable: false, writable: true });
      this.#socket.on('error', () => { this.#onBroken(); });
      // Logging alone does not keep a process alive; drain() does where it matters.
      this.#socket.unref();
    }
  }

  get lost(): number {
    return this.#lost;
  }

  get lostWallMs(): number | undefined {
    return this.#lostWallMs;
  }

  get failing(): string {
    return this.#failing;
  }

  /** Held in memory now; never more than bufferedBytesMax and one line about lost ones. */
  get bufferedBytes(): number {
    return this.#waitingBytes + this.#batch.length;
  }

  /** Whether the file that is written is still the one of that name; true where there is no file. */
  async isInPlace(): Promise<boolean> {
    if (this.#file === undefined) return true;
    const named = await stat(this.#file).catch(() => undefined);
    const written = statOf(this.#fd);
    if (named === undefined || written === undefined) return false;
    return named.ino === written.ino && named.dev === written.dev;
  }

  /** Goes on in a new file of that name. Rejects if that can't be opened: the old one is written on. */
  async reopen(): Promise<void> {
    if (this.#file === undefined) return;
    const fd = await openFile(this.#file, 'a', LOG_FILE_MODE);
    if (this.#nextFd !== undefined) close(this.#nextFd);
    this.#nextFd = fd;
    if (this.#again !== undefined) this.#tryAgain();
    else if (this.#batch.length === 0) this.#takeNextFile();
  }

  #takeNextFile(): void {
    if (this.#nextFd === undefined) return;
    close(this.#fd);
    this.#fd = this.#nextFd;
    this.#nextFd = undefined;
    this.#isUnseen = true;
  }

  /** Takes whole lines, each with its end. Never blocks, never throws. */
  write(line: string): void {
    const bytes = Buffer.byteLength(line);
    if (this.#broken || this.bufferedBytes + bytes > this.#bufferedBytesMax) {
      this.#lose(linesIn(line));
      return;
    }
    this.#waiting.push(line);
    this.#waitingBytes += bytes;
    if (this.#batch.length === 0) {
      this.#schedule(this.#waitingBytes >= GATHER_BYTES && this.#waitingBytes - bytes < GATHER_BYTES);
    }
  }

  /** Resolves when all is written, or after `timeoutMs`: for a clean stop. With the lines that are left. */
  drain(timeoutMs: number): Promise<number> {
    if (this.bufferedBytes === 0 || this.#broken) return Promise.resolve(0);
    return new Promise((resolve) => {
      const end = (): void => { resolve(this.#linesLeft()); };
      const timer = setTimeout(end, timeoutMs);
      this.#idle.push(() => {
        clearTimeout(timer);
        end();
      });
      this.#flush();
    });
  }

  #linesLeft(): number {
    const isOnNewLine = this.#batchAt === 0 && this.#batch[0] === LINE_END;
    const rest = this.#batch.toString('latin1', isOnNewLine ? 1 : this.#batchAt);
    return linesIn(rest) + linesIn(this.#waiting.join(''));
  }

  /** For a process about to die of a bug: writes what waits if the descriptor takes it now, else gives up. */
  flushNow(): void {
    // Behind a batch in flight the bytes would mix, or a stopped terminal would hold us; to a file writes go
    // one by one.
    const isOnItsWay = this.#batch.length > 0 && this.#again === undefined;
    if (this.#broken || (isOnItsWay && !this.#isFile)) return;
    if (this.#again !== undefined) this.#goOnWhole();
    const rest = isOnItsWay ? NOTHING : this.#batch.subarray(this.#batchAt);
    const bytes = Buffer.concat([rest, Buffer.from(this.#waiting.join(''))]);
    this.#waiting = [];
    this.#waitingBytes = 0;
    try {
      for (let at = 0; at < bytes.length;) at += fs.writeSync(this.#fd, bytes, at);
    } catch {
      this.#broken = true;
    }
  }

  #schedule(isUrgent: boolean): void {
    if (this.#scheduled && !isUrgent) return;
    this.#scheduled = true;
    if (isUrgent || performance.now() - this.#writtenMs >= GATHER_MS) setImmediate(this.#flushBound);
    else setTimeout(this.#flushBound, GATHER_MS);
  }

  #flush(): void {
    if (this.#batch.length > 0 || this.#broken) return;
    if (this.#waiting.length === 0 && this.#lostUntold === 0) {
      this.#tellIdle();
      return;
    }
    this.#takeBatch();
    if (this.#socket !== undefined) {
      this.#socket.write(this.#batch, this.#sentBound);
    } else {
      if (this.#isUnseen) this.#goOnWhole();
      this.#writeByPool();
    }
  }

  #takeBatch(): void {
    let count = 0;
    let characters = 0;
    while (count < this.#waiting.length && characters < BATCH_CHARACTERS) {
      characters += (this.#waiting[count] ?? '').length;
      count++;
    }
    const text =
      count === this.#waiting.length ? this.#waiting.join('') : this.#waiting.slice(0, count).join('');
    this.#waiting = count === this.#waiting.length ? [] : this.#waiting.slice(count);
    this.#waitingBytes -= Buffer.byteLength(text);
    const told = this.#lostUntold === 0 ? '' : this.#lostLine(this.#lostUntold, this.#lostWhy);
    this.#lostUntold = 0;
    this.#batch = Buffer.from(text + told);
    this.#batchAt = 0;
  }

  #writeByPool(): void {
    const { length } = this.#batch;
    fs.write(this.#fd, this.#batch, this.#batchAt, length - this.#batchAt, null, this.#pooledBound);
  }

  #onPooled(error: NodeJS.ErrnoException | null, written: number): void {
    if (error?.code === 'EAGAIN') {
      // Someone made the terminal non-blocking and it is stopped: look again later.
      setTimeout(() => { this.#writeByPool(); }, RETRY_MS).unref();
      return;
    }
    if (error !== null) {
      this.#onFailed(error);
      return;
    }
    this.#batchAt += written;
    if (this.#batchAt < this.#batch.length) this.#writeByPool();
    else this.#onWritten();
  }

  /** Nothing is lost yet: the batch waits, and so do lines behind it as far as there is room. */
  #onFailed({ code, message }: NodeJS.ErrnoException): void {
    this.#failing = code ?? message;
    const size = this.#size();
    const half = this.#half();
    const isLast = size !== undefined && this.#read(size - half.length, half.length)?.equals(half) !== false;
    this.#halfEnd = isLast ? size : undefined;
    this.#again = setTimeout(() => { this.#tryAgain(); }, FAILING_MS).unref();
  }

  #tryAgain(): void {
    clearTimeout(this.#again);
    this.#again = undefined;
    if (this.#half().length > 0 && this.#halfEnd !== undefined) {
      const behind = this.#read(this.#halfEnd, 1)?.[0];
      if (behind !== undefined && behind !== LINE_END) this.#lose(1);
    }
    this.#takeNextFile();
    this.#goOnWhole();
    this.#writeByPool();
  }

  /** What is in the file of a line that is not there whole. */
  #half(): Buffer {
    const at = this.#batchAt;
    return this.#batch.subarray(at === 0 ? 0 : this.#batch.lastIndexOf(LINE_END, at - 1) + 1, at);
  }

  /** The batch goes on in the middle of a line only where that is the end of the file. */
  #goOnWhole(): void {
    if (!this.#isFile) return;
    const size = this.#size();
    const half = this.#half();
    const isAnother = this.#isUnseen;
    this.#isUnseen = false;
    if (half.length > 0 && !isAnother && size !== undefined && size === this.#halfEnd) return;
    const rest = this.#batch.subarray(this.#batchAt - half.length);
    const lines = rest[0] === LINE_END ? rest.subarray(1) : rest;
    const last = size === undefined ? undefined : this.#read(size - 1, Math.min(size, 1));
    const isCut = last === undefined ? half.length > 0 && !isAnother : (last[0] ?? LINE_END) !== LINE_END;
    this.#batch = isCut ? Buffer.concat([NEW_LINE, lines]) : lines;
    this.#batchAt = 0;
  }

  /** Of the file of that name; undefined where that is another one, or can't be read. */
  #read(at: number, bytes: number): Buffer | undefined {
    if (bytes === 0) return NOTHING;
    let fd: number | undefined;
    try {
      fd = fs.openSync(this.#file ?? '', 'r');
      const [named, written] = [fs.fstatSync(fd), fs.fstatSync(this.#fd)];
      if (named.ino !== written.ino || named.dev !== written.dev) return undefined;
      const target = Buffer.alloc(bytes);
      return target.subarray(0, fs.readSync(fd, target, 0, bytes, at));
    } catch {
      return undefined;
    } finally {
      if (fd !== undefined) close(fd);
    }
  }

  /** Undefined: nobody knows now. */
  #size(): number | undefined {
    return this.#isFile ? statOf(this.#fd)?.size : 0;
  }

  #onWritten(): void {
    this.#batch = NOTHING;
    this.#failing = '';
    this.#writtenMs = performance.now();
    this.#takeNextFile();
    const isMore = this.#waiting.length > 0 || this.#lostUntold > 0;
    if (isMore && this.#idle.length === 0) this.#schedule(this.#waitingBytes >= GATHER_BYTES);
    else this.#flush();
  }

  /** To a pipe that has no reader: what it took has gone with the reader, too. */
  #onBroken(): void {
    this.#broken = true;
    this.#failing = READER_GONE;
    this.#lose(this.#linesLeft());
    this.#batch = NOTHING;
    this.#waiting = [];
    this.#waitingBytes = 0;
    this.#tellIdle();
  }

  #lose(lines: number): void {
    this.#lost += lines;
    this.#lostUntold += lines;
    this.#lostWallMs = Date.now();
    this.#lostWhy = this.#failing === '' ? SLOW : this.#failing;
  }

  #tellIdle(): void {
    const idle = this.#idle;
    this.#idle = [];
    for (const done of idle) done();
  }
}

/** Undefined when that can't be told, as of a file whose server is away, or has lost it (ESTALE). */
function statOf(fd: number): fs.Stats | undefined {
  try {
    return fs.fstatSync(fd);
  } catch {
    return undefined;
  }
}

/** The descriptor is free whatever it says: an error is of bytes that came before. */
function close(fd: number): void {
  try {
    fs.closeSync(fd);
  } catch {
    // Nobody can write them again.
  }
}

function linesIn(text: string): number {
  let lines = 0;
  for (let at = text.indexOf('\n'); at >= 0; at = text.indexOf('\n', at + 1)) lines++;
  return lines;
}

/**
 * Never closes its descriptor: were fd 1 free, the next accepted connection would get it, and stray output
 * with it.
 */
class PipeWriter extends net.Socket {
  override _destroy(error: Error | null, callback: (error: Error | null) => void): void {
    callback(error);
  }
}
