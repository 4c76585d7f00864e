/**
 * Where the elements of DER stand (X.690 8.1), for who looks at what strangers sent before a library reads
 * it. Only what DER has: definite lengths, and tags of one octet.
 */

/** Tag, and the content from `from` to `end`. */
export interface Element {
  readonly tag: number;
  readonly from: number;
  readonly end: number;
}

export const INTEGER = 0x02;
export const BIT_STRING = 0x03;
export const OBJECT_IDENTIFIER = 0x06;
export const SEQUENCE = 0x30;

const LONG_TAG = 0x1f;
const LONG_LENGTH = 0x80;
const LENGTH_OCTETS_MAX = 3;

/** Undefined: none is there, or it ends behind `limit`. */
export function elementAt(der: Uint8Array, at: number, limit = der.length): Element | undefined {
  const tag = der[at];
  let length = der[at + 1];
  if (tag === undefined || length === undefined || (tag & LONG_TAG) === LONG_TAG) return undefined;
  let from = at + 2;
  if (length >= LONG_LENGTH) {
    const octets = length - LONG_LENGTH;
    if (octets === 0 || octets > LENGTH_OCTETS_MAX) return undefined;
    length = 0;
    for (let i = 0; i < octets; i++) length = length << 8 | (der[from++] ?? 0);
  }
  const end = from + length;
  return end <= limit ? { tag, from, end } : undefined;
}

/**
 * Elements that stand one behind another from `at` on, each with the tag that it is to have; undefined where
 * one has another, or is missing.
 */
export function elementsAt(
  der: Uint8Array, at: number, limit: number, tags: readonly number[],
): readonly Element[] | undefined {
  const found: Element[] = [];
  let next = at;
  for (const tag of tags) {
    const element = elementAt(der, next, limit);
    if (element?.tag !== tag) return undefined;
    found.push(element);
    next = element.end;
  }
  return found;
}
