/**
 * A report (DSN) in three steps that survive a crash between any two of them (docs/GUARANTEES.md "Reports").
 *
 *   DECIDED    source annotated "report owed" as change k              waits for commit of k
 *   PARKING    parked copy stored in the reverse-path's bounce queue   waits for its commit
 *   ENDING     source ended, or annotated "reported"                   waits for that commit
 *   OVER       the copy is unparked and due
 *
 * After a restart: source owed and no parked copy → PARKING again; owed and a parked copy with this origin
 * → ENDING; a parked copy whose source is gone or owes nothing → unpark. So the sender gets one report: a
 * copy goes out only after the source can't ask for another.
 */
import { CommitState, PendingCommit } from '../mirror/commit-point.js';
import type { QueueMirror } from '../mirror/queue-mirror.js';
import type { CommitWaiter } from '../mirror/wait-list.js';
import type { Clock, EventLog } from '../../platform/ports.js';
import type { Acceptance, StoreRequest } from './acceptance.js';
import type { Entries } from './entries.js';
import type { MailEvents } from './mail-events.js';
import type { Note } from './note.js';
import { DONE, ENDED, OWED_FAILURE, OWED_SUCCESS } from './note.js';
import type { ReplyTexts } from './reply-texts.js';
import type { Settlement } from './settlement.js';
import type { Envelope, Origin, RecipientGroup, Route, Router, SubmissionOutcome } from './types.js';
import { COMMITTED, ENVELOPE_PARKED, NO_MEMORY, NOT_READY, ORIGIN_FAILURE_DSN, ORIGIN_SUCCESS_DSN, RET_HEADERS } from './types.js';

/** Step of a report. */
export const ReportStep = { DECIDED: 0, PARKING: 1, ENDING: 2, OVER: 3 } as const;
export type ReportStepValue = (typeof ReportStep)[keyof typeof ReportStep];

/** What a report is about: recipients of one entry with what was last said of each. */
export interface ReportInput {
  readonly envelope: Envelope;
  readonly note: Note;
  /** What was said of them, as far as it is still known. */
  readonly texts: ReplyTexts;
  /** Indexes of recipients whose outcome is reported. */
  readonly recipients: readonly number[];
  readonly failure: boolean;
  readonly reportId: number;
  /** The content of the reported message. */
  readonly content: Uint8Array;
}

export interface ReportPorts {
  readonly clock: Clock;
  readonly log: EventLog;
  readonly entries: Entries;
  readonly settlement: Settlement;
  readonly acceptance: Acceptance;
  readonly router: Router;
  readonly events: MailEvents;
  nextMessageId(): number;
  /** Reports about another gateway's mail go to a bounce queue under that gateway's identity. */
  routeFor(source: QueueMirror, route: Route): Route;
  /** The bytes of a DSN (gateway/bounce). */
  compose(input: ReportInput, ownerId: string): { readonly content: Uint8Array; readonly flags: number };
  /** The report may go out: its entry is due. */
  unpark(mirror: QueueMirror, row: number): void;
}

/** Told of halves of reports whose other half has left with its queue. */
export interface ReportHalves {
  owing(mirror: QueueMirror, row: number): void;
  parked(mirror: QueueMirror, row: number): void;
}

const RETRY_MS = 1000;

class ReportJob implements CommitWaiter, StoreRequest {
  readonly mirror: QueueMirror;
  readonly row: number;
  step: ReportStepValue = ReportStep.DECIDED;
  retryAtMs = 0;
  /** There was no memory for it: it is made as short as it may be. */
  isShort = false;
  parked: PendingCommit | undefined;
  parkedMirror: QueueMirror | undefined;
  parkedRow = 0;
  /** Set when the source has left: who wants to know of the copy. */
  orphans: ReportHalves | undefined;
  // The store request of the parked copy, filled at PARKING.
  messageId = 0;
  readonly reversePath = '';
  groups: readonly RecipientGroup[] = [];
  chunks: readonly Uint8Array[] = [];
  contentBytes = 0;
  flags = 0;
  readonly ret = 0;
  readonly envid = '';
  readonly client = '';
  readonly helo = '';
  origin: Origin | undefined;
  private readonly reports: Reports;

