/**
 * Patterns of addresses and names as operators write them: letters of either case, "*" for any run of
 * characters, an empty one too. One pass over the text for each pattern: hostile text costs no more. Pure.
 */

/** What stands between the stars, in lower case. */
type Parts = readonly string[];

export class Wildcards {
  readonly #patterns: readonly Parts[];

  constructor(patterns: readonly string[]) {
    this.#patterns = patterns.map((pattern) => pattern.toLowerCase().split('*'));
  }

  /** Whether one of them is all of the text. */
  matches(text: string): boolean {
    const lower = text.toLowerCase();
    return this.#patterns.some((parts) => isAllOf(lower, parts));
  }
}

function isAllOf(text: string, parts: Parts): boolean {
  const [first = ''] = parts;
  if (parts.length === 1) return text === first;
  const last = parts[parts.length - 1] ?? '';
  if (text.length < first.length + last.length) return false;
  if (!text.startsWith(first) || !text.endsWith(last)) return false;
  const end = text.length - last.length;
  let at = first.length;
  for (let i = 1; i < parts.length - 1; i++) {
    const part = parts[i] ?? '';
    // The first place is the best: it leaves most for what follows.
    const found = text.indexOf(part, at);
    if (found < 0 || found + part.length > end) return false;
    at = found + part.length;
  }
  return true;
}
