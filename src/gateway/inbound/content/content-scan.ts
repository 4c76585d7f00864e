/**
 * Walks the bytes of DATA once: finds the end, removes dot-stuffing, and judges what must be judged.
 *
 *                    CR                LF
 *   LINE_START ──────────────▶ CR ──────────▶ LINE_START          (an empty line ends the header)
 *     │  '.'                    ▲
 *     ├──────▶ DOT ──CR──▶ DOT_CR ──LF──▶ end of DATA
 *     │         │ other: the dot is dropped (RFC 5321 4.5.2)
 *     ▼         ▼               │
 *     TEXT ◀────────────── any ─┘      CR without LF, LF without CR, NUL: a fault, noted; the walk goes on
 *
 * Only CRLF.CRLF ends DATA. After a bare LF or CR a line has not started, so that neither "\n.\n" nor
 * "\n.\r\n" nor "\r.\r\n" is an end: what one server takes for content the next must not take for the end
 * (SMTP smuggling). Such content is refused as a whole, hence what is given out after a fault is worthless.
 *
 * Nothing is held back between chunks except a stuffed dot, which is dropped anyway: content that ends in the
 * middle of anything needs no copy. Removed dots close up in place, each byte moves at most once.
 *
 * Long lines are kept as they are. RFC 5321 4.5.3.1.6 lets a line have 1,000 octets with its CRLF and asks
 * implementations to take more where they can; a gateway that refused or folded them would lose or alter
 * mail.
 *
 * Here: bytes and numbers only. Not here: memory (content-buffer.ts), replies (session/session.ts).
 */

import { latin1Bytes } from '../../../base/utf8.js';
import type { ByteViews } from './byte-views.js';

const LINE_START = 0;
const TEXT = 1;
const CR = 2;
const DOT = 3;
const DOT_CR = 4;

/** Faults, as bits. */
export const FAULT_NUL = 1;
export const FAULT_BARE_CR = 2;
export const FAULT_BARE_LF = 4;

const BYTE_LF = 0x0a;
const BYTE_CR = 0x0d;
const BYTE_DOT = 0x2e;
const FOURTEENS = 0x0e0e0e0e;
const TOP_BITS = 0x80808080 | 0;
const LOWER_CASE = 0x20;
const LOWER_A = 0x61;

/** Header fields that are looked for, as bits of ContentScan.fields. */
export const FIELD_DATE = 1;
export const FIELD_MESSAGE_ID = 2;
export const FIELD_TLS_REQUIRED = 8;
const FIELD_RECEIVED = 4;

interface FieldName {
  readonly bit: number;
  /** With its colon, lower case. */
  readonly name: Uint8Array;
}

/** By their first letter, of which each has its own. */
const FIELDS: ReadonlyMap<number, FieldName> = new Map([
  ['received:', FIELD_RECEIVED], ['date:', FIELD_DATE], ['message-id:', FIELD_MESSAGE_ID],
  ['tls-required:', FIELD_TLS_REQUIRED],
].map(([name, bit]) => [String(name).charCodeAt(0), { bit: Number(bit), name: latin1Bytes(String(name)) }]));

/** By the first byte of a line: 1 where it says something of the line. */
const BODY_LOOKS = Uint8Array.from(
  { length: 256 }, (_, byte) => (byte <= BYTE_CR || byte === BYTE_DOT ? 1 : 0),
);
const HEADER_LOOKS = BODY_LOOKS.map((looks, byte) => (FIELDS.has(byte | LOWER_CASE) ? 1 : looks));

const NO_FIELD: FieldName = { bit: 0, name: new Uint8Array(0) };

export class ContentScan {
  /** FAULT_ bits found so far. */
  faults = 0;
  /** A line of the content (without stuffing) starts with a dot. */
  dotLines = false;
  /** Received fields in the header (RFC 5321 6.3). */
  receivedLines = 0;
  /** FIELD_ bits of those that the header has. */
  fields = 0;
  /** CRLF.CRLF was seen. */
  ended = false;
  /** After scan(): content is chunk[from .. contentEnd). */
  contentEnd = 0;

