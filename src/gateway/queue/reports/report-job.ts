/**
 * A report (DSN) about recipients of a message that have failed, or whose delivery was to be told. It stands
 * in the partition of its message, so that no crash and no takeover sees half of it (docs/GUARANTEES.md
 * "Reports").
 *
 *   DECIDED   the source is annotated "report owed, first try"       waits for that change at the mirrors
 *   MARKING   tried by a process before: one more try                waits for its turn, then for that change
 *   MAKING    report composed, stored, and the source ended or       no room: tried again
 *             annotated "reported": one section of changes, which
 *             a mirror takes as a whole or not at all
 *   SIGNING   composed, of a sender with a key (gateway/dkim)        signed, or given up: MAKING again,
 *                                                                    which stores it
 *   ASIDE     nobody can say where it goes, and other recipients     known, and the message rests: begun anew
 *             of its message are to be tried: they go on meanwhile
 *   OVER      the report is due as soon as its change is committed; or there is nothing to report any more
 *
 *   DECIDED ─ committed ─► MAKING ─ stored ─► OVER
 *   DECIDED ─ a process before may have ended with it ─► MARKING ─ committed ─► MAKING
 *   MAKING ─ to be signed ─► SIGNING ─ signed, given up, or there is a place ─► MAKING
 *   MARKING, MAKING ─ no way is known, others are to be tried ─► ASIDE ─ its message owes it anew ─► OVER
 *   any ─ its message has ended or leaves with its partition ─► OVER
 *
 * After a restart a source that owes a report has none yet: it is made anew. A few are made in a turn,
 * however many are owed: others wait for theirs.
 *
 * Composing may end the process. A message whose report two processes began, and neither survived, is held by
 * the third (message-holds.ts). So that only this one is, tries after a restart are marked one after the
 * other, and the mark goes back with the turn in which the report is there.
 *
 * What is being signed is in no queue and in no memory that is counted: so few are at once. After a crash its
 * source owes it still. One that says no more what has become of its recipients is composed anew.
 *
 * A delay (delay-reports.ts) goes through the same steps: nothing is owed, and its message goes on meanwhile;
 * only who tries is marked. One that can not be told then is over, and the sweep begins it again.
 */
import { invariant } from '../../../base/invariant.js';
import { OnceInAWhile } from '../../../base/once-in-a-while.js';
import { formatMessageId } from '../../../base/text-id.js';
import type { Partition } from '../../mirror/set/partition.js';
import type { CommitWaiter } from '../../mirror/wait-list.js';
import type { Clock, EventLog } from '../../../platform/ports.js';
import type { Entries } from '../entries.js';
import { EntryState } from '../entry-table.js';
import type { MailEvents } from '../mail-events.js';
import type { MailQueue } from '../mail-queue.js';
import type { Note } from '../note.js';
import { DONE, OWED_FAILURE, OWED_SUCCESS, TO_TRY, failedState, owesReportIn } from '../note.js';
import type { Settlement } from '../settlement.js';
import { isAbout } from './report-writer.js';
import type { ReportDraft, ReportSubject, ReportWriter } from './report-writer.js';
import type { Envelope, FindReportWay } from '../../mail-types.js';
import { NO_MEMORY, NOT_READY } from '../../mail-types.js';

/** Step of a report. */
const ReportStep = { DECIDED: 0, MARKING: 1, MAKING: 2, SIGNING: 3, ASIDE: 4, OVER: 5 } as const;
type ReportStep = (typeof ReportStep)[keyof typeof ReportStep];

const NEXT: Readonly<Record<ReportStep, readonly ReportStep[]>> = {
  [ReportStep.DECIDED]: [ReportStep.MARKING, ReportStep.MAKING, ReportStep.OVER],
  [ReportStep.MARKING]: [ReportStep.MAKING, ReportStep.ASIDE, ReportStep.OVER],
  [ReportStep.MAKING]: [ReportStep.SIGNING, ReportStep.ASIDE, ReportStep.OVER],
  [ReportStep.SIGNING]: [ReportStep.MAKING, ReportStep.OVER],
  [ReportStep.ASIDE]: [ReportStep.OVER],
  [ReportStep.OVER]: [],
};

