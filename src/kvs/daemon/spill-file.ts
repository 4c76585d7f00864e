/**
 * The spill file of a store on disk: written when it stops, read when it starts. What is in it:
 * protocol/spill-records.ts.
 *
 *   stop    FILE.tmp ─ all records, fsync ─► renamed to FILE, folder fsynced
 *   start   none ──────────────────────────► a new boot, empty
 *           FILE ─ sound and whole ────────► FILE.used, folder fsynced, before the first connection is
 *                                            taken: it speaks for one successor, the same boot
 *           FILE ─ anything wrong, a copy, used before (spill-origin.ts)
 *                                  ────────► the store does not start and says what to do; the file stays
 *
 * Anything else than going on with a file that is there would lose mail in silence: its copies may be the
 * last. FILE.used of the time before is replaced. Both are written and read in pieces of about a megabyte.
 * Only who has the lock (state-lock.ts) may do any of it.
 */

import { renameSync } from 'node:fs';
import { open, rename } from 'node:fs/promises';
import type { FileHandle } from 'node:fs/promises';
import path from 'node:path';
import { makeFolder } from '../../platform/node/make-folder.js';
import { syncFolder } from '../../platform/node/sync-folder.js';
import type { Clock, Crc32, EventLog, Packer } from '../../platform/ports.js';
import { InvalidMessage } from '../../protocol/invalid.js';
import type { SpillHead } from '../../protocol/spill-records.js';
import { RECORD_HEADER_BYTES, isRecordSound, readRecordHeader } from '../../protocol/spill-records.js';
import { RULE_NO_MEMORY, SpillLoader } from '../core/spill/loader.js';
import { SpillWriter } from '../core/spill/writer.js';
import type { Store } from '../core/store.js';
import { bornNsOf, markUnused, markUsed, requireOwnFile, spillFileAt } from './spill-origin.js';
import { StoreStartError } from './store-start-error.js';

/** Reading and writing that take longer say how far they are. */
const PROGRESS_MS = 2_000;
/** Reads go into one buffer of this size; a longer record gets its own. */
const READ_BYTES = 2 * 1024 * 1024;

export interface SpillFilePorts {
  readonly crc32: Crc32;
  readonly packer: Packer;
  readonly clock: Clock;
  readonly log: EventLog;
}

export function spillFileName(folder: string, storeId: string): string {
  // An id may have any visible character; a file name may not.
  return path.join(folder, `store-${encodeURIComponent(storeId).replaceAll('.', '%2E')}.spill`);
}

/** Writes what the store holds; false when that is nothing. Rejects when the disk does not take it. */
export async function writeSpillFile(file: string, store: Store, ports: SpillFilePorts): Promise<boolean> {
  if (!SpillWriter.holds(store)) return false;
  const startMs = ports.clock.nowMs();
  const progress = new Progress('spill file being written', ports);
  const writer = new SpillWriter(ports, store);
  makeFolder(path.dirname(file));
  const temporary = `${file}.tmp`;
  const handle = await open(temporary, 'w', 0o600);
  let bytes = 0;
  try {
    for (const chunks of writer.records(ports.clock.wallMs(), await bornNsOf(handle))) {
      bytes += await writeAll(handle, chunks);
      progress.at(bytes, writer.entries);
    }
    await handle.sync();
  } finally {
    await handle.close();
  }
  await rename(temporary, file);
  await syncFolder(path.dirname(file));
  ports.log.info('spill', 'spill file written', {
    file, partitions: writer.copies, messages: writer.entries, bytes, duration_ms: Math.round(
      ports.clock.nowMs() - startMs
    ),
  });
  return true;
}

async function writeAll(handle: FileHandle, chunks: readonly Uint8Array[]): Promise<number> {
  let bytes = 0;
  for (const chunk of chunks) {
    for (let at = 0; at < chunk.length;) {
      at += (await handle.write(chunk, at, chunk.length - at)).bytesWritten;
    }
    bytes += chunk.length;
  }
  return bytes;
}

/**
 * One record: `at` is where in the file its payload begins. Answers '' or why reading must end. Views are
 * valid during the call.
 */
export type RecordVisitor = (type: number, control: Uint8Array, payload: Uint8Array, at: number) => string;

