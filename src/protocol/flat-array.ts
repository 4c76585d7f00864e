/**
 * Reads and writes a control part that is one flat array of whole numbers and byte strings, as CHANGES and
 * ACK are: the hot messages, for which a general unpacker costs several times as much (it makes a DataView a
 * frame). What is read here needs no look by bounds.ts: nothing but the types below is taken, every length is
 * held against the bytes that are there, nothing nests.
 *
 *   0x00–0x7f            fixint               0xc4 0xc5 0xc6   bin, given as a view
 *   0xcc 0xcd 0xce       uint 8, 16, 32       0xcb             float64, a whole number below 2^53
 *
 * Only the shortest forms of numbers that are not negative, as docs/PROTOCOL.md asks.
 */
import { ELEMENTS_MAX } from './bounds.js';
import { InvalidMessage } from './invalid.js';

export type FlatElement = number | Uint8Array;

const WORD = 0x1_0000_0000;
/** What readWhole returns for anything but a whole number below 2^53. */
const NOT_WHOLE = -1;
/** 2^(exponent − 52) for exponents 0 to 52: what the last bit of a significand counts. */
const LAST_BIT = Float64Array.from({ length: 53 }, (_, exponent) => 2 ** (exponent - 52));

/** The elements, byte strings as views of `bytes`, or why they are invalid. */
export function readFlatArray(bytes: Uint8Array): FlatElement[] | InvalidMessage {
  const end = bytes.length;
  if (end === 0) return new InvalidMessage('control empty');
  const head = bytes[0] ?? 0;
  let at = (head & 0xf0) === 0x90 ? 1 : head === 0xdc ? 3 : head === 0xdd ? 5 : 0;
  if (at === 0) return new InvalidMessage('control not an array');
  if (at > end) return new InvalidMessage('control cut short');
  const count = at === 1 ? head & 0x0f : at === 3 ? big16(bytes, 1) : big32(bytes, 1);
  if (count > ELEMENTS_MAX) return new InvalidMessage('control has too many elements');
  const values: FlatElement[] = [];
  for (let i = 0; i < count; i++) {
    if (at >= end) return new InvalidMessage('control cut short');
    const tag = bytes[at] ?? 0;
    if (tag < 0x80) {
      values.push(tag);
      at++;
      continue;
    }
    const size = sizeBehindTag(tag);
    if (size === 0) return new InvalidMessage('control has a forbidden type');
    const from = at + 1 + size;
    if (from > end) return new InvalidMessage('control cut short');
    if (tag < 0xc7) {
      at = from
        + (size === 1 ? bytes[at + 1] ?? 0 : size === 2 ? big16(bytes, at + 1) : big32(bytes, at + 1));
      if (at > end) return new InvalidMessage('control cut short');
      values.push(bytes.subarray(from, at));
      continue;
    }
    const value = tag === 0xcc
      ? bytes[at + 1] ?? 0
      : tag === 0xcd ? big16(bytes, at + 1) : tag === 0xce ? big32(bytes, at + 1) : readWhole(bytes, at + 1);
    if (value === NOT_WHOLE) return new InvalidMessage('control has a number that is not whole');
    values.push(value);
    at = from;
  }
  return at === end ? values : new InvalidMessage('control has bytes behind its array');
}

/**
 * A control part of whole numbers alone, each below 2^53 and in its shortest form: what a general packer
 * makes of them, at a third of its cost.
 */
export function packWholes(values: readonly number[]): Uint8Array {
  const count = values.length;
  let size = count < 16 ? 1 : count < 0x1_0000 ? 3 : 5;
  for (let i = 0; i < count; i++) size += wholeBytes(values[i] ?? 0);
  const bytes = new Uint8Array(size);
  let at = 0;
  if (count < 16) bytes[at++] = 0x90 | count;
  else if (count < 0x1_0000) at = putBig(bytes, 0, 0xdc, count, 2);
  else at = putBig(bytes, 0, 0xdd, count, 4);
  for (let i = 0; i < count; i++) {
    const value = values[i] ?? 0;
    const length = wholeBytes(value);
    if (length === 1) bytes[at++] = value;
    else if (length === 9) at = putDouble(bytes, at, value);
    else at = putBig(bytes, at, length === 2 ? 0xcc : length === 3 ? 0xcd : 0xce, value, length - 1);
  }
  return bytes;
}

function wholeBytes(value: number): number {
  if (value < 0x80) return 1;
  if (value < 0x100) return 2;
  if (value < 0x1_0000) return 3;
  return value < WORD ? 5 : 9;
}

function putBig(bytes: Uint8Array, at: number, tag: number, value: number, length: number): number {
  bytes[at] = tag;
  for (let i = 1; i <= length; i++) bytes[at + i] = value >>> (8 * (length - i));
  return at + 1 + length;
}

/** Rare: queues and connections count for long until they get there. */
function putDouble(bytes: Uint8Array, at: number, value: number): number {
  bytes[at] = 0xcb;
  new DataView(bytes.buffer).setFloat64(at + 1, value);
  return at + 9;
}

/** Bytes of the length (bin) or of the number behind a tag; 0 for a type that has no place here. */
function sizeBehindTag(tag: number): number {
  switch (tag) {
    case 0xc4: case 0xcc: return 1;
    case 0xc5: case 0xcd: return 2;
    case 0xc6: case 0xce: return 4;
    case 0xcb: return 8;
    default: return 0;
  }
}

/**
 * A float64 by arithmetic, because a DataView for it would cost more than all else here. The significand
 * is 2^20 + 20 bits of the high word, then the low word.
 */
function readWhole(bytes: Uint8Array, at: number): number {
  const high = big32(bytes, at);
  const low = big32(bytes, at + 4);
  if (high === 0 && low === 0) return 0;
  const exponent = (high >>> 20) - 1023; // a set sign bit makes it 1,025 or more
  if (exponent < 0 || exponent > 52) return NOT_WHOLE;
  const value = (((high & 0xf_ffff) | 0x10_0000) * WORD + low) * (LAST_BIT[exponent] ?? 0);
  return value === Math.floor(value) ? value : NOT_WHOLE;
}

function big16(bytes: Uint8Array, at: number): number {
  return ((bytes[at] ?? 0) << 8) | (bytes[at + 1] ?? 0);
}

function big32(bytes: Uint8Array, at: number): number {
  return (((bytes[at] ?? 0) << 24) | ((bytes[at + 1] ?? 0) << 16) | ((bytes[at + 2] ?? 0) << 8)
    | (bytes[at + 3] ?? 0)) >>> 0;
}
