/**
 * Fields of a message that say to be ours: an Authentication-Results field with our authserv-id, which
 * somebody else has written. Who reads behind us would believe it, so it must not arrive under that name (RFC
 * 8601 5). It is kept for who looks into a case: its name gets X-Original- right in front, and no other octet
 * is changed.
 *
 * In doubt it says to be ours, for readers differ: also where anything but printable ASCII stands around its
 * own name (some trim VT, FF, NBSP and folds there), where our name stands anywhere in front of its first
 * semicolon, in a comment too, where a word may be encoded there (RFC 2047), which some decode first, or
 * where it can't be read and our name occurs in it.
 *
 * Some put a name together again that stands there in pieces, each dot of it a token of its own (OpenDMARC).
 * So of what is in front of the first semicolon this counts for nothing, as each of READINGS sees it: blanks,
 * folds, comments and octets that are no printable ASCII around dots; quotes, backslashes and closing
 * parentheses of no comment, wherever they are; a token that begins with a parenthesis in quotes or behind a
 * backslash.
 *
 * A few passes over the header section, which is bounded in octets and, where such a field may be, in fields
 * (dkim/header-section.ts); names are put together in the first ODD_OCTETS_MAX of such fields, and what is
 * behind these says to be ours. So the worst takes 10 ms. Pure.
 */
import type { Latin1Text, ToAscii } from '../../../platform/ports.js';
import { latin1Bytes, utf8Text } from '../../../base/utf8.js';
import { sectionText, unfolded } from '../../dkim/header-section.js';
import { normalizeDomain } from '../../../smtp/address.js';

const RENAMED = 'X-Original-';
/** Neither gap can be the beginning of what follows it: no text makes it slow. */
const FIELD = /^([^!-~]*)authentication-results[^!-~]*:/i;
const LINE_END = '\r\n';
const BLANKS = ' \t\r\n';
/** How an encoded word begins. */
const ENCODED = '=?';
/** Of 253 characters of four octets at most (RFC 1035 2.3.4), with some room: a long one takes long. */
const NAME_OCTETS_MAX = 1_100;
/** More of them nobody sends in good faith; each KiB takes a third of a millisecond. */
const ODD_OCTETS_MAX = 8 * 1024;
/** Whether quotes and backslashes mean something, and whether comments stand in comments. */
const READINGS = [
  { knowsQuotes: true, nests: true }, { knowsQuotes: true, nests: false },
  { knowsQuotes: false, nests: true }, { knowsQuotes: false, nests: false },
] as const;
/** Octets beyond ASCII belong to a name, or do not. */
const GAPS = [/[^!-~\x80-\xff]+/g, /[^!-~]+/g] as const;

/** In which names may still be put together. */
interface Room {
  octets: number;
}

/** What stands in place of the content up to octet `at` of a piece. */
export interface RenamedHeader {
  readonly octets: Uint8Array;
  readonly piece: number;
  readonly at: number;
  readonly count: number;
}

export interface OwnResultsPorts {
  readonly latin1Text: Latin1Text;
  readonly toAscii: ToAscii;
}

/** `pieces`: what the client sent. undefined: there is none; 'too-long': nobody has looked. */
export function renameOwnResults(
  pieces: readonly Uint8Array[], authservId: string, ports: OwnResultsPorts,
): RenamedHeader | 'too-long' | undefined {
  const section = sectionText(pieces, ports.latin1Text);
  if (section === undefined) return 'too-long';
  // Most have none at all.
  if (!/authentication-results/i.test(section.text)) return undefined;
  const wholes = unfolded(section.text);
  if (wholes === undefined) return 'too-long';
  let count = 0;
  const room = { octets: ODD_OCTETS_MAX };
  const fields = wholes.map((field) => {
    const nameAt = ownNameAt(field, authservId.toLowerCase(), ports.toAscii, room);
    if (nameAt === undefined) return field;
    count += 1;
    // Behind what stands in front: who takes that for the end of a line must not find the old name there.
    return field.slice(0, nameAt) + RENAMED + field.slice(nameAt);
  });
  if (count === 0) return undefined;
  const { bodyPiece: piece, bodyAt: at } = section;
  // Without a body nothing says where a header ends.
  const end = piece < pieces.length ? LINE_END + LINE_END : LINE_END;
  return { octets: latin1Bytes(fields.join(LINE_END) + end), piece, at, count };
}

/** Where the name of the field begins; undefined where it is not ours. */
function ownNameAt(field: string, authservId: string, toAscii: ToAscii, room: Room): number | undefined {
  const [start, gap] = FIELD.exec(field) ?? [];
  if (start === undefined) return undefined;
  return isOwn(field.slice(start.length), authservId, toAscii, room) ? gap?.length : undefined;
}

