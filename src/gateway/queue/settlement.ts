/**
 * What the end of a delivery attempt means for an entry: gone, tried again, or reported. The one place
 * where recipients' states are decided after an attempt or at expiry.
 *
 *   all delivered                     ─► DELETE                                  (the plain path)
 *   some to try again                 ─► ANNOTATE (states, attempts, due time)   DEFERRED
 *   some failed or expired, report due─► ANNOTATE (report owed), report-job.ts   REPORTING
 *   nobody knows its way, others left ─► ANNOTATE; it is owed while they go on   DEFERRED, READY
 *   no route leads out of its queue   ─► ANNOTATE, once the report is made       HELD
 *   failed, no report allowed or asked─► ended, logged and counted by reason
 *   time is up meanwhile              ─► whoever is still to be tried has failed, too (interruptions.ts)
 *   next hop not reached at all       ─► nothing changes; outbound backs off
 *   no right to the final dot (G5)    ─► nothing changes; handed out when the right is back
 *   the attempt goes on with others   ─► ANNOTATE (states): no attempt is counted, it is among the next;
 *                                         rests first where an operator waits for it (refused-orders.ts)
 */
import { DELAY_SECONDS_MAX } from '../../admin-api/queue-orders.js';
import type { Clock, Crc32, Packer } from '../../platform/ports.js';
import type { Mirrors } from '../mirror/mirrors.js';
import type { DueTimes } from './due-times.js';
import type { Entries } from './entries.js';
import { EntryState } from './entry-table.js';
import { decodeEnvelope, decodeReversePath } from './envelope.js';
import type { MemoryGauge } from './memory-gauge.js';
import type { MailQueue } from './mail-queue.js';
import type { MailEvents } from './mail-events.js';
import type { LastResult, Note } from './note.js';
import {
  DONE, ENDED, decodeNote, encodeNote, failedState, freshNote, noteRoom, OWED_FAILURE, OWED_SUCCESS, TO_TRY,
} from './note.js';
import type { EntryTexts, ReplyText, ReplyTexts } from './entry-texts.js';
import { NO_TEXTS, encodeEntryTexts, decodeEntryTexts } from './entry-texts.js';
import type {
  Delivery, DeliveryResult, Envelope, Outage, Recipient, RecipientResult,
} from '../mail-types.js';
import {
  ALIAS_SUCCESS, DEFERRED, DELIVERED, FAILED, NOTIFY_BITS, NOTIFY_FAILURE, NOTIFY_NEVER,
  NOTIFY_SUCCESS,
} from '../mail-types.js';
import { REFUSED_REST_MS, RefusedOrders } from './refused-orders.js';
import type { WallFrame } from './wall-frame.js';

export interface SettlementPorts {
  readonly clock: Clock;
  /** Of due times and expiry. */
  readonly frame: WallFrame;
  readonly crc32: Crc32;
  readonly packer: Packer;
  readonly entries: Entries;
  readonly memory: MemoryGauge;
  readonly mirrors: Mirrors;
  readonly dueTimes: DueTimes;
  readonly events: MailEvents;
  /** Delay before the next attempt, after `attempts` of them. */
  retryDelayMs(attempts: number): number;
  /** Queue has ready entries again, now or when its back-off is over. */
  wake(queue: MailQueue): void;
  /** Why mail of the queue does not leave. */
  outageOf(queue: MailQueue): Outage | undefined;
  /** The report is made, and the entry waits again. */
  onReported(queue: MailQueue, row: number): void;
  /** A report is owed for this entry; its annotation is change `number`. */
  report(queue: MailQueue, row: number, number: number): void;
  /** The same, where a process before may have ended with work on it. */
  reportAgain(queue: MailQueue, row: number): void;
}

/** What an operator ends, for senders (RFC 3463 3.8: refused by policy, here by a person's decision). */
const RETURNED: RecipientResult = {
  status: FAILED, code: 0, enhanced: '5.7.1', text: 'returned by the operator of this mail system',
};

/** How an operator ends a message. */
export type OperatorEnd = 'delete' | 'bounce' | 'expire';

