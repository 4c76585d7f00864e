/**
 * Bytes of a peer into SMTP replies (RFC 5321 4.2), however they were split on the way.
 *
 *   250-first line CRLF          continuation lines have a hyphen after the code,
 *   250-second CRLF              the last line has a space or nothing
 *   250 last CRLF                the code that counts is that of the last line
 *
 * Owns what has come of an unfinished reply, at most REPLY_BYTES_MAX. A whole one-line reply that came in one
 * chunk, the case of every message, is reported without a copy. A bare LF ends a line too; a line that is no
 * reply line is an outcome (onBadReply), after which nothing more is read. What codes mean to a queued
 * message: gateway/outbound/pure/classify.ts. Pure.
 */

/** A reply as one line at most; a result's text too (gateway/mail-types.ts). */
export const TEXT_CHARACTERS_MAX = 512;
/** RFC 5321 4.5.3.1.5 has 512; real banners are longer. */
export const REPLY_LINE_BYTES_MAX = 2 * 1024;
/** A reply with all its lines: 16 of the longest lines, or hundreds of plain ones. */
export const REPLY_BYTES_MAX = 32 * 1024;
/** Each is work, however short: a TLS record may be one byte. Who writes so for once has shorter replies. */
export const REPLY_PIECES_MAX = 1024;

const LF = 10;
const CR = 13;
const HYPHEN = 45;
const SPACE = 32;

/** Told of replies, in order, from inside push(). */
export interface ReplySink {
  /** The reader shows the reply through code, text() and lines() during this call. */
  onReply(code: number): void;
  /** `why` is the rule that the peer broke. */
  onBadReply(why: string): void;
}

export class ReplyReader {
  readonly #sink: ReplySink;
  /** Joined lines of an unfinished or split reply, each ended by LF; the first alone with its code. */
  #held = new Uint8Array(0);
  #heldLength = 0;
  /** Bytes of the unfinished line, at the end of #held. */
  #partial = 0;
  /** All bytes of the reply so far, line ends and codes included. */
  #replyBytes = 0;
  /** That it came in. */
  #pieces = 0;
  #lines = 0;
  #stopped = false;
  #source: Uint8Array = this.#held;
  #from = 0;
  #to = 0;

  constructor(sink: ReplySink) {
    this.#sink = sink;
  }

  /** True while part of a reply has come. */
  get isMidReply(): boolean {
    return this.#replyBytes > 0;
  }

  /** Nothing more is read or reported. */
  stop(): void {
    this.#stopped = true;
    this.#held = new Uint8Array(0);
  }

