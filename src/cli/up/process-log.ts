/**
 * The log file of a process of `up`, NAME.log: the process writes its lines there by itself, and `up` what
 * it says on stdout and stderr. Past a bound it is renamed to NAME.log.1, which replaces the one before;
 * the process sees that and goes on in a new one (bin/log-file.ts). A disk that does not keep up loses lines,
 * never mail.
 */
import fs from 'node:fs';

const FILE_BYTES_MAX = 32 * 1024 * 1024;
const LOOK_MS = 1_000;
const WAITING_BYTES_MAX = 8 * 1024 * 1024;
const TAIL_BYTES = 4 * 1024;

export class ProcessLog {
  readonly file: string;
  readonly #timer: NodeJS.Timeout;
  #stream: fs.WriteStream;
  #tail = '';

  constructor(file: string) {
    this.file = file;
    this.#stream = this.#open();
    this.#timer = setInterval(() => { this.#look(); }, LOOK_MS);
  }

  write(bytes: Buffer): void {
    this.#tail = (this.#tail + bytes.toString('latin1').slice(-TAIL_BYTES)).slice(-TAIL_BYTES);
    if (this.#stream.writableLength <= WAITING_BYTES_MAX) this.#stream.write(bytes);
  }

  /** For an error message: the last lines said on stdout and stderr, or where it said none, in the file. */
  lastLines(count: number): readonly string[] {
    const text = this.#tail === '' ? tailOf(this.file) : this.#tail;
    return text.split('\n').filter((line) => line !== '').slice(-count);
  }

  close(): void {
    clearInterval(this.#timer);
    this.#stream.end();
  }

  #look(): void {
    fs.stat(this.file, (error, stats) => {
      if (error === null && stats.size <= FILE_BYTES_MAX) return;
      this.#stream.end();
      // Someone may have taken the file away: a new one is begun all the same.
      fs.rename(this.file, `${this.file}.1`, () => { this.#stream = this.#open(); });
    });
  }

  #open(): fs.WriteStream {
    const stream = fs.createWriteStream(this.file, { flags: 'a' });
    // A full disk: lines are lost, the processes go on.
    stream.on('error', () => undefined);
    return stream;
  }
}

function tailOf(file: string): string {
  try {
    const fd = fs.openSync(file, 'r');
    const bytes = Buffer.alloc(TAIL_BYTES);
    const from = Math.max(0, fs.fstatSync(fd).size - TAIL_BYTES);
    const length = fs.readSync(fd, bytes, 0, TAIL_BYTES, from);
    fs.closeSync(fd);
    return bytes.toString('latin1', 0, length);
  } catch {
    return '';
  }
}
