/**
 * The file of a table of recipients (recipients/table-layout.ts): verified at the start, and again when it is
 * replaced. One that can't be used never replaces a good one; that is told once. Nor does one without any
 * address, by which everybody would be refused: whoever was to write its text has failed. One that is written
 * into, instead of being replaced, says nothing of use: mail is deferred until another takes its place. A
 * look-up reads one or two buckets, which lie in the system's cache, and holds nothing in memory.
 */
import { hash } from 'node:crypto';
import { close, closeSync, fstatSync, openSync, readSync } from 'node:fs';
import { errorText } from '../../base/error-text.js';
import { OnceInAWhile } from '../../base/once-in-a-while.js';
import { crc32 } from '../../platform/node/checksum.js';
import { stampOf } from '../../platform/node/changing-files.js';
import { inSteps } from '../../platform/node/in-steps.js';
import type { Clock, EventLog } from '../../platform/ports.js';
import type { Listing, RecipientTable } from './recipients/listing.js';
import {
  BUCKET_BYTES, HEAD_BYTES_MAX, HEAD_FIXED_BYTES, MAGIC, bucketOf, bucketsAt, findIn, hasRunOver, routeIn,
  textIn,
} from './recipients/table-layout.js';
import type { TableHead } from './recipients/table-layout.js';

const LOOK_MS = 1000;
/** Clients bring it about. */
const TOLD_EVERY_MS = 10_000;
/** A key that ran over is in the next bucket nearly always. */
const READ_BYTES = 2 * BUCKET_BYTES;
/** Some 0.2 ms of a turn. */
const VERIFIED_BYTES = 256 * 1024;
const TEXT_LENGTH_BYTES = 4;
const TEXT_BYTES_MAX = 1024 * 1024;
const IN_PLACE: Listing = { route: '', to: [] };

/** An open table. Throws an Error that names the file. */
export class TableFile implements RecipientTable {
  readonly head: TableHead;
  readonly #file: string;
  #fd: number;
  readonly #seed: Buffer;
  readonly #bucketsAt: number;
  readonly #listings: readonly Listing[];
  readonly #openedAs: string;
  readonly #bytes = Buffer.alloc(READ_BYTES);
  readonly #view = new DataView(this.#bytes.buffer, this.#bytes.byteOffset, READ_BYTES);

