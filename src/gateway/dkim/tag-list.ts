/** Tag lists of DKIM (RFC 6376 3.2), as signatures and key records have them. Pure. */

const TAG = /^[ \t\r\n]*([A-Za-z][A-Za-z0-9_]*)[ \t\r\n]*=([^]*)$/;
const BLANK = ' \t\r\n';
const BLANKS = /[ \t\r\n]+/g;

/** Values without outer blanks, names as they are; undefined where it is none, or has a tag twice. */
export function readTags(text: string): ReadonlyMap<string, string> | undefined {
  const tags = new Map<string, string>();
  const parts = text.split(';');
  if (parts.at(-1)?.replace(BLANKS, '') === '') parts.pop();
  for (const part of parts) {
    const [, name, value = ''] = TAG.exec(part) ?? [];
    if (name === undefined || tags.has(name)) return undefined;
    tags.set(name, withoutOuterBlanks(value));
  }
  return tags;
}

/** Not by a pattern, which would look from each blank on for an end: the text is a stranger's. */
function withoutOuterBlanks(value: string): string {
  let [from, to] = [0, value.length];
  while (from < to && isBlank(value, from)) from++;
  while (to > from && isBlank(value, to - 1)) to--;
  return value.slice(from, to);
}

function isBlank(text: string, at: number): boolean {
  return BLANK.includes(text.charAt(at));
}

/** Of a value that may be folded anywhere: base64, lists. */
export function withoutBlanks(value: string | undefined): string {
  return (value ?? '').replace(BLANKS, '');
}