  constructor(mirror: QueueMirror, row: number, reports: Reports) {
    this.mirror = mirror;
    this.row = row;
    this.reports = reports;
  }

  onCommitted(): void {
    this.reports.advance(this);
  }

  settle(outcome: SubmissionOutcome): void {
    this.reports.parkedSettled(this, outcome);
  }
}

export class Reports {
  private readonly ports: ReportPorts;
  private readonly jobs = new Set<ReportJob>();

  constructor(ports: ReportPorts) {
    this.ports = ports;
  }

  get openCount(): number {
    return this.jobs.size;
  }

  /** The copy of a report about this queue's mail is on its way to its stores: nobody else could know of it yet. */
  isParkingFor(mirror: QueueMirror): boolean {
    for (const job of this.jobs) if (job.mirror === mirror && job.step === ReportStep.PARKING && job.parked !== undefined && job.parked.state !== CommitState.OVER) return true;
    return false;
  }

  /** A report is owed since change `number` of the source's queue. */
  begin(mirror: QueueMirror, row: number, number: number): void {
    const job = new ReportJob(mirror, row, this);
    this.jobs.add(job);
    mirror.await(number, job);
  }

  /** After a restart: the source owes a report; `parked` is the copy that was found, if any. */
  resume(mirror: QueueMirror, row: number, parked: { mirror: QueueMirror; row: number } | undefined): void {
    const job = new ReportJob(mirror, row, this);
    this.jobs.add(job);
    if (parked === undefined) {
      job.step = ReportStep.PARKING;
      this.park(job);
      return;
    }
    job.parkedMirror = parked.mirror;
    job.parkedRow = parked.row;
    job.step = ReportStep.PARKING;
    this.endSource(job);
  }

  /**
   * The queue leaves this process. Reports that it has a part in stop where they are; the other part, in a queue
   * that stays, is told to `found`, which brings the two together again if the queue ever comes back.
   */
  forget(mirror: QueueMirror, found: ReportHalves): void {
    for (const job of this.jobs) {
      const copyAt = job.parkedMirror ?? job.parked?.mirrors[0];
      if (job.mirror !== mirror && copyAt !== mirror) continue;
      this.jobs.delete(job);
      job.step = ReportStep.OVER;
      job.orphans = found;
      if (job.mirror !== mirror) found.owing(job.mirror, job.row);
      else if (job.parkedMirror !== undefined && job.parkedMirror !== mirror) found.parked(job.parkedMirror, job.parkedRow);
    }
  }

  /** Steps that could not be done are tried again, the next one first when memory is short once more. */
  tick(nowMs: number): void {
    for (const job of this.jobs) {
      if (job.retryAtMs === 0 || job.retryAtMs > nowMs) continue;
      job.retryAtMs = 0;
      this.park(job);
      if (!job.isShort || job.retryAtMs === 0) continue;
      this.jobs.delete(job);
      this.jobs.add(job);
      return;
    }
  }

  /** The change that the job waits for is committed. */
  advance(job: ReportJob): void {
    if (job.step === ReportStep.DECIDED) {
      job.step = ReportStep.PARKING;
      this.park(job);
    } else if (job.step === ReportStep.ENDING) this.finish(job);
  }

  parkedSettled(job: ReportJob, outcome: SubmissionOutcome): void {
    const copyAt = job.parked?.mirrors[0];
    if (job.step === ReportStep.OVER && outcome === COMMITTED && copyAt !== undefined) job.orphans?.parked(copyAt, job.parked?.rows[0] ?? 0);
    if (job.step !== ReportStep.PARKING) return;
    if (outcome !== COMMITTED) {
      job.retryAtMs = this.ports.clock.nowMs() + RETRY_MS;
      return;
    }
    job.parkedMirror = job.parked?.mirrors[0];
    job.parkedRow = job.parked?.rows[0] ?? 0;
    this.endSource(job);
  }