  push(bytes: Uint8Array): void {
    if (!this.#stopped && ++this.#pieces > REPLY_PIECES_MAX) {
      return this.#bad(`reply in more than ${REPLY_PIECES_MAX} pieces`);
    }
    let at = 0;
    while (at < bytes.length && !this.#stopped) {
      const end = bytes.indexOf(LF, at);
      const lineEnd = end < 0 ? bytes.length : end;
      const lineBytes = this.#partial + lineEnd - at;
      this.#replyBytes += lineEnd - at + (end < 0 ? 0 : 1);
      if (lineBytes > REPLY_LINE_BYTES_MAX) {
        return this.#bad(`reply line longer than ${REPLY_LINE_BYTES_MAX} bytes`);
      }
      if (this.#replyBytes > REPLY_BYTES_MAX) return this.#bad(`reply longer than ${REPLY_BYTES_MAX} bytes`);
      if (end < 0) {
        this.#hold(bytes, at, lineEnd);
        this.#partial = lineBytes;
        return;
      }
      if (this.#partial > 0 || this.#lines > 0) {
        this.#hold(bytes, at, lineEnd);
        this.#line(this.#held, this.#heldLength - lineBytes, this.#heldLength, true);
      } else {
        this.#line(bytes, at, lineEnd, false);
      }
      at = end + 1;
    }
  }

  /** The reply as one line, code first, printable ASCII (the rest as "?"), at most 512 characters. */
  text(): string {
    const to = Math.min(this.#to, this.#from + TEXT_CHARACTERS_MAX);
    let text = '';
    let plainFrom = this.#from;
    for (let i = this.#from; i < to; i++) {
      const byte = this.#source[i] ?? 0;
      if (byte >= SPACE && byte < 127) continue;
      text += asciiText(this.#source, plainFrom, i) + (byte === LF || byte === 9 ? ' ' : '?');
      plainFrom = i + 1;
    }
    return text + asciiText(this.#source, plainFrom, to);
  }

  /** The lines of the reply without their codes; for EHLO. */
  lines(): string[] {
    const lines: string[] = [];
    let from = Math.min(this.#from + 4, this.#to);
    for (let i = from; i <= this.#to; i++) {
      if (i < this.#to && this.#source[i] !== LF) continue;
      lines.push(asciiText(this.#source, from, i));
      from = i + 1;
    }
    return lines;
  }

  #hold(bytes: Uint8Array, from: number, to: number): void {
    const length = this.#heldLength + to - from;
    // One byte more for the LF that #line() appends.
    if (length + 1 > this.#held.length) {
      const grown = new Uint8Array(Math.min(REPLY_BYTES_MAX + 1, Math.max(512, (length + 1) * 2)));
      grown.set(this.#held.subarray(0, this.#heldLength));
      this.#held = grown;
    }
    this.#held.set(bytes.subarray(from, to), this.#heldLength);
    this.#heldLength = length;
  }

  /** A whole line at [from, lineEnd) of `bytes`; `isHeld` when that is the end of #held. */
  #line(bytes: Uint8Array, from: number, lineEnd: number, isHeld: boolean): void {
    const to = lineEnd > from && bytes[lineEnd - 1] === CR ? lineEnd - 1 : lineEnd;
    const code = codeAt(bytes, from, to);
    const separator = to > from + 3 ? bytes[from + 3] : SPACE;
    const isReply = code !== 0 && (separator === SPACE || separator === HYPHEN);
    if (!isReply) return this.#bad('reply without a reply code');
    if (separator === SPACE && !isHeld) {
      this.#report(code, bytes, from, to);
      return;
    }
    // Keep the first line whole, of the others only the text.
    if (!isHeld) this.#hold(bytes, from, to);
    const start = isHeld ? from : 0;
    this.#heldLength = start + to - from;
    if (this.#lines > 0) {
      const textFrom = Math.min(start + 4, this.#heldLength);
      this.#held.copyWithin(start, textFrom, this.#heldLength);
      this.#heldLength -= textFrom - start;
    } else if (separator === HYPHEN) {
      this.#held[start + 3] = SPACE;
    }
    this.#partial = 0;
    this.#lines++;
    if (separator === HYPHEN) {
      this.#held[this.#heldLength++] = LF;
      return;
    }
    this.#report(code, this.#held, 0, this.#heldLength);
  }

  #report(code: number, source: Uint8Array, from: number, to: number): void {
    this.#heldLength = 0;
    this.#partial = 0;
    this.#replyBytes = 0;
    this.#pieces = 0;
    this.#lines = 0;
    this.#source = source;
    this.#from = from;
    this.#to = to;
    this.#sink.onReply(code);
  }

  #bad(why: string): void {
    this.stop();
    this.#sink.onBadReply(why);
  }
}

/** Positive completion (RFC 5321 4.2.1). */
export function isPositive(code: number): boolean {
  return code >= 200 && code < 300;
}

/**
 * "subject.detail" of an enhanced code (RFC 3463) at its place in "250 2.0.0 text" (RFC 2034 4), or ''. One
 * to three digits each; the class must be 2, 4 or 5.
 */
export function enhancedDetail(text: string): string {
  const at = 4;
  const klass = text.charCodeAt(at);
  if ((klass !== 50 && klass !== 52 && klass !== 53) || text.charCodeAt(at + 1) !== 46) return '';
  let i = at + 2;
  while (isDigit(text.charCodeAt(i))) i++;
  const subjectDigits = i - (at + 2);
  if (subjectDigits < 1 || subjectDigits > 3 || text.charCodeAt(i) !== 46) return '';
  const detailAt = i + 1;
  i = detailAt;
  while (isDigit(text.charCodeAt(i))) i++;
  const detailDigits = i - detailAt;
  if (detailDigits < 1 || detailDigits > 3 || (i < text.length && text.charCodeAt(i) !== 32)) return '';
  return text.substring(at + 2, i);
}

/** "class.subject.detail", as enhancedDetail(), or ''. */
export function enhancedCode(text: string): string {
  const detail = enhancedDetail(text);
  return detail === '' ? '' : `${text.charAt(4)}.${detail}`;
}

function isDigit(character: number): boolean {
  return character >= 48 && character <= 57;
}

/** The reply code at `from`, 0 when there is none: first digit 2 to 5 (RFC 5321 4.2). */
function codeAt(bytes: Uint8Array, from: number, to: number): number {
  if (to - from < 3) return 0;
  const first = (bytes[from] ?? 0) - 48;
  const second = (bytes[from + 1] ?? 0) - 48;
  const third = (bytes[from + 2] ?? 0) - 48;
  if (first < 2 || first > 5 || second < 0 || second > 9 || third < 0 || third > 9) return 0;
  return first * 100 + second * 10 + third;
}

/** Bytes as text, one character each; at most 32 KiB, which apply() can carry. */
function asciiText(bytes: Uint8Array, from: number, to: number): string {
  if (from >= to) return '';
  return String.fromCharCode.apply(null, bytes.subarray(from, to) as unknown as number[]);
}
