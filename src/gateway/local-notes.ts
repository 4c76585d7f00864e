/**
 * What a gateway writes to its state_dir beside the incarnation and the lock: notes of a crash, and the sets of its
 * mirrors as a hint for the next process. Both only help: nothing is lost, and nothing waits, without them.
 *
 *   crash-note.json   local/crash-note-file.ts
 *   queue-sets.json   sets as they were acknowledged last (served-sets.ts); when they changed, looked at once a second:
 *                     made in parts, one a tick, written aside and renamed
 */
import { readFileSync } from 'node:fs';
import { rename, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { makeFolder } from '../platform/node/make-folder.js';
import type { EventLog } from '../platform/ports.js';
import type { SetHint } from '../recovery/set-hints.js';
import { dropCrashNote, readCrashNote, writeCrashNote } from './local/crash-note-file.js';
import type { CrashNotes, InHand } from './local/crash-notes.js';
import type { ServedSets } from './served-sets.js';

const SETS_FILE = 'queue-sets.json';
const LOOK_EVERY_MS = 1000;
/** Sets that are made into text in one tick: half a millisecond. */
const SETS_PER_TICK = 250;

export interface LocalNotesPorts {
  readonly log: EventLog;
  readonly crashes: CrashNotes;
  readonly inHand: InHand;
  /** Of this process. */
  readonly incarnation: number;
  readonly sets: Pick<ServedSets, 'signature' | 'hints'>;
}

/** The file while it is made. */
interface Draft {
  readonly signature: number;
  readonly hints: Iterator<SetHint>;
  readonly parts: string[];
}

export class LocalNotes {
  private readonly stateDir: string | undefined;
  private readonly ports: LocalNotesPorts;
  /** Of the crash notes, as the file has them. */
  private crashesVersion: number;
  private lookAtMs = 0;
  private signature = NaN;
  private draft: Draft | undefined;
  private writing = false;
  private failed = false;

  constructor(stateDir: string | undefined, ports: LocalNotesPorts) {
    this.stateDir = stateDir;
    this.ports = ports;
    ports.crashes.add(readCrashNote(stateDir));
    this.crashesVersion = ports.crashes.version;
  }

  tick(nowMs: number): void {
    if (this.draft !== undefined) this.goOn(this.draft);
    if (nowMs < this.lookAtMs) return;
    this.lookAtMs = nowMs + LOOK_EVERY_MS;
    this.keepCrashes();
    this.keepSets();
  }

  /** The process dies of a fatal error: synchronous. Returns whether anything was in hand. */
  onCrash(): boolean {
    const { crashes, inHand, incarnation } = this.ports;
    const notes = inHand.notesOf(incarnation);
    if (notes.length > 0) writeCrashNote(this.stateDir, [...crashes.all, ...notes]);
    return notes.length > 0;
  }

  /** An operator has released a message: its crashes count no more, for the next process either. */
  private keepCrashes(): void {
    const { crashes } = this.ports;
    if (crashes.version === this.crashesVersion) return;
    this.crashesVersion = crashes.version;
    if (crashes.all.length === 0) dropCrashNote(this.stateDir);
    else writeCrashNote(this.stateDir, crashes.all);
  }

  private keepSets(): void {
    if (this.stateDir === undefined || this.writing || this.draft !== undefined) return;
    const { sets } = this.ports;
    const signature = sets.signature();
    if (signature !== this.signature) this.goOn({ signature, hints: sets.hints(), parts: ['['] });
  }

  /** The next part of the file; with the last one it is written. */
  private goOn(draft: Draft): void {
    this.draft = draft;
    const { hints, parts } = draft;
    let text = '';
    for (let made = 0; made < SETS_PER_TICK; made++) {
      const next = hints.next();
      if (next.done === true) {
        parts.push(`${text}\n]\n`);
        this.draft = undefined;
        this.write(draft);
        return;
      }
      text += `${parts.length === 1 && made === 0 ? '' : ','}\n${JSON.stringify(next.value)}`;
    }
    parts.push(text);
  }

  private write({ signature, parts }: Draft): void {
    if (this.stateDir === undefined) return;
    this.writing = true;
    writeSets(this.stateDir, parts).then(
      () => {
        this.writing = false;
        this.failed = false;
        this.signature = signature;
      },
      (error: unknown) => {
        this.writing = false;
        if (!this.failed) this.ports.log.warn('start', 'the sets of mirrors can not be kept in state_dir: after a restart it takes the stores to tell which of them is missing', { why: error instanceof Error ? error.message : String(error) });
        this.failed = true;
      },
    );
  }
}

/** Sets as the process before us knew them; empty without the file, or when it is no file of ours. */
export function readSetHints(stateDir: string | undefined): readonly SetHint[] {
  if (stateDir === undefined) return [];
  try {
    const rows: unknown = JSON.parse(readFileSync(join(stateDir, SETS_FILE), 'utf8'));
    return Array.isArray(rows) ? rows.flatMap(parse) : [];
  } catch {
    return [];
  }
}

async function writeSets(stateDir: string, parts: readonly string[]): Promise<void> {
  const file = join(stateDir, SETS_FILE);
  makeFolder(stateDir);
  await writeFile(`${file}.new`, parts, { mode: 0o600 });
  await rename(`${file}.new`, file);
}

function parse(row: unknown): SetHint[] {
  if (typeof row !== 'object' || row === null) return [];
  const { ownerId, birth, serial, name, queueClass, epoch, members } = row as Readonly<Record<string, unknown>>;
  if (typeof ownerId !== 'string' || typeof name !== 'string' || typeof queueClass !== 'string') return [];
  if (typeof birth !== 'number' || typeof serial !== 'number' || typeof epoch !== 'number' || !Array.isArray(members)) return [];
  const ids = members.filter((member): member is string => typeof member === 'string');
  return ids.length === 0 ? [] : [{ ownerId, birth, serial, name, queueClass, epoch, members: ids }];
}