  readonly #views: ByteViews;
  /** All bytes of the content, one over the other, four at a time or singly. */
  #seen = 0;
  #state = LINE_START;
  #inHeader = true;
  /** The line has no byte yet besides its CR. */
  #lineEmpty = true;
  /** The field name that this line may begin with, and how much of it has come; -1: it begins with none. */
  #field: FieldName | undefined;
  #matched = -1;

  constructor(views: ByteViews) {
    this.#views = views;
  }

  /** Some byte of the content has its top bit set. */
  get is8Bit(): boolean {
    return (this.#seen & TOP_BITS) !== 0;
  }

  reset(): void {
    this.faults = 0;
    this.dotLines = false;
    this.receivedLines = 0;
    this.fields = 0;
    this.ended = false;
    this.contentEnd = 0;
    this.#seen = 0;
    this.#state = LINE_START;
    this.#inHeader = true;
    this.#lineEmpty = true;
    this.#matched = -1;
  }

  /**
   * Takes chunk[from ..) and returns the index after the end of DATA, or chunk.length when there is more to
   * come. The content found is left in chunk[from .. contentEnd); bytes behind may have moved.
   */
  scan(chunk: Uint8Array, from: number): number {
    const length = chunk.length;
    let at = from;
    /** Content in front of `write` is in place; content from `keep` on still has to move there. */
    let write = from;
    let keep = from;
    const view = this.#views.of(chunk.buffer);
    while (at < length) {
      if (this.#state === TEXT) {
        if (this.#matched >= 0) at = this.#matchField(chunk, at);
        at = this.#passText(chunk, view, at);
        if (at >= length) break;
        this.#onLowByte(chunk[at] as number);
        at++;
        continue;
      }
      const byte = chunk[at] as number;
      if (this.#state === LINE_START && byte === BYTE_DOT) {
        // What lies before the dot is content; the dot itself never is.
        write = close(chunk, write, keep, at);
        keep = at + 1;
        this.#state = DOT;
        at++;
        continue;
      }
      if (this.#state === DOT_CR && byte === BYTE_LF) {
        this.ended = true;
        // The end's own CR was taken as content when it came in this chunk; it stands right after `keep`.
        this.contentEnd = write;
        return at + 1;
      }
      this.#onOther(byte);
      at++;
    }
    // A CR held after a lone dot is either the end or a fault: no content in both cases.
    this.contentEnd = this.#state === DOT_CR ? write : close(chunk, write, keep, length);
    return length;
  }

  /**
   * Takes chunk[from .. to) of a content whose length was told (BDAT, RFC 3030): a dot is a byte like others.
   */
  scanCounted(chunk: Uint8Array, from: number, to: number): void {
    const bytes = chunk.subarray(from, to);
    const view = this.#views.of(bytes.buffer);
    for (let at = 0; at < bytes.length; at++) {
      if (this.#state === TEXT) {
        if (this.#matched >= 0) at = this.#matchField(bytes, at);
        at = this.#passText(bytes, view, at);
        if (at >= bytes.length) break;
        this.#onLowByte(bytes[at] as number);
        continue;
      }
      const byte = bytes[at] as number;
      // It will be stuffed when it is sent on.
      if (this.#state === LINE_START && byte === BYTE_DOT) this.dotLines = true;
      this.#onOther(byte);
    }
    this.contentEnd = to;
  }

  /** The last of such a content has come. True: its last line has its end. */
  endCounted(): boolean {
    if (this.#state === CR) this.faults |= FAULT_BARE_CR;
    return this.#state === LINE_START;
  }

  /** Inside a line: a byte of at most CR. */
  #onLowByte(byte: number): void {
    if (byte === BYTE_CR) {
      this.#state = CR;
    } else if (byte === BYTE_LF) {
      this.faults |= FAULT_BARE_LF;
    } else if (byte === 0) {
      this.faults |= FAULT_NUL;
    }
  }

  /** At the start of a line, after a CR, or after a dot that started the line. */
  #onOther(byte: number): void {
    this.#seen |= byte;
    switch (this.#state) {
      case CR:
        if (byte === BYTE_LF) {
          if (this.#lineEmpty) this.#inHeader = false;
          this.#lineEmpty = true;
          this.#state = LINE_START;
          return;
        }
        this.faults |= FAULT_BARE_CR;
        break;
      case DOT_CR:
        this.faults |= FAULT_BARE_CR;
        break;
      case DOT:
        this.#lineEmpty = false;
        if (byte === BYTE_CR) {
          this.#state = DOT_CR;
          return;
        }
        if (byte === BYTE_DOT) this.dotLines = true;
        // The dot goes, needed or not (RFC 5321 4.5.2): the line begins here.
        this.#beginField(byte);
        break;
      default: // LINE_START
        if (byte === BYTE_CR) {
          this.#state = CR;
          return;
        }
        this.#lineEmpty = false;
        this.#beginField(byte);
    }
    this.#state = TEXT;
    if (byte <= BYTE_CR) this.#onLowByte(byte);
  }

  #beginField(byte: number): void {
    this.#field = this.#inHeader ? FIELDS.get(byte | LOWER_CASE) : undefined;
    this.#matched = this.#field === undefined ? -1 : 1;
  }

  /** Goes on comparing the line with the name of the field; returns where the comparison stopped. */
  #matchField(chunk: Uint8Array, from: number): number {
    const { bit, name } = this.#field ?? NO_FIELD;
    let at = from;
    while (at < chunk.length) {
      const byte = chunk[at] as number;
      const wanted = name[this.#matched] as number;
      if (byte !== wanted && (wanted < LOWER_A || (byte | LOWER_CASE) !== wanted)) {
        this.#matched = -1;
        return at;
      }
      this.#matched++;
      at++;
      if (this.#matched === name.length) {
        this.fields |= bit;
        if (bit === FIELD_RECEIVED) this.receivedLines++;
        this.#matched = -1;
        return at;
      }
    }
    return at;
  }

  /**
   * The loop that sees nearly every byte: the index of the next one that needs a look, which is at most CR.
   * Eight at a time: taking 14 from a byte below it borrows from the bit above, and no byte that has its own
   * top bit set counts. A borrow may show a byte behind a low one as low, never one before it. It goes on
   * over the end of a line when nothing is to be known of the next one.
   */
  #passText(chunk: Uint8Array, view: DataView, from: number): number {
    const looks = this.#inHeader ? HEADER_LOOKS : BODY_LOOKS;
    const offset = chunk.byteOffset;
    const end = chunk.length - 8;
    let seen = 0;
    let at = from;
    while (at <= end) {
      const first = view.getInt32(offset + at, true);
      const second = view.getInt32(offset + at + 4, true);
      const lowFirst = (first - FOURTEENS) & ~first & TOP_BITS;
      const lowSecond = (second - FOURTEENS) & ~second & TOP_BITS;
      if ((lowFirst | lowSecond) === 0) {
        seen |= first | second;
        at += 8;
        continue;
      }
      const low = lowFirst === 0 ? lowSecond : lowFirst;
      // The three octets that may stand behind a low one are content too, or of the end of DATA itself.
      seen |= lowFirst === 0 ? first | second : first;
      at += (lowFirst === 0 ? 4 : 0) + ((31 - Math.clz32(low & -low)) >> 3);
      const isLineEnd = chunk[at] === BYTE_CR && chunk[at + 1] === BYTE_LF;
      if (!isLineEnd || at + 2 >= chunk.length || looks[chunk[at + 2] as number] !== 0) {
        this.#seen |= seen;
        return at;
      }
      at += 2;
    }
    for (; at < chunk.length; at++) {
      const byte = chunk[at] as number;
      if (byte <= BYTE_CR) break;
      seen |= byte;
    }
    this.#seen |= seen;
    return at;
  }
}

const MOVED_BY_CALL_MIN = 32;

/** Moves chunk[keep .. end) down to `write`; returns the new end of what is in place. */
function close(chunk: Uint8Array, write: number, keep: number, end: number): number {
  if (write === keep) return end;
  // A call costs more than a few octets.
  if (end - keep > MOVED_BY_CALL_MIN) chunk.copyWithin(write, keep, end);
  else for (let from = keep, to = write; from < end;) chunk[to++] = chunk[from++] as number;
  return write + end - keep;
}