/** RFC 3463 4.4.7: delivery time expired. */
const EXPIRED: RecipientResult = {
  status: FAILED, code: 0, enhanced: '4.4.7', text: 'delivery time expired',
};

export class Settlement {
  readonly #options: { readonly longestRetryMs: number };
  readonly #ports: SettlementPorts;
  /** Noted by who refuses them (message-holds.ts). */
  readonly refused = new RefusedOrders();

  constructor(options: { readonly longestRetryMs: number }, ports: SettlementPorts) {
    this.#options = options;
    this.#ports = ports;
  }

  /** The note of an entry, or that of one never tried. */
  noteOf(row: number, recipientCount: number): Note {
    const bytes = this.#ports.entries.note(row);
    return (bytes.length === 0 ? undefined : decodeNote(bytes)) ?? freshNote(recipientCount);
  }

  /** What was said of it and of its recipients, as far as it is still known. */
  textsOf(row: number): EntryTexts {
    const { entries, packer } = this.#ports;
    const bytes = entries.hasNote(row) ? entries.texts.of(row) : undefined;
    return bytes === undefined ? NO_TEXTS : decodeEntryTexts(packer, bytes);
  }

  /**
   * Undefined also for an envelope whose entry was stored without room for what may become of its recipients,
   * or that is still at the stores.
   */
  envelopeOf(row: number): Envelope | undefined {
    const { entries, packer } = this.#ports;
    const recent = entries.envelopes.of(row);
    if (recent !== undefined) return recent;
    if (entries.isAllAbsent(row)) return undefined;
    const envelope = decodeEnvelope(packer, entries.table.messageId(row), entries.head(row));
    if (envelope === undefined) return undefined;
    return noteRoom(envelope.recipients.length) <= entries.room(row) ? envelope : undefined;
  }

  /** The same of who sent it alone, as often as somebody asks. */
  reversePathOf(row: number): string | undefined {
    const { entries, packer } = this.#ports;
    const recent = entries.envelopes.of(row);
    if (recent !== undefined) return recent.reversePath;
    return entries.isAllAbsent(row) ? undefined : decodeReversePath(packer, entries.head(row));
  }

  /** The attempt is over. */
  settle(queue: MailQueue, delivery: Delivery, result: DeliveryResult): void {
    const row = delivery.entry;
    const table = this.#ports.entries.table;
    queue.inFlightCount -= 1;
    if (result.noRight === true) {
      // A deferral would let others overtake it, and cost its sender minutes, for a trouble of our own.
      queue.makeReadyFirst(row);
      return;
    }
    if (result.notAttempted === true) {
      this.#notReached(queue, row, result);
      return;
    }
    queue.lastTls = result.tls ?? 'none';
    if (result.dotUnanswered) this.#ports.events.dotUnanswered(queue, result.relay);
    const attempts = Math.min(255, table.attempts.get(row) + 1);
    if (result.goesOn !== true) table.attempts.set(row, attempts);
    queue.triedCount += delivery.pending.length;
    if (this.#allDelivered(delivery, result)) {
      for (let i = 0; i < delivery.pending.length; i++) {
        this.#log(queue, delivery, i, result, attempts);
      }
      this.end(queue, row);
      return;
    }
    this.#settleMixed(queue, delivery, result, attempts);
  }

  /** The entry's time is up, and it rests (interruptions.ts). One whose envelope can't be read stays. */
  expire(queue: MailQueue, row: number): void {
    const envelope = this.envelopeOf(row);
    if (envelope === undefined) return;
    this.withdrawFromWaiting(queue, row);
    this.#conclude(queue, row, envelope, this.noteOf(row, envelope.recipients.length), this.#repliesOf(row));
  }

