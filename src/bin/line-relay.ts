/**
 * Passes on what another process writes, whole lines only, so that the lines of several processes share one
 * descriptor without mixing. Bytes of a line that has not ended yet wait, up to a bound.
 */

/** A longer line is no log line: it is passed on in parts. */
const LINE_BYTES_MAX = 256 * 1024;
const LINE_END = 10;

export class LineRelay {
  readonly #write: (lines: string) => void;
  #rest: Buffer | undefined;

  /** `write` gets one or more lines, each with its end. */
  constructor(write: (lines: string) => void) {
    this.#write = write;
  }

  push(chunk: Buffer): void {
    const bytes = this.#rest === undefined ? chunk : Buffer.concat([this.#rest, chunk]);
    this.#rest = undefined;
    const end = bytes.lastIndexOf(LINE_END) + 1;
    if (end > 0) this.#write(bytes.toString('utf8', 0, end));
    if (end === bytes.length) return;
    if (bytes.length - end > LINE_BYTES_MAX) this.#write(`${bytes.toString('utf8', end)}\n`);
    else this.#rest = bytes.subarray(end);
  }

  /** The process is gone: what it did not finish is a line all the same. */
  end(): void {
    if (this.#rest !== undefined) this.#write(`${this.#rest.toString('utf8')}\n`);
    this.#rest = undefined;
  }
}