export interface ReportPorts {
  readonly clock: Clock;
  readonly log: EventLog;
  readonly entries: Entries;
  readonly settlement: Settlement;
  readonly writer: ReportWriter;
  readonly events: MailEvents;
  /** There is room for a change of its note: to put its report aside, or to take that up. */
  admits(queue: MailQueue, row: number): boolean;
  /** Calls work() when the turn ends. */
  requestEndOfTurn(): void;
  /** Who tells the delay is marked: what is to be told, if anything is (delay-reports.ts). */
  composeDelay(queue: MailQueue, row: number): ReportDraft | undefined;
  /** Told, or the mark goes back. */
  tellDelay(queue: MailQueue, row: number, tries: number, draft: ReportDraft | undefined): void;
}

const RETRY_MS = 1000;
/**
 * So long other recipients wait, once, for somebody who is asked where the report goes, and so long an
 * operator is refused: mostly there is an answer, and no change is made to put it aside.
 */
const WAY_WAIT_MS = 10_000;
/** Of those that wait for their way, or for room, in a tick of a tenth of a second. */
const SHORT_LOOKS = 64;
/** Of reports that are put aside, in a tick of a tenth of a second. */
const ASIDE_LOOKS = 64;
/** So long the others wait for the mark of one: its mirrors may have gone meanwhile. */
const MARK_WAIT_MS = 1000;
/** Jobs looked at, at once, for one whose mirrors can take a mark. */
const MARK_LOOKS = 64;
/** Composed ones that wait for their signature, in memory that nobody counts. */
const SIGNING_MAX = 16;
/** Made in one turn at most, and what they may cost together: see costOf(). One is always made. */
const MADE_PER_TURN = 64;
const COST_PER_TURN = 10_000;
/**
 * Each is some 0.1 ms, a recipient in it some 10 µs, and what comes back whole 7 ms a MiB. To look whether
 * its way is known is some µs, and to read what became of a recipient, and note it anew, one more; to put one
 * aside is a change, some 20 µs.
 */
const COST = { report: 100, recipient: 10, perOctet: 1 / 150, look: 8, read: 1, aside: 25 } as const;
/** How often it is told that reports wait for room. */
const TOLD_EVERY_MS = 10_000;

class ReportJob implements CommitWaiter {
  readonly queue: MailQueue;
  readonly row: number;
  /** Else the row is another's by now. */
  readonly messageId: number;
  /** Else an outcome. */
  readonly isDelay: boolean;
  /** The count of tries that was sent to the mirrors, by this job; 0 before. */
  tries = 0;
  /** There was no memory for it: it is made as short as it may be. */
  isShort = false;
  /** It is not known yet where its report goes. */
  isAsking = false;
  /** When others of its message go on without it; undefined: its way was not asked for; Infinity: none do. */
  othersGoAtMs: number | undefined;
  /** Signed, or as it will leave. */
  draft: ReportDraft | undefined;
  readonly #reports: Reports;
  #step: ReportStep = ReportStep.DECIDED;

  constructor(queue: MailQueue, row: number, messageId: number, isDelay: boolean, reports: Reports) {
    this.queue = queue;
    this.row = row;
    this.messageId = messageId;
    this.isDelay = isDelay;
    this.#reports = reports;
  }

  get step(): ReportStep {
    return this.#step;
  }

  onCommitted(): void {
    this.#reports.decided(this);
  }

  transition(to: ReportStep): void {
    const from = this.#step;
    invariant(NEXT[from].includes(to), `a report does not go from step ${String(from)} to ${String(to)}`);
    this.#step = to;
  }
}

