/**
 * Checks that the decoders in messages/ share: what an element of a control part may be, and its limits.
 * Nothing here trusts a peer; every function takes `unknown`.
 */
import type { Packer } from '../platform/ports.js';
import { checkControl } from './bounds.js';
import { InvalidMessage } from './invalid.js';

/**
 * Identifiers (gateway, store, partition, path), in bytes of UTF-8: a domain name is shorter (RFC 1035
 * 2.3.4).
 */
const IDENTIFIER_BYTES_MAX = 255;
/** Texts for people (CLOSE, REFUSAL). */
const TEXT_CHARS_MAX = 1024;
/** Stores of one partition; two is usual, a set in change has three. */
export const MEMBERS_MAX = 16;
/** Copies that were given up and are not adopted yet: of several faults, each with its members. */
export const GAVE_UP_MAX = 64;
/** Terms that a record remembers: two for each time that its holder restarts while another rescues it. */
export const LINE_MAX = 16;
/** Handles stay small integers in every engine: below 2^31. */
export const HANDLE_MAX = 0x7fff_ffff;

/** Whether an element may be used as it is. */
export type Check<T> = (value: unknown) => value is T;

const U32_MAX = 0xffff_ffff;

/**
 * The elements of a control part, or why it is invalid. `elements` is the exact count,
 * or the least one if `open`.
 */
export function unpackControl(
  packer: Packer, control: Uint8Array, elements: number, open = false,
): readonly unknown[] | InvalidMessage {
  const rule = checkControl(control);
  if (rule !== '') return new InvalidMessage(rule);
  const values = packer.unpack(control);
  if (!Array.isArray(values)) return new InvalidMessage('control not an array');
  if (values.length < elements || (!open && values.length > elements)) {
    return new InvalidMessage('element count');
  }
  return values as readonly unknown[];
}

/** A whole number in 0 … 2^53 − 1. */
export function isWhole(value: unknown): value is number {
  return Number.isSafeInteger(value) && (value as number) >= 0;
}

export function isUint32(value: unknown): value is number {
  return isWhole(value) && value <= U32_MAX;
}

/** A whole number in least … most. */
function isBetween(value: unknown, least: number, most: number): value is number {
  return isWhole(value) && value >= least && value <= most;
}

export function between(least: number, most: number): Check<number> {
  return (value): value is number => isBetween(value, least, most);
}

/** A partition's handle on a connection; 0 is none. */
export function isHandle(value: unknown): value is number {
  return isBetween(value, 1, HANDLE_MAX);
}

export function isBoolean(value: unknown): value is boolean {
  return typeof value === 'boolean';
}

export function isBytes(value: unknown): value is Uint8Array {
  return value instanceof Uint8Array;
}

export function bytesOf(length: number): Check<Uint8Array> {
  return (value): value is Uint8Array => isBytes(value) && value.length === length;
}

/** Rows of a fixed size, back to back. */
export function isRows(value: unknown, rowBytes: number): value is Uint8Array {
  return value instanceof Uint8Array && value.length % rowBytes === 0;
}

export function rowsOf(rowBytes: number): Check<Uint8Array> {
  return (value): value is Uint8Array => isRows(value, rowBytes);
}

/** A name that is safe to show and to compare: 1 to 255 bytes, visible characters only. */
export function isIdentifier(value: unknown): value is string {
  if (typeof value !== 'string' || value.length === 0 || value.length > IDENTIFIER_BYTES_MAX) return false;
  let bytes = 0;
  for (let i = 0; i < value.length; i++) {
    const unit = value.charCodeAt(i);
    if (unit > 0x20 && unit < 0x7f) bytes++;
    else if (!isVisible(unit)) return false;
    // Each half of a surrogate pair is two bytes of the four.
    else bytes += unit < 0x800 || isSurrogate(unit) ? 2 : 3;
    if (isSurrogate(unit) && !isPairAt(value, i)) return false;
  }
  return bytes <= IDENTIFIER_BYTES_MAX;
}

/** Text for people; whoever shows it escapes it. */
export function isText(value: unknown): value is string {
  return typeof value === 'string' && value.length <= TEXT_CHARS_MAX;
}

/** Makes text of ours fit: visible ASCII and spaces, cut to the limit. Others' bytes may have got into it. */
export function plainText(text: string): string {
  let plain = '';
  const length = Math.min(text.length, TEXT_CHARS_MAX);
  for (let i = 0; i < length; i++) {
    const unit = text.charCodeAt(i);
    plain += unit >= 0x20 && unit < 0x7f ? text.charAt(i) : '?';
  }
  return plain;
}

/** Not a control, space, direction mark, or what stands for a character that could not be decoded. */
function isVisible(unit: number): boolean {
  if (unit <= 0xa0) return unit > 0x20 && unit < 0x7f;
  if (unit >= 0x2000 && unit <= 0x206f) return unit >= 0x2010 && unit <= 0x2027;
  return unit !== 0x00ad && unit !== 0x061c && unit !== 0x3000 && unit !== 0xfeff && unit < 0xfff0;
}

function isSurrogate(unit: number): boolean {
  return (unit & 0xf800) === 0xd800;
}

function isPairAt(text: string, i: number): boolean {
  return (text.charCodeAt(i) & 0xfc00) === 0xd800
    ? (text.charCodeAt(i + 1) & 0xfc00) === 0xdc00
    : (text.charCodeAt(i - 1) & 0xfc00) === 0xd800;
}
