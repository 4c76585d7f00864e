/** Texts of people, bounded in bytes before they go where memory is paid for. */

/** Of "…". */
const MARK_BYTES = 3;

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

/** The same, with a mark at its end where something is missing. */
export function markedCut(text: string, bytesMax: number): string {
  return cutText(text, bytesMax) === text ? text : `${cutText(text, bytesMax - MARK_BYTES)}…`;
}
