/**
 * Tells senders that their message waits still (RFC 3461 4.1 NOTIFY=DELAY, RFC 3464 2.3.3 "delayed"): once a
 * message, when it is `afterMs` old, about the recipients who are still to be tried and whose sender asked
 * for it.
 *
 *   the sweep finds an entry of that age that waits; one that is held, when it goes on (expiry-sweep.ts)
 *     ├► nobody asked, or told already ──────────► not looked at again
 *     ├► its body is at the stores ──────────────► fetched, looked at in the next round
 *     ├► no room as for new mail ────────────────► looked at in the next round
 *     ├► somebody is asked where it goes ────────► looked at when that is known, and in the next round
 *     └► who tries is marked in its note ─ the mirrors have that (report-job.ts) ─► looked at once more
 *          ├► composed, and signed if its sender has a key (report-job.ts); then
 *          ├► report stored and "delay told" in its note, in one section
 *          └► something has changed: the mark goes back, looked at in the next round
 *
 * Room is asked for as much as the report may take, before it is composed: one that was composed is stored,
 * so that nothing is composed over and over while there is no room.
 *
 * The entry keeps its place and its state. That the delay was told is in its note, so a takeover tells it
 * neither twice nor not at all.
 */
import type { Entries } from '../entries.js';
import { EntryState } from '../entry-table.js';
import type { MailQueue } from '../mail-queue.js';
import type { Note } from '../note.js';
import { TO_TRY } from '../note.js';
import type { MemoryGauge } from '../memory-gauge.js';
import { delayReportBytesMax } from './report-bounds.js';
import { isAbout } from './report-writer.js';
import type { ReportDraft, ReportSubject, ReportWriter } from './report-writer.js';
import type { Settlement } from '../settlement.js';
import type { Envelope, ReportWay } from '../../mail-types.js';
import { NOTIFY_BITS, NOTIFY_DELAY, NOT_READY } from '../../mail-types.js';

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
  /** What it waited for is here: as when the walk comes by (expiry-sweep.ts). */
  lookAgain(row: number): void;
  /** Marks this process as one that tries, and then has tell() called. */
  begin(queue: MailQueue, row: number): void;
  /** The body of the entry is not needed any more. */
  onUsed(queue: MailQueue, row: number): void;
}

/** About: its header comes back, and is not read yet. */
const REPORT_BYTES = 128 * 1024;

/** What is to be told now, and to whom. */
interface Due {
  readonly envelope: Envelope;
  readonly note: Note;
  readonly recipients: readonly number[];
  readonly way: ReportWay;
}

export class DelayReports {
  readonly #options: Pick<DelayReportOptions, 'isUnasked'>;
  readonly #ports: DelayReportPorts;

  /** `options` may change. */
  constructor(options: Pick<DelayReportOptions, 'isUnasked'>, ports: DelayReportPorts) {
    this.#options = options;
    this.#ports = ports;
  }

  /** The entry waits, and is old enough. False: it is to be looked at again. */
  onOld(queue: MailQueue, row: number): boolean {
    const due = this.#look(queue, row);
    if (due === 'later') return false;
    if (due === 'never') this.#ports.onUsed(queue, row);
    else this.#ports.begin(queue, row);
    return true;
  }

  /** What is to be told; undefined: nothing any more, or not now. */
  compose(queue: MailQueue, row: number): ReportDraft | undefined {
    const due = this.#stillDue(queue, row);
    return typeof due === 'object' ? this.#ports.writer.compose(subjectOf(queue, row, due)) : undefined;
  }

  /** The mirrors know that this is try `tries`: it is over, whatever comes of it. */
  tell(queue: MailQueue, row: number, tries: number, draft: ReportDraft | undefined): void {
    const { settlement, writer } = this.#ports;
    const due = draft === undefined ? 'later' : this.#stillDue(queue, row);
    // It may have been delivered to some of them while the report was signed.
    if (draft !== undefined && typeof due === 'object' && isAbout(draft, due.recipients)) {
      const toldNote = { ...due.note, isDelayTold: true, tries: 0 };
      const annotate = (): void => { settlement.annotate(queue, row, toldNote); };
      const why = writer.store(subjectOf(queue, row, due), draft, due.way, annotate);
      if (why === undefined) {
        this.#ports.onUsed(queue, row);
        return;
      }
    }
    this.#putOff(queue, row, tries);
  }