/** Reads all records in order; '' or the broken rule. Rejects when the file can't be read at all. */
export async function readSpillFile(file: string, crc32: Crc32, visitor: RecordVisitor): Promise<string> {
  const handle = await open(file, 'r');
  try {
    const { size } = await handle.stat();
    let buffer = new Uint8Array(READ_BYTES);
    let at = 0;
    for (let index = 0; at < size; index += 1) {
      if (size - at < RECORD_HEADER_BYTES) return 'file cut short';
      if (!(await readAll(handle, buffer, at, RECORD_HEADER_BYTES))) return 'file cut short';
      const header = readRecordHeader(buffer, index, size - at - RECORD_HEADER_BYTES);
      if (header instanceof InvalidMessage) return header.rule;
      const bytes = RECORD_HEADER_BYTES + header.controlBytes + header.payloadBytes;
      if (bytes > buffer.length) buffer = new Uint8Array(bytes);
      if (!(await readAll(handle, buffer, at, bytes))) return 'file cut short';
      const record = buffer.subarray(0, bytes);
      if (!isRecordSound(crc32, record)) return 'record checksum';
      const controlEnd = RECORD_HEADER_BYTES + header.controlBytes;
      const rule = visitor(
        header.type, record.subarray(RECORD_HEADER_BYTES, controlEnd), record.subarray(controlEnd),
        at + controlEnd,
      );
      if (rule !== '') return rule;
      at += bytes;
    }
    return '';
  } finally {
    await handle.close();
  }
}

async function readAll(
  handle: FileHandle, buffer: Uint8Array, position: number, bytes: number,
): Promise<boolean> {
  for (let done = 0; done < bytes;) {
    const { bytesRead } = await handle.read(buffer, done, bytes - done, position + done);
    if (bytesRead === 0) return false;
    done += bytesRead;
  }
  return true;
}

/** The store never took a connection: the file still speaks for it. */
export function unuseSpillFile({ from, used }: LoadedSpill): void {
  markUnused(used);
  renameSync(used, from);
}

/** A store made of a file, with where that was and is now. */
export interface LoadedSpill {
  readonly store: Store;
  readonly from: string;
  readonly used: string;
}

/**
 * A store made of the file, which is used up by that; undefined when there is none. Throws a StoreStartError
 * for a file that can't be used.
 */
export async function loadSpillFile(
  name: string, storeId: string, newStore: (head: SpillHead) => Store, ports: SpillFilePorts,
): Promise<LoadedSpill | undefined> {
  const { log } = ports;
  const found = spillFileAt(name, storeId);
  if (found === undefined) return undefined;
  const { file, isOrdered } = found;
  const used = `${name}.used`;
  const startMs = ports.clock.nowMs();
  const progress = new Progress('spill file being read', ports);
  const loader = new SpillLoader({ storeId }, { packer: ports.packer, newStore });
  let rule: string;
  try {
    rule = await readSpillFile(file, ports.crc32, (type, control, payload, at) => {
      progress.at(at, loader.entries);
      return loader.take(type, control, payload);
    });
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code === undefined) throw error;
    throw new StoreStartError(
      `store ${storeId}: what it held when it stopped is in ${file}, which can't be read (${code}): let this `
        + `user read it, or move it away to start without that mail`
    );
  }
  const { loaded: store, head } = loader;
  if (rule !== '' || store === undefined || head === undefined) {
    throw unusable(file, storeId, rule === '' ? 'file cut short' : rule);
  }
  if (!isOrdered) await requireOwnFile(file, head, store);
  try {
    renameSync(file, used);
    markUsed(used);
    await syncFolder(path.dirname(file));
  } catch (error) {
    throw new StoreStartError(
      `store ${storeId}: ${file} can't be marked as used `
        + `(${(error as NodeJS.ErrnoException).code ?? String(error)}): let this user write to its folder`
    );
  }
  log.info('spill', 'spill file loaded: this store goes on as the boot that wrote it', {
    file, boot: store.bootId, partitions: loader.copies, messages: loader.entries, duration_ms: Math.round(
      ports.clock.nowMs() - startMs
    ),
  });
  return { store, from: file, used };
}

function unusable(file: string, storeId: string, rule: string): StoreStartError {
  const what = `store ${storeId}: what it held when it stopped is in ${file}, which`;
  if (rule === RULE_NO_MEMORY) {
    return new StoreStartError(`${what} does not fit: ${rule}; raise memory_limit`);
  }
  return new StoreStartError(
    `${what} can't be used (${rule}): put a sound copy of it there; or save what is sound (twinpost store `
      + `export --spill ${file} --everything DIR) and move it away, to start without that mail`
  );
}

/** One line every PROGRESS_MS. */
class Progress {
  readonly #text: string;
  readonly #ports: SpillFilePorts;
  #saidMs: number;

  constructor(text: string, ports: SpillFilePorts) {
    this.#text = text;
    this.#ports = ports;
    this.#saidMs = ports.clock.nowMs();
  }

  at(bytes: number, messages: number): void {
    const nowMs = this.#ports.clock.nowMs();
    if (nowMs - this.#saidMs < PROGRESS_MS) return;
    this.#saidMs = nowMs;
    this.#ports.log.info('spill', this.#text, { bytes, messages });
  }
}