/** `text`: what is behind the colon. */
function isOwn(text: string, authservId: string, toAscii: ToAscii, room: Room): boolean {
  if (room.octets < 0) return true;
  // One that is cut here is too long below.
  const id = authservIdOf(text.slice(0, room.octets)) ?? '';
  const [front = ''] = id === '' ? [text] : text.split(';', 1);
  // Else all readings are the same.
  const isOdd = /["()\\]/.test(text);
  room.octets -= isOdd ? text.length : front.length;
  if (room.octets < 0) return true;
  // Where that semicolon is, readers may differ over an odd one.
  if ((isOdd ? text : front).includes(ENCODED)) return true;
  if (sameName(id, authservId, toAscii) || names(front, authservId)) return true;
  const fronts = new Set(READINGS.slice(0, isOdd ? undefined : 1).map((one) => frontAsRead(text, one)));
  const wholes = new Set([...fronts].flatMap((pieces) => GAPS.map((gap) => putTogether(pieces, gap))));
  return [...wholes].some((whole) => {
    const [first = ''] = whole.split(/[ /]/, 1);
    return sameName(first, authservId, toAscii) || names(whole, authservId);
  });
}

function putTogether(pieces: string, gap: RegExp): string {
  return pieces.replace(gap, ' ').replace(/ ?\. ?/g, '.').trim();
}

/** A blank in place of each comment. */
function frontAsRead(text: string, { knowsQuotes, nests }: typeof READINGS[number]): string {
  const front: string[] = [];
  let depth = 0;
  let isQuoted = false;
  let isTokenStart = true;
  let isSkipped = false;
  for (let at = 0; at < text.length; at++) {
    const isEscaped = knowsQuotes && text[at] === '\\';
    if (isEscaped) at++;
    const character = text[at] ?? '';
    const isLiteral = isEscaped || isQuoted;
    if (!isEscaped && character === '"' && depth === 0) {
      isQuoted = knowsQuotes && !isQuoted;
    } else if (!isLiteral && character === '(') {
      depth = nests ? depth + 1 : 1;
      front.push(' ');
      isTokenStart = true;
      isSkipped = false;
    } else if (!isLiteral && character === ')') {
      depth = Math.max(0, depth - 1);
    } else if (depth === 0 && (isEscaped || character !== '\\')) {
      if (!isLiteral && character === ';') break;
      const isTokenEnd = !isLiteral && (character <= ' ' || character === '.');
      isSkipped = !isTokenEnd && (isSkipped || (isTokenStart && character === '('));
      isTokenStart = isTokenEnd;
      if (!isSkipped) front.push(character);
    }
  }
  return front.join('');
}

/** Whether a name stands there, as no part of a longer one. */
function names(text: string, name: string): boolean {
  const lower = text.toLowerCase();
  for (let at = lower.indexOf(name); at >= 0; at = lower.indexOf(name, at + 1)) {
    const behind = lower.slice(at + name.length, at + name.length + 2);
    if (!/[a-z0-9.-]/.test(lower[at - 1] ?? '') && !/^(?:[a-z0-9-]|\.[a-z0-9])/.test(behind)) return true;
  }
  return false;
}

/** Without case, as U-labels or A-labels, with a final dot or without. */
function sameName(id: string, authservId: string, toAscii: ToAscii): boolean {
  const name = id.replace(/\.$/, '');
  if (name.length > NAME_OCTETS_MAX) return false;
  if (name.toLowerCase() === authservId) return true;
  const octets = latin1Bytes(name);
  const text = utf8Text(octets, 0, octets.length);
  return text !== undefined && normalizeDomain(text, toAscii) === authservId;
}

/** The first value of the field, a token or a quoted string, behind comments; undefined when it has none. */
function authservIdOf(text: string): string | undefined {
  const at = passComments(text);
  if (at === undefined) return undefined;
  if (text[at] === '"') return quoted(text, at + 1);
  const [token] = /^[^\s;()<>@,:\\"/[\]?=]+/.exec(text.slice(at)) ?? [];
  return token;
}

/** Where something else than blanks and comments begins; undefined in one that does not end. */
function passComments(text: string): number | undefined {
  let depth = 0;
  for (let at = 0; at < text.length; at++) {
    const character = text[at] ?? '';
    if (depth > 0 && character === '\\') at++;
    else if (character === '(') depth++;
    else if (character === ')' && depth > 0) depth--;
    else if (depth === 0 && !BLANKS.includes(character)) return at;
  }
  return depth === 0 ? text.length : undefined;
}

function quoted(text: string, from: number): string | undefined {
  let value = '';
  for (let at = from; at < text.length; at++) {
    const character = text[at] ?? '';
    if (character === '"') return value.replace(/\r\n/g, '').trim();
    if (character === '\\') at++;
    value += text[at] ?? '';
  }
  return undefined;
}
