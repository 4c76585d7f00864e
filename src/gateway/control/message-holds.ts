/**
 * Messages that an operator holds, releases or deletes; and those that are held because they were in hand in two
 * crashes (crash-record.ts). What else is held (no route, a damaged content, an unknown envelope) is only named here.
 *
 *   READY, DEFERRED ─ hold, "hold/<id>" set ─► HELD ─ release, records forgotten, at the mirrors too ─► READY, or its
 *                                                                                               report goes on
 *   READY, DEFERRED, HELD ─ delete ─► gone, logged and counted; nobody is told (G2)
 *   recovery ─ named by a record ─► HELD alone; other mail goes on
 *
 * A poison message does not expire while it is held: its report is what would end the process. Pure.
 */
import { formatMessageId, parseMessageId } from '../../base/text-id.js';
import type { QueueMirror } from '../mirror/queue-mirror.js';
import { checkControl } from '../../protocol/bounds.js';
import type { Clock, Crc32, EventLog, Packer } from '../../platform/ports.js';
import type { Entries } from '../queue/entries.js';
import type { MailEvents } from '../queue/mail-events.js';
import { EntryState } from '../queue/entry-table.js';
import { whyNotNow } from '../queue/interruptions.js';
import { OWED_FAILURE, TO_TRY } from '../queue/note.js';
import type { QueueRegistry } from '../queue/queue-registry.js';
import type { Settlement } from '../queue/settlement.js';
import type { ControlQueues } from './control-queues.js';
import { isControl } from './control-queues.js';
import type { CrashRecord } from './crash-record.js';
import type { QueueChange } from './kept-waits.js';

const PREFIX = 'hold/';
const NO_BYTES = new Uint8Array(0);
const HELD_ALREADY = 'it is held already';
const LEAVING = 'its queue goes to another gateway';

export interface HoldRequest {
  readonly messageId: number;
  /** For the log and for who lists the queue. */
  readonly reason: string;
  readonly who: string;
}

/** What came of it in one queue that has the message. */
export interface HoldOutcome {
  readonly queue: string;
  readonly queueClass: string;
  /** Gateway of the queue's identity: its records say what came of it. */
  readonly owner: string;
  readonly done: boolean;
  /** Why not; '' when done. */
  readonly why: string;
  /** A change of the mail's own queue, beside the owner's records. */
  readonly change?: QueueChange;
}

export interface MessageHoldsPorts {
  readonly clock: Clock;
  readonly crc32: Crc32;
  readonly packer: Packer;
  readonly log: EventLog;
  readonly entries: Entries;
  readonly registry: QueueRegistry;
  readonly settlement: Settlement;
  readonly control: ControlQueues;
  readonly crashes: CrashRecord;
  readonly counters: { poisonMessages: number };
  readonly events: MailEvents;
  wake(mirror: QueueMirror): void;
  /** Calls back once the mirrors have acknowledged what the owner's records say now, or at a bound. */
  whenKept(ownerId: string, then: () => void): void;
  /** A report of this entry is to be made, when all queues of its owner are here. */
  noteOwing(mirror: QueueMirror, row: number): void;
}

interface NamedMessages {
  readonly version: number;
  readonly ids: ReadonlySet<number>;
}

export class MessageHolds {
  private readonly ports: MessageHoldsPorts;
  /** By owner: asked for each entry of a recovery. */
  private readonly named = new Map<string, NamedMessages>();
  /** Rows that go on as soon as the mirrors know of it: the process that works on them may die of it. */
  private readonly releasing = new Set<number>();

  constructor(ports: MessageHoldsPorts) {
    this.ports = ports;
  }

