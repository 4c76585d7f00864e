/**
 * Writes JSON lines by hand into one buffer: field after field, ASCII copied, everything that is not made
 * harmless. It owns the buffer and the place in it; hasRoom() says when the lines must be handed on first.
 *
 *   "from":"bob@example.com"          plain
 *   "from":"b\"o\u001bb@example.com"  quotes, backslashes and control bytes as JSON escapes
 *   "from":"bj\u00f6rn@example.com"   all else above 0x7e too: a line is pure ASCII, whatever a client sent,
 *                                     so no terminal obeys it and no reader trips over broken UTF-8
 *
 * Hot path: no JSON.stringify, no concatenation; a string of n plain characters costs n char codes.
 */

const QUOTE = 0x22;
const COLON = 0x3a;
const COMMA = 0x2c;
const BACKSLASH = 0x5c;
const HEX = [...'0123456789abcdef'].map((digit) => digit.charCodeAt(0));
/** Longer values are cut, and say so by their last character: one value can't fill the buffer. */
const VALUE_CHARACTERS_MAX = 512;
/** A value where every character needs \uXXXX. */
const VALUE_BYTES_MAX = 6 * VALUE_CHARACTERS_MAX + 16;

/** A name with quotes and colon, ready to be copied: `,"size":`. */
export type FieldName = Uint8Array;

export function fieldName(name: string): FieldName {
  return Uint8Array.from([COMMA, QUOTE, ...[...name].map((letter) => letter.charCodeAt(0)), QUOTE, COLON]);
}

export class LineWriter {
  readonly #bytes: Buffer;
  #at = 0;

  constructor(capacity: number) {
    this.#bytes = Buffer.alloc(capacity);
  }

  get length(): number {
    return this.#at;
  }

  /** True when so many values fit whatever is in them: asked before a line is begun. */
  hasRoom(fields: number): boolean {
    return this.#bytes.length - this.#at >= fields * (VALUE_BYTES_MAX + 32);
  }

  /** What was written, as text; the writer is empty afterwards. */
  take(): string {
    const taken = this.#bytes.toString('latin1', 0, this.#at);
    this.#at = 0;
    return taken;
  }

  raw(bytes: Uint8Array): void {
    const target = this.#bytes;
    let at = this.#at;
    const length = bytes.length;
    // Short constants: a loop beats the call into the runtime that set() makes.
    for (let i = 0; i < length; i++) target[at++] = bytes[i] ?? 0;
    this.#at = at;
  }

  byte(value: number): void {
    this.#bytes[this.#at++] = value;
  }

  string(name: FieldName, value: string, charactersMax = VALUE_CHARACTERS_MAX): void {
    this.raw(name);
    this.#bytes[this.#at++] = QUOTE;
    this.text(value, charactersMax);
    this.#bytes[this.#at++] = QUOTE;
  }

  /** The value without quotes around it: parts of a string. */
  text(value: string, charactersMax = VALUE_CHARACTERS_MAX): void {
    const target = this.#bytes;
    let length = value.length > charactersMax ? charactersMax : value.length;
    // Half of a pair is no JSON to some readers, who stop there.
    if (length < value.length && (value.charCodeAt(length - 1) & 0xfc00) === 0xd800) length -= 1;
    let at = this.#at;
    for (let i = 0; i < length; i++) {
      const code = value.charCodeAt(i);
      if (code > 0x1f && code < 0x7f && code !== QUOTE && code !== BACKSLASH) target[at++] = code;
      else at = this.#escape(code, at);
    }
    if (length < value.length) at = this.#escape(0x2026, at); // …
    this.#at = at;
  }

  /** A whole number ≥ 0 below 2^53, or a negative one as 0. */
  whole(value: number): void {
    let rest = value > 0 ? Math.floor(value) : 0;
    let digits = 1;
    for (let power = 10; power <= rest; power *= 10) digits++;
    const end = this.#at + digits;
    for (let at = end - 1; at >= this.#at; at--) {
      const next = Math.floor(rest / 10);
      this.#bytes[at] = 0x30 + (rest - next * 10);
      rest = next;
    }
    this.#at = end;
  }

  number(name: FieldName, value: number): void {
    this.raw(name);
    this.whole(value);
  }

  /** Milliseconds as seconds with two places, as Postfix writes delays: 1234 → 1.23. */
  seconds(ms: number): void {
    const hundredths = ms > 0 ? Math.round(ms / 10) : 0;
    const whole = Math.floor(hundredths / 100);
    this.whole(whole);
    const rest = hundredths - whole * 100;
    if (rest === 0) return;
    this.#bytes[this.#at++] = 0x2e;
    this.#bytes[this.#at++] = 0x30 + Math.floor(rest / 10);
    if (rest % 10 !== 0) this.#bytes[this.#at++] = 0x30 + (rest % 10);
  }

  #escape(code: number, at: number): number {
    const target = this.#bytes;
    target[at++] = BACKSLASH;
    if (code === QUOTE || code === BACKSLASH) {
      target[at++] = code;
      return at;
    }
    target[at++] = 0x75; // u
    target[at++] = HEX[code >>> 12] ?? 0;
    target[at++] = HEX[(code >>> 8) & 15] ?? 0;
    target[at++] = HEX[(code >>> 4) & 15] ?? 0;
    target[at++] = HEX[code & 15] ?? 0;
    return at;
  }
}
