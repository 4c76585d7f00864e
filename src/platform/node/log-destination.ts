/**
 * Where log lines go: an asynchronous, bounded way to a file descriptor. A reader of stdout that stops
 * reading must stop neither mail nor let memory grow: lines past the bound are dropped and counted, and the
 * count is written as a line of its own when the reader is back.
 *
 *   write(line) ──► waiting (≤ bufferedBytesMax) ── once a turn, or GATHER_MS ──► one batch ──► descriptor
 *        │ over the bound                                                  │ written: the next batch
 *        └──► dropped++ , told later by the `dropped` line                 └ failed: counted as dropped
 *
 * A pipe or socket is written without blocking, through the event loop. A file or terminal goes through the
 * thread pool; a stopped terminal (Ctrl-S) so holds one thread of it, never the loop. A file that has been
 * renamed is opened anew, between two batches: no line is cut, and none is lost.
 *
 * What is not here: what a line says (log.ts).
 */
import fs from 'node:fs';
import { stat } from 'node:fs/promises';
import net from 'node:net';
import { promisify } from 'node:util';

const openFile = promisify(fs.open);

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
const FILE_MODE = 0o640;
/** Between two looks at a terminal that takes nothing. */
const RETRY_MS = 50;

export interface LogDestinationOptions {
  /** A descriptor, 1 is stdout; or the path of a file. */
  readonly to: number | string;
  readonly bufferedBytesMax?: number;
  /** Makes the line, with its line end, that tells how many lines were lost. */
  readonly droppedLine?: (dropped: number) => string;
}

