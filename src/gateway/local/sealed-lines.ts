/**
 * Lines of a file of state_dir that each prove that they are whole: CRC-32 of the rest, eight hexadecimal
 * digits, a space, the rest. Latin-1, so that bytes are characters.
 */
import { createReadStream } from 'node:fs';
import { crc32 } from '../../platform/node/checksum.js';

export interface LineBounds {
  /** A longer one comes as an empty one. */
  readonly lineCharactersMax: number;
  /** What stands behind it is not read. */
  readonly fileBytesMax: number;
}

/** With its end. */
export function sealedLine(rest: string): string {
  return `${sumOf(rest)} ${rest}\n`;
}

/** The rest of it; undefined: it is damaged. */
export function unsealed(line: string): string | undefined {
  const space = line.indexOf(' ');
  const rest = line.slice(space + 1);
  return space === 8 && line.slice(0, space) === sumOf(rest) ? rest : undefined;
}

/** Whether the file ends without the end of a line. */
export async function eachLine(
  file: string, { lineCharactersMax, fileBytesMax }: LineBounds, onLine: (line: string) => void,
): Promise<boolean> {
  let held = '';
  let isTooLong = false;
  for await (const piece of createReadStream(file, { encoding: 'latin1', end: fileBytesMax })) {
    const lines = (held + String(piece)).split('\n');
    held = lines.pop() ?? '';
    for (const line of lines) {
      onLine(isTooLong ? '' : line);
      isTooLong = false;
    }
    if (held.length <= lineCharactersMax) continue;
    held = '';
    isTooLong = true;
  }
  return held !== '' || isTooLong;
}

function sumOf(text: string): string {
  return crc32(Buffer.from(text, 'latin1'), 0).toString(16).padStart(8, '0');
}
