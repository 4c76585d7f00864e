/**
 * What addresses that we sign are made of: digits that survive a change of case, a short hash by a secret,
 * and the day on which an address was made. Of sender-rewriting.ts and return-addresses.ts. Pure.
 */
import { utf8Bytes } from './utf8.js';

/** HMAC-SHA-256. */
export type Hmac = (key: Uint8Array, text: Uint8Array) => Uint8Array;

/** RFC 4648 6: upper and lower case are the same, as some servers change it. */
const DIGITS = 'abcdefghijklmnopqrstuvwxyz234567';
const DAY_MS = 86_400_000;
/** Days are told modulo this: two characters. */
const DAYS = 1024;

/** So many characters, 5 bits each, of a text whose case does not count. */
export function shortHash(hmac: Hmac, key: Uint8Array, text: string, characters: number): string {
  const digest = hmac(key, utf8Bytes(text.toLowerCase()));
  let hash = '';
  for (let i = 0; i < characters; i++) hash += DIGITS.charAt((digest[i] ?? 0) & 31);
  return hash;
}

/** The day of a wall clock, in two characters. */
export function dayText(wallMs: number): string {
  const day = dayOf(wallMs);
  return DIGITS.charAt(day >> 5) + DIGITS.charAt(day & 31);
}

/**
 * How many days ago a day was, below 1024; undefined for what is none. 0 also for tomorrow: a clock that
 * steps back by a day makes nothing invalid.
 */
export function daysSince(day: string, wallMs: number): number | undefined {
  const text = day.toLowerCase();
  const [high, low] = [DIGITS.indexOf(text.charAt(0)), DIGITS.indexOf(text.charAt(1))];
  if (text.length !== 2 || high < 0 || low < 0) return undefined;
  const days = (dayOf(wallMs) - (high * DIGITS.length + low) + DAYS) % DAYS;
  return days === DAYS - 1 ? 0 : days;
}

function dayOf(wallMs: number): number {
  return Math.floor(wallMs / DAY_MS) % DAYS;
}
