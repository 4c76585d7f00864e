/**
 * Poison: a message that brings the process down each time it is worked on would bring down each process that
 * takes it over. Work other than the plain path (reports, and whatever runs code over content) notes the
 * message's id while it has it in hand; a fatal error writes the ids to a crash note, a file of this machine,
 * and to the control queue, for a process elsewhere. A message named in two crashes is held alone, with an
 * alarm, when it comes back.
 *
 *   in hand ── fatal error ──► "crash/<id>" counts 1 ── again ──► 2: held at recovery
 *
 * Pure: the file is crash-note-file.ts.
 */
import { formatMessageId } from '../../base/text-id.js';
import type { ControlRecords } from './control-records.js';

const PREFIX = 'crash/';
/** Crashes with a message in hand after which it is held. */
export const CRASHES_TO_HOLD = 2;
/** Names kept: the oldest go first. A message that was innocent is forgotten some day. */
const NAMES_MAX = 1000;

/** The messages that rare work has in hand at this moment: nearly always none. */
export class InHand {
  private readonly ids = new Set<number>();

  /** Runs `work` with the message noted. Synchronous work only: a crash in it is a crash of this message. */
  during<T>(messageId: number, work: () => T): T {
    this.ids.add(messageId);
    const result = work();
    // Not in a finally: when `work` throws, the note is what the fatal error handler reads.
    this.ids.delete(messageId);
    return result;
  }

  get messageIds(): readonly number[] {
    return [...this.ids];
  }
}

export class CrashRecord {
  private readonly records: ControlRecords;

  constructor(records: ControlRecords) {
    this.records = records;
  }

  /** A crash had these messages in hand. */
  note(messageIds: readonly number[]): void {
    for (const messageId of messageIds) {
      const name = PREFIX + formatMessageId(messageId);
      const count = Math.min(255, this.countOf(messageId) + 1);
      this.records.delete(name);
      const names = this.records.names(PREFIX);
      for (const old of names.slice(0, Math.max(0, names.length - NAMES_MAX + 1))) this.records.delete(old);
      this.records.set(name, Uint8Array.of(count));
    }
  }

  countOf(messageId: number): number {
    return this.records.get(PREFIX + formatMessageId(messageId))?.[0] ?? 0;
  }

  isPoison(messageId: number): boolean {
    return this.countOf(messageId) >= CRASHES_TO_HOLD;
  }
}
