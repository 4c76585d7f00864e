/**
 * A command line as text. Lines come as octets (session/line-reader.ts).
 *
 * Control characters are refused in every command: TAB and VT are no separators (RFC 5321 2.3.8, 4.1.1 know
 * only the space), a bare CR, a bare LF or NUL is a smuggler's tool, and none of it may reach a log or a
 * header. The C1 range is refused too, terminals obey it.
 */
import { upperKeyword } from '../../../base/fold-case.js';
import { utf8Text } from '../../../base/utf8.js';
import type { Latin1Text } from '../../../platform/ports.js';

const SPACE = 0x20;
const DELETE = 0x7f;
const C1_END = 0x9f;
const VERB_LETTERS_MAX = 8;

/** bytes[from .. to) without trailing spaces, or undefined when it has control characters or is no UTF-8. */
export function commandText(
  bytes: Uint8Array, from: number, to: number, latin1Text: Latin1Text,
): string | undefined {
  let end = to;
  while (end > from && bytes[end - 1] === SPACE) end--;
  let isAscii = true;
  for (let at = from; at < end; at++) {
    const byte = bytes[at] ?? 0;
    if (byte < SPACE || byte === DELETE) return undefined;
    if (byte > DELETE) isAscii = false;
  }
  return isAscii ? latin1Text(bytes, from, end) : decoded(bytes, from, end);
}

function decoded(bytes: Uint8Array, from: number, to: number): string | undefined {
  const text = utf8Text(bytes, from, to);
  for (let at = 0; at < (text?.length ?? 0); at++) {
    const code = text?.charCodeAt(at) ?? 0;
    if (code > DELETE && code <= C1_END) return undefined;
  }
  return text;
}

/** The first word as a keyword; '' when it is longer than any verb. */
export function verbOf(text: string): string {
  const space = text.indexOf(' ');
  const length = space < 0 ? text.length : space;
  if (length > VERB_LETTERS_MAX) return '';
  return upperKeyword(text.slice(0, length));
}

/** A web page can make a browser speak to a mail port: the first line gives it away. */
export function isHttpRequest(text: string): boolean {
  return / HTTP\/\d(\.\d)?$/i.test(text);
}
