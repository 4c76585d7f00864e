/**
 * The marks: header lines that `send` puts on top of each message so that `sink` can tell, at the far end
 * of any chain of mail servers, whether it is lost, repeated, altered or out of order.
 *
 *     X-Twinpost-Hash: 0a1b2c3d          CRC-32, 8 hex digits: of all that follows the block, continued
 *                                        over the bytes of the block after this line
 *     X-Twinpost-Run: 5f3a9c01           which call of `send`
 *     X-Twinpost-Id: 0000000042          unique within the run, the same when a message is sent again
 *     X-Twinpost-Queue: a.example        domain of the recipient
 *     X-Twinpost-Serial: 0000000007      counts the messages of this queue: 1, 2, 3 …
 *     (the message's own header and body)
 *
 * Servers on the way only add lines above the block (trace headers, RFC 5321 4.4), so the hash covers
 * every byte that must arrive unchanged. The rest comes first in the hash so that `send` computes the CRC
 * of a body once and continues it over the 100 bytes that differ.
 * A sender may say run and id in the envelope as well, as ENVID=5f3a9c01.42 (RFC 3461 4.4): it goes with the
 * message to servers that offer DSN, and says which message a mail transaction was for that had no content.
 * Not here: what is concluded from the marks (sink/verify.ts).
 */
import { crc32 } from 'node:zlib';

const HASH = Buffer.from('X-Twinpost-Hash: ', 'latin1');
const RUN = Buffer.from('\r\nX-Twinpost-Run: ', 'latin1');
const ID = Buffer.from('\r\nX-Twinpost-Id: ', 'latin1');
const QUEUE = Buffer.from('\r\nX-Twinpost-Queue: ', 'latin1');
const SERIAL = Buffer.from('\r\nX-Twinpost-Serial: ', 'latin1');
const END_OF_HEADER = Buffer.from('\r\n\r\n', 'latin1');

const HASH_DIGITS = 8;
const NUMBER_DIGITS = 10;
/**
 * Longest run id or queue name that is looked for; a domain name has at most 255 octets (RFC 5321 4.5.3.1.2).
 */
const NAME_BYTES_MAX = 255;
/** Trace headers above the block are searched no further than this, so that unmarked mail costs little. */
const SEARCH_BYTES_MAX = 64 * 1024;

const LINE_FEED = 0x0a;
const CARRIAGE_RETURN = 0x0d;
const ZERO = 0x30;

/** What the marks of one message say, and where they stand. A parser fills one object again and again. */
export interface Marks {
  run: string;
  id: number;
  queue: string;
  serial: number;
  /** The hash that the sender wrote. */
  hash: number;
  /** The hash of what arrived. */
  actualHash: number;
}

export function emptyMarks(): Marks {
  return { run: '', id: 0, queue: '', serial: 0, hash: 0, actualHash: 0 };
}

/** A block for one queue with gaps to fill: copied, then stamped, for each message. */
export class MarkTemplate {
  readonly bytes: Buffer;
  readonly #idAt: number;
  readonly #serialAt: number;

  constructor(run: string, queue: string) {
    const zeros = '0'.repeat(NUMBER_DIGITS);
    const upToId = `X-Twinpost-Hash: 00000000\r\nX-Twinpost-Run: ${run}\r\nX-Twinpost-Id: `;
    const upToSerial = `${upToId}${zeros}\r\nX-Twinpost-Queue: ${queue}\r\nX-Twinpost-Serial: `;
    this.bytes = Buffer.from(`${upToSerial}${zeros}\r\n`, 'latin1');
    this.#idAt = upToId.length;
    this.#serialAt = upToSerial.length;
  }

