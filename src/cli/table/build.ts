/**
 * Makes the file of a table of recipients (gateway/inbound/recipients/table-layout.ts) out of a text, a line
 * an address. The text is read twice, in pieces: its lines are counted, then each goes into its place; and
 * once more where it has aliases, which may lead nowhere (warnings.ts). The
 * file appears whole under its name or not at all, so that gateways may use that name all the time.
 */
import { randomBytes } from 'node:crypto';
import {
  closeSync, fchmodSync, fchownSync, fsyncSync, openSync, readSync, renameSync, rmSync, statSync, writeSync,
} from 'node:fs';
import { StringDecoder } from 'node:string_decoder';
import { errorText } from '../../base/error-text.js';
import { parsePath, normalizeDomain } from '../../smtp/address.js';
import { digestOf } from '../../gateway/inbound/recipients-file.js';
import { ALIAS_TARGETS_MAX, domainKey, tableKey } from '../../gateway/inbound/recipients/listing.js';
import {
  BUCKET_BYTES, ENTRIES_MAX, HEAD_FIXED_BYTES, MAGIC, SEED_BYTES, aliasValue, bucketOf, bucketsAt, bucketsFor,
  findIn, hasRunOver, markRunOver, putInto, routeValue,
} from '../../gateway/inbound/recipients/table-layout.js';
import { crc32 } from '../../platform/node/checksum.js';
import { toAscii } from '../../platform/node/idna.js';
import { AliasJudge } from './warnings.js';

const PIECE_BYTES = 1024 * 1024;
const LINE_CHARACTERS_MAX = 1024 * 1024;
const WRITTEN_BYTES = 16 * 1024 * 1024;
const ROUTE_NAMES_MAX = 2048;
/** The others are counted. */
const WARNINGS_MAX = 20;
const ERRORS_MAX = 20;
const NO_WARNINGS: Pick<TableReport, 'warnings' | 'nowhere'> = { warnings: [], nowhere: 0 };
/** Seldom enough to cost nothing, often enough for who waits. */
const TOLD_EVERY_LINES = 10_000;

export interface TableReport {
  readonly entries: number;
  readonly aliases: number;
  readonly routes: number;
  readonly bytes: number;
  /** Aliases that lead nowhere, a line each, the first of them; and how many there are. */
  readonly warnings: readonly string[];
  readonly nowhere: number;
}

/** What is wrong with a text, and in which lines of it: the first of them, a line of the message each. */
export class TableTextError extends Error {}

/** Throws TableTextError for wrong lines, and what the file system says. */
export function buildTable(
  input: string, output: string, onProgress: (done: number, all: number) => void,
): TableReport {
  let lines = 0;
  eachLine(input, (text) => { if (isEntry(text)) lines += 1; });
  // What was to write the text has failed, and everybody would be refused (recipients-file.ts).
  if (lines === 0) throw new TableTextError('expected addresses, one a line, found none');
  if (lines > ENTRIES_MAX) {
    throw new TableTextError(`expected at most ${String(ENTRIES_MAX)} addresses, found ${String(lines)}`);
  }
  const table = new TableBuilder(lines);
  const wrong: string[] = [];
  let wrongLines = 0;
  eachLine(input, (text, line) => {
    if (line % TOLD_EVERY_LINES === 0) onProgress(table.entries, lines);
    if (!isEntry(text)) return;
    try {
      table.add(text);
    } catch (error) {
      if (wrongLines++ < ERRORS_MAX) wrong.push(`line ${String(line)}: ${errorText(error)}`);
    }
  });
  if (wrongLines > ERRORS_MAX) wrong.push(`${String(wrongLines - ERRORS_MAX)} more lines are wrong`);
  if (wrongLines > 0) throw new TableTextError(wrong.join('\n'));
  const report = table.write(output);
  return { ...report, ...(report.aliases === 0 ? NO_WARNINGS : warningsOf(input, output, table.domains)) };
}

