/**
 * What the end of a delivery attempt means for an entry: gone, tried again, or reported. The one place
 * where recipients' states are decided after an attempt or at expiry.
 *
 *   all delivered                     ─► DELETE                                  (the plain path)
 *   some to try again                 ─► ANNOTATE (states, attempts, due time)   DEFERRED
 *   some failed or expired, report due─► ANNOTATE (report owed), report-job.ts   REPORTING
 *   failed, no report allowed or asked─► ended, logged and counted by reason
 *   next hop not reached at all       ─► nothing changes; outbound backs off
 *   no right to the final dot (G5)    ─► nothing changes; handed out when the right is back
 */
import type { Clock, Crc32, Packer } from '../../platform/ports.js';
import type { Mirrors } from '../mirror/mirrors.js';
import type { QueueMirror } from '../mirror/queue-mirror.js';
import type { DueTimes } from './due-times.js';
import type { Entries } from './entries.js';
import { EntryState } from './entry-table.js';
import { decodeEnvelope } from './envelope.js';
import type { MailEvents } from './mail-events.js';
import type { LastResult, Note } from './note.js';
import { DONE, decodeNote, encodeNote, ENDED, freshNote, noteRoom, OWED_FAILURE, OWED_SUCCESS, TO_TRY } from './note.js';
import type { ReplyTexts } from './reply-texts.js';
import { NO_TEXTS, packReplyTexts, readReplyTexts } from './reply-texts.js';
import type { Delivery, DeliveryResult, Envelope, RecipientResult } from './types.js';
import { DEFERRED, DELIVERED, FAILED, NOTIFY_NEVER, NOTIFY_SUCCESS } from './types.js';

export interface SettlementPorts {
  readonly clock: Clock;
  readonly crc32: Crc32;
  readonly packer: Packer;
  readonly entries: Entries;
  readonly mirrors: Mirrors;
  readonly dueTimes: DueTimes;
  readonly events: MailEvents;
  /** Delay before the next attempt, after `attempts` of them. */
  retryDelayMs(attempts: number): number;
  /** Queue has ready entries again, now or when its back-off is over. */
  wake(mirror: QueueMirror): void;
  /** A report is owed for this entry; its annotation is change `number`. */
  report(mirror: QueueMirror, row: number, number: number): void;
}

/** RFC 3463 4.4.7: delivery time expired. */
const EXPIRED: RecipientResult = { status: FAILED, code: 0, enhanced: '4.4.7', text: 'delivery time expired' };

export class Settlement {
  private readonly ports: SettlementPorts;

  constructor(ports: SettlementPorts) {
    this.ports = ports;
  }

  /** The note of an entry, or that of one never tried. */
  noteOf(row: number, recipientCount: number): Note {
    const bytes = this.ports.entries.note(row);
    return (bytes.length === 0 ? undefined : decodeNote(bytes)) ?? freshNote(recipientCount);
  }

  /** What was said of its recipients, as far as it is still known. */
  textsOf(row: number): ReplyTexts {
    return this.ports.entries.hasNote(row) ? readReplyTexts(this.ports.packer, this.ports.entries.texts.of(row)) : NO_TEXTS;
  }

  /**
   * Undefined also for an envelope whose entry was stored without room for what may become of its recipients.
   */
  envelopeOf(row: number): Envelope | undefined {
    const { entries, packer } = this.ports;
    const recent = entries.envelopes.of(row);
    if (recent !== undefined) return recent;
    const envelope = decodeEnvelope(packer, entries.table.messageId(row), entries.head(row));
    return envelope === undefined || noteRoom(envelope.recipients.length) > entries.room(row) ? undefined : envelope;
  }

  /** The attempt is over. */
  settle(mirror: QueueMirror, delivery: Delivery, result: DeliveryResult): void {
    const row = delivery.entry;
    const table = this.ports.entries.table;
    mirror.queue.inFlightCount -= 1;
    if (result.noRight === true) {
      // A deferral would let others overtake it, and cost its sender minutes, for a trouble of our own.
      mirror.queue.makeReadyFirst(row);
      return;
    }
    if (result.notAttempted === true) {
      this.notReached(mirror, row, result);
      return;
    }
    if (result.dotUnanswered) this.ports.events.dotUnanswered(mirror.queue, result.relay);
    const attempts = Math.min(255, table.attempts.get(row) + 1);
    table.attempts.set(row, attempts);
    if (this.allDelivered(delivery, result)) {
      for (let i = 0; i < delivery.pending.length; i++) this.log(mirror, row, delivery.envelope, delivery.pending[i] ?? 0, result.results[i], result, attempts);
      this.end(mirror, row);
      return;
    }
    this.settleMixed(mirror, delivery, result, attempts);
  }

