/**
 * Text to bytes and back without Node: the pure floors know no Buffer and no TextEncoder. Written for short
 * texts (names, heads, reply lines); contents stay bytes.
 *
 * UTF-8 as RFC 3629: what a string can't say (a lone surrogate) and what bytes must not (overlong forms,
 * surrogates, beyond U+10FFFF, cut sequences) becomes U+FFFD, as encoders and browsers do.
 */
const REPLACEMENT = 0xfffd;
const UNITS_AT_ONCE = 8192; // fromCharCode takes its arguments on the stack

/** One byte a character, for text known to be ASCII or Latin-1; the upper half of a wider one is lost. */
export function asciiBytes(text: string): Uint8Array {
  const bytes = new Uint8Array(text.length);
  for (let i = 0; i < text.length; i++) bytes[i] = text.charCodeAt(i);
  return bytes;
}

/** One character a byte. */
export function asciiText(bytes: Uint8Array, from = 0, to = bytes.length): string {
  let text = '';
  for (let i = from; i < to; i++) text += String.fromCharCode(bytes[i] ?? 0);
  return text;
}

/** Bytes that encodeUtf8 will make. */
export function utf8Length(text: string): number {
  let length = 0;
  for (let i = 0; i < text.length; i++) {
    const point = pointAt(text, i);
    length += point < 0x80 ? 1 : point < 0x800 ? 2 : point < 0x10000 ? 3 : 4;
    if (point >= 0x10000) i += 1;
  }
  return length;
}

export function encodeUtf8(text: string): Uint8Array {
  const bytes = new Uint8Array(utf8Length(text));
  writeUtf8(text, bytes, 0);
  return bytes;
}

/** Writes text into target, which has room for it; returns the place after it. */
export function writeUtf8(text: string, target: Uint8Array, at: number): number {
  let to = at;
  for (let i = 0; i < text.length; i++) {
    const point = pointAt(text, i);
    if (point < 0x80) {
      target[to++] = point;
      continue;
    }
    if (point < 0x800) target[to++] = 0xc0 | (point >>> 6);
    else {
      if (point < 0x10000) target[to++] = 0xe0 | (point >>> 12);
      else {
        i += 1;
        target[to++] = 0xf0 | (point >>> 18);
        target[to++] = 0x80 | ((point >>> 12) & 0x3f);
      }
      target[to++] = 0x80 | ((point >>> 6) & 0x3f);
    }
    target[to++] = 0x80 | (point & 0x3f);
  }
  return to;
}

export function decodeUtf8(bytes: Uint8Array, from = 0, to = bytes.length): string {
  let text = '';
  let units: number[] = [];
  let i = from;
  while (i < to) {
    const lead = bytes[i] ?? 0;
    const length = sequenceLength(bytes, i, to);
    // Of a broken sequence its longest sound beginning becomes one U+FFFD (Unicode 3.9, U+FFFD substitution).
    const point = length > 0 ? pointOf(bytes, i, lead, length) : REPLACEMENT;
    i += Math.abs(length);
    if (point < 0x10000) units.push(point);
    else units.push(0xd7c0 + (point >>> 10), 0xdc00 | (point & 0x3ff));
    if (units.length >= UNITS_AT_ONCE) {
      text += String.fromCharCode.apply(undefined, units);
      units = [];
    }
  }
  return text + String.fromCharCode.apply(undefined, units);
}

/** Text for a log line or a terminal: controls, line ends, the C1 range and the backslash become escapes. */
export function escapeControl(text: string): string {
  let escaped = '';
  let from = 0;
  for (let i = 0; i < text.length; i++) {
    const code = text.charCodeAt(i);
    if (!needsEscape(code)) continue;
    escaped += text.slice(from, i) + escapeOf(code);
    from = i + 1;
  }
  return from === 0 ? text : escaped + text.slice(from);
}

function escapeOf(code: number): string {
  if (code === 0x5c) return '\\\\';
  if (code === 0x0d) return '\\r';
  if (code === 0x0a) return '\\n';
  if (code === 0x09) return '\\t';
  const hex = code.toString(16);
  return code < 0x100 ? '\\x' + hex.padStart(2, '0') : '\\u' + hex.padStart(4, '0');
}

function needsEscape(code: number): boolean {
  if (code < 0x80) return code < 0x20 || code === 0x5c || code === 0x7f;
  if (code < 0xa0) return true;
  // Line and paragraph separators, and the marks that turn the direction of writing: a log must not be
  // made to show other text than it holds.
  return (code >= 0x200e && code <= 0x200f) || (code >= 0x2028 && code <= 0x202e) || (code >= 0x2066 && code <= 0x2069) || code === 0xfeff;
}

function pointAt(text: string, i: number): number {
  const unit = text.charCodeAt(i);
  if (unit < 0xd800 || unit > 0xdfff) return unit;
  if (unit > 0xdbff || i + 1 >= text.length) return REPLACEMENT;
  const low = text.charCodeAt(i + 1);
  if (low < 0xdc00 || low > 0xdfff) return REPLACEMENT;
  return 0x10000 + ((unit - 0xd800) << 10) + (low - 0xdc00);
}

/** Length of the sound sequence at i; of a broken one the bytes to pass over, negative. */
function sequenceLength(bytes: Uint8Array, i: number, to: number): number {
  const lead = bytes[i] ?? 0;
  if (lead < 0x80) return 1;
  if (lead < 0xc2 || lead > 0xf4) return -1;
  const length = lead < 0xe0 ? 2 : lead < 0xf0 ? 3 : 4;
  for (let k = 1; k < length; k++) {
    if (i + k >= to) return -k;
    const byte = bytes[i + k] ?? 0;
    const low = k > 1 ? 0x80 : lead === 0xe0 ? 0xa0 : lead === 0xf0 ? 0x90 : 0x80;
    const high = k > 1 ? 0xbf : lead === 0xed ? 0x9f : lead === 0xf4 ? 0x8f : 0xbf;
    if (byte < low || byte > high) return -k;
  }
  return length;
}

function pointOf(bytes: Uint8Array, i: number, lead: number, length: number): number {
  if (length === 1) return lead;
  let point = lead & (0x7f >>> length);
  for (let k = 1; k < length; k++) point = (point << 6) | ((bytes[i + k] ?? 0) & 0x3f);
  return point;
}
