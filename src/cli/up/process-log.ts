/**
 * Takes what a process says and keeps it in a file of bounded size: NAME.log, and one older NAME.log.1. The
 * last lines stay in memory, to be shown when the process dies. `up` reads always, so no process ever waits
 * for it; a disk that does not keep up loses lines, never mail.
 */
import fs from 'node:fs';

const FILE_BYTES_MAX = 32 * 1024 * 1024;
const WAITING_BYTES_MAX = 8 * 1024 * 1024;
const TAIL_BYTES = 4 * 1024;

export class ProcessLog {
  readonly #file: string;
  #stream: fs.WriteStream;
  #written = 0;
  #tail = '';

  constructor(file: string) {
    this.#file = file;
    this.#stream = this.#open();
  }

  write(bytes: Buffer): void {
    this.#tail = (this.#tail + bytes.toString('latin1').slice(-TAIL_BYTES)).slice(-TAIL_BYTES);
    if (this.#stream.writableLength > WAITING_BYTES_MAX) return;
    this.#stream.write(bytes);
    this.#written += bytes.length;
    if (this.#written > FILE_BYTES_MAX) this.#rotate();
  }

  /** The last lines said, for an error message. */
  lastLines(count: number): readonly string[] {
    return this.#tail.split('\n').filter((line) => line !== '').slice(-count);
  }

  close(): void {
    this.#stream.end();
  }

  #rotate(): void {
    this.#stream.end();
    try {
      fs.renameSync(this.#file, `${this.#file}.1`);
    } catch {
      // Someone took the file away: a new one is begun all the same.
    }
    this.#written = 0;
    this.#stream = this.#open();
  }

  #open(): fs.WriteStream {
    const stream = fs.createWriteStream(this.#file, { flags: 'a' });
    // A full disk: lines are lost, the processes go on.
    stream.on('error', () => undefined);
    return stream;
  }
}
