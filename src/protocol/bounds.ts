/**
 * Looks through a control part before anything unpacks it: one MessagePack array, nothing that no message
 * uses, every claimed length inside the bytes that are there. After this an unpacker can neither
 * be made to allocate beyond a small multiple of the bytes received, nor to build maps or extensions, nor
 * to recurse. Strings must be UTF-8, so that two names which differ in bytes differ as strings.
 *
 *   allowed    nil, false, true, integers to 32 bits, float64, str, bin, array
 *   refused    map, ext and fixext, float32, 64-bit integers (numbers from 2^32 are float64), 0xc1
 *
 * Not here: what the elements mean (messages/).
 */

/** Arrays in arrays: TELL needs all four, for a member in the members of its record. */
export const NESTING_MAX = 4;
/**
 * Elements in all arrays of one control part: CHANGES of 8,192 sections has 40,960. An element can be one
 * byte on the wire and a dozen in memory, so the byte limit of a frame alone would not bound what it unpacks
 * to.
 */
export const ELEMENTS_MAX = 65_536;

/** '' when the control part may be unpacked, else the name of the broken rule. */
export function checkControl(bytes: Uint8Array): string {
  const end = bytes.length;
  if (end === 0) return 'control empty';
  if (arrayCount(bytes, 0, bytes[0] ?? 0) === NOT_AN_ARRAY) return 'control not an array';
  // Elements still to come: of the array that we are in, and of those around it, innermost last. A control
  // part is one value, so the outermost "array" has one element.
  let left = 1;
  let outer1 = 0;
  let outer2 = 0;
  let outer3 = 0;
  let outer4 = 0;
  let depth = 0;
  let elements = 0;
  let at = 0;
  for (;;) {
    while (left === 0) {
      if (depth === 0) return at === end ? '' : 'control has bytes behind its array';
      left = depth === 4 ? outer4 : depth === 3 ? outer3 : depth === 2 ? outer2 : outer1;
      depth--;
    }
    left--;
    if (at >= end) return 'control cut short';
    const tag = bytes[at] ?? 0;
    const count = arrayCount(bytes, at, tag);
    if (count === NOT_AN_ARRAY) {
      at = skipScalar(bytes, at, tag);
      if (at < 0) return ruleOf(at);
      continue;
    }
    if (count === CUT) return 'control cut short';
    elements += count;
    if (elements > ELEMENTS_MAX) return 'control has too many elements';
    at += tag === 0xdd ? 5 : tag === 0xdc ? 3 : 1;
    if (depth === NESTING_MAX) return 'control nested too deep';
    depth++;
    if (depth === 1) outer1 = left;
    else if (depth === 2) outer2 = left;
    else if (depth === 3) outer3 = left;
    else outer4 = left;
    left = count;
  }
}

// What arrayCount and skipScalar return in place of a count or an offset.
const CUT = -1;
const NOT_AN_ARRAY = -2;
const TYPE = -3;
const UTF8 = -4;

/**
 * Elements of the array that starts at `at`, CUT when its header is cut short, NOT_AN_ARRAY for another type.
 */
function arrayCount(bytes: Uint8Array, at: number, tag: number): number {
  if ((tag & 0xf0) === 0x90) return tag & 0x0f;
  if (tag === 0xdc) return at + 3 <= bytes.length ? big16(bytes, at + 1) : CUT;
  if (tag === 0xdd) return at + 5 <= bytes.length ? big32(bytes, at + 1) : CUT;
  return NOT_AN_ARRAY;
}

function ruleOf(code: number): string {
  return code === CUT
    ? 'control cut short'
    : code === UTF8 ? 'control has a string that is not UTF-8' : 'control has a forbidden type';
}

/** Offset behind the value at `at`, or one of the codes above. */
function skipScalar(bytes: Uint8Array, at: number, tag: number): number {
  const end = bytes.length;
  if (tag < 0x80 || tag >= 0xe0) return at + 1; // fixint
  if (tag < 0xa0) return TYPE; // fixmap; fixarray never gets here
  if (tag < 0xc0) return skipText(bytes, at + 1, tag & 0x1f);
  let next: number;
  switch (tag) {
    case 0xc0: case 0xc2: case 0xc3: next = at + 1; break;
    case 0xc4: next = at + 2 <= end ? at + 2 + (bytes[at + 1] ?? 0) : end + 1; break;
    case 0xc5: next = at + 3 <= end ? at + 3 + big16(bytes, at + 1) : end + 1; break;
    case 0xc6: next = at + 5 <= end ? at + 5 + big32(bytes, at + 1) : end + 1; break;
    case 0xcb: next = at + 9; break; // float64
    case 0xcc: case 0xd0: next = at + 2; break;
    case 0xcd: case 0xd1: next = at + 3; break;
    case 0xce: case 0xd2: next = at + 5; break;
    case 0xd9: return at + 2 <= end ? skipText(bytes, at + 2, bytes[at + 1] ?? 0) : CUT;
    case 0xda: return at + 3 <= end ? skipText(bytes, at + 3, big16(bytes, at + 1)) : CUT;
    case 0xdb: return at + 5 <= end ? skipText(bytes, at + 5, big32(bytes, at + 1)) : CUT;
    default: return TYPE;
  }
  return next <= end ? next : CUT;
}

function skipText(bytes: Uint8Array, start: number, length: number): number {
  const stop = start + length;
  if (stop > bytes.length) return CUT;
  let at = start;
  while (at < stop) {
    const lead = bytes[at] ?? 0;
    if (lead < 0x80) {
      at++;
      continue;
    }
    const more = continuationBytes(bytes, at, stop, lead);
    if (more === 0) return UTF8;
    at += 1 + more;
  }
  return stop;
}

/** Bytes that follow a lead byte, or 0 when the sequence is not well formed (Unicode 15, table 3-7). */
function continuationBytes(bytes: Uint8Array, at: number, stop: number, lead: number): number {
  const more =
    lead >= 0xc2 && lead <= 0xdf ? 1 : (lead & 0xf0) === 0xe0 ? 2 : lead >= 0xf0 && lead <= 0xf4 ? 3 : 0;
  if (more === 0 || at + more >= stop) return 0;
  const second = bytes[at + 1] ?? 0;
  // The second byte keeps out overlong forms, surrogates and what lies above U+10FFFF.
  const low = lead === 0xe0 ? 0xa0 : lead === 0xf0 ? 0x90 : 0x80;
  const high = lead === 0xed ? 0x9f : lead === 0xf4 ? 0x8f : 0xbf;
  if (second < low || second > high) return 0;
  for (let i = 2; i <= more; i++) if (((bytes[at + i] ?? 0) & 0xc0) !== 0x80) return 0;
  return more;
}

function big16(bytes: Uint8Array, at: number): number {
  return ((bytes[at] ?? 0) << 8) | (bytes[at + 1] ?? 0);
}

function big32(bytes: Uint8Array, at: number): number {
  return big16(bytes, at) * 0x1_0000 + big16(bytes, at + 2);
}
