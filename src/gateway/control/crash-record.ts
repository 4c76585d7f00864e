/**
 * Poison: a message that brings the process down each time it is worked on would bring down each process that
 * takes it over. Work other than the plain path (reports, and whatever runs code over content) notes the
 * message while it has it in hand; a fatal error writes the notes to a file of this machine and to the control
 * queue of the message's owner, for a process elsewhere. A message named in two crashes is held alone, with an
 * alarm, when it comes back (message-holds.ts).
 *
 *   in hand ── fatal error ──► "crash/<id>" names incarnation i ── again, in j ──► two crashes: held at recovery
 *
 * A crash is named by the incarnation of the process, so that file and record may both tell of it and it counts once.
 * Notes wait here until the owner's records are back. Pure: the file is gateway/crash-note-file.ts.
 */
import { formatMessageId, parseMessageId } from '../../base/text-id.js';
import type { ControlQueues } from './control-queues.js';

const PREFIX = 'crash/';
/** Crashes with a message in hand after which it is held. */
const CRASHES_TO_HOLD = 2;
/** Crashes kept of a message: more than count. */
const CRASHES_KEPT = 8;
const CRASH_BYTES = 8;
/** Names kept: the oldest go first. A message that was innocent is forgotten some day. */
const NAMES_MAX = 1000;

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
  private readonly notes = new Set<{ readonly ownerId: string; readonly messageId: number }>();

  /** Runs `work` with the message noted. Synchronous work only: a crash in it is a crash of this message. */
  during<T>(ownerId: string, messageId: number, work: () => T): T {
    const note = { ownerId, messageId };
    this.notes.add(note);
    const result = work();
    // Not in a finally: when `work` throws, the note is what the fatal error handler reads.
    this.notes.delete(note);
    return result;
  }

  /** What a crash at this moment is to be blamed on. */
  notesOf(incarnation: number): CrashNote[] {
    return [...this.notes].map(({ ownerId, messageId }) => ({ ownerId, messageId, incarnation }));
  }
}

export class CrashRecord {
  private readonly control: ControlQueues;
  private waiting: readonly CrashNote[] = [];
  private changes = 0;

  constructor(control: ControlQueues) {
    this.control = control;
  }

  /** Notes that are in no record yet. */
  get pending(): readonly CrashNote[] {
    return this.waiting;
  }

  /** Another number after each change of what waits. */
  get version(): number {
    return this.changes;
  }

  /** Crashes had these messages in hand. */
  note(notes: readonly CrashNote[]): void {
    this.waiting = [...this.waiting, ...notes];
    this.changes += 1;
    this.tick();
  }

  /** Called now and then: notes of owners whose records are back become records. */
  tick(): void {
    if (this.waiting.length === 0) return;
    const open = this.waiting.filter((note) => this.control.isOpen(note.ownerId));
    if (open.length === 0) return;
    this.waiting = this.waiting.filter((note) => !open.includes(note));
    for (const note of open) this.write(note);
    this.changes += 1;
  }

  /** Different crashes that had the message in hand. */
  countOf(ownerId: string, messageId: number): number {
    const crashes = new Set(this.recorded(ownerId, messageId));
    for (const note of this.waiting) if (note.ownerId === ownerId && note.messageId === messageId) crashes.add(note.incarnation);
    return crashes.size;
  }

  isPoison(ownerId: string, messageId: number): boolean {
    return this.countOf(ownerId, messageId) >= CRASHES_TO_HOLD;
  }

  /** Messages of the owner that crash each process that works on them. */
  poisonOf(ownerId: string): number[] {
    const named = new Set(this.waiting.filter((note) => note.ownerId === ownerId).map((note) => note.messageId));
    for (const name of this.control.recordsOf(ownerId).names(PREFIX)) {
      const messageId = parseMessageId(name.slice(PREFIX.length));
      if (messageId !== undefined) named.add(messageId);
    }
    return [...named].filter((messageId) => this.isPoison(ownerId, messageId));
  }

  /** The message has ended, or an operator lets it go on: its crashes count no more. */
  forget(ownerId: string, messageId: number): void {
    this.control.recordsOf(ownerId).delete(nameOf(messageId));
    this.waiting = this.waiting.filter((note) => note.ownerId !== ownerId || note.messageId !== messageId);
    this.changes += 1;
  }

  private write({ ownerId, messageId, incarnation }: CrashNote): void {
    const crashes = this.recorded(ownerId, messageId);
    if (crashes.includes(incarnation)) return;
    const records = this.control.recordsOf(ownerId);
    const names = records.names(PREFIX);
    for (const old of names.slice(0, Math.max(0, names.length - NAMES_MAX + 1))) if (old !== nameOf(messageId)) records.delete(old);
    const kept = [...crashes, incarnation].slice(-CRASHES_KEPT);
    const value = new Uint8Array(kept.length * CRASH_BYTES);
    const view = new DataView(value.buffer);
    kept.forEach((crash, i) => { view.setFloat64(i * CRASH_BYTES, crash, true); });
    records.set(nameOf(messageId), value);
  }

  private recorded(ownerId: string, messageId: number): number[] {
    const value = this.control.recordsOf(ownerId).get(nameOf(messageId));
    if (value === undefined || value.length % CRASH_BYTES !== 0) return [];
    const view = new DataView(value.buffer, value.byteOffset, value.length);
    return Array.from({ length: value.length / CRASH_BYTES }, (_, i) => view.getFloat64(i * CRASH_BYTES, true));
  }
}

function nameOf(messageId: number): string {
  return PREFIX + formatMessageId(messageId);
}
