/**
 * The crash note: messages that were in hand when processes of this machine met a fatal error, written at
 * once and synchronously, and read by the next start (crash-notes.ts says what for).
 */
import { readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { z } from 'zod';
import { BrokenRule, readJson, readShape } from '../../base/json-shape.js';
import { formatMessageId, parseMessageId } from '../../base/text-id.js';
import { makeFolder } from '../../platform/node/make-folder.js';
import type { CrashNote } from './crash-notes.js';
import { CRASH_NOTES_MAX } from './crash-notes.js';

const FILE = 'crash-note.json';
const crashRow = z.object({ owner: z.string(), queue_id: z.string(), incarnation: z.int() });

/** Best effort: it runs while the process dies. False when nothing could be written. */
export function writeCrashNote(stateDir: string | undefined, notes: readonly CrashNote[]): boolean {
  if (stateDir === undefined || notes.length === 0) return false;
  try {
    makeFolder(stateDir);
    const file = join(stateDir, FILE);
    const rows = notes.slice(-CRASH_NOTES_MAX).map(({ ownerId, messageId, incarnation }) =>
      ({ owner: ownerId, queue_id: formatMessageId(messageId), incarnation }));
    writeFileSync(`${file}.new`, `${JSON.stringify(rows)}\n`, { mode: 0o600 });
    renameSync(`${file}.new`, file);
    return true;
  } catch {
    // Nothing to be done: the fatal error itself is what gets reported.
    return false;
  }
}

/** The notes of crashes before; empty without any, or when they can't be read. */
export function readCrashNote(stateDir: string | undefined): readonly CrashNote[] {
  if (stateDir === undefined) return [];
  let text = '';
  try {
    text = readFileSync(join(stateDir, FILE), 'utf8');
  } catch {
    // No file, or none for us.
  }
  const rows = readJson(z.array(z.unknown()), text);
  return rows instanceof BrokenRule ? [] : rows.slice(-CRASH_NOTES_MAX).flatMap(parse);
}

export function dropCrashNote(stateDir: string | undefined): void {
  if (stateDir !== undefined) rmSync(join(stateDir, FILE), { force: true });
}

function parse(raw: unknown): readonly CrashNote[] {
  const row = readShape(crashRow, raw);
  const messageId = row instanceof BrokenRule ? undefined : parseMessageId(row.queue_id);
  if (row instanceof BrokenRule || messageId === undefined) return [];
  return [{ ownerId: row.owner, messageId, incarnation: row.incarnation }];
}
