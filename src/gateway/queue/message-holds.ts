/**
 * Messages that an operator holds, delays, releases or ends; and those that are held because two processes
 * ended while they worked on them. What else is held (no route, a damaged content, an unknown envelope) is
 * only named here.
 *
 *   READY, DEFERRED ─ hold, in its note at the mirrors ─► HELD
 *   HELD ─ release, at the mirrors too ─► READY, or its report goes on; where no route leads out of its queue
 *                                         HELD still, as other mail of that queue, and its lifetime goes on
 *   READY, DEFERRED, HELD by an operator ─ delay, in its note ─► DEFERRED until then ─ due, release ─► READY
 *   READY, DEFERRED, HELD ─ delete ─► gone, logged and counted; nobody is told (G2)
 *                           ─ bounce, expire ─► failed, and reported where the RFCs let us
 *   recovery ─ its note names an operator, or two tries; or two crash notes name it ─► HELD alone; other mail
 *                                                                                      goes on
 *
 * One of which only its place is here (absent-bodies.ts) is fetched first, and the order asked for again.
 *
 * While an operator holds a message, its lifetime stands still; that of a delayed one begins when it is due.
 * What was said last counts: who delays what is held lets it go then. A poison message does not expire while
 * it is held: its report is what would end the process. Pure.
 */
import type { Order } from '../../admin-api/orders.js';
import { DELAY_SECONDS_MAX } from '../../admin-api/queue-orders.js';
import { formatMessageId } from '../../base/text-id.js';
import type { CrashNotes } from '../local/crash-notes.js';
import type { Clock, EventLog } from '../../platform/ports.js';
import type { Entries } from './entries.js';
import { EntryState, STOPPED_SECONDS } from './entry-table.js';
import { whyNotNow } from './interruptions.js';
import type { MailEvents } from './mail-events.js';
import type { MailQueue } from './mail-queue.js';
import type { Note } from './note.js';
import { OWED_FAILURE, OWED_SUCCESS, TO_TRY, TRIES_MAX } from './note.js';
import type { OperatorEnd, Settlement } from './settlement.js';
import type { Envelope } from '../mail-types.js';
import type { WallFrame } from './wall-frame.js';

/** Crashes of this machine with a message in hand after which it is held. */
const CRASHES_TO_HOLD = 2;
/** Less than this is no difference of clocks: whole seconds, and the way of what they tell. */
const SAME_CLOCK_MS = 2_000;
/** Held for years, and then delayed for the longest time. */
const ADDED_SECONDS_MAX = 10 * DELAY_SECONDS_MAX;
const GOES_ON = 'a message that was held goes on: an operator has released it';
const WAITS_ON =
  'a message that was held is released by an operator, and waits: no route leads out of its queue';
const LEAVING = 'its queue goes to another gateway';
const ENDED_WORDS = {
  delete: 'recipients of a message are deleted by an operator',
  bounce: 'a message is returned to its sender by an operator',
  expire: 'a message expires by the word of an operator',
} as const;
const HELD_IN_PART = 'it is held, and not all of its recipients are meant: release it first';
const NO_WAY_OUT = 'no route leads out of its queue: add one with its name, or rebind it';
const LET_GO_ONLY = `nobody holds it any more, and it waits all the same: ${NO_WAY_OUT}`;
const POISON = 'its report may end this process as it ended others: export it, then delete it';
const UNREADABLE = 'this release can not read its envelope: export it, or delete it by --id';
const UNREAD = 'its envelope is still at the stores, and is fetched now: ask again in a moment';

/** Of an entry whose lifetime stands still: what is added to its times to have them by our clock. */
interface Apart {
  /** To its expiry, as its envelope and its note have it. */
  readonly endMs: number;
  /** To since when it is held. */
  readonly sinceMs: number;
}

const TOGETHER: Apart = { endMs: 0, sinceMs: 0 };

/** A released entry, and the change of its partition that says so. */
interface Release {
  readonly queue: MailQueue;
  readonly messageId: number;
  readonly number: number;
}

