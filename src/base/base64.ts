/** Base64 (RFC 4648 4) for pure code: with padding, without line ends, and strict when it is read. */

const ALPHABET = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/';
const PAD = '=';
/** By character; -1: it is none of the alphabet. */
const VALUES = new Int8Array(128).fill(-1);
for (let value = 0; value < ALPHABET.length; value++) VALUES[ALPHABET.charCodeAt(value)] = value;

export function base64Text(bytes: Uint8Array): string {
  let text = '';
  for (let at = 0; at < bytes.length; at += 3) {
    const left = bytes.length - at;
    const three = ((bytes[at] ?? 0) << 16) | ((bytes[at + 1] ?? 0) << 8) | (bytes[at + 2] ?? 0);
    text += letter(three >> 18) + letter(three >> 12);
    text += (left > 1 ? letter(three >> 6) : PAD) + (left > 2 ? letter(three) : PAD);
  }
  return text;
}

/** undefined when it is none: another character, a wrong length, or bits behind the last byte. */
export function base64Bytes(text: string): Uint8Array | undefined {
  if (text.length % 4 !== 0) return undefined;
  const padding = text.endsWith('==') ? 2 : text.endsWith(PAD) ? 1 : 0;
  const bytes = new Uint8Array((text.length / 4) * 3 - padding);
  let bits = 0;
  let held = 0;
  let to = 0;
  for (let at = 0; at < text.length - padding; at++) {
    const value = VALUES[text.charCodeAt(at)] ?? -1;
    if (value < 0) return undefined;
    held = ((held << 6) | value) & 0xffff;
    bits += 6;
    if (bits < 8) continue;
    bits -= 8;
    bytes[to++] = held >> bits;
  }
  return (held & ((1 << bits) - 1)) === 0 ? bytes : undefined;
}

function letter(value: number): string {
  return ALPHABET.charAt(value & 63);
}
