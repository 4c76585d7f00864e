/**
 * Message ids as people see them: 11 characters of Crockford's base 32, so 55 bits for the 53 of an id.
 * All have the same length and sort like the numbers. The alphabet has no I, L, O, U; reading takes small
 * letters, and I, L, O for the digits they look like, as Crockford says.
 */
import { invariant } from './invariant.js';

const TEXT_ID_LENGTH = 11;

const ALPHABET = '0123456789ABCDEFGHJKMNPQRSTVWXYZ';
const LOW = 2 ** 30;

/** Every two letters, by the ten bits they stand for. */
const PAIRS: readonly string[] = Array.from(
  { length: 1024 }, (_, bits) => ALPHABET.charAt(bits >>> 5) + ALPHABET.charAt(bits & 31),
);

export function formatMessageId(id: number): string {
  invariant(Number.isSafeInteger(id) && id >= 0, 'a message id is a whole number from 0 to 2^53 − 1');
  // 5 letters above, 6 below: both halves fit 32-bit arithmetic.
  const high = Math.floor(id / LOW);
  const low = id - high * LOW;
  return ALPHABET.charAt(high >>> 20) + pair(high >>> 10) + pair(high)
    + pair(low >>> 20) + pair(low >>> 10) + pair(low);
}

function pair(bits: number): string {
  return PAIRS[bits & 1023] ?? '';
}

/** The id that a text stands for; undefined when it stands for none. */
export function parseMessageId(text: string): number | undefined {
  if (text.length !== TEXT_ID_LENGTH) return undefined;
  let id = 0;
  for (let i = 0; i < TEXT_ID_LENGTH; i++) {
    const digit = digitOf(text.charCodeAt(i));
    if (digit < 0) return undefined;
    id = id * 32 + digit;
  }
  return id <= Number.MAX_SAFE_INTEGER ? id : undefined;
}

function digitOf(code: number): number {
  const upper = code >= 0x61 && code <= 0x7a ? code - 0x20 : code;
  if (upper === 0x4f) return 0; // O
  if (upper === 0x49 || upper === 0x4c) return 1; // I, L
  return upper < 0x80 ? ALPHABET.indexOf(String.fromCharCode(upper)) : -1;
}
