/**
 * Message contents made before the run, so that sending one is a copy: everything below the marks
 * (load/marks.ts), ready for the wire. Owned by one run.
 */
import { crc32 } from 'node:zlib';

import { wireContent, withLineEnds } from '../smtp/content-lines.js';
import type { MixPart } from './options.js';

/** One content below the marks. */
export interface Content {
  /** Dot-stuffed, with the final dot. */
  readonly wire: Uint8Array;
  /** CRC-32 of the content as it will arrive: not dot-stuffed, no final dot. */
  readonly crc: number;
  /** Length of what `crc` covers. */
  readonly bytes: number;
  readonly weight: number;
}

const LINE_BYTES = 76;
const WORDS =
  'the mail that was taken must arrive once in order and as it was sent even when a machine dies ';
const CARRIAGE_RETURN = 0x0d;

/** Contents of the sizes in the mix. `marksBytes` is what the marks take of each. */
export function contentsOfMix(mix: readonly MixPart[], marksBytes: number): Content[] {
  return mix.map((part) => prepare(generated(part.bytes - marksBytes), part.weight));
}

/** Contents of .eml files, each with the weight 1. */
export function contentsOfFiles(files: readonly Buffer[]): Content[] {
  return files.map((file) => prepare(withLineEnds(file), 1));
}

function prepare(lines: Uint8Array, weight: number): Content {
  return { wire: wireContent(lines), crc: crc32(lines), bytes: lines.length, weight };
}

/** A header and lines of words, `bytes` long if the header leaves room. */
function generated(bytes: number): Buffer {
  const header =
    'From: Load <load@client.example>\r\nTo: recipients:;\r\nSubject: load\r\n' +
    'Date: Thu, 01 Jan 2026 00:00:00 +0000\r\n\r\n';
  const content = Buffer.alloc(Math.max(bytes, header.length + 3), WORDS, 'latin1');
  content.write(header, 0, 'latin1');
  for (let at = header.length + LINE_BYTES; at < content.length - 3; at += LINE_BYTES + 2) {
    content.write('\r\n', at);
  }
  content.write('\r\n', content.length - 2);
  // The last CRLF may have cut the one before it to a lone CR.
  if (content[content.length - 3] === CARRIAGE_RETURN) content.write('x', content.length - 3, 'latin1');
  return content;
}