/** The aliases of the text, each followed in the table that is there now. */
function warningsOf(
  input: string, output: string, domains: Iterable<string>,
): Pick<TableReport, 'warnings' | 'nowhere'> {
  const judge = new AliasJudge(output, domains);
  const warnings: string[] = [];
  let nowhere = 0;
  try {
    eachLine(input, (text, line) => {
      const [address = '', word = ''] = text.split(/[ \t]+/);
      if (!isEntry(text) || !word.startsWith('to=')) return;
      const why = judge.whyNowhere(address, word.slice(3).split(','));
      if (why === '') return;
      nowhere += 1;
      const where = `line ${String(line)}: warning: '${address}' leads nowhere`;
      if (nowhere <= WARNINGS_MAX) warnings.push(`${where}: ${why}`);
    });
  } finally {
    judge.close();
  }
  return { warnings, nowhere };
}

function isEntry(text: string): boolean {
  return text !== '' && !text.startsWith('#');
}

class TableBuilder {
  entries = 0;
  /** Of its entries. */
  readonly domains = new Set<string>();
  readonly #seed = randomBytes(SEED_BYTES);
  readonly #buckets: number;
  readonly #bytes: Buffer;
  readonly #view: DataView;
  readonly #routes = new Map<string, number>();
  readonly #texts: Buffer[] = [];
  #textBytes = 0;

  constructor(entries: number) {
    this.#buckets = bucketsFor(entries);
    this.#bytes = Buffer.alloc(this.#buckets * BUCKET_BYTES);
    this.#view = new DataView(this.#bytes.buffer, this.#bytes.byteOffset, this.#bytes.length);
  }

