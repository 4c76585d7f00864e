/**
 * The crash note: ids of the messages that were in hand when this process met a fatal error, written at once
 * and synchronously, read and removed by the next start (crash-record.ts says what for).
 */
import { mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

const FILE = 'crash-note.json';
/** A crash has few messages in hand; more than this is no note of ours. */
const IDS_MAX = 1000;

/** Best effort: it runs while the process dies. */
export function writeCrashNote(stateDir: string | undefined, messageIds: readonly number[]): void {
  if (stateDir === undefined || messageIds.length === 0) return;
  try {
    mkdirSync(stateDir, { recursive: true });
    writeFileSync(join(stateDir, FILE), JSON.stringify({ messageIds: messageIds.slice(0, IDS_MAX) }));
  } catch {
    // Nothing to be done: the fatal error itself is what gets reported.
  }
}

/** The ids of the last crash, and removes the note; empty without one, or when it can't be read. */
export function takeCrashNote(stateDir: string | undefined): readonly number[] {
  if (stateDir === undefined) return [];
  const file = join(stateDir, FILE);
  try {
    const note: unknown = JSON.parse(readFileSync(file, 'utf8'));
    rmSync(file);
    if (typeof note !== 'object' || note === null || !('messageIds' in note) || !Array.isArray(note.messageIds)) return [];
    return note.messageIds.filter((id): id is number => Number.isSafeInteger(id) && id > 0).slice(0, IDS_MAX);
  } catch {
    return [];
  }
}
