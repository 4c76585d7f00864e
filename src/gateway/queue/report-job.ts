/**
 * A report (DSN) about recipients of a message that have failed, or whose delivery was to be told. It stands in the
 * partition of its message, so that no crash and no takeover sees half of it (docs/GUARANTEES.md "Reports").
 *
 *   DECIDED   the source is annotated "report owed"                         waits for that change at the mirrors
 *   MAKING    report stored, and the source ended or annotated "reported":  one section of changes, which a mirror
 *             takes as a whole or not at all                                no room: tried again
 *   OVER      the report is due as soon as its change is committed
 *
 * After a restart a source that owes a report has none yet: it is made anew. A few are made in a turn, however many
 * are owed: others wait for theirs.
 */
import type { Partition } from '../mirror/partition.js';
import type { CommitWaiter } from '../mirror/wait-list.js';
import type { Clock, EventLog } from '../../platform/ports.js';
import type { Acceptance } from './acceptance.js';
import type { Entries } from './entries.js';
import type { MailEvents } from './mail-events.js';
import type { MailQueue } from './mail-queue.js';
import type { Note } from './note.js';
import { DONE, ENDED, OWED_FAILURE, OWED_SUCCESS } from './note.js';
import type { Settlement } from './settlement.js';
import type { Envelope, Router } from './types.js';
import { NO_MEMORY, NOT_READY, RET_HEADERS } from './types.js';

/** Step of a report. */
export const ReportStep = { DECIDED: 0, MAKING: 1, OVER: 2 } as const;
export type ReportStepValue = (typeof ReportStep)[keyof typeof ReportStep];

/** What a report is about: recipients of one entry with what was last said of each. */
export interface ReportInput {
  readonly envelope: Envelope;
  readonly note: Note;
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
  /** The bytes of a DSN (gateway/bounce). */
  compose(input: ReportInput, ownerId: string): { readonly content: Uint8Array; readonly flags: number };
  /** Calls work() when the turn ends. */
  requestEndOfTurn(): void;
}

const RETRY_MS = 1000;
/** Made in one turn: each is some 0.1 ms. */
const MADE_PER_TURN = 32;

class ReportJob implements CommitWaiter {
  readonly queue: MailQueue;
  readonly row: number;
  step: ReportStepValue = ReportStep.DECIDED;
  /** There was no memory for it: it is made as short as it may be. */
  isShort = false;
  private readonly reports: Reports;

  constructor(queue: MailQueue, row: number, reports: Reports) {
    this.queue = queue;
    this.row = row;
    this.reports = reports;
  }

  onCommitted(): void {
    this.reports.decided(this);
  }
}

export class Reports {
  private readonly ports: ReportPorts;
  private readonly jobs = new Set<ReportJob>();
  /** To be made, in order; those that found no room wait apart. */
  private due: ReportJob[] = [];
  private short: ReportJob[] = [];
  private retryAtMs = 0;

  constructor(ports: ReportPorts) {
    this.ports = ports;
  }

  get openCount(): number {
    return this.jobs.size;
  }

  /** A report is owed since change `number` of the source's partition. */
  begin(queue: MailQueue, row: number, number: number): void {
    const job = new ReportJob(queue, row, this);
    this.jobs.add(job);
    queue.partition.await(number, job);
  }

  /** After a restart: the source owes a report. */
  resume(queue: MailQueue, row: number): void {
    const job = new ReportJob(queue, row, this);
    this.jobs.add(job);
    this.decided(job);
  }

  /** The partition leaves this process, sources and reports: who has it next goes on with what it finds. */
  forget(partition: Partition): void {
    for (const job of this.jobs) if (job.queue.partition === partition) this.over(job);
  }

  /** The mirrors know that the report is owed. */
  decided(job: ReportJob): void {
    if (job.step !== ReportStep.DECIDED) return;
    job.step = ReportStep.MAKING;
    this.due.push(job);
    this.ports.requestEndOfTurn();
  }