  /** Throws an Error that says what is wrong with the line. */
  add(text: string): void {
    const [address = '', ...words] = text.split(/[ \t]+/);
    const key = keyOf(address);
    const digest = digestOf(this.#seed, key);
    const at = this.#freeBucket(digest, key);
    if (!putInto(this.#view, at, digest, this.#valueOf(words))) throw new Error('its bucket is full');
    this.entries += 1;
    this.domains.add(key.slice(key.lastIndexOf('@') + 1));
  }

  write(output: string): Omit<TableReport, 'warnings' | 'nowhere'> {
    const texts = Buffer.concat(this.#texts);
    const head = Buffer.from(JSON.stringify({
      seed: this.#seed.toString('base64'), entries: this.entries, buckets: this.#buckets,
      textBytes: texts.length, routes: [...this.#routes.keys()],
      checksum: crc32(texts, crc32(this.#bytes, 0)),
    }));
    const start = Buffer.alloc(bucketsAt(head.length));
    start.write(MAGIC, 0, 'latin1');
    start.writeUInt32LE(head.length, 8);
    start.writeUInt32LE(crc32(head, 0), 12);
    head.copy(start, HEAD_FIXED_BYTES);
    writeWhole(output, [start, this.#bytes, texts]);
    const bytes = start.length + this.#bytes.length + texts.length;
    return { entries: this.entries, aliases: this.#texts.length, routes: this.#routes.size, bytes };
  }

  /** The first bucket of the key's chain that has a place. */
  #freeBucket(digest: DataView, key: string): number {
    for (let bucket = bucketOf(digest, this.#buckets); ; bucket = (bucket + 1) % this.#buckets) {
      const at = bucket * BUCKET_BYTES;
      if (findIn(this.#view, at, digest) >= 0) throw new Error(`'${key}' stands there twice`);
      // Nothing is taken out of a table while it is built: what ran over once is full.
      if (!hasRunOver(this.#view, at) && !isFull(this.#view, at)) return at;
      markRunOver(this.#view, at);
    }
  }

  #valueOf(words: readonly string[]): number {
    const [word, ...more] = words;
    if (word === undefined) return 0;
    if (more.length > 0) {
      throw new Error(`expected one of route=NAME and to=ADDRESS,…, found '${words.join(' ')}'`);
    }
    if (word.startsWith('route=') && word.length > 6) return routeValue(this.#routeNumber(word.slice(6)));
    if (word.startsWith('to=')) return this.#alias(word.slice(3).split(','));
    throw new Error(`expected route=NAME or to=ADDRESS,…, found '${word}'`);
  }

  #routeNumber(name: string): number {
    const known = this.#routes.get(name);
    if (known !== undefined) return known;
    if (this.#routes.size >= ROUTE_NAMES_MAX) {
      throw new Error(`expected at most ${String(ROUTE_NAMES_MAX)} names of routes`);
    }
    this.#routes.set(name, this.#routes.size);
    return this.#routes.size - 1;
  }

  #alias(targets: readonly string[]): number {
    if (targets.length > ALIAS_TARGETS_MAX) {
      throw new Error(`expected at most ${String(ALIAS_TARGETS_MAX)} addresses of an alias`);
    }
    for (const target of targets) {
      if (target.startsWith('@')) throw new Error(`expected an address, found '${target}'`);
      keyOf(target);
    }
    const text = Buffer.from(targets.join(','), 'utf8');
    const padded = Buffer.alloc(4 + Math.ceil(text.length / 4) * 4);
    padded.writeUInt32LE(text.length, 0);
    text.copy(padded, 4);
    this.#texts.push(padded);
    const at = this.#textBytes;
    this.#textBytes += padded.length;
    return aliasValue(at);
  }
}

function isFull(view: DataView, at: number): boolean {
  const last = at + BUCKET_BYTES - 16;
  return view.getUint32(last, true) !== 0 || view.getUint32(last + 4, true) !== 0;
}

/** Throws an Error that says what is wrong with the address. */
function keyOf(address: string): string {
  if (address.startsWith('@')) {
    const domain = normalizeDomain(address.slice(1), toAscii);
    if (domain === '') throw new Error(`expected a domain behind @, found '${address}'`);
    return domainKey(domain);
  }
  const path = parsePath(`<${address}>`, 0, toAscii);
  if (typeof path === 'string') throw new Error(`expected an address, found '${address}': ${path}`);
  if (path.domain === '' || address.includes(',')) {
    throw new Error(`expected an address with its domain, found '${address}'`);
  }
  return tableKey(path.address, path.domain);
}

/** Lines without their ends and outer blanks, numbered from 1. */
function eachLine(file: string, take: (text: string, line: number) => void): void {
  const fd = openSync(file, 'r');
  try {
    const decoder = new StringDecoder('utf8');
    const piece = Buffer.alloc(PIECE_BYTES);
    let rest = '';
    let line = 0;
    for (;;) {
      const count = readSync(fd, piece, 0, PIECE_BYTES, null);
      const text = count > 0 ? decoder.write(piece.subarray(0, count)) : decoder.end();
      const lines = (rest + text).split('\n');
      rest = count > 0 ? (lines.pop() ?? '') : '';
      for (const each of lines) take(each.trim(), line += 1);
      if (count === 0) return;
      if (rest.length > LINE_CHARACTERS_MAX) {
        throw new TableTextError(`line ${String(line + 1)}: it is longer than any`);
      }
    }
  } finally {
    closeSync(fd);
  }
}

function writeWhole(output: string, parts: readonly Buffer[]): void {
  const temporary = `${output}.${String(process.pid)}.new`;
  try {
    const fd = openSync(temporary, 'wx', 0o640);
    keepRights(fd, output);
    try {
      for (const part of parts) {
        for (let at = 0; at < part.length; ) {
          at += writeSync(fd, part, at, Math.min(WRITTEN_BYTES, part.length - at));
        }
      }
      fsyncSync(fd);
    } finally {
      closeSync(fd);
    }
    renameSync(temporary, output);
  } catch (error) {
    rmSync(temporary, { force: true });
    throw error;
  }
}

/** Whoever could read the table that is replaced can read the new one. */
function keepRights(fd: number, output: string): void {
  const before = statSync(output, { throwIfNoEntry: false });
  if (before === undefined) return;
  fchmodSync(fd, before.mode & 0o777);
  try {
    fchownSync(fd, before.uid, before.gid);
  } catch {
    // Only root may give files away: then it is ours, with the same rights.
  }
}
