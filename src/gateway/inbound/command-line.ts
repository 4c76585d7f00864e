/**
 * A command line as text. Lines come as octets, because the library splits them without knowing about UTF-8.
 *
 * Control characters are refused in every command: TAB and VT are no separators (RFC 5321 2.3.8, 4.1.1 know
 * only the space), a bare CR or NUL is a smuggler's tool, and none of it may reach a log or a header. The C1
 * range is refused too, terminals obey it.
 */

const SPACE = 0x20;
const DELETE = 0x7f;
const C1_END = 0x9f;
const VERB_LETTERS_MAX = 8;

const strictUtf8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });

/** The line without trailing spaces, or undefined when it has control characters or is no UTF-8. */
export function commandText(line: Buffer): string | undefined {
  let end = line.length;
  while (end > 0 && line[end - 1] === SPACE) end--;
  let ascii = true;
  for (let at = 0; at < end; at++) {
    const byte = line[at] as number;
    if (byte < SPACE || byte === DELETE) return undefined;
    if (byte > DELETE) ascii = false;
  }
  return ascii ? line.toString('latin1', 0, end) : decoded(line.subarray(0, end));
}

function decoded(line: Buffer): string | undefined {
  let text: string;
  try {
    text = strictUtf8.decode(line);
  } catch {
    return undefined;
  }
  for (let at = 0; at < text.length; at++) {
    const code = text.charCodeAt(at);
    if (code > DELETE && code <= C1_END) return undefined;
  }
  return text;
}

/** The first word in upper case; '' when it is longer than any verb. */
export function verbOf(text: string): string {
  const space = text.indexOf(' ');
  const length = space < 0 ? text.length : space;
  return length > VERB_LETTERS_MAX ? '' : text.slice(0, length).toUpperCase();
}

/** A web page can make a browser speak to a mail port: the first line gives it away. */
export function isHttpRequest(text: string): boolean {
  return / HTTP\/\d(\.\d)?$/i.test(text);
}