export class Reports {
  readonly #ports: ReportPorts;
  readonly #jobs = new Set<ReportJob>();
  /** To be made, in order; those that found no room, or do not know yet where to go, wait apart. */
  #due: ReportJob[] = [];
  readonly #short = new Set<ReportJob>();
  #retryAtMs = 0;
  /** Of what was done for them; work() begins anew. */
  #cost = 0;
  readonly #telling = new OnceInAWhile(TOLD_EVERY_MS);
  /** Those that wait for their turn to be marked, and the one whose mark is on its way. */
  readonly #unmarked = new Set<ReportJob>();
  /** Of those the ones whose way is known by now, for a while: they go first. */
  readonly #markable = new Set<ReportJob>();
  #marked: ReportJob | undefined;
  #markedAtMs = 0;
  /** Those of whose message others wait, for WAY_WAIT_MS: in the order in which their time comes. */
  readonly #keeping = new Set<ReportJob>();
  /** By row. Looked at one after the other, a round a second. */
  readonly #aside = new Map<number, ReportJob>();
  #asideWalk = this.#aside.values();
  #asideAtMs = 0;
  /** Those that are being signed, and those that wait for that, not composed yet. */
  readonly #signing = new Set<ReportJob>();
  #unsigned: ReportJob[] = [];

  constructor(ports: ReportPorts) {
    this.#ports = ports;
  }

  get openCount(): number {
    return this.#jobs.size;
  }

