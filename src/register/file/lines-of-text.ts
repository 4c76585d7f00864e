/** Lines out of a stream of bytes, bounded: for the register's socket. */
const NEWLINE = 0x0a;

export class LinesOfText {
  readonly #bytesMax: number;
  readonly #onLine: (line: string) => boolean;
  #parts: Buffer[] = [];
  #bytes = 0;

  /** `onLine` answers whether to go on. */
  constructor(bytesMax: number, onLine: (line: string) => boolean) {
    this.#bytesMax = bytesMax;
    this.#onLine = onLine;
  }

  /** False when a line is too long, or onLine said so. */
  push(chunk: Buffer): boolean {
    let rest = chunk;
    for (let end = rest.indexOf(NEWLINE); end >= 0; end = rest.indexOf(NEWLINE)) {
      this.#parts.push(rest.subarray(0, end));
      rest = rest.subarray(end + 1);
      const line = Buffer.concat(this.#parts).toString('utf8');
      this.#parts = [];
      this.#bytes = 0;
      if (!this.#onLine(line)) return false;
    }
    this.#parts.push(rest);
    this.#bytes += rest.length;
    return this.#bytes <= this.#bytesMax;
  }
}