  /**
   * An operator deletes these recipients of an entry that rests, and nobody is told: for the others it waits
   * where it waited. `words` are for the log: who, and why.
   */
  deletePart(
    queue: MailQueue, row: number, envelope: Envelope, meant: readonly number[], words: string,
  ): void {
    const note = this.noteOf(row, envelope.recipients.length);
    const states = note.states.slice();
    const replies = this.#repliesOf(row);
    for (const index of meant) {
      states[index] = ENDED;
      replies.delete(index);
      this.#ports.events.ended(queue, envelope, index, 'deleted by an operator', words);
    }
    const results = note.results.filter(({ recipient }) => !meant.includes(recipient));
    const left = { ...note, states, results };
    if (!states.includes(TO_TRY)) {
      // The report that it owes still was put aside for them.
      this.#conclude(queue, row, envelope, left, replies, false, this.#takeOut(queue, row));
      return;
    }
    this.#noteMore(queue, row, owesReport(states) ? left : { ...left, owedChange: 0 }, replies);
  }

  /**
   * An operator returns or expires these recipients of an entry that rests: the sender is told, where the
   * RFCs let us. Others of its recipients go on as before: in a strict queue it keeps its place for them, at
   * its head or behind it.
   */
  failFor(
    queue: MailQueue, row: number, envelope: Envelope, meant: readonly number[],
    verb: Exclude<OperatorEnd, 'delete'>,
  ): void {
    const before = this.noteOf(row, envelope.recipients.length);
    const replies = this.#repliesOf(row);
    const note = verb === 'expire' ? this.#expired(queue, row, envelope, before, replies, meant)
      : this.#returned(queue, row, envelope, before, replies, meant);
    // Where nobody is told, it waits for the others where it waited.
    if (note.states.includes(TO_TRY) && !owesReport(note.states)) this.#noteMore(queue, row, note, replies);
    else this.#conclude(queue, row, envelope, note, replies, false, this.#takeOut(queue, row));
  }