  /** A report is owed since change `number` of the source's partition. */
  begin(queue: MailQueue, row: number, number: number): void {
    queue.partition.awaitEnd(number, this.#open(queue, row, false));
  }

  /** The source owes a report, and a process before may have ended with it. */
  resume(queue: MailQueue, row: number): void {
    this.#awaitTurn(this.#open(queue, row, false));
  }

  /** A delay is to be told. */
  beginDelay(queue: MailQueue, row: number): void {
    const job = this.#open(queue, row, true);
    if (this.#noteOf(job).tries > 0) this.#awaitTurn(job);
    else this.#mark(job);
  }

  /** The partition leaves this process, sources and reports: who has it next goes on with what it finds. */
  forget(partition: Partition): void {
    for (const job of this.#jobs) if (job.queue.partition === partition) this.#over(job);
  }

  /** The mirrors know that the report is owed, and which try this is. */
  decided(job: ReportJob): void {
    if (job.step === ReportStep.DECIDED) {
      this.#makeAgain(job);
    } else if (job.step === ReportStep.MARKING) {
      // Alone, and at once: should it end the process, no other is to blame.
      job.transition(ReportStep.MAKING);
      if (!this.#make(job)) this.#putOff([job]);
      if (this.#marked === job) this.#marked = undefined;
      this.#markNext();
    }
  }

  /** Those that were put off are tried again. */
  tick(nowMs: number): void {
    this.#markNext();
    const [first] = this.#keeping;
    if (first !== undefined && nowMs >= (first.othersGoAtMs ?? 0)) this.#ports.requestEndOfTurn();
    this.#lookAside(nowMs);
    // One that was woken and has nothing to be signed any more wakes nobody.
    for (let free = SIGNING_MAX - this.#signing.size; free > 0 && this.#unsigned.length > 0; free--) {
      this.#signNext();
    }
    if (this.#short.size === 0 || nowMs < this.#retryAtMs) return;
    this.#takeShort();
    this.#ports.requestEndOfTurn();
  }

  /** Some of those that wait longest; what is not made waits behind the others. */
  #takeShort(): void {
    let room = SHORT_LOOKS;
    for (const job of this.#short) {
      if (room === 0) break;
      room -= 1;
      this.#short.delete(job);
      this.#due.push(job);
    }
  }

  /** Makes some of those that are due, or puts them aside; called when a turn ends. */
  work(): void {
    this.#cost = 0;
    if (this.#keeping.size > 0) this.#letOthersGo();
    if (this.#due.length === 0) return;
    const now = this.#due.splice(0, MADE_PER_TURN);
    let isAllMade = true;
    for (const [at, job] of now.entries()) {
      if (this.#cost >= COST_PER_TURN) {
        this.#due = now.slice(at).concat(this.#due);
        break;
      }
      if (job.step === ReportStep.ASIDE) this.#takeUp(job);
      if (job.step !== ReportStep.MAKING || this.#make(job)) continue;
      if (job.isAsking || this.#ports.entries.isAbsent(job.row)) {
        this.#putOff([job]);
        isAllMade = false;
        continue;
      }
      // Without room for one there is none for the others; the next one is tried first when there may be.
      const rest = this.#due;
      this.#due = [];
      this.#putOff([...now.slice(now.indexOf(job) + 1), ...rest, job]);
      return;
    }
    // As long as there is room, and a way, for each.
    const mayAll = isAllMade && this.#due.length === 0 && this.#short.size > 0;
    if (mayAll && this.#ports.clock.nowMs() >= this.#retryAtMs) this.#takeShort();
    if (this.#due.length > 0) this.#ports.requestEndOfTurn();
  }

  #open(queue: MailQueue, row: number, isDelay: boolean): ReportJob {
    const job = new ReportJob(queue, row, this.#ports.entries.table.messageId(row), isDelay, this);
    this.#jobs.add(job);
    const aside = isDelay ? undefined : this.#aside.get(row);
    if (aside === undefined) return job;
    // The others have waited once.
    if (aside.messageId === job.messageId) job.othersGoAtMs = aside.othersGoAtMs;
    this.#over(aside);
    return job;
  }

  #awaitTurn(job: ReportJob): void {
    job.transition(ReportStep.MARKING);
    this.#unmarked.add(job);
    // The others were looked at when they came: with thousands of a process before this would take seconds.
    if (this.#isMarkFree()) this.#tryToMark(job);
  }

  #over(job: ReportJob): void {
    job.transition(ReportStep.OVER);
    job.draft = undefined;
    this.#jobs.delete(job);
    if (this.#signing.delete(job)) this.#signNext();
    this.#unmarked.delete(job);
    this.#markable.delete(job);
    this.#keeping.delete(job);
    if (this.#aside.get(job.row) === job) this.#aside.delete(job.row);
    if (this.#marked === job) this.#marked = undefined;
  }

  #putOff(jobs: readonly ReportJob[]): void {
    // No later for those that wait already: others may come all the time.
    if (this.#short.size === 0) this.#retryAtMs = this.#ports.clock.nowMs() + RETRY_MS;
    for (const job of jobs) {
      job.draft = undefined;
      this.#short.add(job);
    }
  }

  /** At once: the answer may hold for no longer than RETRY_MS. */
  #onWayKnown(job: ReportJob): void {
    if (this.#unmarked.has(job)) {
      // This one alone: many of one sender are told at once, maybe that nobody can say.
      if (this.#isMarkFree()) this.#tryToMark(job);
      else this.#markable.add(job);
    } else if (job.step === ReportStep.ASIDE || this.#short.delete(job)) this.#makeDue(job);
  }

  #makeDue(job: ReportJob): void {
    this.#due.push(job);
    this.#ports.requestEndOfTurn();
  }

  /** The next job is marked, when no mark is on its way. */
  #markNext(): void {
    const costMax = this.#cost + COST_PER_TURN;
    for (let looks = Math.min(MARK_LOOKS, this.#unmarked.size); looks > 0; looks--) {
      if (this.#cost >= costMax || !this.#isMarkFree()) return;
      const [job] = this.#markable.size > 0 ? this.#markable : this.#unmarked;
      if (job !== undefined) this.#tryToMark(job);
    }
  }

  #isMarkFree(): boolean {
    return this.#marked === undefined || this.#ports.clock.nowMs() - this.#markedAtMs >= MARK_WAIT_MS;
  }

  /** A try is counted when it begins: what waits for its way, or its body, has tried nothing. */
  #tryToMark(job: ReportJob): void {
    const { entries, clock } = this.#ports;
    this.#marked = undefined;
    this.#markable.delete(job);
    this.#unmarked.delete(job);
    if (this.#isGone(job)) {
      this.#over(job);
      return;
    }
    const isHere = !entries.isAbsent(job.row);
    if (!isHere) entries.absent.wantLater(job.queue.partition, job.row);
    const mayCompose = isHere && this.#signing.size < SIGNING_MAX && mayMark(job.queue.partition);
    if (mayCompose && (job.isDelay || this.#wayOf(job) !== NOT_READY)) {
      this.#mark(job);
      this.#marked = job;
      this.#markedAtMs = clock.nowMs();
    } else if (!mayCompose || !this.#putAside(job)) this.#unmarked.add(job);
  }

  /** Its message has ended meanwhile, or is held: what came last, its body, has shown that it is damaged. */
  #isGone({ queue, row, messageId, isDelay }: ReportJob): boolean {
    const { table } = this.#ports.entries;
    if (table.index.find(messageId, queue.handle) !== row) return true;
    return !isDelay && table.state(row) !== EntryState.REPORTING;
  }

  /** Where it goes, which may be asked for days: no recipient is read for it. Undefined: unreadable. */
  #wayOf(job: ReportJob): ReturnType<FindReportWay> | undefined {
    const { settlement, writer } = this.#ports;
    this.#cost += COST.look;
    const reversePath = settlement.reversePathOf(job.row);
    if (reversePath === undefined) return undefined;
    return writer.wayTo(reversePath, () => { this.#onWayKnown(job); });
  }

  /** Nobody can say where it goes: others of its message go on. False: there are none, or not yet. */
  #putAside(job: ReportJob): boolean {
    const { clock, settlement, admits } = this.#ports;
    const { queue, row } = job;
    const nowMs = clock.nowMs();
    if (job.othersGoAtMs === undefined) {
      job.othersGoAtMs = nowMs + WAY_WAIT_MS;
      this.#keeping.add(job);
    }
    if (nowMs < job.othersGoAtMs) return false;
    this.#keeping.delete(job);
    // Without a route out of their queue they go nowhere, and who is held there is released by nobody.
    if (!queue.routed || queue.partition.isLeaving) return false;
    if (!admits(queue, row)) return false;
    const note = this.#noteOf(job);
    this.#cost += COST.read * note.states.length;
    if (!note.states.includes(TO_TRY)) {
      job.othersGoAtMs = Infinity;
      return false;
    }
    // What is MAKING was marked, and has tried nothing.
    const tries = job.step === ReportStep.MAKING ? Math.max(0, note.tries - 1) : note.tries;
    job.transition(ReportStep.ASIDE);
    job.draft = undefined;
    this.#cost += COST.aside;
    this.#aside.set(row, job);
    settlement.afterReport(queue, row, { ...note, tries });
    return true;
  }

  /**
   * The time of their others has come: each is looked at once, turn after turn, for the rounds of all that
   * wait take longer the more there are.
   */
  #letOthersGo(): void {
    const nowMs = this.#ports.clock.nowMs();
    for (const job of this.#keeping) {
      if (nowMs < (job.othersGoAtMs ?? 0)) return;
      if (this.#cost >= COST_PER_TURN) {
        this.#ports.requestEndOfTurn();
        return;
      }
      this.#keeping.delete(job);
      const waits = this.#unmarked.has(job) || this.#short.has(job);
      if (!waits || this.#isGone(job) || this.#wayOf(job) !== NOT_READY || !this.#putAside(job)) continue;
      this.#unmarked.delete(job);
      this.#markable.delete(job);
      this.#short.delete(job);
    }
  }

  #lookAside(nowMs: number): void {
    if (nowMs < this.#asideAtMs) return;
    for (let looks = ASIDE_LOOKS; looks > 0; looks--) {
      const { value: job } = this.#asideWalk.next();
      if (job === undefined) {
        this.#asideWalk = this.#aside.values();
        this.#asideAtMs = nowMs + RETRY_MS;
        return;
      }
      if (this.#mayTakeUp(job)) this.#makeDue(job);
    }
  }

  /** Its message rests, and its way is known. */
  #mayTakeUp(job: ReportJob): boolean {
    const { entries } = this.#ports;
    const { queue, row, messageId } = job;
    if (entries.table.index.find(messageId, queue.handle) !== row) {
      this.#over(job);
      return false;
    }
    const state = entries.table.state(row);
    // Who delivers it says at the end that it owes this one still; who holds it, when it is released.
    if (state !== EntryState.READY && state !== EntryState.DEFERRED) return false;
    if (queue.partition.isLeaving || entries.isAllAbsent(row)) return false;
    // An operator has deleted those whom it was about.
    if (!owesReportIn(entries.note(row))) {
      this.#over(job);
      return false;
    }
    const way = this.#wayOf(job);
    return way !== undefined && way !== NOT_READY;
  }

  /** One that was put aside is begun anew, if its way is known still. */
  #takeUp(job: ReportJob): void {
    const { settlement, admits } = this.#ports;
    const { queue, row } = job;
    const envelope = this.#mayTakeUp(job) && admits(queue, row) ? settlement.envelopeOf(row) : undefined;
    if (envelope === undefined) return;
    this.#cost += COST.read * envelope.recipients.length;
    settlement.reportOwed(queue, row, envelope);
  }

  #mark(job: ReportJob): void {
    const { queue, row } = job;
    const note = this.#noteOf(job);
    job.tries = note.tries + 1;
    queue.partition.awaitEnd(this.#ports.settlement.annotate(queue, row, { ...note, tries: job.tries }), job);
  }

  /** This process has survived its try: the next one begins as the second again. */
  #survived(job: ReportJob): void {
    if (job.tries <= 1) return;
    this.#ports.settlement.annotate(job.queue, job.row, { ...this.#noteOf(job), tries: 1 });
    job.tries = 1;
  }

  #noteOf({ row }: ReportJob): Note {
    const { settlement, entries } = this.#ports;
    // A note says itself of how many.
    const count = entries.hasNote(row) ? 0 : settlement.envelopeOf(row)?.recipients.length ?? 0;
    return settlement.noteOf(row, count);
  }

  /** False when there was no room for it, its way is not known, or its body is still at the stores. */
  #make(job: ReportJob): boolean {
    if (job.isDelay) return this.#makeDelay(job);
    const way = this.#isGone(job) ? undefined : this.#wayOf(job);
    job.isAsking = way === NOT_READY;
    if (way === NOT_READY) {
      const isAside = this.#putAside(job);
      if (!isAside) this.#survived(job);
      return isAside;
    }
    const envelope = way === undefined ? undefined : this.#ports.settlement.envelopeOf(job.row);
    if (way !== undefined && envelope !== undefined) return this.#makeOutcome(job, envelope, way);
    this.#over(job);
    return true;
  }

  #makeDelay(job: ReportJob): boolean {
    const { queue, row } = job;
    const envelope = this.#isGone(job) ? undefined : this.#ports.settlement.envelopeOf(row);
    const draft = envelope === undefined ? undefined : this.#draftOf(job, [], () =>
      this.#ports.composeDelay(queue, row));
    if (job.step === ReportStep.SIGNING) return true;
    this.#over(job);
    if (envelope !== undefined) this.#ports.tellDelay(queue, row, job.tries, draft);
    return true;
  }

  /** To be stored now. Undefined, and the job is SIGNING: it comes back here. */
  #draftOf(
    job: ReportJob, recipients: readonly number[], compose: () => ReportDraft | undefined,
  ): ReportDraft | undefined {
    const signed = job.draft;
    job.draft = undefined;
    if (signed !== undefined && (job.isDelay || isAbout(signed, recipients))) return signed;
    if (this.#signing.size >= SIGNING_MAX) {
      job.transition(ReportStep.SIGNING);
      this.#unsigned.push(job);
      return undefined;
    }
    const draft = compose();
    if (draft === undefined) return undefined;
    job.transition(ReportStep.SIGNING);
    this.#signing.add(job);
    // It is composed: should others end the process while it is signed, it is not to blame.
    this.#survived(job);
    // It may be done with the draft before sign() returns.
    const call: { isOver: boolean; isDone: boolean } = { isOver: false, isDone: false };
    const isAsked = this.#ports.writer.sign(draft, () => {
      call.isDone = true;
      if (call.isOver) this.#onSigned(job, draft);
    });
    call.isOver = true;
    if (isAsked && !call.isDone) return undefined;
    this.#signing.delete(job);
    job.transition(ReportStep.MAKING);
    return draft;
  }

  #onSigned(job: ReportJob, draft: ReportDraft): void {
    if (!this.#signing.delete(job)) return;
    job.draft = draft;
    this.#makeAgain(job);
    this.#signNext();
  }

  #signNext(): void {
    for (let next = this.#unsigned.shift(); next !== undefined; next = this.#unsigned.shift()) {
      if (next.step !== ReportStep.SIGNING) continue;
      if (!this.#isGone(next)) return this.#makeAgain(next);
      this.#over(next);
    }
  }

  #makeAgain(job: ReportJob): void {
    job.transition(ReportStep.MAKING);
    this.#makeDue(job);
  }

  #makeOutcome(
    job: ReportJob, envelope: Envelope, way: Exclude<ReturnType<FindReportWay>, typeof NOT_READY>,
  ): boolean {
    const { settlement, writer, events, log, entries } = this.#ports;
    const { queue, row } = job;
    const note = settlement.noteOf(row, envelope.recipients.length);
    const failure = note.states.includes(OWED_FAILURE);
    const wanted = failure ? OWED_FAILURE : OWED_SUCCESS;
    const recipients: number[] = [];
    note.states.forEach((state, index) => {
      if (state === wanted) recipients.push(index);
    });
    if (typeof way === 'string') {
      for (const index of recipients) {
        events.ended(queue, envelope, index, way, 'the report has nowhere to go');
      }
      this.#endSource(job, envelope, note, failure);
      return true;
    }
    if (entries.isAbsent(row)) {
      entries.absent.wantLater(queue.partition, row);
      this.#survived(job);
      return false;
    }
    const kind = failure ? 'failure' : 'success';
    const { isShort } = job;
    const subject: ReportSubject = { kind, queue, row, envelope, note, recipients, isShort };
    this.#cost += costOf(recipients.length, entries.table.bodyBytes.get(row), note.states.length);
    const draft = this.#draftOf(job, recipients, () => writer.compose(subject));
    if (draft === undefined) return true;
    const endSource = (): void => { this.#endSource(job, envelope, note, failure); };
    const outcome = writer.store(subject, draft, way, endSource);
    if (outcome === undefined) return true;
    this.#survived(job);
    job.isShort = outcome === NO_MEMORY;
    if (outcome !== NOT_READY && this.#telling.isDue(this.#ports.clock.nowMs())) {
      log.warn('report', 'reports can not be stored yet; they are tried again', {
        queue: way.route.queueName, queue_id: formatMessageId(envelope.messageId), waiting: this.#jobs.size,
      });
    }
    return false;
  }

  /** The source owes this report no more: it ends, or others of its recipients are still to be tried. */
  #endSource(job: ReportJob, envelope: Envelope, note: Note, failure: boolean): void {
    const { settlement } = this.#ports;
    const { queue, row } = job;
    this.#over(job);
    const states = note.states.map((state, index) => {
      if (state === OWED_FAILURE) return failedState(envelope, index);
      return state === OWED_SUCCESS && !failure ? DONE : state;
    });
    const stillOwes = states.includes(OWED_SUCCESS);
    const owedChange = stillOwes ? queue.partition.lastNumber + 1 : 0;
    const left = { ...note, states, owedChange, tries: stillOwes ? 1 : 0 };
    if (stillOwes) this.begin(queue, row, settlement.annotate(queue, row, left));
    else settlement.afterReport(queue, row, left);
  }
}

/** In µs, about. */
function costOf(recipients: number, bodyBytes: number, read: number): number {
  return COST.report + COST.recipient * recipients + COST.perOctet * bodyBytes + COST.read * read;
}

/** The mark would be at the copies at once. */
function mayMark({ isLeaving, hasMissing, set }: Partition): boolean {
  return !isLeaving && !hasMissing && set !== undefined;
}