  /**
   * An operator wants the message held, wherever it waits here. Empty: no queue has it. One that an operator holds
   * already stays as it is, and counts as done: who was told that the mirrors had not acknowledged it asks again.
   */
  hold(request: HoldRequest): HoldOutcome[] {
    const { settlement, log } = this.ports;
    const outcomes: HoldOutcome[] = [];
    for (const { mirror, row } of this.find(request.messageId)) {
      const { ownerId } = mirror.queue.identity;
      const whyNot = this.whyNotHeld(mirror, row);
      if (whyNot === HELD_ALREADY && this.recordOf(ownerId, request.messageId) !== undefined) {
        outcomes.push(outcome(mirror, ''));
        continue;
      }
      const why = whyNot || this.record(ownerId, request);
      outcomes.push(outcome(mirror, why));
      if (why !== '') continue;
      settlement.withdrawFromWaiting(mirror, row);
      this.enter(mirror, row);
      log.warn('held', 'a message is held by an operator', { queue: mirror.queue.name, queue_id: formatMessageId(request.messageId), reason: request.reason, who: request.who });
    }
    return outcomes;
  }

  /** An operator lets the message go on. */
  release(request: HoldRequest): HoldOutcome[] {
    const { control, crashes, entries, log } = this.ports;
    const outcomes: HoldOutcome[] = [];
    for (const { mirror, row } of this.find(request.messageId)) {
      const why = entries.table.state(row) === EntryState.HELD && !this.releasing.has(row) ? this.whyNotReleased(mirror, row) : 'it is not held';
      outcomes.push(outcome(mirror, why));
      if (why !== '') continue;
      const { ownerId } = mirror.queue.identity;
      control.recordsOf(ownerId).delete(nameOf(request.messageId));
      crashes.forget(ownerId, request.messageId);
      log.warn('held', 'a message that was held goes on: an operator has released it', { queue: mirror.queue.name, queue_id: formatMessageId(request.messageId), reason: request.reason, who: request.who });
      this.releasing.add(row);
      this.ports.whenKept(ownerId, () => { this.goOn(mirror, row, request.messageId); });
    }
    return outcomes;
  }

  /** An operator does away with the message, in every queue that it waits in. Its sender is not told. */
  delete(request: HoldRequest): HoldOutcome[] {
    const { entries, settlement, log } = this.ports;
    const outcomes: HoldOutcome[] = [];
    for (const { mirror, row } of this.find(request.messageId)) {
      const why = mirror.queue.isLeaving ? LEAVING : whyNotNow(entries.table.state(row));
      if (why !== '') {
        outcomes.push(outcome(mirror, why));
        continue;
      }
      this.forget(mirror, row);
      this.tellRemoved(mirror, row, request);
      settlement.withdrawFromWaiting(mirror, row);
      settlement.end(mirror, row);
      outcomes.push({ ...outcome(mirror, ''), change: { mirror, number: mirror.lastNumber } });
      log.warn('held', 'a message is deleted by an operator', {
        queue: mirror.queue.name, queue_id: formatMessageId(request.messageId), reason: request.reason, who: request.who,
      });
    }
    return outcomes;
  }

  /** A recovered entry is placed: true when it is held now, being named by a record. */
  holdsBack(mirror: QueueMirror, row: number): boolean {
    if (!this.isNamed(mirror, row)) return false;
    this.enter(mirror, row);
    this.alarm(mirror, row);
    return true;
  }

  /** A recovered entry owes a report: true when it is held instead, because making it would end the process. */
  holdsReport(mirror: QueueMirror, row: number): boolean {
    if (!this.isPoison(mirror, row)) return false;
    this.enter(mirror, row);
    // Held alone: a strict queue goes on without it.
    if (mirror.queue.unblock(row)) this.ports.wake(mirror);
    this.alarm(mirror, row);
    return true;
  }

  /** Records of the owner came back after its mail: what they name and what rests is held now. */
  onBack(ownerId: string): void {
    const { entries, settlement } = this.ports;
    for (const messageId of this.namedOf(ownerId)) {
      for (const { mirror, row } of this.find(messageId)) {
        const state = entries.table.state(row);
        if (mirror.queue.identity.ownerId !== ownerId || (state !== EntryState.READY && state !== EntryState.DEFERRED)) continue;
        settlement.withdrawFromWaiting(mirror, row);
        this.holdsBack(mirror, row);
      }
    }
  }