export interface MessageHoldsPorts {
  readonly clock: Clock;
  /** Of due times and expiry. */
  readonly frame: WallFrame;
  readonly longestRetryMs: () => number;
  readonly log: EventLog;
  readonly entries: Entries;
  readonly settlement: Settlement;
  readonly crashes: CrashNotes;
  readonly counters: { poisonMessages: number };
  readonly events: MailEvents;
  wake(queue: MailQueue): void;
  /** A report of this entry is to be made, when its partition is here. */
  noteOwing(queue: MailQueue, row: number): void;
}

export class MessageHolds {
  readonly #ports: MessageHoldsPorts;
  /**
   * By row: what goes on as soon as the mirrors know of it, however long that takes. It may end the process,
   * and would be held by nobody's word again.
   */
  readonly #releasing = new Map<number, Release>();
  /** By row, where they are apart: read while the entry is held, and told anew when it is held again. */
  readonly #apart = new Map<number, Apart>();

  #isHeldByRuleMet = false;

  constructor(ports: MessageHoldsPorts) {
    this.#ports = ports;
  }

  /** Why not; '' when it is held now. `isByRule`: until no hold that stands means it. */
  holdEntry(queue: MailQueue, row: number, order: Order, isByRule = false): string {
    const why = this.#whyNotHeld(queue, row);
    const isHeld = this.#ports.entries.table.state(row) === EntryState.HELD;
    if (why === '' && !isHeld) this.#holdBack(queue, row, order, isByRule);
    else if (why === '' && !isByRule) this.#holdOn(queue, row, order);
    return why;
  }

  /** A message that a standing hold has came from the stores since this was asked last. */
  takeMetHeldByRule(): boolean {
    const isMet = this.#isHeldByRuleMet;
    this.#isHeldByRuleMet = false;
    return isMet;
  }

  /** Why not; '' when it waits until then, by the wall clock. */
  delayEntry(queue: MailQueue, row: number, untilWallMs: number, order: Order): string {
    const why = this.#whyNotDelayed(queue, row);
    if (why === '') this.#delay(queue, row, untilWallMs, order);
    return why;
  }

  /** An operator delays it, and its time has not come. */
  isDelayed(row: number, note: Note): boolean {
    return note.isDelayed && this.#ports.entries.table.state(row) === EntryState.DEFERRED;
  }