/** Has the one method that pino asks of a stream. */
export class LogDestination {
  #fd: number;
  /** Undefined: nothing that can be opened anew. */
  readonly #file: string | undefined;
  /** Opened, and taken from the next batch on. */
  #nextFd: number | undefined;
  readonly #bufferedBytesMax: number;
  readonly #droppedLine: (dropped: number) => string;
  /** Set for pipes and sockets, else the thread pool writes. */
  readonly #socket: net.Socket | undefined;
  readonly #isFile: boolean;
  #waiting: string[] = [];
  #waitingBytes = 0;
  /** Bytes of the batch that the descriptor has not taken yet; 0 = none in flight. */
  #inFlightBytes = 0;
  #inFlightLines = 0;
  #scheduled = false;
  #writtenMs = -Infinity;
  /** The reader is gone for good (EPIPE): nothing more is kept for it. */
  #broken = false;
  #droppedTotal = 0;
  #droppedUntold = 0;
  #idle: (() => void)[] = [];
  /** Bound once: called for each batch. */
  readonly #flushBound = (): void => {
    this.#scheduled = false;
    this.#flush();
  };
  readonly #writtenBound = (error?: Error | null): void => {
    this.#onWritten(error ?? null);
  };

  constructor(options: LogDestinationOptions) {
    const { to } = options;
    this.#file = typeof to === 'string' ? to : undefined;
    this.#fd = typeof to === 'string' ? fs.openSync(to, 'a', FILE_MODE) : to;
    this.#bufferedBytesMax = options.bufferedBytesMax ?? BUFFERED_BYTES_MAX;
    this.#droppedLine = options.droppedLine ?? ((dropped) => `${String(dropped)} log lines were dropped\n`);
    const kind = fs.fstatSync(this.#fd);
    this.#isFile = kind.isFile();
    if (kind.isFIFO() || kind.isSocket()) {
      this.#socket = new PipeWriter({ fd: this.#fd, readable: false, writable: true });
      this.#socket.on('error', () => { this.#onBroken(); });
      // Logging alone does not keep a process alive; drain() does where it matters.
      this.#socket.unref();
    }
  }

  /** Lines lost since the start: no room, or the reader is gone. */
  get dropped(): number {
    return this.#droppedTotal;
  }

  /** Held in memory now; never more than bufferedBytesMax and one dropped line. */
  get bufferedBytes(): number {
    return this.#waitingBytes + this.#inFlightBytes;
  }

  /** Whether the file that is written is still the one of that name; true where there is no file. */
  async isInPlace(): Promise<boolean> {
    if (this.#file === undefined) return true;
    const named = await stat(this.#file).catch(() => undefined);
    const written = fs.fstatSync(this.#fd);
    return named !== undefined && named.ino === written.ino && named.dev === written.dev;
  }

  /** Goes on in a new file of that name. Rejects if that can't be opened: the old one is written on. */
  async reopen(): Promise<void> {
    if (this.#file === undefined) return;
    const fd = await openFile(this.#file, 'a', FILE_MODE);
    if (this.#nextFd !== undefined) fs.closeSync(this.#nextFd);
    this.#nextFd = fd;
    if (this.#inFlightBytes === 0) this.#takeNextFile();
  }

  #takeNextFile(): void {
    if (this.#nextFd === undefined) return;
    fs.closeSync(this.#fd);
    this.#fd = this.#nextFd;
    this.#nextFd = undefined;
  }

  /** Takes one line with its line end. Never blocks, never throws. */
  write(line: string): void {
    const bytes = Buffer.byteLength(line);
    if (this.#broken || this.#waitingBytes + this.#inFlightBytes + bytes > this.#bufferedBytesMax) {
      this.#countDropped(1);
      return;
    }
    this.#waiting.push(line);
    this.#waitingBytes += bytes;
    if (this.#inFlightBytes === 0) {
      this.#schedule(this.#waitingBytes >= GATHER_BYTES && this.#waitingBytes - bytes < GATHER_BYTES);
    }
  }

  /** Resolves when all is written, or after `timeoutMs`: for a clean stop. */
  drain(timeoutMs: number): Promise<void> {
    if (this.bufferedBytes === 0 || this.#broken) return Promise.resolve();
    return new Promise((resolve) => {
      const timer = setTimeout(resolve, timeoutMs);
      this.#idle.push(() => {
        clearTimeout(timer);
        resolve();
      });
      this.#flush();
    });
  }

  /** For a process about to die of a bug: writes what waits if the descriptor takes it now, else gives up. */
  flushNow(): void {
    // Behind a batch in flight the bytes would mix, or a stopped terminal would hold us; to a file writes go
    // one by one.
    if (this.#broken || (this.#inFlightBytes > 0 && !this.#isFile) || this.#waiting.length === 0) return;
    const text = this.#waiting.join('');
    this.#waiting = [];
    this.#waitingBytes = 0;
    try {
      fs.writeSync(this.#fd, text);
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
    if (this.#inFlightBytes > 0 || this.#broken) return;
    if (this.#waiting.length === 0 && this.#droppedUntold === 0) {
      this.#tellIdle();
      return;
    }
    const batch = this.#takeBatch();
    if (this.#socket !== undefined) {
      this.#socket.write(batch, this.#writtenBound);
    } else {
      this.#writeByPool(batch, 0);
    }
  }

  #takeBatch(): Buffer {
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
    const told = this.#droppedUntold === 0 ? '' : this.#droppedLine(this.#droppedUntold);
    this.#droppedUntold = 0;
    const batch = Buffer.from(text + told);
    this.#inFlightBytes = batch.length;
    this.#inFlightLines = count;
    return batch;
  }

  #writeByPool(batch: Buffer, from: number): void {
    fs.write(this.#fd, batch, from, batch.length - from, null, (error, written) => {
      if (error?.code === 'EAGAIN') {
        // Someone made the terminal non-blocking and it is stopped: look again later.
        setTimeout(() => { this.#writeByPool(batch, from); }, RETRY_MS).unref();
      } else if (error === null && from + written < batch.length) {
        this.#writeByPool(batch, from + written);
      } else {
        this.#onWritten(error);
      }
    });
  }

  #onWritten(error: Error | null): void {
    // A full disk loses this batch and may take the next; a pipe without a reader is told by its 'error'.
    if (error !== null) this.#countDropped(this.#inFlightLines);
    this.#inFlightBytes = 0;
    this.#inFlightLines = 0;
    this.#writtenMs = performance.now();
    this.#takeNextFile();
    const isMore = this.#waiting.length > 0 || this.#droppedUntold > 0;
    if (isMore && this.#idle.length === 0) this.#schedule(this.#waitingBytes >= GATHER_BYTES);
    else this.#flush();
  }

  #onBroken(): void {
    this.#broken = true;
    this.#countDropped(this.#waiting.length);
    this.#waiting = [];
    this.#waitingBytes = 0;
    this.#tellIdle();
  }

  #countDropped(lines: number): void {
    this.#droppedTotal += lines;
    this.#droppedUntold += lines;
  }

  #tellIdle(): void {
    const idle = this.#idle;
    this.#idle = [];
    for (const done of idle) done();
  }
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
