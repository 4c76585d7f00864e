/** Cuts what is read into lines. A line has a bound: what is longer is no log line, and is left out. */
import { StringDecoder } from 'node:string_decoder';

/** Many times the longest line that a gateway writes. */
const LINE_CHARACTERS_MAX = 1024 * 1024;

export class LineSplitter {
  #decoder = new StringDecoder('utf8');
  #rest = '';
  /** Inside a line that is too long. */
  #isPassing = false;
  /** Lines that were too long. */
  passed = 0;

  push(bytes: Uint8Array): string[] {
    const lines = (this.#rest + this.#decoder.write(bytes)).split('\n');
    this.#rest = lines.pop() ?? '';
    if (this.#isPassing && lines.length > 0) {
      lines.shift();
      this.#isPassing = false;
    }
    if (this.#isPassing || this.#rest.length > LINE_CHARACTERS_MAX) {
      if (!this.#isPassing) this.passed += 1;
      this.#isPassing = true;
      this.#rest = '';
    }
    return lines;
  }

  /** No more comes of what was read: its last line, if that has no end. What comes next begins anew. */
  end(): string[] {
    const rest = this.#isPassing ? '' : this.#rest + this.#decoder.end();
    this.#decoder = new StringDecoder('utf8');
    this.#rest = '';
    this.#isPassing = false;
    return rest === '' ? [] : [rest];
  }
}
