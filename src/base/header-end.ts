/** Where the header of a message ends. Pure. */
const CR = 13;
const LF = 10;

/** Behind the line end of its last line. Of one that is longer than `bytesMax` what whole lines fit. */
export function headerEnd(content: Uint8Array, bytesMax: number): number {
  let lineStart = 0;
  for (;;) {
    const lf = content.indexOf(LF, lineStart);
    if (lf < 0) return lineStart === 0 ? Math.min(content.length, bytesMax) : lineStart;
    const isEmptyLine = lf === lineStart || (lf === lineStart + 1 && content[lineStart] === CR);
    if (isEmptyLine || lf >= bytesMax) return lineStart;
    lineStart = lf + 1;
  }
}
