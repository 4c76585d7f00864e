/**
 * Messages straight out of a spill file, with no store running (protocol/spill-records.ts). A damaged file
 * gives what stands in front of the damage. A shared body stands there once: where, is remembered while the
 * file is read.
 */
import { closeSync, openSync, readSync, statSync } from 'node:fs';
import { readSpillFile } from '../../kvs/daemon/spill-file.js';
import type { Crc32, Packer } from '../../platform/ports.js';
import { FLAG_SHARED } from '../../protocol/change-rows.js';
import {
  ENTRY_ROW_BYTES, checkEntryRow, entryBodyInFrame, entryFlags, entryHeadBytes, entryId, entryNoteBytes,
} from '../../protocol/entry-rows.js';
import { InvalidMessage } from '../../protocol/invalid.js';
import { numberOf, ownerOf } from '../../protocol/partition-record.js';
import {
  SPILL_COPY, SPILL_ENTRIES, SPILL_HEAD, decodeCopy, decodeHead,
} from '../../protocol/spill-records.js';
import { CliError } from '../context.js';
import { exportRows } from './entries.js';
import type { ExportSource } from './exported-message.js';
import type { ExportFolder } from './folder.js';

const EXPECTED = 'a store that stops leaves one in its state_dir: store-ID.spill, or .used behind that';
const IS_SPILL = 'it begins as one';

/**
 * Throws for anything that does not begin as a spill file: before a folder is made for what would be in it.
 */
export async function checkSpillFile(
  file: string, ports: { readonly crc32: Crc32; readonly packer: Packer },
): Promise<void> {
  let rule: string;
  try {
    if (!statSync(file).isFile()) {
      throw new CliError(`${file} is no file; --spill names a spill file: ${EXPECTED}`);
    }
    rule = await readSpillFile(file, ports.crc32, (type, control) => {
      const head = type === SPILL_HEAD ? decodeHead(ports.packer, control) : new InvalidMessage('no head');
      return head instanceof InvalidMessage ? head.rule : IS_SPILL;
    });
  } catch (error) {
    if (error instanceof CliError) throw error;
    throw new CliError(`${file} can't be read: ${(error as NodeJS.ErrnoException).code ?? String(error)}`);
  }
  if (rule !== IS_SPILL) {
    throw new CliError(
      `${file} is no spill file, or of another release (${rule === '' ? 'it is empty' : rule}): ${EXPECTED}`,
    );
  }
}

/** Answers with '' or what is wrong with the file. */
export async function exportSpill(
  file: string, ports: { readonly crc32: Crc32; readonly packer: Packer }, folder: ExportFolder,
  onRecord: () => void,
): Promise<string> {
  let source: ExportSource | undefined;
  const bodies = new Map<string, number>();
  const handle = openSync(file, 'r');
  try {
    return await readSpillFile(file, ports.crc32, (type, control, payload, at) => {
      if (type === SPILL_COPY) {
        const copy = decodeCopy(ports.packer, control);
        if (copy instanceof InvalidMessage) return `partition: ${copy.rule}`;
        const { partition } = copy;
        source = { name: partition, owner: ownerOf(partition), number: numberOf(partition) };
      }
      if (type !== SPILL_ENTRIES) return '';
      const current = source;
      if (current === undefined) return 'entries of no partition';
      const broken = noteBodies(current.owner, control, payload.length, at, bodies);
      if (broken !== '') return broken;
      const lacking = exportRows(ports.packer, folder, current, control, payload, (id, bytes) =>
        readBody(handle, bodies.get(bodyKey(current.owner, id)), bytes));
      onRecord();
      return lacking === 0 ? '' : 'a shared body is not there';
    });
  } finally {
    closeSync(handle);
  }
}

/** Checks the rows against the payload, and remembers where shared bodies are. */
function noteBodies(
  owner: string, rows: Uint8Array, payloadBytes: number, payloadAt: number, bodies: Map<string, number>,
): string {
  if (rows.length % ENTRY_ROW_BYTES !== 0) return 'rows';
  const view = new DataView(rows.buffer, rows.byteOffset, rows.length);
  let at = 0;
  for (let row = 0; row < rows.length; row += ENTRY_ROW_BYTES) {
    const rule = checkEntryRow(view, row);
    if (rule !== '') return rule;
    const body = entryBodyInFrame(view, row);
    if ((entryFlags(view, row) & FLAG_SHARED) !== 0 && body > 0) {
      bodies.set(bodyKey(owner, entryId(view, row)), payloadAt + at);
    }
    at += body + entryHeadBytes(view, row) + entryNoteBytes(view, row);
  }
  return at === payloadBytes ? '' : 'rows and bytes do not fit';
}

function bodyKey(owner: string, id: number): string {
  return `${String(id)} ${owner}`;
}

/** A body of 0 bytes stands nowhere. */
function readBody(handle: number, at: number | undefined, bytes: number): Uint8Array | undefined {
  if (bytes === 0) return new Uint8Array(0);
  if (at === undefined) return undefined;
  const body = new Uint8Array(bytes);
  return readSync(handle, body, 0, bytes, at) === bytes ? body : undefined;
}
