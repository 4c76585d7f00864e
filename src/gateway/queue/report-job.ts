/**
 * A report (DSN) in three steps that survive a crash between any two of them (docs/GUARANTEES.md "Reports").
 *
 *   DECIDED    source annotated "report owed, first try" as change k   waits for commit of k
 *   MARKING    after a restart: annotated with one more try            waits for its turn, then for that commit
 *   PARKING    parked copy stored in the reverse-path's bounce queue   waits for its commit
 *   ENDING     source ended, or annotated "reported"                   waits for that commit
 *   OVER       the copy is unparked and due
 *
 * After a restart: source owed and no parked copy → MARKING; owed and a parked copy with this origin
 * → ENDING; a parked copy whose source is gone or owes nothing → unpark. So the sender gets one report: a
 * copy goes out only after the source can't ask for another.
 *
 * Composing may end the process. A message whose report two processes began, and neither survived, is held by
 * the third (message-holds.ts). So that only this one is, tries after a restart are marked one after the
 * other, and the mark goes back with the turn in which the report is there.
 *
 * Making the copy is the costly step: it takes the content of the message. One commit may tell of 100,000 reports,
 * and all of them may find no mirror or no memory. So jobs that come to PARKING queue up; one that was MARKING goes
 * on alone, at once:
 *
 *   fresh  ─ MADE_PER_TURN a turn of the loop, turn after turn ─┬► made ─ stored ─► ENDING
 *   failed ─ a second later, TRIED_PER_TICK a tick ─────────────┘   │
 *     ▲                                                             └ not stored ─┐
 *     └───────────────────────────────────────────────────────────────────────────┘
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
import type { Settlement } from './settlement.js';
import type { Envelope, Origin, RecipientGroup, Route, Router, SubmissionOutcome } from './types.js';
import { COMMITTED, ENVELOPE_PARKED, NO_MEMORY, NOT_READY, ORIGIN_FAILURE_DSN, ORIGIN_SUCCESS_DSN, RET_HEADERS } from './types.js';

/** Step of a report. */
const ReportStep = { DECIDED: 0, MARKING: 1, PARKING: 2, ENDING: 3, OVER: 4 } as const;
export type ReportStep = (typeof ReportStep)[keyof typeof ReportStep];

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
  /** Reports about another gateway's mail go to a bounce queue under that gateway's identity. */
  routeFor(source: QueueMirror, route: Route): Route;
  /** The bytes of a DSN (gateway/bounce). */
  compose(input: ReportInput, ownerId: string): { readonly content: Uint8Array; readonly flags: number };
  /** The report may go out: its entry is due. */
  unpark(mirror: QueueMirror, row: number): void;
  /** endOfTurn() is to be called when the loop's turn ends. */
  requestEndOfTurn(): void;
}

/** Told of halves of reports whose other half has left with its queue. */
export interface ReportHalves {
  owing(mirror: QueueMirror, row: number): void;
  parked(mirror: QueueMirror, row: number): void;
}

const RETRY_MS = 1000;
/** So long the others wait for the mark of one: its mirrors may have gone meanwhile. */
const MARK_WAIT_MS = 1000;
/** Jobs looked at, at once, for one whose mirrors can take a mark. */
const MARK_LOOKS = 64;
/** Each is some 30 µs and a copy of the content: a turn stays below a few milliseconds. */
const MADE_PER_TURN = 64;
/** Those that could not be stored: ten ticks a second make it 640 a second at most, 2% of the process. */
const TRIED_PER_TICK = 64;
const TOLD_EVERY_MS = 10_000;