  /** Those for which there was no room are tried again. */
  tick(nowMs: number): void {
    if (this.short.length === 0 || nowMs < this.retryAtMs) return;
    this.due = this.due.concat(this.short);
    this.short = [];
    this.ports.requestEndOfTurn();
  }

  /** Makes some of those that are due; called when a turn ends. */
  work(): void {
    if (this.due.length === 0) return;
    const now = this.due.splice(0, MADE_PER_TURN);
    for (const job of now) {
      if (job.step !== ReportStep.MAKING || this.make(job)) continue;
      // Without room for one there is none for the others either; the next one is tried first when there may be.
      this.retryAtMs = this.ports.clock.nowMs() + RETRY_MS;
      this.short = this.short.concat(now.slice(now.indexOf(job) + 1), this.due, job);
      this.due = [];
      return;
    }
    if (this.due.length > 0) this.ports.requestEndOfTurn();
  }

  private over(job: ReportJob): void {
    job.step = ReportStep.OVER;
    this.jobs.delete(job);
  }

  /** False when there was no room for it. */
  private make(job: ReportJob): boolean {
    const { settlement, router, events, log } = this.ports;
    const { queue, row } = job;
    const envelope = settlement.envelopeOf(row);
    if (envelope === undefined) {
      this.over(job);
      return true;
    }
    const note = settlement.noteOf(row, envelope.recipients.length);
    const failure = note.states.includes(OWED_FAILURE);
    const wanted = failure ? OWED_FAILURE : OWED_SUCCESS;
    const recipients: number[] = [];
    note.states.forEach((state, index) => {
      if (state === wanted) recipients.push(index);
    });
    const domain = envelope.reversePath.slice(envelope.reversePath.lastIndexOf('@') + 1).toLowerCase();
    const route = router.route(domain, 'bounce');
    if (route === undefined) {
      for (const index of recipients) events.ended(queue, envelope, index, 'no route to the reverse-path', 'the report has nowhere to go');
      this.endSource(job, note, failure);
      return true;
    }
    const reportId = this.ports.nextMessageId();
    const report = this.compose(job, envelope, note, recipients, failure, reportId);
    const outcome = queue.partition.together(() => {
      const stored = this.ports.acceptance.storeReport({
        messageId: reportId, route, home: queue.partition, recipient: envelope.reversePath, content: report.content, flags: report.flags,
      });
      if (stored === undefined) this.endSource(job, note, failure);
      return stored;
    });
    if (outcome === undefined) {
      events.reported(queue, envelope, reportId);
      return true;
    }
    job.isShort = outcome === NO_MEMORY;
    if (outcome !== NOT_READY) log.warn('report', 'a report can not be stored yet; it is tried again', { queue: route.queueName, queue_id: reportId });
    return false;
  }

  private compose(
    job: ReportJob, envelope: Envelope, note: Note, recipients: readonly number[], failure: boolean, reportId: number,
  ): { readonly content: Uint8Array; readonly flags: number } {
    const { entries } = this.ports;
    const content = new Uint8Array(entries.table.bodyBytes.get(job.row));
    entries.copyBody(job.row, content, 0);
    const about = job.isShort ? { ...envelope, ret: RET_HEADERS } : envelope;
    return this.ports.compose({ envelope: about, note, recipients, failure, reportId, content }, job.queue.identity.ownerId);
  }

  /** The source does not owe this report any more: it ends, or others of its recipients are still to be tried. */
  private endSource(job: ReportJob, note: Note, failure: boolean): void {
    const { settlement } = this.ports;
    const { queue, row } = job;
    this.over(job);
    const states = note.states.map((state) => (state === OWED_FAILURE ? ENDED : state === OWED_SUCCESS && !failure ? DONE : state));
    const stillOwes = states.includes(OWED_SUCCESS);
    const left = { ...note, states, owedChange: stillOwes ? queue.partition.lastNumber + 1 : 0 };
    if (stillOwes) this.begin(queue, row, settlement.annotate(queue, row, left));
    else settlement.afterReport(queue, row, left);
  }
}