  /** The entry's time is up: false when it stays all the same. */
  mayExpire(mirror: QueueMirror, row: number): boolean {
    if (!this.isNamed(mirror, row)) return true;
    if (this.isPoison(mirror, row)) return false;
    this.forget(mirror, row);
    return true;
  }

  /** Why an entry is held; '' when it isn't. */
  reasonOf(mirror: QueueMirror, row: number): string {
    const { entries, crashes, settlement } = this.ports;
    const state = entries.table.state(row);
    if (state === EntryState.PARKED) return 'a report that waits until its message has ended';
    if (state !== EntryState.HELD) return '';
    if (this.releasing.has(row)) return 'it is being released';
    const { ownerId } = mirror.queue.identity;
    const messageId = entries.table.messageId(row);
    if (this.isPoison(mirror, row)) return `it was in hand in ${String(crashes.countOf(ownerId, messageId))} crashes of the gateway`;
    const held = this.recordOf(ownerId, messageId);
    if (held !== undefined) return `${held.who}: ${held.reason}`;
    if (!mirror.queue.routed) return 'no route leads out of its queue';
    return settlement.envelopeOf(row) === undefined ? 'this release can not read its envelope' : 'its checksum is wrong';
  }

  /** Every entry of the message that is served here. */
  private *find(messageId: number): Generator<{ readonly mirror: QueueMirror; readonly row: number }> {
    for (const mirror of this.ports.registry.all) {
      if (isControl(mirror)) continue;
      const row = this.ports.entries.table.index.find(messageId, mirror.handle);
      if (row !== 0) yield { mirror, row };
    }
  }

  /** The entry ends: what was written down of it is not needed any more. */
  private forget(mirror: QueueMirror, row: number): void {
    if (!this.isNamed(mirror, row)) return;
    const { control, crashes, entries } = this.ports;
    const { ownerId } = mirror.queue.identity;
    const messageId = entries.table.messageId(row);
    control.recordsOf(ownerId).delete(nameOf(messageId));
    crashes.forget(ownerId, messageId);
  }

  /** Each recipient that nobody is told of, by name (G2). */
  private tellRemoved(mirror: QueueMirror, row: number, { who, reason }: HoldRequest): void {
    const { settlement, events } = this.ports;
    const envelope = settlement.envelopeOf(row);
    if (envelope === undefined) return;
    settlement.noteOf(row, envelope.recipients.length).states.forEach((state, index) => {
      if (state !== TO_TRY && state !== OWED_FAILURE) return;
      events.ended(mirror.queue, envelope, index, 'deleted by an operator', `${who}: ${reason}`);
    });
  }

  private whyNotHeld(mirror: QueueMirror, row: number): string {
    const state = this.ports.entries.table.state(row);
    if (mirror.queue.isLeaving) return LEAVING;
    if (state !== EntryState.HELD) return whyNotNow(state);
    return this.releasing.has(row) ? 'it is being released at this moment' : HELD_ALREADY;
  }

  private whyNotReleased(mirror: QueueMirror, row: number): string {
    const { entries, settlement, crc32 } = this.ports;
    if (mirror.queue.isLeaving) return LEAVING;
    if (!mirror.queue.routed) return 'no route leads out of its queue: add one with its name';
    if (settlement.envelopeOf(row) === undefined) return 'this release can not read its envelope: export it';
    const body = new Uint8Array(entries.table.bodyBytes.get(row));
    entries.copyBody(row, body, 0);
    return crc32(entries.head(row), crc32(body, 0)) === entries.table.checksum.get(row) ? '' : 'its checksum is wrong: export it';
  }

