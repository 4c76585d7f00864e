/** Tag lists of DKIM (RFC 6376 3.2), as signatures and key records have them. Pure. */

const TAG = /^[ \t\r\n]*([A-Za-z][A-Za-z0-9_]*)[ \t\r\n]*=([^]*)$/;
const BLANKS = /[ \t\r\n]+/g;
const OUTER_BLANKS = /^[ \t\r\n]+|[ \t\r\n]+$/g;

/** Values without outer blanks, names as they are; undefined where it is none, or has a tag twice. */
export function readTags(text: string): ReadonlyMap<string, string> | undefined {
  const tags = new Map<string, string>();
  const parts = text.split(';');
  if (parts.at(-1)?.replace(BLANKS, '') === '') parts.pop();
  for (const part of parts) {
    const [, name, value = ''] = TAG.exec(part) ?? [];
    if (name === undefined || tags.has(name)) return undefined;
    tags.set(name, value.replace(OUTER_BLANKS, ''));
  }
  return tags;
}

/** Of a value that may be folded anywhere: base64, lists. */
export function withoutBlanks(value: string | undefined): string {
  return (value ?? '').replace(BLANKS, '');
}