  #stillDue(queue: MailQueue, row: number): Due | 'later' | 'never' {
    const { table } = this.#ports.entries;
    const isWaiting = table.state(row) === EntryState.READY || table.state(row) === EntryState.DEFERRED;
    return isWaiting ? this.#look(queue, row) : 'later';
  }

  /** What is to be told of the entry now; or that it is to be looked at again, or never. */
  #look(queue: MailQueue, row: number): Due | 'later' | 'never' {
    const { entries, settlement, writer, memory } = this.#ports;
    if (entries.isAllAbsent(row)) return wanted(queue, row, entries, memory);
    const envelope = settlement.envelopeOf(row);
    if (envelope === undefined || envelope.reversePath === '') return 'never';
    const note = settlement.noteOf(row, envelope.recipients.length);
    if (note.isDelayTold) return 'never';
    const recipients: number[] = [];
    envelope.recipients.forEach((recipient, index) => {
      const notify = recipient.notify & NOTIFY_BITS;
      const isWanted = notify === 0 ? this.#options.isUnasked : (notify & NOTIFY_DELAY) !== 0;
      if (isWanted && note.states[index] === TO_TRY) recipients.push(index);
    });
    if (recipients.length === 0) return 'never';
    // The answer may hold for less than a round of the walk.
    const way = writer.wayTo(envelope.reversePath, () => { this.#onWayKnown(row, envelope.messageId); });
    if (typeof way === 'string') return 'never';
    if (way === NOT_READY) return 'later';
    if (entries.isAbsent(row)) return wanted(queue, row, entries, memory);
    if (!hasRoom(queue, memory, delayReportBytesMax(envelope, recipients))) return 'later';
    return { envelope, note, recipients, way };
  }

  /** Unless the row is another's by now. */
  #onWayKnown(row: number, messageId: number): void {
    const { entries: { table }, lookAgain } = this.#ports;
    if (table.messageId(row) === messageId) lookAgain(row);
  }

  /**
   * This process has survived its try. Where its note has gone back to the stores, the next look finds the
   * mark, and counts one try too many until that is over.
   */
  #putOff(queue: MailQueue, row: number, tries: number): void {
    const { entries, settlement } = this.#ports;
    entries.table.delaySettled.set(row, 0);
    if (entries.isAllAbsent(row)) return;
    const note = settlement.noteOf(row, settlement.envelopeOf(row)?.recipients.length ?? 0);
    // Else its outcome was decided meanwhile, and the report of that is marked by now.
    if (note.tries === tries) settlement.annotate(queue, row, { ...note, tries: tries - 1 });
  }
}

function subjectOf(queue: MailQueue, row: number, { envelope, note, recipients }: Due): ReportSubject {
  return { kind: 'delay', queue, row, envelope, note, recipients, isShort: true };
}

/**
 * It is looked at again when it is here (expiry-sweep.ts, look()). Not while there would be no room for its
 * report then: it would only take that of new mail.
 */
function wanted({ partition }: MailQueue, row: number, { absent }: Entries, memory: MemoryGauge): 'later' {
  const bytes = absent.askedBytes + absent.sizeOf(row) + 2 * REPORT_BYTES;
  if (memory.admits(bytes)) absent.wantLater(partition, row);
  return 'later';
}

/** As for new mail, here and at the stores: for the report, and for its change until the mirrors have it. */
function hasRoom({ partition }: MailQueue, memory: MemoryGauge, reportBytes: number): boolean {
  if (partition.isLeaving || !partition.mayCommit || !memory.admits(2 * reportBytes)) return false;
  if (partition.credit >= reportBytes) return true;
  partition.askCredit(reportBytes);
  return false;
}