  /** Not held any more, unless its queue has left meanwhile. */
  private goOn(mirror: QueueMirror, row: number, messageId: number): void {
    const { entries, settlement } = this.ports;
    this.releasing.delete(row);
    if (entries.table.index.find(messageId, mirror.handle) !== row || entries.table.state(row) !== EntryState.HELD) return;
    const { queue } = mirror;
    queue.heldCount -= 1;
    const note = settlement.noteOf(row, settlement.envelopeOf(row)?.recipients.length ?? 1);
    if (note.owedChange !== 0) {
      entries.table.transition(row, EntryState.REPORTING);
      this.ports.noteOwing(mirror, row);
      return;
    }
    // It comes back behind what is due; the next process is not to take it for the head that it was (G3).
    if (queue.route.ordering === 'strict' && note.dueWallMs !== 0) {
      settlement.annotate(mirror, row, { ...note, dueWallMs: 0 });
    }
    queue.makeReady(row, false);
    this.ports.wake(mirror);
  }

  private enter(mirror: QueueMirror, row: number): void {
    this.ports.entries.table.transition(row, EntryState.HELD);
    mirror.queue.heldCount += 1;
  }

  private alarm(mirror: QueueMirror, row: number): void {
    const { entries, crashes, counters, log } = this.ports;
    if (!this.isPoison(mirror, row)) return;
    const { name, identity } = mirror.queue;
    const messageId = entries.table.messageId(row);
    counters.poisonMessages += 1;
    log.error('held', 'a message is held alone: each process that worked on it has crashed; look at it with twinpost queue export, let it go on with twinpost queue release', { queue: name, owner: identity.ownerId, queue_id: formatMessageId(messageId), crashes: crashes.countOf(identity.ownerId, messageId) });
  }

  private isPoison(mirror: QueueMirror, row: number): boolean {
    return this.isNamed(mirror, row) && this.ports.crashes.isPoison(mirror.queue.identity.ownerId, this.ports.entries.table.messageId(row));
  }

  private isNamed(mirror: QueueMirror, row: number): boolean {
    const named = this.namedOf(mirror.queue.identity.ownerId);
    return named.size > 0 && named.has(this.ports.entries.table.messageId(row));
  }

  private namedOf(ownerId: string): ReadonlySet<number> {
    const { control, crashes } = this.ports;
    const records = control.recordsOf(ownerId);
    const version = records.version + crashes.version;
    const known = this.named.get(ownerId);
    if (known?.version === version) return known.ids;
    const ids = new Set(crashes.poisonOf(ownerId));
    for (const name of records.names(PREFIX)) {
      const messageId = parseMessageId(name.slice(PREFIX.length));
      if (messageId !== undefined) ids.add(messageId);
    }
    this.named.set(ownerId, { version, ids });
    return ids;
  }

  /** '' when the hold is written down. */
  private record(ownerId: string, { messageId, reason, who }: HoldRequest): string {
    const { clock, control, packer } = this.ports;
    return control.recordsOf(ownerId).set(nameOf(messageId), packer.pack([who, reason, clock.wallMs()])) ? '' : 'there is no room for another record: release some';
  }

  private recordOf(ownerId: string, messageId: number): { readonly who: string; readonly reason: string } | undefined {
    const value = this.ports.control.recordsOf(ownerId).get(nameOf(messageId)) ?? NO_BYTES;
    if (value.length === 0 || checkControl(value) !== '') return undefined;
    const [who, reason] = this.ports.packer.unpack(value) as unknown[];
    return typeof who === 'string' && typeof reason === 'string' ? { who, reason } : undefined;
  }
}

function outcome(mirror: QueueMirror, why: string): HoldOutcome {
  return { queue: mirror.queue.name, queueClass: mirror.queue.route.queueClass, owner: mirror.queue.identity.ownerId, done: why === '', why };
}

function nameOf(messageId: number): string {
  return PREFIX + formatMessageId(messageId);
}
