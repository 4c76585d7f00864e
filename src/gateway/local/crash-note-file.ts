/**
 * The crash note: messages that were in hand when processes of this machine met a fatal error, written at
 * once and synchronously, and read by the next start (crash-notes.ts says what for).
 */
import { readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { formatMessageId, parseMessageId } from '../../base/text-id.js';
import { makeFolder } from '../../platform/node/make-folder.js';
import type { CrashNote } from './crash-notes.js';
import { CRASH_NOTES_MAX } from './crash-notes.js';

const FILE = 'crash-note.json';

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
  try {
    const rows: unknown = JSON.parse(readFileSync(join(stateDir, FILE), 'utf8'));
    return Array.isArray(rows) ? rows.slice(-CRASH_NOTES_MAX).flatMap((row) => parse(row)) : [];
  } catch {
    return [];
  }
}

export function dropCrashNote(stateDir: string | undefined): void {
  if (stateDir !== undefined) rmSync(join(stateDir, FILE), { force: true });
}

function parse(row: unknown): CrashNote[] {
  if (typeof row !== 'object' || row === null) return [];
  const { owner, queue_id: queueId, incarnation } = row as Readonly<Record<string, unknown>>;
  const messageId = typeof queueId === 'string' ? parseMessageId(queueId) : undefined;
  if (typeof owner !== 'string' || messageId === undefined || typeof incarnation !== 'number') return [];
  return Number.isSafeInteger(incarnation) ? [{ ownerId: owner, messageId, incarnation }] : [];
}
