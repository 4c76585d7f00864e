/**
 * Notes of crashes in state_dir (local/crash-note-file.ts): read at the start, written when the process dies
 * of an error of its own, and when an operator releases a message. They only help: nothing is lost, and
 * nothing waits, without them.
 */
import { dropCrashNote, readCrashNote, writeCrashNote } from './crash-note-file.js';
import type { CrashNotes, InHand } from './crash-notes.js';

const LOOK_EVERY_MS = 1000;

export interface LocalNotesPorts {
  readonly crashes: CrashNotes;
  readonly inHand: InHand;
  /** Of this process. */
  readonly incarnation: number;
}

export class LocalNotes {
  readonly #stateDir: string | undefined;
  readonly #ports: LocalNotesPorts;
  /** Of the crash notes, as the file has them. */
  #crashesVersion: number;
  #lookAtMs = 0;

  constructor(stateDir: string | undefined, ports: LocalNotesPorts) {
    this.#stateDir = stateDir;
    this.#ports = ports;
    ports.crashes.add(readCrashNote(stateDir));
    this.#crashesVersion = ports.crashes.version;
  }

  tick(nowMs: number): void {
    if (nowMs < this.#lookAtMs) return;
    this.#lookAtMs = nowMs + LOOK_EVERY_MS;
    this.#keepCrashes();
  }

  /** The process dies of a fatal error: synchronous. Returns whether anything was in hand. */
  onCrash(): boolean {
    const { crashes, inHand, incarnation } = this.#ports;
    const notes = inHand.notesOf(incarnation);
    if (notes.length > 0) writeCrashNote(this.#stateDir, [...crashes.all, ...notes]);
    return notes.length > 0;
  }

  /** An operator has released a message: its crashes count no more, for the next process either. */
  #keepCrashes(): void {
    const { crashes } = this.#ports;
    if (crashes.version === this.#crashesVersion) return;
    this.#crashesVersion = crashes.version;
    if (crashes.all.length === 0) dropCrashNote(this.#stateDir);
    else writeCrashNote(this.#stateDir, crashes.all);
  }
}
