/**
 * UTF-8 for pure code, which has no Buffer: strict decoding of what a peer sent (RFC 3629), one byte a
 * character for ASCII and Latin-1, and how many octets a text will have.
 */

/** Longest run of bytes given to String.fromCharCode at once: its arguments lie on the stack. */
const RUN_BYTES_MAX = 8192;
/** Stands for what is no character. */
const REPLACEMENT = 0xfffd;

/** One character a byte. */
export function latin1Text(bytes: Uint8Array, from: number, to: number): string {
  if (to - from <= RUN_BYTES_MAX) return codesToText(bytes.subarray(from, to));
  let text = '';
  for (let at = from; at < to; at += RUN_BYTES_MAX) {
    text += codesToText(bytes.subarray(at, Math.min(to, at + RUN_BYTES_MAX)));
  }
  return text;
}

/** The bytes of a text whose characters are all below U+0100. */
export function latin1Bytes(text: string): Uint8Array {
  const bytes = new Uint8Array(text.length);
  for (let at = 0; at < text.length; at++) bytes[at] = text.charCodeAt(at);
  return bytes;
}

/** undefined when the bytes are no UTF-8: cut off, overlong, a surrogate, or beyond U+10FFFF. */
export function utf8Text(bytes: Uint8Array, from: number, to: number): string | undefined {
  let text = '';
  for (let at = from; at < to;) {
    const first = bytes[at] ?? 0;
    const length = lengthOf(first);
    if (length === 0 || at + length > to) return undefined;
    let point = length === 1 ? first : first & (0xff >> (length + 1));
    for (let next = at + 1; next < at + length; next++) {
      const byte = bytes[next] ?? 0;
      if ((byte & 0xc0) !== 0x80) return undefined;
      point = (point << 6) | (byte & 0x3f);
    }
    if (length === 3 && (point < 0x800 || (point >= 0xd800 && point <= 0xdfff))) return undefined;
    if (length === 4 && (point < 0x10000 || point > 0x10ffff)) return undefined;
    text += String.fromCodePoint(point);
    at += length;
  }
  return text;
}

/** The text in UTF-8 (RFC 3629), a surrogate alone as the character that stands for it. */
export function utf8Bytes(text: string): Uint8Array {
  const bytes = new Uint8Array(utf8Octets(text));
  let to = 0;
  for (const character of text) {
    const given = character.codePointAt(0) ?? 0;
    const point = given >= 0xd800 && given <= 0xdfff ? REPLACEMENT : given;
    const length = point < 0x80 ? 1 : point < 0x800 ? 2 : point < 0x10000 ? 3 : 4;
    for (let at = length - 1, left = point; at > 0; at--, left >>= 6) bytes[to + at] = 0x80 | (left & 0x3f);
    bytes[to] = length === 1 ? point : ((0xf00 >> length) & 0xff) | (point >> (6 * (length - 1)));
    to += length;
  }
  return bytes;
}

/** Octets of the text in UTF-8; a surrogate alone counts as the three of the character that stands for it. */
export function utf8Octets(text: string): number {
  let octets = 0;
  for (let at = 0; at < text.length; at++) {
    const point = text.codePointAt(at) ?? 0;
    octets += point < 0x80 ? 1 : point < 0x800 ? 2 : point < 0x10000 ? 3 : 4;
    if (point > 0xffff) at++;
  }
  return octets;
}

/** Octets of the character that begins with this one; 0 when none does. */
function lengthOf(first: number): number {
  if (first < 0x80) return 1;
  if (first < 0xc2) return 0;
  if (first < 0xe0) return 2;
  if (first < 0xf0) return 3;
  return first < 0xf5 ? 4 : 0;
}

function codesToText(bytes: Uint8Array): string {
  // apply() takes any list of numbers; its type knows arrays only.
  return String.fromCharCode.apply(null, bytes as unknown as number[]);
}