  /** Writes the block at `at`; restCrc is the CRC-32 of everything that follows it. Returns the hash. */
  stamp(target: Uint8Array, at: number, id: number, serial: number, restCrc: number): number {
    this.bytes.copy(target, at);
    writeDecimal(target, at + this.#idAt, id);
    writeDecimal(target, at + this.#serialAt, serial);
    const hashed = target.subarray(at + HASH.length + HASH_DIGITS, at + this.bytes.length);
    const hash = crc32(hashed, restCrc);
    writeHex(target, at + HASH.length, hash);
    return hash;
  }
}

/** The envelope id of a message. */
export function envidOf(run: string, id: number): string {
  return `${run}.${id}`;
}

/** Reads an envelope id into run and id of `into`; the rest of it is empty. False when it is none of ours. */
export function readEnvid(envid: string, into: Marks): boolean {
  const match = /^([A-Za-z0-9._-]+)\.(\d{1,10})$/.exec(envid);
  if (match === null) return false;
  Object.assign(into, emptyMarks(), { run: match[1] ?? '', id: Number(match[2]) });
  return true;
}

/** Reads the marks in the header of `content` into `into`. False when there are none. */
export function readMarks(content: Buffer, into: Marks): boolean {
  const at = content.indexOf(HASH);
  if (at < 0 || at > SEARCH_BYTES_MAX) return false;
  if (at > 0 && content[at - 1] !== LINE_FEED) return false;
  if (at > 0 && content.subarray(0, at).includes(END_OF_HEADER)) return false;
  return readBlock(content, at, into);
}

/** Reads marks wherever they stand: a DSN quotes the header of the message that it reports. */
export function findQuotedMarks(content: Buffer, into: Marks): boolean {
  const at = content.indexOf(HASH);
  return at >= 0 && readBlock(content, at, into);
}

function readBlock(content: Buffer, at: number, into: Marks): boolean {
  const hashAt = at + HASH.length;
  const runAt = after(content, RUN, hashAt + HASH_DIGITS);
  const idAt = after(content, ID, lineEnd(content, runAt));
  const queueAt = after(content, QUEUE, idAt < 0 ? -1 : idAt + NUMBER_DIGITS);
  const serialAt = after(content, SERIAL, lineEnd(content, queueAt));
  const end = serialAt + NUMBER_DIGITS + 2;
  if (serialAt < 0 || end > content.length) return false;
  const hash = readHex(content, hashAt);
  const id = readDecimal(content, idAt);
  const serial = readDecimal(content, serialAt);
  if (hash < 0 || id < 0 || serial < 0) return false;
  into.hash = hash;
  into.id = id;
  into.serial = serial;
  into.run = content.toString('latin1', runAt, lineEnd(content, runAt));
  into.queue = content.toString('latin1', queueAt, lineEnd(content, queueAt));
  into.actualHash = crc32(content.subarray(hashAt + HASH_DIGITS, end), crc32(content.subarray(end)));
  return true;
}

/** The offset behind `label` if it stands exactly at `at`, else -1. */
function after(content: Buffer, label: Buffer, at: number): number {
  if (at < 0 || at + label.length > content.length) return -1;
  return label.compare(content, at, at + label.length) === 0 ? at + label.length : -1;
}

function lineEnd(content: Buffer, from: number): number {
  if (from < 0) return -1;
  const most = Math.min(content.length, from + NAME_BYTES_MAX);
  for (let at = from; at < most; at++) if (content[at] === CARRIAGE_RETURN) return at;
  return -1;
}

function writeDecimal(target: Uint8Array, at: number, value: number): void {
  let rest = value;
  for (let digit = at + NUMBER_DIGITS - 1; digit >= at; digit--) {
    const next = Math.floor(rest / 10);
    target[digit] = ZERO + (rest - next * 10);
    rest = next;
  }
}

function readDecimal(content: Buffer, at: number): number {
  let value = 0;
  for (let digit = at; digit < at + NUMBER_DIGITS; digit++) {
    const figure = (content[digit] ?? 0) - ZERO;
    if (figure < 0 || figure > 9) return -1;
    value = value * 10 + figure;
  }
  return value;
}

const HEX = Buffer.from('0123456789abcdef', 'latin1');

function writeHex(target: Uint8Array, at: number, value: number): void {
  for (let digit = 0; digit < HASH_DIGITS; digit++) {
    target[at + digit] = HEX[(value >>> (28 - 4 * digit)) & 15] ?? ZERO;
  }
}

function readHex(content: Buffer, at: number): number {
  let value = 0;
  for (let digit = at; digit < at + HASH_DIGITS; digit++) {
    const figure = HEX.indexOf(content[digit] ?? 0);
    if (figure < 0) return -1;
    value = value * 16 + figure;
  }
  return value;
}