  /**
   * It waits for this time. Whoever delayed it, another process maybe, has read its two clocks one after the
   * other: what one order says differs by a millisecond from one message to the next.
   */
  isDelayedUntil(row: number, note: Note, untilWallMs: number): boolean {
    if (!this.isDelayed(row, note)) return false;
    return Math.abs(note.dueWallMs - this.#inFrame(untilWallMs)) < SAME_CLOCK_MS;
  }

  /** Why not; '' when it goes on as soon as the mirrors know. */
  releaseEntry(queue: MailQueue, row: number, order: Order): string {
    const { entries } = this.#ports;
    const isDelayed = !entries.isAllAbsent(row) && this.isDelayed(row, this.#noteOf(row));
    const why = isDelayed ? this.#whyLeaving(queue) : this.#whyNotReleased(queue, row);
    if (why === '' && isDelayed) this.#endDelay(queue, row, order);
    else if (why === '') this.#letGo(queue, row, order);
    return why === '' && !queue.routed ? LET_GO_ONLY : why;
  }

  /** It goes on as soon as the mirrors know. */
  isReleasing(row: number): boolean {
    return this.#releasing.has(row);
  }

  /** Why an operator can't end it now; '' when one can. */
  whyNotEnded(queue: MailQueue, row: number): string {
    return this.#whyLeaving(queue) || this.#whyNotNow(row) || this.#whyNotRead(queue, row);
  }

  /**
   * An operator ends it for these recipients; the others are tried on. Why not; '' when that is decided: a
   * report may still be made.
   */
  endEntry(
    queue: MailQueue, row: number, meant: readonly number[], verb: OperatorEnd, order: Order,
  ): string {
    const { settlement, crashes, entries: { table }, log } = this.#ports;
    const note = this.#noteOf(row);
    // Whoever has failed can't fail again; his report, if it was put aside, can be deleted.
    const isOpen = (state: number): boolean =>
      state === TO_TRY || (verb === 'delete' && state === OWED_FAILURE);
    const isWhole = meant.length === note.states.filter(isOpen).length;
    const isHeld = table.state(row) === EntryState.HELD;
    if (!isWhole && isHeld) return HELD_IN_PART;
    const envelope = settlement.envelopeOf(row);
    const isPoison = this.isPoison(queue, row);
    // A report of deliveries to others may have been put aside: settlement makes it.
    const isToldOfOthers = envelope !== undefined && !isPoison && note.states.includes(OWED_SUCCESS);
    if (verb === 'delete' && isWhole && !isToldOfOthers) {
      const why = this.whyNotEnded(queue, row);
      if (why === '') this.#doAwayWith(queue, row, order);
      return why;
    }
    if (envelope === undefined) return UNREADABLE;
    if (isPoison) return POISON;
    const why = this.whyNotEnded(queue, row);
    if (why !== '') return why;
    const messageId = table.messageId(row);
    crashes.forget(queue.ownerId, messageId);
    this.#releasing.delete(row);
    const { reason, who } = order;
    log.warn('held', ENDED_WORDS[verb], {
      queue: queue.name, queue_id: formatMessageId(messageId), recipients: meant.length, reason, who,
    });
    if (verb === 'delete') {
      settlement.deletePart(queue, row, envelope, meant, `${who}: ${reason}`);
      return '';
    }
    settlement.failFor(queue, row, envelope, meant, verb);
    return '';
  }

  /**
   * Called a few times in a tenth of a second, last: answers leave before what may end the process begins.
   */
  tick(): void {
    for (const [row, { queue, messageId, number }] of this.#releasing) {
      const { table } = this.#ports.entries;
      const isHeldHere = table.index.find(messageId, queue.handle) === row
        && table.state(row) === EntryState.HELD;
      const isKept = queue.partition.ackedNumber >= number;
      // Memory may have been short, and it went back to the stores.
      if (isHeldHere && (!isKept || this.#whyNotRead(queue, row) !== '')) continue;
      this.#releasing.delete(row);
      // Its body may have come meanwhile, and shown that it is damaged.
      if (isHeldHere && !this.#ports.entries.isDamaged(row)) this.#goOn(queue, row);
    }
  }

  /**
   * A recovered entry is placed: true when it is held now. `note` is undefined for one that was never tried;
   * `aheadMs`: by how much our frame is ahead of that of who wrote it.
   */
  holdsBack(queue: MailQueue, row: number, note: Note | undefined, aheadMs: number): boolean {
    const tries = this.#triesOf(queue, row, note);
    if ((note?.heldSinceWallMs ?? 0) === 0 && tries === 0) return false;
    this.#enter(queue, row);
    if (note?.isHeldByRule === true) this.#isHeldByRuleMet = true;
    if ((note?.heldSinceWallMs ?? 0) !== 0) this.#stopLifetime(row, { endMs: aheadMs, sinceMs: aheadMs });
    this.#alarm(queue, row, tries);
    return true;
  }

  /**
   * A recovered entry owes a report, which so many processes have begun: true when it is held instead, for
   * making it would end the process.
   */
  holdsReport(queue: MailQueue, row: number, marked: number): boolean {
    const tries = this.#triesOf(queue, row, { tries: marked });
    if (tries === 0) return false;
    this.#ports.settlement.withdrawFromWaiting(queue, row);
    this.#enter(queue, row);
    // Held alone: a strict queue goes on without it.
    if (queue.unblock(row)) this.#ports.wake(queue);
    this.#alarm(queue, row, tries);
    return true;
  }

  /** Held because so many processes have ended with it in hand. */
  isPoison(queue: MailQueue, row: number): boolean {
    const isHeld = this.#ports.entries.table.state(row) === EntryState.HELD;
    return isHeld && this.#triesOf(queue, row, this.#noteOf(row)) > 0;
  }

  /** The entry's time is up: false when it stays all the same. */
  mayExpire(queue: MailQueue, row: number): boolean {
    const isHeld = this.#ports.entries.table.state(row) === EntryState.HELD;
    // What is at the stores is looked at when it is here.
    if (!isHeld || this.#ports.entries.isAllAbsent(row)) return true;
    return this.#triesOf(queue, row, this.#noteOf(row)) === 0;
  }

  /** Why an entry is held; '' when it isn't. */
  reasonOf(queue: MailQueue, row: number): string {
    const { entries, settlement } = this.#ports;
    const state = entries.table.state(row);
    if (state !== EntryState.HELD) return '';
    if (this.#releasing.has(row)) return 'it is being released';
    if (entries.isAllAbsent(row)) return 'why is still at the stores, and read when memory allows';
    const note = this.#noteOf(row);
    const tries = this.#triesOf(queue, row, note);
    if (tries > 0) return `it was in hand when ${String(tries)} processes of a gateway ended`;
    if (note.heldSinceWallMs !== 0) return this.#wordsOf(row, note.heldSinceWallMs);
    if (!queue.routed) return 'no route leads out of its queue';
    if (settlement.envelopeOf(row) === undefined) return 'this release can not read its envelope';
    return 'its checksum is wrong';
  }

  /** Who delays it and why, and until when; undefined when nobody does. */
  delayOf(row: number): { readonly untilWallMs: number; readonly why: string } | undefined {
    if (this.#ports.entries.isAllAbsent(row)) return undefined;
    const note = this.#noteOf(row);
    if (!this.isDelayed(row, note)) return undefined;
    const untilWallMs = note.dueWallMs + this.#ports.frame.aheadMs();
    return { untilWallMs, why: this.#wordsOf(row, note.dueWallMs) };
  }

  /** When it would fail. Held by an operator: if it were released now. */
  expiryWallMs(row: number, { heldSinceWallMs, addedSeconds }: Note): number {
    const { clock, settlement, entries: { table } } = this.#ports;
    const seconds = table.expirySeconds.get(row);
    const envelope = settlement.envelopeOf(row);
    if (seconds !== STOPPED_SECONDS || envelope === undefined) return seconds * 1000;
    const { endMs, sinceMs } = this.#apart.get(row) ?? TOGETHER;
    const heldMs = Math.max(0, clock.wallMs() - heldSinceWallMs - sinceMs);
    return (headEndSeconds(envelope) + addedSeconds) * 1000 + endMs + heldMs;
  }

  /** What the operator said. Words may get lost (entry-texts.ts); that it is held, or delayed, does not. */
  #wordsOf(row: number, wallMs: number): string {
    const { hold } = this.#ports.settlement.textsOf(row);
    const isKnown = hold?.sinceWallMs === wallMs;
    if (isKnown) return `${hold.who}: ${hold.reason}`;
    return 'an operator; who and why is only in the log of the gateway that was asked';
  }

  #whyNotNow(row: number): string {
    const { clock, entries: { table }, settlement } = this.#ports;
    const state = table.state(row);
    if (state === EntryState.IN_FLIGHT) settlement.refused.note(table.messageId(row), clock.nowMs());
    return whyNotNow(state);
  }

  #whyNotHeld(queue: MailQueue, row: number): string {
    const state = this.#ports.entries.table.state(row);
    if (queue.partition.isLeaving) return LEAVING;
    if (state !== EntryState.HELD) return this.#whyNotNow(row) || this.#whyNotRead(queue, row);
    if (this.#releasing.has(row)) return 'it is being released at this moment';
    const unread = this.#whyNotRead(queue, row);
    if (unread !== '') return unread;
    return this.#noteOf(row).heldSinceWallMs === 0 ? 'it is held already' : '';
  }

  #whyLeaving({ partition }: MailQueue): string {
    return partition.isLeaving ? LEAVING : '';
  }

  #whyNotDelayed(queue: MailQueue, row: number): string {
    const { entries, settlement } = this.#ports;
    const why = this.#whyLeaving(queue) || this.#whyNotNow(row) || this.#whyNotRead(queue, row);
    if (why !== '') return why;
    if (this.#releasing.has(row)) return 'it is being released at this moment';
    if (settlement.envelopeOf(row) === undefined) return UNREADABLE;
    if (entries.table.state(row) !== EntryState.HELD) return '';
    const note = this.#noteOf(row);
    if (this.#triesOf(queue, row, note) > 0 || entries.isDamaged(row)) return 'it is held: look at it first';
    if (note.owedChange !== 0) return 'a report is owed of it: release it';
    if (note.heldSinceWallMs === 0) return 'no operator holds it: queue show says why it waits';
    return queue.routed ? '' : NO_WAY_OUT;
  }

  #whyNotReleased(queue: MailQueue, row: number): string {
    const { entries, settlement } = this.#ports;
    if (entries.table.state(row) !== EntryState.HELD || this.#releasing.has(row)) return 'it is not held';
    if (queue.partition.isLeaving) return LEAVING;
    const unread = this.#whyNotRead(queue, row);
    if (unread !== '') return unread;
    if (!queue.routed && this.#noteOf(row).heldSinceWallMs === 0) return NO_WAY_OUT;
    if (settlement.envelopeOf(row) === undefined) return 'this release can not read its envelope: export it';
    return entries.isDamaged(row) ? 'its checksum is wrong: export it' : '';
  }

  /** What the order changes, or has to name, is still at the stores: it is fetched. */
  #whyNotRead(queue: MailQueue, row: number): string {
    const { entries } = this.#ports;
    if (!entries.isAllAbsent(row)) return '';
    entries.absent.wantLater(queue.partition, row);
    return UNREAD;
  }

  /** One that a standing hold has is held by an operator's word alone, whatever stands. */
  #holdOn(queue: MailQueue, row: number, { reason, who }: Order): void {
    const { settlement } = this.#ports;
    const note = this.#noteOf(row);
    if (!note.isHeldByRule) return;
    settlement.annotate(queue, row, { ...note, isHeldByRule: false });
    const hold = { sinceWallMs: note.heldSinceWallMs, who, reason };
    settlement.tell(queue, row, { ...settlement.textsOf(row), hold });
  }

  #holdBack(queue: MailQueue, row: number, { reason, who }: Order, isHeldByRule: boolean): void {
    const { clock, settlement, log, entries: { table } } = this.#ports;
    const sinceWallMs = Math.floor(clock.wallMs());
    const note = this.#noteOf(row);
    const dueWallMs = note.isDelayed ? 0 : note.dueWallMs;
    const { addedSeconds, apart } = this.#lifetimeOf(row, note);
    settlement.annotate(queue, row, {
      ...note, dueWallMs, isDelayed: false, heldSinceWallMs: sinceWallMs, isHeldByRule, addedSeconds,
    });
    settlement.tell(queue, row, { ...settlement.textsOf(row), hold: { sinceWallMs, who, reason } });
    settlement.withdrawFromWaiting(queue, row);
    this.#enter(queue, row);
    this.#stopLifetime(row, apart);
    const fields = { queue: queue.name, queue_id: formatMessageId(table.messageId(row)), reason, who };
    log.warn('held', 'a message is held by an operator', fields);
  }

  /**
   * When it ends by our clock, as whoever serves it next is to read it: who wrote its envelope may have had
   * another clock. What can't be said in the note, which only adds, is known here alone.
   */
  #lifetimeOf(row: number, { addedSeconds }: Note): { readonly addedSeconds: number; readonly apart: Apart } {
    const { settlement, entries: { table } } = this.#ports;
    const envelope = settlement.envelopeOf(row);
    const endSeconds = table.expirySeconds.get(row);
    if (envelope === undefined || endSeconds >= STOPPED_SECONDS) return { addedSeconds, apart: TOGETHER };
    const moreSeconds = endSeconds - headEndSeconds(envelope);
    const toldSeconds = secondsOf(moreSeconds * 1000);
    return { addedSeconds: toldSeconds, apart: { endMs: (moreSeconds - toldSeconds) * 1000, sinceMs: 0 } };
  }

  #stopLifetime(row: number, apart: Apart): void {
    const { expirySeconds } = this.#ports.entries.table;
    const isApart = Math.abs(apart.endMs) >= SAME_CLOCK_MS || Math.abs(apart.sinceMs) >= SAME_CLOCK_MS;
    if (isApart) this.#apart.set(row, apart);
    else this.#apart.delete(row);
    // What can not be read never ends by itself.
    if (expirySeconds.get(row) < STOPPED_SECONDS) expirySeconds.set(row, STOPPED_SECONDS);
  }

  #delay(queue: MailQueue, row: number, untilWallMs: number, { reason, who }: Order): void {
    const { settlement, frame, log, entries: { table } } = this.#ports;
    const dueWallMs = this.#inFrame(untilWallMs);
    const arrivalWallMs = settlement.envelopeOf(row)?.arrivalWallMs ?? frame.wallMs();
    const note = {
      ...this.#noteOf(row), dueWallMs, isDelayed: true, heldSinceWallMs: 0, isHeldByRule: false,
      addedSeconds: secondsOf(dueWallMs - arrivalWallMs),
    };
    const words = { sinceWallMs: dueWallMs, who, reason };
    settlement.tell(queue, row, { ...settlement.textsOf(row), hold: words });
    settlement.putOff(queue, row, note);
    this.#liveFrom(row, dueWallMs);
    log.warn('held', 'a message is delayed by an operator', {
      queue: queue.name, queue_id: formatMessageId(table.messageId(row)),
      until_ms: untilWallMs, reason, who,
    });
  }

  /** It is due now; its lifetime has begun. */
  #endDelay(queue: MailQueue, row: number, { reason, who }: Order): void {
    const { settlement, frame, log, entries: { table } } = this.#ports;
    const arrivalWallMs = settlement.envelopeOf(row)?.arrivalWallMs ?? frame.wallMs();
    const addedSeconds = secondsOf(frame.wallMs() - arrivalWallMs);
    settlement.annotate(queue, row, { ...this.#noteOf(row), dueWallMs: 0, isDelayed: false, addedSeconds });
    this.#liveFrom(row, frame.wallMs());
    settlement.withdrawFromWaiting(queue, row);
    queue.makeReady(row, false);
    this.#ports.wake(queue);
    const fields = { queue: queue.name, queue_id: formatMessageId(table.messageId(row)), reason, who };
    log.warn('held', 'a message that was delayed goes on: an operator has released it', fields);
  }

  /** It lives as long as its envelope says, from this time of our frame on. */
  #liveFrom(row: number, beginMs: number): void {
    const envelope = this.#ports.settlement.envelopeOf(row);
    if (envelope === undefined) return;
    this.#setExpiry(row, beginMs + envelope.expiryWallMs - envelope.arrivalWallMs);
  }

  /** A retry of it is always possible. */
  #setExpiry(row: number, endMs: number): void {
    const { frame, longestRetryMs, entries: { table } } = this.#ports;
    const leastMs = frame.wallMs() + longestRetryMs();
    this.#apart.delete(row);
    table.expirySeconds.set(row, Math.min(STOPPED_SECONDS, Math.ceil(Math.max(leastMs, endMs) / 1000)));
  }

  /** A time of the wall clock as entries have it. */
  #inFrame(wallMs: number): number {
    return Math.floor(wallMs - this.#ports.frame.aheadMs());
  }

  #doAwayWith(queue: MailQueue, row: number, { reason, who }: Order): void {
    const { settlement, crashes, events, log, entries: { table } } = this.#ports;
    const messageId = table.messageId(row);
    crashes.forget(queue.ownerId, messageId);
    this.#releasing.delete(row);
    const envelope = settlement.envelopeOf(row);
    if (envelope !== undefined) {
      // Each recipient that nobody is told of, by name (G2).
      this.#noteOf(row).states.forEach((state, index) => {
        if (state !== TO_TRY && state !== OWED_FAILURE) return;
        events.ended(queue, envelope, index, 'deleted by an operator', `${who}: ${reason}`);
      });
    }
    settlement.withdrawFromWaiting(queue, row);
    settlement.end(queue, row);
    const fields = { queue: queue.name, queue_id: formatMessageId(messageId), reason, who };
    log.warn('held', 'a message is deleted by an operator', fields);
  }

  #letGo(queue: MailQueue, row: number, { reason, who }: Order): void {
    const { settlement, crashes, log, entries: { table } } = this.#ports;
    const messageId = table.messageId(row);
    const note = this.#noteOf(row);
    if (note.heldSinceWallMs !== 0) this.#setExpiry(row, this.expiryWallMs(row, note));
    const { addedSeconds } = note.heldSinceWallMs === 0 ? note : this.#lifetimeOf(row, note);
    // It comes back behind what is due; the next process is not to take it for the head that it was (G3).
    const dueWallMs = queue.route.ordering === 'strict' ? 0 : note.dueWallMs;
    const number = settlement.annotate(queue, row, {
      ...note, dueWallMs, heldSinceWallMs: 0, isHeldByRule: false, tries: 0, addedSeconds,
    });
    crashes.forget(queue.ownerId, messageId);
    const fields = { queue: queue.name, queue_id: formatMessageId(messageId), reason, who };
    log.warn('held', queue.routed ? GOES_ON : WAITS_ON, fields);
    this.#releasing.set(row, { queue, messageId, number });
  }

  /** Not held any more. */
  #goOn(queue: MailQueue, row: number): void {
    const owes = this.#noteOf(row).owedChange !== 0;
    if (!queue.routed && !owes) return;
    queue.heldCount -= 1;
    if (owes) {
      this.#ports.entries.table.transition(row, EntryState.REPORTING);
      this.#ports.noteOwing(queue, row);
      return;
    }
    queue.makeReady(row, false);
    this.#ports.wake(queue);
  }

  #enter(queue: MailQueue, row: number): void {
    this.#ports.entries.table.transition(row, EntryState.HELD);
    queue.heldCount += 1;
  }

  #alarm(queue: MailQueue, row: number, tries: number): void {
    if (tries === 0) return;
    const { entries, counters, log } = this.#ports;
    const { name, ownerId } = queue;
    const messageId = entries.table.messageId(row);
    counters.poisonMessages += 1;
    log.error(
      'held',
      'a message is held alone: each process that worked on it has ended; ' +
        'look at it with twinpost queue export, let it go on with twinpost queue release',
      { queue: name, owner: ownerId, queue_id: formatMessageId(messageId), processes: tries },
    );
  }

  /**
   * Processes that ended while they worked on the message, as its mirrors or this machine know; 0: too few.
   */
  #triesOf(queue: MailQueue, row: number, note: Pick<Note, 'tries'> | undefined): number {
    const { crashes, entries } = this.#ports;
    const noted = crashes.countOf(queue.ownerId, entries.table.messageId(row));
    const marked = note?.tries ?? 0;
    return marked >= TRIES_MAX || noted >= CRASHES_TO_HOLD ? Math.max(marked, noted) : 0;
  }

  #noteOf(row: number): Note {
    const { settlement } = this.#ports;
    return settlement.noteOf(row, settlement.envelopeOf(row)?.recipients.length ?? 1);
  }
}

/** When it ends by its head (envelope.ts). */
function headEndSeconds({ expiryWallMs }: Envelope): number {
  return Math.ceil(expiryWallMs / 1000);
}

/** Of a clock that was set meanwhile not too much, nor less than nothing. */
function secondsOf(ms: number): number {
  return Math.min(ADDED_SECONDS_MAX, Math.max(0, Math.ceil(ms / 1000)));
}
