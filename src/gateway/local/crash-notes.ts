/**
 * Poison, as the machine of this gateway knows it: a message that brings the process down each time it is
 * worked on would bring down each process that takes it over. Work other than the plain path (reports, and
 * whatever runs code over content) notes the message while it has it in hand; a fatal error writes the notes
 * to a file of this machine.
 *
 *   in hand ── fatal error ──► note of incarnation i ── again, in j ──► two crashes: held at recovery
 *                                                                       (message-holds.ts)
 *
 * A crash is named by the incarnation of the process. Notes stay until an operator releases their message, or
 * newer ones need their room. Pure: the file is crash-note-file.ts. The mark that the mirrors have of such
 * work, for processes of other machines, is in the message's note (queue/note.ts).
 */

/** A crash has few messages in hand; a message that was innocent is forgotten when so many came after it. */
export const CRASH_NOTES_MAX = 1000;

/** A message that was in hand when a process met a fatal error. */
export interface CrashNote {
  /** Gateway whose message it is. */
  readonly ownerId: string;
  readonly messageId: number;
  /** Of the process that died. */
  readonly incarnation: number;
}

/** The messages that rare work has in hand at this moment: nearly always none. */
export class InHand {
  readonly #notes = new Set<{ readonly ownerId: string; readonly messageId: number }>();

  /** Runs `work` with the message noted. Synchronous work only: a crash in it is a crash of this message. */
  during<T>(ownerId: string, messageId: number, work: () => T): T {
    const note = { ownerId, messageId };
    this.#notes.add(note);
    const result = work();
    // Not in a finally: when `work` throws, the note is what the fatal error handler reads.
    this.#notes.delete(note);
    return result;
  }

  /** What a crash at this moment is to be blamed on. */
  notesOf(incarnation: number): CrashNote[] {
    return [...this.#notes].map(({ ownerId, messageId }) => ({ ownerId, messageId, incarnation }));
  }
}

export class CrashNotes {
  #notes: readonly CrashNote[] = [];
  #version = 0;

  /** What the machine has noted. */
  get all(): readonly CrashNote[] {
    return this.#notes;
  }

  /** Another number after each change: then the file is written anew. */
  get version(): number {
    return this.#version;
  }

  add(notes: readonly CrashNote[]): void {
    this.#notes = [...this.#notes, ...notes].slice(-CRASH_NOTES_MAX);
    this.#version += 1;
  }

  /** Different crashes that had the message in hand. */
  countOf(ownerId: string, messageId: number): number {
    if (this.#notes.length === 0) return 0;
    const crashes = new Set<number>();
    for (const note of this.#notes) {
      if (note.messageId === messageId && note.ownerId === ownerId) crashes.add(note.incarnation);
    }
    return crashes.size;
  }

  /** An operator lets the message go on: its crashes count no more. */
  forget(ownerId: string, messageId: number): void {
    const kept = this.#notes.filter((note) => note.ownerId !== ownerId || note.messageId !== messageId);
    if (kept.length === this.#notes.length) return;
    this.#notes = kept;
    this.#version += 1;
  }
}