  /** Those of `meant` who are still to be tried have failed by the word of an operator. */
  #returned(
    queue: MailQueue, row: number, envelope: Envelope, before: Note, replies: Map<number, ReplyText>,
    meant: readonly number[],
  ): Note {
    const states = before.states.slice();
    const results = new Map(before.results.map((result) => [result.recipient, result]));
    const bodyBytes = this.#ports.entries.table.bodyBytes.get(row);
    for (const index of meant) {
      // Whoever has failed already is told what a next hop said: that report was put aside.
      if (states[index] !== TO_TRY) continue;
      const { code, enhanced, text } = RETURNED;
      this.#ports.events.outcome(
        'bounced', queue, envelope, index, RETURNED, bodyBytes, '', before.attempts, 0, 0,
        envelope.reversePath, '', undefined, '',
      );
      replies.set(index, { text, host: '' });
      this.#fail(queue, envelope, { recipient: index, code, enhanced }, text, states, results);
    }
    return { ...before, states, results: [...results.values()] };
  }

  /** It rests, and where the report goes that it owes is known by now: as failFor(). */
  reportOwed(queue: MailQueue, row: number, envelope: Envelope): void {
    const note = this.noteOf(row, envelope.recipients.length);
    const replies = this.#repliesOf(row);
    this.#conclude(queue, row, envelope, note, replies, false, this.#takeOut(queue, row));
  }

  /**
   * Something is decided of an entry that rests: it leaves what it waits in, but for its place in a strict
   * queue behind the head. True where it is the head.
   */
  #takeOut(queue: MailQueue, row: number): boolean {
    const isHead = queue.isBlockedBy(row);
    const isWaiting = this.#ports.entries.table.state(row) === EntryState.READY;
    const keepsPlace = isWaiting && queue.route.ordering === 'strict' && !isHead;
    if (!keepsPlace) this.withdrawFromWaiting(queue, row);
    return isHead;
  }

  /** An operator delays an entry that rests, as this note says: it comes back behind what is due. */
  putOff(queue: MailQueue, row: number, note: Note): void {
    const { dueTimes, entries: { table } } = this.#ports;
    this.annotate(queue, row, note);
    this.withdrawFromWaiting(queue, row);
    if (table.state(row) !== EntryState.DEFERRED) table.transition(row, EntryState.DEFERRED);
    queue.countDeferred(row, note.isDelayed);
    dueTimes.schedule(row, this.leftMs(note));
  }

  /** One that waits for its turn makes way for others so long; nothing of it changes at the stores. */
  setAside(queue: MailQueue, row: number, delayMs: number): void {
    const { dueTimes, entries: { table } } = this.#ports;
    if (table.state(row) !== EntryState.READY) return;
    this.withdrawFromWaiting(queue, row);
    table.transition(row, EntryState.DEFERRED);
    queue.countDeferred(row, false);
    dueTimes.schedule(row, delayMs);
  }

  /** It is tried so much later at the latest. False: it waits for no time of its own, or is due before. */
  hasten(queue: MailQueue, row: number, delayMs: number): boolean {
    const { dueTimes, clock, frame, entries: { table } } = this.#ports;
    if (table.state(row) === EntryState.DEFERRED) {
      const { dueWallMs } = this.noteOf(row, this.envelopeOf(row)?.recipients.length ?? 1);
      if (dueWallMs - frame.wallMs() <= delayMs) return false;
      dueTimes.cancel(row);
      dueTimes.schedule(row, delayMs);
      return true;
    }
    const isLater = queue.blockedUntilMs - clock.nowMs() > delayMs && queue.blockedUntilMs !== Infinity;
    if (!queue.isBlockedBy(row) || !isLater) return false;
    queue.blockBy(row, clock.nowMs() + delayMs);
    dueTimes.wakeAt(queue, queue.blockedUntilMs);
    return true;
  }

  /** Whether its time is up. */
  isOver(row: number): boolean {
    return this.#ports.entries.table.expirySeconds.get(row) * 1000 <= this.#ports.frame.wallMs();
  }

  /** Removes the entry for good. */
  end(queue: MailQueue, row: number): void {
    if (queue.unblock(row)) this.#ports.wake(queue);
    const position = this.#ports.entries.table.position.get(row);
    const following = this.#ports.entries.remove(queue, row);
    this.#ports.mirrors.onUnlinked(queue.partition, row, following);
    queue.partition.delete(row, position, following);
  }

  /**
   * Mirrors a note: in the room that the entry has for it, here and at the stores.
   * Returns the number of the change.
   */
  annotate(queue: MailQueue, row: number, note: Note): number {
    const bytes = encodeNote(note);
    this.#ports.entries.setNote(row, bytes);
    const position = this.#ports.entries.table.position.get(row);
    return queue.partition.annotate(position, bytes, this.#ports.crc32(bytes, 0));
  }

  /**
   * Keeps the texts that belong to the note just mirrored, and tells them to the stores,
   * as far as there is room.
   */
  tell(queue: MailQueue, row: number, texts: EntryTexts): void {
    const { entries, memory, mirrors, packer } = this.#ports;
    const bytes = encodeEntryTexts(packer, texts);
    if (memory.admitsTexts) entries.texts.put(row, bytes);
    else entries.texts.drop(row);
    if (bytes.length > 0) mirrors.sender.texts.add(queue.partition, entries.table.position.get(row), bytes);
  }

  /** Its report is made, or put aside: it ends, or lets those still to be tried wait for their time. */
  afterReport(queue: MailQueue, row: number, note: Note): void {
    if (!note.states.includes(TO_TRY)) {
      this.end(queue, row);
      return;
    }
    const envelope = this.isOver(row) ? this.envelopeOf(row) : undefined;
    if (envelope !== undefined) {
      this.#conclude(queue, row, envelope, note, this.#repliesOf(row));
      return;
    }
    const { table } = this.#ports.entries;
    this.annotate(queue, row, note);
    if (!queue.routed) {
      // As other mail of its queue is, since that has come back.
      table.transition(row, EntryState.HELD);
      queue.heldCount += 1;
    } else if (queue.hasPlace(row)) {
      table.transition(row, EntryState.READY);
      this.#ports.wake(queue);
    } else this.#deferUntil(queue, row, note, queue.isBlockedBy(row));
    this.#ports.onReported(queue, row);
  }

  #allDelivered(delivery: Delivery, result: DeliveryResult): boolean {
    if (delivery.pending.length !== delivery.envelope.recipients.length) return false;
    for (let i = 0; i < delivery.pending.length; i++) {
      if (result.results[i]?.status !== DELIVERED) return false;
      if (owesSuccess(delivery.envelope.recipients[i], result)) return false;
    }
    return true;
  }

  #settleMixed(queue: MailQueue, delivery: Delivery, result: DeliveryResult, attempts: number): void {
    const { envelope } = delivery;
    const row = delivery.entry;
    const before = this.noteOf(row, envelope.recipients.length);
    const states = before.states.slice();
    const results = new Map(before.results.map((last) => [last.recipient, last]));
    const replies = this.#repliesOf(row);
    for (let i = 0; i < delivery.pending.length; i++) {
      const index = delivery.pending[i] ?? 0;
      const said = result.results[i];
      if (said === undefined) continue;
      const last: LastResult = { recipient: index, code: said.code, enhanced: said.enhanced };
      const host = said.code > 0 ? hostNamed(result.own?.[i]?.relay ?? result.relay) : '';
      replies.set(index, { text: said.text, host });
      this.#log(queue, delivery, i, result, attempts);
      if (said.status === DELIVERED) {
        const owes = owesSuccess(envelope.recipients[index], result) && envelope.reversePath !== '';
        states[index] = owes ? OWED_SUCCESS : DONE;
        if (owes) results.set(index, last);
        else {
          results.delete(index);
          replies.delete(index);
        }
      } else if (said.status === FAILED) {
        this.#fail(queue, envelope, last, said.text, states, results);
        if (said.code >= 500) {
          queue.refusedCount += 1;
          queue.lastRefusal = said.text;
        }
      } else {
        results.set(index, last);
        queue.lastError = said.text;
      }
    }
    const outcome = { ...before, states, results: [...results.values()], isDelayed: false };
    const nowMs = this.#ports.frame.wallMs();
    if (result.goesOn === true) {
      const rests = this.refused.isAwaited(envelope.messageId, this.#ports.clock.nowMs());
      const dueWallMs = rests ? nowMs + REFUSED_REST_MS : nowMs;
      this.#conclude(queue, row, envelope, { ...outcome, dueWallMs }, replies, !rests);
      return;
    }
    const dueWallMs = nowMs + this.#ports.retryDelayMs(attempts);
    this.#conclude(queue, row, envelope, { ...outcome, attempts, dueWallMs }, replies);
  }

  /** A recipient has failed for good: reported, or ended where a report is forbidden or unwanted. */
  #fail(
    queue: MailQueue, envelope: Envelope, last: LastResult, text: string, states: Uint8Array,
    results: Map<number, LastResult>,
  ): void {
    const index = last.recipient;
    results.set(index, last);
    const reason = reasonOfNoReport(envelope, index);
    states[index] = reason === '' ? OWED_FAILURE : failedState(envelope, index);
    if (reason !== '') this.#ports.events.ended(queue, envelope, index, reason, text);
  }

  /**
   * Mirrors the outcome and does what follows. The entry is in no list: in flight, taken out, reported; or
   * keeps its place in a strict queue, while others of its recipients are to be tried.
   * `isHead`: of a strict queue it is the one that holds it while others of its recipients are to be tried.
   */
  #conclude(
    queue: MailQueue, row: number, envelope: Envelope, outcome: Note, replies: Map<number, ReplyText>,
    goesOn = false, isHead = true,
  ): void {
    const note = this.isOver(row) ? this.#expired(queue, row, envelope, outcome, replies) : outcome;
    const owes = owesReport(note.states);
    const tries = note.states.includes(TO_TRY);
    const isInPlace = queue.hasPlace(row);
    if (isInPlace && !tries) this.withdrawFromWaiting(queue, row);
    if (!owes && !tries) {
      this.end(queue, row);
      return;
    }
    if (!owes) {
      this.#noteMore(queue, row, note, replies);
      const dueWallMs = Math.min(note.dueWallMs, this.#expiryMs(row));
      if (goesOn) queue.makeReadyFirst(row);
      else if (!isInPlace) this.#deferUntil(queue, row, { ...note, dueWallMs }, isHead);
      return;
    }
    // Composing the report is work that may end the process. This one is the first that tries, unless the
    // delay was to be told before.
    const isFirst = note.tries === 0;
    const owedChange = queue.partition.lastNumber + 1;
    const owing = { ...note, owedChange, tries: isFirst ? 1 : note.tries };
    const number = this.#noteMore(queue, row, owing, replies);
    const { table } = this.#ports.entries;
    if (table.state(row) !== EntryState.REPORTING) table.transition(row, EntryState.REPORTING);
    // The head of a strict queue holds it while others of it are still to be tried; afterReport() goes on.
    if (queue.route.ordering === 'strict') {
      if (tries && isHead) queue.blockBy(row, Infinity);
      else if (queue.unblock(row)) this.#ports.wake(queue);
    }
    if (isFirst) this.#ports.report(queue, row, number);
    else this.#ports.reportAgain(queue, row);
  }

  /** What was said of its recipients, as far as it is still known: to be changed. */
  #repliesOf(row: number): Map<number, ReplyText> {
    return new Map(this.textsOf(row).replies);
  }

  /** What was said goes along; whatever it waits for, it waits for still. */
  #noteMore(queue: MailQueue, row: number, note: Note, replies: ReplyTexts): number {
    const number = this.annotate(queue, row, note);
    this.tell(queue, row, { ...this.textsOf(row), replies });
    return number;
  }

  /** The time of the entry is up: whoever is still to be tried has failed, or of those who are `meant`. */
  #expired(
    queue: MailQueue, row: number, envelope: Envelope, note: Note, replies: Map<number, ReplyText>,
    meant?: readonly number[],
  ): Note {
    const { entries, events } = this.#ports;
    const bodyBytes = entries.table.bodyBytes.get(row);
    const states = note.states.slice();
    const results = new Map(note.results.map((result) => [result.recipient, result]));
    // Whoever was never tried has waited for the next hop.
    const isHeld = entries.table.state(row) === EntryState.HELD;
    const { relay = '', why: outage } = (isHeld ? undefined : this.#ports.outageOf(queue)) ?? {};
    for (let index = 0; index < states.length; index++) {
      if (states[index] !== TO_TRY || meant?.includes(index) === false) continue;
      const last = results.get(index);
      const said = last === undefined ? outage?.text ?? '' : (replies.get(index)?.text ?? codesOf(last));
      const { reversePath } = envelope;
      const { attempts } = note;
      events.outcome(
        'expired', queue, envelope, index, EXPIRED, bodyBytes, '', attempts, 0, 0, reversePath, said,
        undefined, '',
      );
      const { code, enhanced, text } = outage ?? EXPIRED;
      if (last === undefined) replies.set(index, { text, host: hostNamed(relay) });
      const failed = last ?? { recipient: index, code, enhanced };
      this.#fail(queue, envelope, failed, replies.get(index)?.text ?? '', states, results);
    }
    return { ...note, states, results: [...results.values()] };
  }

  #expiryMs(row: number): number {
    return this.#ports.entries.table.expirySeconds.get(row) * 1000;
  }

  /** `isHead`: it holds its queue, if that is strict, until then. Any other comes back behind what is due. */
  #deferUntil(queue: MailQueue, row: number, note: Note, isHead: boolean): void {
    const delayMs = this.leftMs(note);
    if (isHead && queue.route.ordering === 'strict') {
      queue.makeReadyFirst(row);
      queue.blockBy(row, this.#ports.clock.nowMs() + delayMs);
      this.#ports.dueTimes.wakeAt(queue, queue.blockedUntilMs);
      return;
    }
    this.#ports.entries.table.transition(row, EntryState.DEFERRED);
    queue.countDeferred(row, note.isDelayed);
    this.#ports.dueTimes.schedule(row, delayMs);
  }

  /**
   * Until it is due. A time that another process wrote is of its clock: bounded, whatever that showed.
   */
  leftMs({ dueWallMs, isDelayed }: Note): number {
    const mostMs = isDelayed ? DELAY_SECONDS_MAX * 1000 : this.#options.longestRetryMs;
    return Math.min(mostMs, Math.max(0, dueWallMs - this.#ports.frame.wallMs()));
  }

  /** The next hop was not reached: the entry keeps its place; outbound tries the next hop again by itself. */
  #notReached(queue: MailQueue, row: number, result: DeliveryResult): void {
    queue.makeReadyFirst(row);
    const [said] = result.results;
    queue.lastError = said?.text ?? 'not reached';
    this.#ports.events.unreachable(queue, said?.enhanced ?? '', queue.lastError, result.source ?? '');
  }

  /**
   * Takes a resting entry (READY, DEFERRED, HELD), or one that keeps its place while it is reported, out of
   * what it waits in; the caller sets its state.
   */
  withdrawFromWaiting(queue: MailQueue, row: number): void {
    const state = this.#ports.entries.table.state(row);
    if (state === EntryState.READY) {
      queue.removeReady(row);
      // The head that goes before its time holds a strict queue no longer; any other entry never did.
      // Deliveries may have waited for the body of this one.
      const isAwaited = this.#ports.entries.isAbsent(row);
      if (queue.unblock(row) || isAwaited) this.#ports.wake(queue);
    } else if (state === EntryState.REPORTING && queue.hasPlace(row)) {
      queue.removeReady(row);
      this.#ports.wake(queue);
    } else if (state === EntryState.DEFERRED) {
      queue.uncountDeferred(row);
      this.#ports.dueTimes.cancel(row);
    } else if (state === EntryState.HELD) queue.heldCount -= 1;
  }

  /** The end of an attempt for the recipient at this position among the pending. */
  #log(
    queue: MailQueue, delivery: Delivery, position: number, result: DeliveryResult, attempts: number,
  ): void {
    const said = result.results[position];
    if (said === undefined) return;
    const { envelope, contentBytes, pending } = delivery;
    const index = pending[position] ?? 0;
    const own = result.own?.[position];
    const { relay, setupMs, transmitMs, tls, source = '' } = own ?? result;
    const { reversePath } = own ?? delivery;
    const event = said.status === DELIVERED ? 'delivered' : said.status === DEFERRED ? 'deferred' : 'bounced';
    this.#ports.events.outcome(
      event, queue, envelope, index, said, contentBytes, relay, attempts, setupMs, transmitMs, reversePath,
      '', tls, source,
    );
  }
}

