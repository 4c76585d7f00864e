/**
 * Tells senders that their message waits still (RFC 3461 4.1 NOTIFY=DELAY, RFC 3464 2.3.3 "delayed"): once a message,
 * when it is `afterMs` old, about the recipients who are still to be tried and whose sender asked for it.
 *
 *   the sweep finds a resting entry of that age ─► held by an operator, or met in crashes ─► looked at when it goes on
 *                                               ├► nobody asked, or told already ─► not looked at again
 *                                               └► its body is at the stores     ─► fetched, looked at in the next round
 *                                               └► report stored and "delay told" in its note, in one section;
 *                                                  no room as for new mail: tried again in the next round
 *
 * The entry keeps its place and its state. That the delay was told is in its note, so a takeover tells it neither
 * twice nor not at all.
 */
import type { Entries } from './entries.js';
import type { MailQueue } from './mail-queue.js';
import { TO_TRY } from './note.js';
import type { MemoryGauge } from './memory-gauge.js';
import { HEADER_BYTES_MAX } from './report-writer.js';
import type { ReportWriter } from './report-writer.js';
import type { Settlement } from './settlement.js';
import { NOTIFY_BITS, NOTIFY_DELAY, NOT_READY } from './types.js';

/** More than any of these reports has. */
const ROOM_BYTES = 2 * HEADER_BYTES_MAX;

export interface DelayReportOptions {
  /** Age at which a delay is told; 0: never. */
  readonly afterMs: number;
  /** Senders who said nothing of reports are told too. */
  readonly isUnasked: boolean;
}

export interface DelayReportPorts {
  readonly memory: MemoryGauge;
  readonly entries: Entries;
  readonly settlement: Settlement;
  readonly writer: ReportWriter;
}

/** The entry waits for its turn, and is old enough. False: it is to be looked at again. */
export function tellDelay(
  { isUnasked }: DelayReportOptions, { entries, settlement, writer, memory }: DelayReportPorts, queue: MailQueue, row: number,
): boolean {
  if (entries.isAllAbsent(row)) return wanted(queue, row, entries);
  const envelope = settlement.envelopeOf(row);
  if (envelope === undefined || envelope.reversePath === '') return true;
  const note = settlement.noteOf(row, envelope.recipients.length);
  if (note.isDelayTold) return true;
  const recipients: number[] = [];
  envelope.recipients.forEach((recipient, index) => {
    const notify = recipient.notify & NOTIFY_BITS;
    const isWanted = notify === 0 ? isUnasked : (notify & NOTIFY_DELAY) !== 0;
    if (isWanted && note.states[index] === TO_TRY) recipients.push(index);
  });
  const way = recipients.length === 0 ? undefined : writer.wayTo(envelope);
  if (way === undefined) return true;
  if (way === NOT_READY) return false;
  if (entries.isAbsent(row)) return wanted(queue, row, entries);
  if (!hasRoom(queue, memory)) return false;
  const subject = { kind: 'delay', queue, row, envelope, note, recipients, isShort: true } as const;
  return writer.write(subject, way, () => { settlement.annotate(queue, row, { ...note, isDelayTold: true }); }) === undefined;
}

/** It is looked at again when it is here. */
function wanted({ partition }: MailQueue, row: number, { absent }: Entries): false {
  absent.wantLater(partition, row);
  return false;
}

/** As for new mail, here and at the stores: asked before a report is composed, for it may be asked again and again. */
function hasRoom({ partition }: MailQueue, memory: MemoryGauge): boolean {
  if (partition.isLeaving || !partition.mayCommit || !memory.admits(ROOM_BYTES)) return false;
  if (partition.credit >= ROOM_BYTES) return true;
  partition.askCredit(ROOM_BYTES);
  return false;
}
