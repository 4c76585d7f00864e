/**
 * A whole content made ready for the wire, for clients that have it in one piece (load); deliveries go by
 * write-buffer.ts, piece by piece. Pure.
 *
 *   file ──withLineEnds()──► content as it will arrive ──wireContent()──► dots doubled, final dot
 */

const CR = 13;
const LF = 10;
const DOT = 46;

/** Each CR, LF or CRLF as CRLF (RFC 5321 2.3.8), the last line ended too. An empty content stays so. */
export function withLineEnds(content: Uint8Array): Uint8Array {
  const lines = new Uint8Array(2 * content.length + 2);
  let at = 0;
  let before = LF;
  for (const byte of content) {
    if (byte === LF && before !== CR) lines[at++] = CR;
    if (before === CR && byte !== LF) lines[at++] = LF;
    lines[at++] = byte;
    before = byte;
  }
  if (before !== CR && before !== LF) lines[at++] = CR;
  if (before !== LF) lines[at++] = LF;
  return lines.subarray(0, at);
}

/** A dot in front of each line that starts with one (RFC 5321 4.5.2), and the final dot. */
export function wireContent(lines: Uint8Array): Uint8Array {
  let dots = 0;
  for (let at = 0; at < lines.length; at++) if (startsWithDot(lines, at)) dots++;
  const wire = new Uint8Array(lines.length + dots + 3);
  let to = 0;
  for (let at = 0; at < lines.length; at++) {
    if (startsWithDot(lines, at)) wire[to++] = DOT;
    wire[to++] = lines[at] ?? 0;
  }
  wire.set([DOT, CR, LF], to);
  return wire;
}

function startsWithDot(lines: Uint8Array, at: number): boolean {
  return lines[at] === DOT && (at === 0 || lines[at - 1] === LF);
}
