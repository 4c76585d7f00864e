/**
 * A message that waits for a next hop that does not answer is tried by nobody: so that the log knows of each
 * whom it is for and why it waits, it gets one line a recipient when the sweep (expiry-sweep.ts) meets it so
 * for the first time. As much as `received` writes, and once in the life of this process, however long it
 * lasts; a message that was tried has lines of its attempts.
 */
import type { Entries } from './entries.js';
import type { MailEvents } from './mail-events.js';
import type { MailQueue } from './mail-queue.js';
import type { Note } from './note.js';
import { TO_TRY } from './note.js';
import type { Envelope, Outage } from '../mail-types.js';

export interface UntoldWaitsPorts {
  readonly entries: Entries;
  readonly events: Pick<MailEvents, 'waits'>;
  queueOf(row: number): MailQueue | undefined;
  envelopeOf(row: number): Envelope | undefined;
  noteOf(row: number, recipientCount: number): Note;
  outageOf(queue: MailQueue): Outage | undefined;
}

export class UntoldWaits {
  readonly #ports: UntoldWaitsPorts;

  constructor(ports: UntoldWaitsPorts) {
    this.#ports = ports;
  }

  /** Lines that were written; 0: it is to be looked at again. */
  tell(row: number): number {
    const ports = this.#ports;
    const { entries: { table }, events } = ports;
    const queue = ports.queueOf(row);
    const outage = queue === undefined ? undefined : ports.outageOf(queue);
    if (queue === undefined || outage === undefined) return 0;
    // Undefined while it is at the stores.
    const envelope = ports.envelopeOf(row);
    if (envelope === undefined) return 0;
    const { states, results } = ports.noteOf(row, envelope.recipients.length);
    const bodyBytes = table.bodyBytes.get(row);
    const tried = new Set(results.map(({ recipient }) => recipient));
    states.forEach((state, index) => {
      if (state !== TO_TRY || tried.has(index)) return;
      events.waits(queue, envelope, index, bodyBytes, outage);
    });
    table.waitTold.set(row, 1);
    return states.length;
  }
}