  constructor(file: string) {
    this.#file = file;
    try {
      this.#fd = openSync(file, 'r');
    } catch (error) {
      throw new Error(`'${file}' can't be read: ${(error as NodeJS.ErrnoException).code ?? String(error)}`);
    }
    try {
      const fixed = this.#read(0, HEAD_FIXED_BYTES);
      const headBytes = fixed.readUInt32LE(8);
      if (fixed.toString('latin1', 0, 8) !== MAGIC || headBytes > HEAD_BYTES_MAX) {
        throw this.#damaged('it is no table; twinpost table build makes one');
      }
      const text = this.#read(HEAD_FIXED_BYTES, headBytes);
      if (crc32(text, 0) !== fixed.readUInt32LE(12)) throw this.#damaged('the checksum of its head is wrong');
      this.head = JSON.parse(text.toString('utf8')) as TableHead;
      this.#bucketsAt = bucketsAt(headBytes);
      if (this.head.entries === 0) throw this.#damaged('it has no address in it');
      if (fstatSync(this.#fd).size !== this.#endAt) throw this.#damaged('it is cut off');
    } catch (error) {
      closeSync(this.#fd);
      throw error;
    }
    this.#openedAs = this.#stamp();
    this.#seed = Buffer.from(this.head.seed, 'base64');
    this.#listings = this.head.routes.map((route) => ({ route, to: [] }));
  }

  /** Reads all of it, step by step: between two of them others may have their turn. */
  *verify(): Generator<undefined, void> {
    let checksum = 0;
    // One for all steps: a new one each would be collected, some of it in turns of over 20 ms.
    const bytes = Buffer.alloc(VERIFIED_BYTES);
    for (let at = this.#bucketsAt; at < this.#endAt; at += VERIFIED_BYTES) {
      const part = bytes.subarray(0, Math.min(VERIFIED_BYTES, this.#endAt - at));
      checksum = crc32(this.#readInto(part, at), checksum);
      yield undefined;
    }
    if (checksum !== this.head.checksum) throw this.#damaged('its checksum is wrong');
  }

  find(key: string): Listing | undefined {
    const digest = digestOf(this.#seed, key);
    const { buckets } = this.head;
    let bucket = bucketOf(digest, buckets);
    for (let passed = 0; passed < buckets;) {
      const count = Math.min(2, buckets - bucket);
      passed += count;
      const bytes = count * BUCKET_BYTES;
      const got = readSync(this.#fd, this.#bytes, 0, bytes, this.#bucketsAt + bucket * BUCKET_BYTES);
      if (got !== bytes) throw this.#damaged('it is cut off');
      for (let i = 0; i < count; i++) {
        const value = findIn(this.#view, i * BUCKET_BYTES, digest);
        if (value >= 0) return this.#listingOf(value);
        if (!hasRunOver(this.#view, i * BUCKET_BYTES)) return this.#none();
      }
      bucket = (bucket + count) % buckets;
    }
    return this.#none();
  }

  /**
   * In another thread: whoever closes a replaced file last gives back all its pages of the system's cache,
   * with ten million addresses 10 to 20 ms of a turn.
   */
  close(): void {
    const fd = this.#fd;
    // Its number may be another file's soon.
    this.#fd = -1;
    close(fd, nothing);
  }

  /** Nobody is refused by a file that somebody writes into, instead of replacing it. */
  #none(): undefined {
    if (this.isWrittenInto) throw this.#damaged('it is written into; replace it by a rename');
    return undefined;
  }

  get isWrittenInto(): boolean {
    return this.#stamp() !== this.#openedAs;
  }

  #stamp(): string {
    const { mtimeMs, size } = fstatSync(this.#fd);
    return `${String(mtimeMs)} ${String(size)}`;
  }

  get #endAt(): number {
    return this.#textsAt + this.head.textBytes;
  }

  get #textsAt(): number {
    return this.#bucketsAt + this.head.buckets * BUCKET_BYTES;
  }

  #listingOf(value: number): Listing {
    const route = routeIn(value);
    if (route >= 0) return this.#listings[route] ?? IN_PLACE;
    const textAt = textIn(value);
    if (textAt < 0) return IN_PLACE;
    const length = this.#read(this.#textsAt + textAt, TEXT_LENGTH_BYTES).readUInt32LE(0);
    if (length > TEXT_BYTES_MAX) throw this.#damaged('an alias is longer than any');
    const text = this.#read(this.#textsAt + textAt + TEXT_LENGTH_BYTES, length).toString('utf8');
    return { route: '', to: text.split(',') };
  }

  #read(at: number, length: number): Buffer {
    return this.#readInto(Buffer.alloc(length), at);
  }

  #readInto(bytes: Buffer, at: number): Buffer {
    const got = readSync(this.#fd, bytes, 0, bytes.length, at);
    if (got !== bytes.length) throw this.#damaged('it is cut off');
    return bytes;
  }

  #damaged(what: string): Error {
    return new Error(`'${this.#file}': ${what}`);
  }
}

function nothing(): void {
  // Of a file that was only read there is nothing to lose.
}

/** SHA-256 of the file's seed and the key. */
export function digestOf(seed: Uint8Array, key: string): DataView {
  const text = Buffer.from(key, 'utf8');
  const keyed = Buffer.allocUnsafe(seed.length + text.length);
  keyed.set(seed, 0);
  keyed.set(text, seed.length);
  const digest = hash('sha256', keyed, 'buffer');
  return new DataView(digest.buffer, digest.byteOffset, digest.length);
}

/** Opens and verifies, in many turns; throws an Error that names the file. */
export async function openTable(file: string): Promise<TableFile> {
  const table = new TableFile(file);
  try {
    await inSteps(table.verify());
  } catch (error) {
    table.close();
    throw error;
  }
  return table;
}

/** Verifies at once; throws an Error that names the file. */
export function checkTable(file: string): void {
  const table = new TableFile(file);
  try {
    const steps = table.verify();
    while (steps.next().done !== true);
  } finally {
    table.close();
  }
}

/** The table in force, and the end of looking after its file. */
export interface RunningTable {
  readonly table: RecipientTable;
  close(): void;
}

export interface TablePorts {
  readonly clock: Clock;
  readonly log: EventLog;
  /**
   * `isStale`: what is on disk can't be used, and what was read before stays. `deferredBy` other than '':
   * neither does that, for this reason, so mail is deferred.
   */
  readonly onRead: (isStale: boolean, deferredBy: string) => void;
}

/** The file was verified before; throws an Error that names it. */
export function followTable(file: string, { clock, log, onRead }: TablePorts): RunningTable {
  let stamp = stampOf(file);
  let current = new TableFile(file);
  let isOpening = false;
  let isClosed = false;
  const telling = new OnceInAWhile(TOLD_EVERY_MS);
  onRead(false, '');
  const timer = setInterval(() => {
    const now = stampOf(file);
    if (now === stamp || isOpening) return;
    stamp = now;
    isOpening = true;
    openTable(file).then((table) => {
      if (isClosed) return table.close();
      current.close();
      current = table;
      onRead(false, '');
      log.info('recipients', 'the table of recipients was read anew', { entries: table.head.entries });
    }, (error: unknown) => {
      if (isClosed) return;
      const why = errorText(error);
      const isLost = current.isWrittenInto;
      onRead(true, isLost ? why : '');
      const so = isLost ? 'the old one was written into: mail is deferred' : 'the old one stays';
      log.error('recipients', `the new table of recipients can't be used, ${so}`, { why });
    }).finally(() => { isOpening = false; });
  }, LOOK_MS).unref();
  const find = (key: string): ReturnType<RecipientTable['find']> => {
    try {
      return current.find(key);
    } catch (error) {
      const why = errorText(error);
      if (telling.isDue(clock.nowMs())) {
        if (current.isWrittenInto) onRead(true, why);
        log.error('recipients', 'the table of recipients can\'t be read, mail is deferred', { why });
      }
      throw error;
    }
  };
  return {
    table: { find },
    close: () => {
      clearInterval(timer);
      isClosed = true;
      current.close();
    },
  };
}
