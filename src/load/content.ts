/**
 * Message contents made before the run, so that sending one is a copy: everything below the marks
 * (load/marks.ts), ready for the wire. Owned by one run.
 */
import { crc32 } from 'node:zlib';

import type { MixPart } from './options.js';

/** One content below the marks. */
export interface Content {
  /** Dot-stuffed (RFC 5321 4.5.2), with the final CRLF.CRLF. */
  readonly wire: Buffer;
  /** CRC-32 of the content as it will arrive: not dot-stuffed, no final dot. */
  readonly crc: number;
  /** Length of what `crc` covers. */
  readonly bytes: number;
  readonly weight: number;
}

const LINE_BYTES = 76;
const WORDS = 'the mail that was taken must arrive once in order and as it was sent even when a machine dies ';
const END_OF_MESSAGE = Buffer.from('\r\n.\r\n', 'latin1');
const LINE_FEED = 0x0a;
const CARRIAGE_RETURN = 0x0d;
const DOT = 0x2e;

/** Contents of the sizes in the mix. `marksBytes` is what the marks take of each. */
export function contentsOfMix(mix: readonly MixPart[], marksBytes: number): Content[] {
  return mix.map((part) => prepare(generated(part.bytes - marksBytes), part.weight));
}

/** Contents of .eml files, each with the weight 1. */
export function contentsOfFiles(files: readonly Buffer[]): Content[] {
  return files.map((file) => prepare(withCrlf(file), 1));
}

function prepare(content: Buffer, weight: number): Content {
  const whole = endsWithCrlf(content) ? content : Buffer.concat([content, Buffer.from('\r\n')]);
  const stuffed = dotStuffed(whole);
  const wire = Buffer.concat([stuffed.subarray(0, stuffed.length - 2), END_OF_MESSAGE]);
  return { wire, crc: crc32(whole), bytes: whole.length, weight };
}

/** A header and lines of words, `bytes` long if the header leaves room. */
function generated(bytes: number): Buffer {
  const header =
    'From: Load <load@client.example>\r\nTo: recipients:;\r\nSubject: load\r\n' +
    'Date: Thu, 01 Jan 2026 00:00:00 +0000\r\n\r\n';
  const content = Buffer.alloc(Math.max(bytes, header.length + 3), WORDS, 'latin1');
  content.write(header, 0, 'latin1');
  for (let at = header.length + LINE_BYTES; at < content.length - 3; at += LINE_BYTES + 2) content.write('\r\n', at);
  content.write('\r\n', content.length - 2);
  // The last CRLF may have cut the one before it to a lone CR.
  if (content[content.length - 3] === CARRIAGE_RETURN) content.write('x', content.length - 3, 'latin1');
  return content;
}

function endsWithCrlf(content: Buffer): boolean {
  return content.length >= 2 && content[content.length - 2] === CARRIAGE_RETURN && content[content.length - 1] === LINE_FEED;
}

/** Bare LF made CRLF (RFC 5321 2.3.8); CRLF stays. */
export function withCrlf(content: Buffer): Buffer {
  return insertBefore(content, CARRIAGE_RETURN, (at) => content[at] === LINE_FEED && content[at - 1] !== CARRIAGE_RETURN);
}

/** A dot put before each line that starts with one. */
export function dotStuffed(content: Buffer): Buffer {
  return insertBefore(content, DOT, (at) => content[at] === DOT && (at === 0 || content[at - 1] === LINE_FEED));
}

function insertBefore(content: Buffer, byte: number, where: (at: number) => boolean): Buffer {
  let inserts = 0;
  for (let at = 0; at < content.length; at++) if (where(at)) inserts++;
  if (inserts === 0) return content;
  const result = Buffer.allocUnsafe(content.length + inserts);
  let to = 0;
  for (let at = 0; at < content.length; at++) {
    if (where(at)) result[to++] = byte;
    result[to++] = content[at] ?? 0;
  }
  return result;
}