  /** The entry's time is up: whoever is still to be tried has failed. READY, DEFERRED and HELD entries only. */
  expire(mirror: QueueMirror, row: number): void {
    const envelope = this.envelopeOf(row);
    if (envelope === undefined) return;
    const note = this.noteOf(row, envelope.recipients.length);
    const pending: number[] = [];
    for (let i = 0; i < envelope.recipients.length; i++) if ((note.states[i] ?? TO_TRY) === TO_TRY) pending.push(i);
    this.withdrawFromWaiting(mirror, row);
    const states = note.states.slice();
    const results = new Map(note.results.map((result) => [result.recipient, result]));
    const texts = new Map(this.textsOf(row));
    for (const index of pending) {
      this.ports.events.outcome('expired', mirror.queue, envelope, index, EXPIRED, this.ports.entries.table.bodyBytes.get(row), '', note.attempts, 0, 0);
      const last = results.get(index);
      if (last === undefined) texts.set(index, EXPIRED.text);
      this.fail(envelope, index, last ?? { recipient: index, code: 0, enhanced: EXPIRED.enhanced }, texts.get(index) ?? '', states, results, mirror);
    }
    this.conclude(mirror, row, envelope, { ...note, states, results: [...results.values()] }, texts);
  }

  /** Removes the entry for good. */
  end(mirror: QueueMirror, row: number): void {
    const position = this.ports.entries.table.position.get(row);
    const following = this.ports.entries.remove(mirror.queue, row);
    this.ports.mirrors.onUnlinked(mirror, row, following);
    mirror.delete(row, position, following);
  }

  /**
   * Mirrors a note: in the room that the entry has for it, here and at the stores. Returns the number of the
   * change.
   */
  annotate(mirror: QueueMirror, row: number, note: Note): number {
    const bytes = encodeNote(note);
    this.ports.entries.setNote(row, bytes);
    return mirror.annotate(this.ports.entries.table.position.get(row), bytes, this.ports.crc32(bytes, 0));
  }

  /**
   * Keeps the texts that belong to the note just mirrored, and tells them to the stores, as far as there is
   * room.
   */
  private tell(mirror: QueueMirror, row: number, texts: ReplyTexts): void {
    const { entries, mirrors, packer } = this.ports;
    const bytes = packReplyTexts(packer, texts);
    entries.texts.put(row, bytes);
    if (bytes.length > 0) mirrors.sender.texts.add(mirror, entries.table.position.get(row), bytes);
  }

  /** After a report: end the entry, or let those still to be tried wait for their time. */
  afterReport(mirror: QueueMirror, row: number): void {
    const envelope = this.envelopeOf(row);
    const note = this.noteOf(row, envelope?.recipients.length ?? 0);
    if (note.states.includes(TO_TRY)) this.deferUntil(mirror, row, note.dueWallMs);
    else this.end(mirror, row);
  }

  private allDelivered(delivery: Delivery, result: DeliveryResult): boolean {
    if (delivery.pending.length !== delivery.envelope.recipients.length) return false;
    for (let i = 0; i < delivery.pending.length; i++) {
      if (result.results[i]?.status !== DELIVERED) return false;
      if (result.dsnPassedOn !== true && ((delivery.envelope.recipients[i]?.notify ?? 0) & NOTIFY_SUCCESS) !== 0) return false;
    }
    return true;
  }

  private settleMixed(mirror: QueueMirror, delivery: Delivery, result: DeliveryResult, attempts: number): void {
    const { envelope } = delivery;
    const row = delivery.entry;
    const before = this.noteOf(row, envelope.recipients.length);
    const states = before.states.slice();
    const results = new Map(before.results.map((last) => [last.recipient, last]));
    const texts = new Map(this.textsOf(row));
    for (let i = 0; i < delivery.pending.length; i++) {
      const index = delivery.pending[i] ?? 0;
      const said = result.results[i];
      if (said === undefined) continue;
      const last: LastResult = { recipient: index, code: said.code, enhanced: said.enhanced };
      texts.set(index, said.text);
      this.log(mirror, row, envelope, index, said, result, attempts);
      if (said.status === DELIVERED) {
        const owes = result.dsnPassedOn !== true && ((envelope.recipients[index]?.notify ?? 0) & NOTIFY_SUCCESS) !== 0 && envelope.reversePath !== '';
        states[index] = owes ? OWED_SUCCESS : DONE;
        if (owes) results.set(index, last);
        else {
          results.delete(index);
          texts.delete(index);
        }
      } else if (said.status === FAILED) this.fail(envelope, index, last, said.text, states, results, mirror);
      else {
        results.set(index, last);
        mirror.queue.lastError = said.text;
      }
    }
    const dueWallMs = this.ports.clock.wallMs() + this.ports.retryDelayMs(attempts);
    this.conclude(mirror, row, envelope, { attempts, dueWallMs, states, owedChange: before.owedChange, unparked: before.unparked, results: [...results.values()] }, texts);
  }

