/**
 * Command lines out of what a client sends, however it is cut. Only CR LF ends a line (RFC 5321 2.3.8): a
 * bare LF stays in it, and the command is refused for it (commands/command-line.ts).
 *
 *   chunk ─ next() ─▶ a line, where it lies ─▶ a line …  ─▶ NEEDS_MORE: what is left is kept
 *
 * Owns the beginning of a line whose end has not come, at most octetsMax of it.
 */

export const NEEDS_MORE = -1;
export const TOO_LONG = -2;

const LF = 0x0a;
const CR = 0x0d;
const KEPT_OCTETS_FIRST = 256;
const NOTHING = new Uint8Array(0);

export class LineReader {
  /** The line found: bytes[from .. to), without its end, until the next call. */
  bytes: Uint8Array = NOTHING;
  from = 0;
  to = 0;

  #kept = NOTHING;
  #keptOctets = 0;

  /** Index in `chunk` behind the line that begins at `at` or was kept before, or NEEDS_MORE, or TOO_LONG. */
  next(chunk: Uint8Array, at: number, octetsMax: number): number {
    const end = this.#endOfLine(chunk, at, octetsMax);
    const octets = this.#keptOctets + (end < 0 ? chunk.length : end) - at;
    // With the CR and LF of a line whose end has come, and the CR of one whose end has not.
    if (octets > octetsMax + (end < 0 ? 1 : 2)) return TOO_LONG;
    if (end < 0) {
      this.#keep(chunk, at, chunk.length);
      return NEEDS_MORE;
    }
    if (this.#keptOctets === 0) {
      this.bytes = chunk;
      this.from = at;
      this.to = end - 2;
      return end;
    }
    this.#keep(chunk, at, end);
    this.bytes = this.#kept;
    this.from = 0;
    this.to = this.#keptOctets - 2;
    this.#keptOctets = 0;
    return end;
  }

  /** Forgets the beginning of a line. */
  reset(): void {
    this.bytes = NOTHING;
    this.#kept = NOTHING;
    this.#keptOctets = 0;
  }

  /** Index behind CR LF, or -1; not looked for beyond the longest line. */
  #endOfLine(chunk: Uint8Array, at: number, octetsMax: number): number {
    const end = Math.min(chunk.length, at + octetsMax + 2);
    let before = this.#keptOctets > 0 ? this.#kept[this.#keptOctets - 1] : 0;
    // Lines are short: the call of indexOf() costs more than it saves.
    for (let next = at; next < end; next++) {
      const byte = chunk[next];
      if (byte === LF && before === CR) return next + 1;
      before = byte;
    }
    return -1;
  }

  #keep(chunk: Uint8Array, from: number, to: number): void {
    const octets = this.#keptOctets + to - from;
    if (octets > this.#kept.length) {
      const grown = new Uint8Array(Math.max(KEPT_OCTETS_FIRST, octets * 2));
      grown.set(this.#kept.subarray(0, this.#keptOctets));
      this.#kept = grown;
    }
    this.#kept.set(chunk.subarray(from, to), this.#keptOctets);
    this.#keptOctets = octets;
  }
}