  private park(job: ReportJob): void {
    const { settlement, entries, router } = this.ports;
    const envelope = settlement.envelopeOf(job.row);
    if (envelope === undefined) return;
    const note = settlement.noteOf(job.row, envelope.recipients.length);
    const failure = note.states.includes(OWED_FAILURE);
    const wanted = failure ? OWED_FAILURE : OWED_SUCCESS;
    const recipients: number[] = [];
    note.states.forEach((state, index) => {
      if (state === wanted) recipients.push(index);
    });
    const domain = envelope.reversePath.slice(envelope.reversePath.lastIndexOf('@') + 1).toLowerCase();
    const own = router.route(domain, 'bounce');
    if (own === undefined) {
      for (const index of recipients) this.ports.events.ended(job.mirror.queue, envelope, index, 'no route to the reverse-path', 'the report has nowhere to go');
      this.endSource(job);
      return;
    }
    const route = this.ports.routeFor(job.mirror, own);
    const content = new Uint8Array(entries.table.bodyBytes.get(job.row));
    entries.copyBody(job.row, content, 0);
    job.messageId = this.ports.nextMessageId();
    const report = this.ports.compose({ envelope: job.isShort ? { ...envelope, ret: RET_HEADERS } : envelope, note, texts: settlement.textsOf(job.row), recipients, failure, reportId: job.messageId, content }, job.mirror.queue.identity.ownerId);
    job.groups = [{ route, recipients: [{ address: envelope.reversePath, notify: 1, orcpt: '' }] }];
    job.chunks = [report.content];
    job.contentBytes = report.content.length;
    job.flags = report.flags | ENVELOPE_PARKED;
    const identity = job.mirror.queue.identity;
    job.origin = { messageId: envelope.messageId, queueBirth: identity.birth, queueSerial: identity.serial, change: note.owedChange, kind: failure ? ORIGIN_FAILURE_DSN : ORIGIN_SUCCESS_DSN };
    const stored = this.ports.acceptance.store(job, true);
    // It stands in the segments, or is made again: thousands that wait must not hold theirs.
    job.chunks = [];
    if (stored instanceof PendingCommit) {
      job.parked = stored;
      this.ports.events.reported(job.mirror.queue, envelope, job.messageId);
      return;
    }
    job.isShort = stored === NO_MEMORY;
    if (stored !== NOT_READY) this.ports.log.warn('report', 'a report can not be stored yet; it is tried again', { queue: route.queueName, queue_id: job.messageId });
    job.retryAtMs = this.ports.clock.nowMs() + RETRY_MS;
  }

  /** Step three begins: the source may not owe this report any more. */
  private endSource(job: ReportJob): void {
    const { settlement } = this.ports;
    const envelope = settlement.envelopeOf(job.row);
    const note = settlement.noteOf(job.row, envelope?.recipients.length ?? 0);
    const failure = note.states.includes(OWED_FAILURE);
    const states = note.states.map((state) => (state === OWED_FAILURE ? ENDED : state === OWED_SUCCESS && !failure ? DONE : state));
    const stillOwes = states.includes(OWED_SUCCESS);
    const number = settlement.annotate(job.mirror, job.row, { ...note, states, owedChange: stillOwes ? job.mirror.lastNumber + 1 : 0 });
    job.step = ReportStep.ENDING;
    job.mirror.await(number, job);
  }

  private finish(job: ReportJob): void {
    job.step = ReportStep.OVER;
    this.jobs.delete(job);
    if (job.parkedMirror !== undefined && job.parkedRow !== 0) this.ports.unpark(job.parkedMirror, job.parkedRow);
    const envelope = this.ports.settlement.envelopeOf(job.row);
    const note = this.ports.settlement.noteOf(job.row, envelope?.recipients.length ?? 0);
    if (note.states.includes(OWED_SUCCESS)) this.begin(job.mirror, job.row, job.mirror.lastNumber);
    else this.ports.settlement.afterReport(job.mirror, job.row);
  }
}