/** Why no report is made of a recipient who has failed (RFC 3461 4.1, RFC 5321 4.5.5); '' when one is. */
function reasonOfNoReport({ reversePath, recipients }: Envelope, index: number): string {
  const notify = (recipients[index]?.notify ?? 0) & NOTIFY_BITS;
  if (reversePath === '') return 'null reverse-path';
  if ((notify & NOTIFY_NEVER) !== 0) return 'NOTIFY=NEVER';
  return notify !== 0 && (notify & NOTIFY_FAILURE) === 0 ? 'NOTIFY without FAILURE' : '';
}

function owesReport(states: Uint8Array): boolean {
  return states.includes(OWED_FAILURE) || states.includes(OWED_SUCCESS);
}

/** Who said it, of "host[address]:port"; '' of one without a full name: an address is told to nobody. */
export function hostNamed(relay: string): string {
  const [, host = ''] = /^([^[:]*\.[a-z][^[:.]*)[[:]/i.exec(relay) ?? [];
  return host;
}

/** Where the words are lost. */
function codesOf({ code, enhanced }: LastResult): string {
  return `${code === 0 ? '' : String(code)} ${enhanced}`.trim();
}

/** Of the alias that stood for it we alone can tell; of the recipient also a next hop that was asked to. */
function owesSuccess(recipient: Recipient | undefined, { dsnPassedOn }: DeliveryResult): boolean {
  const notify = recipient?.notify ?? 0;
  return (notify & ALIAS_SUCCESS) !== 0 || ((notify & NOTIFY_SUCCESS) !== 0 && dsnPassedOn !== true);
}
