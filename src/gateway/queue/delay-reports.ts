/**
 * Tells senders that their message waits still (RFC 3461 4.1 NOTIFY=DELAY, RFC 3464 2.3.3 "delayed"): once a
 * message, when it is `afterMs` old, about the recipients who are still to be tried and whose sender asked
 * for it.
 *
 *   the sweep finds a resting entry of that age
 *     ├► held by an operator, or met in crashes ─► looked at when it goes on
 *     ├► nobody asked, or told already ──────────► not looked at again
 *     ├► its body is at the stores ──────────────► fetched, looked at in the next round
 *     ├► no room as for new mail ────────────────► looked at in the next round
 *     └► report stored and "delay told" in its note, in one section
 *
 * Room is asked for as much as the report may take, before it is composed: one that was composed is stored,
 * so that nothing is composed over and over while there is no room.
 *
 * The entry keeps its place and its state. That the delay was told is in its note, so a takeover tells it
 * neither twice nor not at all.
 */
import type { Entries } from './entries.js';
import type { MailQueue } from './mail-queue.js';
import { TO_TRY } from './note.js';
import type { MemoryGauge } from './memory-gauge.js';
import { delayReportBytesMax } from './report-bounds.js';
import type { ReportWriter } from './report-writer.js';
import type { Settlement } from './settlement.js';
import { NOTIFY_BITS, NOTIFY_DELAY, NOT_READY } from './types.js';

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
  { isUnasked }: DelayReportOptions, { entries, settlement, writer, memory }: DelayReportPorts,
  queue: MailQueue, row: number,
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
  if (!hasRoom(queue, memory, delayReportBytesMax(envelope, recipients))) return false;
  const subject = { kind: 'delay', queue, row, envelope, note, recipients, isShort: true } as const;
  const told = (): void => { settlement.annotate(queue, row, { ...note, isDelayTold: true }); };
  return writer.write(subject, way, told) === undefined;
}

/** It is looked at again when it is here. */
function wanted({ partition }: MailQueue, row: number, { absent }: Entries): false {
  absent.wantLater(partition, row);
  return false;
}

/** As for new mail, here and at the stores: for the report, and for its change until the mirrors have it. */
function hasRoom({ partition }: MailQueue, memory: MemoryGauge, reportBytes: number): boolean {
  if (partition.isLeaving || !partition.mayCommit || !memory.admits(2 * reportBytes)) return false;
  if (partition.credit >= reportBytes) return true;
  partition.askCredit(reportBytes);
  return false;
}