class ReportJob implements CommitWaiter, StoreRequest {
  readonly mirror: QueueMirror;
  readonly row: number;
  step: ReportStep = ReportStep.DECIDED;
  retryAtMs = 0;
  /** MARKING: the count of tries that was sent to the mirrors; 0 before. */
  tries = 0;
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
  /** Those that wait for their turn to be marked, and the one whose mark is on its way. */
  private readonly unmarked = new Set<ReportJob>();
  private marked: ReportJob | undefined;
  private markedAtMs = 0;
  /** At PARKING, not made yet; in the order in which they came. */
  private readonly fresh = new Set<ReportJob>();
  /** Not stored: by the time at which each is tried again. */
  private readonly failed = new Set<ReportJob>();
  private toldMs = -Infinity;

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
      job.step = ReportStep.MARKING;
      this.unmarked.add(job);
      this.markNext();
      return;
    }
    job.parkedMirror = parked.mirror;
    job.parkedRow = parked.row;
    this.toPark(job);
  }

  /**
   * The queue leaves this process. Reports that it has a part in stop where they are; the other part, in a queue
   * that stays, is told to `found`, which brings the two together again if the queue ever comes back.
   */
  forget(mirror: QueueMirror, found: ReportHalves): void {
    for (const job of this.jobs) {
      const copyAt = job.parkedMirror ?? job.parked?.mirrors[0];
      if (job.mirror !== mirror && copyAt !== mirror) continue;
      this.drop(job);
      job.orphans = found;
      if (job.mirror !== mirror) found.owing(job.mirror, job.row);
      else if (job.parkedMirror !== undefined && job.parkedMirror !== mirror) found.parked(job.parkedMirror, job.parkedRow);
    }
  }

  /** Makes some of the reports that have come up; the rest in the next turns, so that mail goes on between them. */
  endOfTurn(): void {
    let left = MADE_PER_TURN;
    for (const job of this.fresh) {
      if (left === 0) break;
      left -= 1;
      this.fresh.delete(job);
      if (job.parkedMirror === undefined) this.park(job);
      else this.endSource(job);
    }
    if (this.fresh.size > 0) this.ports.requestEndOfTurn();
  }

  /** Reports that could not be stored are tried again, the next one first when memory is short once more. */
  tick(nowMs: number): void {
    this.markNext();
    let left = TRIED_PER_TICK;
    for (const job of this.failed) {
      if (left === 0 || job.retryAtMs > nowMs) return;
      left -= 1;
      this.failed.delete(job);
      this.park(job);
      if (job.isShort && this.failed.has(job)) return;
    }
  }

  /** The change that the job waits for is committed. */
  advance(job: ReportJob): void {
    if (job.step === ReportStep.DECIDED) this.toPark(job);
    else if (job.step === ReportStep.MARKING) {
      job.step = ReportStep.PARKING;
      this.park(job);
      if (this.marked === job) this.marked = undefined;
      this.markNext();
    } else if (job.step === ReportStep.ENDING) this.finish(job);
  }

  parkedSettled(job: ReportJob, outcome: SubmissionOutcome): void {
    const copyAt = job.parked?.mirrors[0];
    if (job.step === ReportStep.OVER && outcome === COMMITTED && copyAt !== undefined) job.orphans?.parked(copyAt, job.parked?.rows[0] ?? 0);
    if (job.step !== ReportStep.PARKING) return;
    if (outcome !== COMMITTED) {
      this.tryAgain(job);
      return;
    }
    job.parkedMirror = job.parked?.mirrors[0];
    job.parkedRow = job.parked?.rows[0] ?? 0;
    this.endSource(job);
  }

  /** The next job is marked, when no mark is on its way. */
  private markNext(): void {
    if (this.unmarked.size === 0) return;
    const nowMs = this.ports.clock.nowMs();
    if (this.marked !== undefined && nowMs - this.markedAtMs < MARK_WAIT_MS) return;
    this.marked = undefined;
    let looks = Math.min(MARK_LOOKS, this.unmarked.size);
    for (const job of this.unmarked) {
      if (looks === 0) return;
      looks -= 1;
      this.unmarked.delete(job);
      if (mayMark(job.mirror)) {
        this.mark(job);
        this.marked = job;
        this.markedAtMs = nowMs;
        return;
      }
      this.unmarked.add(job);
    }
  }

  private mark(job: ReportJob): void {
    const { settlement } = this.ports;
    const envelope = settlement.envelopeOf(job.row);
    const note = settlement.noteOf(job.row, envelope?.recipients.length ?? 0);
    job.tries = note.tries + 1;
    job.mirror.await(settlement.annotate(job.mirror, job.row, { ...note, tries: job.tries }), job);
  }

  /** This process has survived its try: the next one begins as the second again. */
  private survived(job: ReportJob): void {
    if (job.tries <= 1) return;
    const { settlement } = this.ports;
    const envelope = settlement.envelopeOf(job.row);
    const note = settlement.noteOf(job.row, envelope?.recipients.length ?? 0);
    settlement.annotate(job.mirror, job.row, { ...note, tries: 1 });
    job.tries = 1;
  }

  private toPark(job: ReportJob): void {
    job.step = ReportStep.PARKING;
    this.fresh.add(job);
    this.ports.requestEndOfTurn();
  }

  private tryAgain(job: ReportJob): void {
    job.retryAtMs = this.ports.clock.nowMs() + RETRY_MS;
    this.failed.add(job);
  }

  private drop(job: ReportJob): void {
    job.step = ReportStep.OVER;
    this.jobs.delete(job);
    this.unmarked.delete(job);
    if (this.marked === job) this.marked = undefined;
    this.fresh.delete(job);
    this.failed.delete(job);
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
    const report = this.ports.compose({ envelope: job.isShort ? { ...envelope, ret: RET_HEADERS } : envelope, note, recipients, failure, reportId: job.messageId, content }, job.mirror.queue.identity.ownerId);
    this.survived(job);
    job.groups = [{ route, recipients: [{ address: envelope.reversePath, notify: 1, orcpt: '' }] }];
    job.chunks = [report.content];
    job.contentBytes = report.content.length;
    job.flags = report.flags | ENVELOPE_PARKED;
    const identity = job.mirror.queue.identity;
    job.origin = { messageId: envelope.messageId, queueBirth: identity.birth, queueSerial: identity.serial, change: note.owedChange, kind: failure ? ORIGIN_FAILURE_DSN : ORIGIN_SUCCESS_DSN };
    const stored = this.ports.acceptance.store(job, true);
    if (stored instanceof PendingCommit) {
      job.parked = stored;
      this.ports.events.reported(job.mirror.queue, envelope, job.messageId);
      return;
    }
    job.isShort = stored === NO_MEMORY;
    if (stored !== NOT_READY) this.tellShort(route, job);
    this.tryAgain(job);
  }

  /** Once in a while: with 100,000 that wait, a line for each would be a load of its own. */
  private tellShort(route: Route, job: ReportJob): void {
    const nowMs = this.ports.clock.nowMs();
    if (nowMs < this.toldMs + TOLD_EVERY_MS) return;
    this.toldMs = nowMs;
    this.ports.log.warn('report', 'reports can not be stored yet; they are tried again', {
      queue: route.queueName, queue_id: job.messageId, waiting: this.jobs.size,
    });
  }

  /** Step three begins: the source may not owe this report any more. */
  private endSource(job: ReportJob): void {
    const { settlement } = this.ports;
    const envelope = settlement.envelopeOf(job.row);
    const note = settlement.noteOf(job.row, envelope?.recipients.length ?? 0);
    const failure = note.states.includes(OWED_FAILURE);
    const states = note.states.map((state) => (state === OWED_FAILURE ? ENDED : state === OWED_SUCCESS && !failure ? DONE : state));
    const stillOwes = states.includes(OWED_SUCCESS);
    const ended = { ...note, states, owedChange: stillOwes ? job.mirror.lastNumber + 1 : 0, tries: stillOwes ? 1 : 0 };
    const number = settlement.annotate(job.mirror, job.row, ended);
    job.step = ReportStep.ENDING;
    job.mirror.await(number, job);
  }

  private finish(job: ReportJob): void {
    this.drop(job);
    if (job.parkedMirror !== undefined && job.parkedRow !== 0) this.ports.unpark(job.parkedMirror, job.parkedRow);
    const envelope = this.ports.settlement.envelopeOf(job.row);
    const note = this.ports.settlement.noteOf(job.row, envelope?.recipients.length ?? 0);
    if (note.states.includes(OWED_SUCCESS)) this.begin(job.mirror, job.row, job.mirror.lastNumber);
    else this.ports.settlement.afterReport(job.mirror, job.row);
  }
}

/** The mark would be committed now. */
function mayMark({ queue, inSyncCount, minReplicas }: QueueMirror): boolean {
  return !queue.isLeaving && inSyncCount > 0 && inSyncCount >= minReplicas;
}
