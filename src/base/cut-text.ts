/** Texts of people, bounded in bytes before they go where memory is paid for. */

/**
 * The longest beginning that takes at most so many bytes of UTF-8: whole characters;
 * half a pair takes 3, as U+FFFD.
 */
export function cutText(text: string, bytesMax: number): string {
  let bytes = 0;
  let units = 0;
  for (const character of text) {
    const point = character.codePointAt(0) ?? 0;
    bytes += point < 0x80 ? 1 : point < 0x800 ? 2 : point < 0x10000 ? 3 : 4;
    if (bytes > bytesMax) return text.slice(0, units);
    units += character.length;
  }
  return text;
}
