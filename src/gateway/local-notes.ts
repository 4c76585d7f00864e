/**
 * What a gateway writes to its state_dir beside the incarnation and the lock: notes of a crash, and the sets of its
 * mirrors as a hint for the next process. Both only help: nothing is lost, and nothing waits, without them.
 *
 *   crash-note.json   crash-note-file.ts; away when the control queue has it
 *   queue-sets.json   sets as they were acknowledged last (recovery/set-hints.ts); at most once a second, when they
 *                     changed, written aside and renamed
 */
import { readFileSync } from 'node:fs';
import { rename, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { makeFolder } from '../platform/node/make-folder.js';
import type { EventLog } from '../platform/ports.js';
import type { SetHint } from '../recovery/set-hints.js';
import type { GatewayControl } from './control/gateway-control.js';
import { dropCrashNote, readCrashNote, writeCrashNote } from './crash-note-file.js';

const SETS_FILE = 'queue-sets.json';
const WRITE_EVERY_MS = 1000;

export interface LocalNotesPorts {
  readonly log: EventLog;
  readonly control: GatewayControl;
  /** Sets of what is served, and hints of what has not come back. */
  setHints(): readonly SetHint[];
}

export class LocalNotes {
  private readonly stateDir: string | undefined;
  private readonly ports: LocalNotesPorts;
  private crashNoted: boolean;
  private lookAtMs = 0;
  private signature = NaN;
  private writing = false;
  private failed = false;

  constructor(stateDir: string | undefined, ports: LocalNotesPorts) {
    this.stateDir = stateDir;
    this.ports = ports;
    const notes = readCrashNote(stateDir);
    this.crashNoted = notes.length > 0;
    if (this.crashNoted) ports.control.onNotes(notes);
  }

  tick(nowMs: number): void {
    if (nowMs < this.lookAtMs) return;
    this.lookAtMs = nowMs + WRITE_EVERY_MS;
    if (this.crashNoted && this.ports.control.unkeptNotes.length === 0) {
      this.crashNoted = false;
      dropCrashNote(this.stateDir);
    }
    this.keepSets();
  }

  /** The process dies of a fatal error: synchronous. Returns whether anything was in hand. */
  onCrash(): boolean {
    const { control } = this.ports;
    const hadInHand = control.notesOfCrash().length > control.unkeptNotes.length;
    writeCrashNote(this.stateDir, control.notesOfCrash());
    control.recordCrash();
    return hadInHand;
  }

  private keepSets(): void {
    if (this.stateDir === undefined || this.writing) return;
    const hints = this.ports.setHints();
    const signature = signatureOf(hints);
    if (signature === this.signature) return;
    this.writing = true;
    writeSets(this.stateDir, hints).then(
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

async function writeSets(stateDir: string, hints: readonly SetHint[]): Promise<void> {
  const file = join(stateDir, SETS_FILE);
  makeFolder(stateDir);
  await writeFile(`${file}.new`, `${JSON.stringify(hints)}\n`, { mode: 0o600 });
  await rename(`${file}.new`, file);
}

/** Another number for another list of (queue, epoch), but for one time in 2^32: the next change is written then. */
function signatureOf(hints: readonly SetHint[]): number {
  let sum = hints.length;
  for (const { birth, serial, epoch } of hints) sum = (Math.imul(sum, 31) + (birth | 0) + Math.imul(serial, 7) + Math.imul(epoch, 13)) | 0;
  return sum;
}

function parse(row: unknown): SetHint[] {
  if (typeof row !== 'object' || row === null) return [];
  const { ownerId, birth, serial, name, queueClass, epoch, members } = row as Readonly<Record<string, unknown>>;
  if (typeof ownerId !== 'string' || typeof name !== 'string' || typeof queueClass !== 'string') return [];
  if (typeof birth !== 'number' || typeof serial !== 'number' || typeof epoch !== 'number' || !Array.isArray(members)) return [];
  const ids = members.filter((member): member is string => typeof member === 'string');
  return ids.length === 0 ? [] : [{ ownerId, birth, serial, name, queueClass, epoch, members: ids }];
}