  /** A recipient has failed for good: reported, or ended where a report is forbidden or unwanted (RFC 3461 4.1, RFC 5321 4.5.5). */
  private fail(
    envelope: Envelope, index: number, last: LastResult, text: string, states: Uint8Array, results: Map<number, LastResult>, mirror: QueueMirror,
  ): void {
    const notify = envelope.recipients[index]?.notify ?? 0;
    results.set(index, last);
    if (envelope.reversePath === '') this.ports.events.ended(mirror.queue, envelope, index, 'null reverse-path', text);
    else if ((notify & NOTIFY_NEVER) !== 0) this.ports.events.ended(mirror.queue, envelope, index, 'NOTIFY=NEVER', text);
    else if (notify !== 0 && (notify & 4) === 0) this.ports.events.ended(mirror.queue, envelope, index, 'NOTIFY without FAILURE', text);
    else {
      states[index] = OWED_FAILURE;
      return;
    }
    states[index] = ENDED;
  }

  /** Mirrors the outcome and does what follows from it. The entry is in no list. */
  private conclude(mirror: QueueMirror, row: number, envelope: Envelope, note: Note, texts: ReplyTexts): void {
    const owes = note.states.includes(OWED_FAILURE) || note.states.includes(OWED_SUCCESS);
    const tries = note.states.includes(TO_TRY);
    if (!owes && !tries) {
      this.end(mirror, row);
      return;
    }
    if (!owes) {
      this.annotate(mirror, row, note);
      this.tell(mirror, row, texts);
      this.deferUntil(mirror, row, Math.min(note.dueWallMs, envelope.expiryWallMs));
      return;
    }
    const number = this.annotate(mirror, row, { ...note, owedChange: mirror.lastNumber + 1 });
    this.tell(mirror, row, texts);
    this.ports.entries.table.transition(row, EntryState.REPORTING);
    // The head of a strict queue holds it while others of its recipients are still to be tried; afterReport() goes on.
    if (tries && mirror.queue.route.ordering === 'strict') mirror.queue.blockedUntilMs = Infinity;
    this.ports.report(mirror, row, number);
  }

  private deferUntil(mirror: QueueMirror, row: number, dueWallMs: number): void {
    const delayMs = Math.max(0, dueWallMs - this.ports.clock.wallMs());
    const queue = mirror.queue;
    if (queue.route.ordering === 'strict') {
      // The deferred head holds the queue.
      queue.makeReadyFirst(row);
      queue.blockedUntilMs = this.ports.clock.nowMs() + delayMs;
      this.ports.dueTimes.wakeAt(mirror, queue.blockedUntilMs);
      return;
    }
    this.ports.entries.table.transition(row, EntryState.DEFERRED);
    queue.deferredCount += 1;
    this.ports.dueTimes.schedule(row, delayMs);
  }

  /** The next hop was not reached: the entry keeps its place; outbound tries the next hop again by itself. */
  private notReached(mirror: QueueMirror, row: number, result: DeliveryResult): void {
    const queue = mirror.queue;
    queue.makeReadyFirst(row);
    queue.lastError = result.results[0]?.text ?? 'not reached';
    this.ports.events.unreachable(queue, queue.lastError);
  }

  /** Takes a resting entry (READY, DEFERRED, HELD) out of what it waits in; its state is the caller's to change. */
  withdrawFromWaiting(mirror: QueueMirror, row: number): void {
    const state = this.ports.entries.table.state(row);
    if (state === EntryState.READY) {
      mirror.queue.removeReady(row);
      // A deferred head that ends before its time holds a strict queue no longer.
      mirror.queue.blockedUntilMs = 0;
      this.ports.wake(mirror);
    } else if (state === EntryState.DEFERRED) {
      mirror.queue.deferredCount -= 1;
      this.ports.dueTimes.cancel(row);
    } else if (state === EntryState.HELD) mirror.queue.heldCount -= 1;
  }

  private log(mirror: QueueMirror, row: number, envelope: Envelope, index: number, said: RecipientResult | undefined, result: DeliveryResult, attempts: number): void {
    if (said === undefined) return;
    const event = said.status === DELIVERED ? 'delivered' : said.status === DEFERRED ? 'deferred' : 'bounced';
    this.ports.events.outcome(event, mirror.queue, envelope, index, said, this.ports.entries.table.bodyBytes.get(row), result.relay, attempts, result.setupMs, result.transmitMs);
  }
}
