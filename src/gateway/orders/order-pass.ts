/**
 * One order of an operator over many messages, as it passes over what is there: a walk through all queues
 * that counts, and, when the operator has seen the count, walks that act, until nothing that is meant is left
 * in hand (being delivered, stored or reported). What comes later is not meant: of each partition an entry
 * counts up to the number that it had when the order was given; and never are more messages changed than
 * were counted. Nothing is kept of what was found, however much it is.
 *
 *   looking ─ all seen ─► found ─ go ─► grace ─ time is over ─► acting ─ none in hand, copies have it ─► done
 *      │                    │             │                       │
 *      └────── cancel ──────┴─────────────┴───────────────────────┴─► cancelled: what was done stays done
 *
 * It stands in the register from `go` on, and does nothing before it does (order-key.ts): so it outlives this
 * process. What it ends, or leads elsewhere, is kept back from then on (keeping-back.ts). A partition that is
 * to be handed to another gateway stays until the order is through with it. Where nothing was done for long,
 * both are let go (KEEPS_MS).
 * Looking, found and in its grace it is cancelled too when nobody asks for it any more (UNASKED_MS; in the
 * grace of one that was followed sooner, UNFOLLOWED_MS): whoever gave it is gone. Pure.
 */
import type { OrderInForceAnswer } from '../../admin-api/gateway-answers.js';
import type {
  MetMessage, OrderPhase, QueueOrder, QueueOrderAnswer,
} from '../../admin-api/queue-orders.js';
import { isFinal, termsOf } from '../../admin-api/queue-orders.js';
import { selectorWords } from '../../admin-api/selector-words.js';
import { invariant } from '../../base/invariant.js';
import { formatMessageId } from '../../base/text-id.js';
import type { EventLog } from '../../platform/ports.js';
import { parseMessageId } from '../../base/text-id.js';
import type { Partition } from '../mirror/set/partition.js';
import type { MailQueue } from '../queue/mail-queue.js';
import type { Note } from '../queue/note.js';
import type { QueueRegistry } from '../queue/queue-registry.js';
import type { Envelope } from '../mail-types.js';
import type { WallFrame } from '../queue/wall-frame.js';
import { Flush } from './flush.js';
import type { FlushPorts } from './flush.js';
import { Came, OrderAct } from './order-act.js';
import type { OrderActPorts } from './order-act.js';
import { KeyPhase, OrderKey } from './order-key.js';
import type { OrderKeyPorts, OrderToLeave } from './order-key.js';
import { NOT_NOW, PAUSE_FIRST_MS, QueueCursor, longerPause } from './queue-cursor.js';

export interface OrderPassPorts extends OrderActPorts, OrderKeyPorts, FlushPorts {
  readonly gatewayId: string;
  /** Of arrival and due times. */
  readonly frame: WallFrame;
  readonly log: EventLog;
  readonly registry: QueueRegistry;
  /** Partitions that are here in part, or still to come: what they have is not all known. */
  isIncomplete(): boolean;
}

/** So long after the last change it waits for envelopes that went back to the stores since the count. */
const UNREAD_MS = 60_000;
const UNASKED_MS = 120_000;
/**
 * Shorter than the grace of a minute that most have: else it would begin though whoever could take it back is
 * gone. Longer than the 5 s for which the command waits for a gateway that does not answer.
 */
const UNFOLLOWED_MS = 15_000;
/** Asked so often in its grace, to go being the first: somebody follows it. */
const FOLLOWED_FROM = 4;
/** A partition does not go to another gateway meanwhile; but for so long at most after the last change. */
const KEEPS_MS = 600_000;
const IS_SUSPENDED = 'its queue is suspended: queue resume lets it go';
/** Examples that are told, of what is meant and of what could not be done. */
const MET_MAX = 100;

const NEXT: Readonly<Record<OrderPhase, readonly OrderPhase[]>> = {
  looking: ['found', 'cancelled'],
  found: ['grace', 'cancelled'],
  grace: ['acting', 'cancelled'],
  acting: ['done', 'cancelled'],
  done: [],
  cancelled: [],
};

type Visit = (queue: MailQueue, row: number, envelope: Envelope, note: Note) => Came;

export class OrderPass {
  readonly id: string;
  readonly order: QueueOrder;
  phase: OrderPhase = 'looking';
  /** When it ended; Infinity before. */
  endedMs = Infinity;
  readonly #ports: OrderPassPorts;
  readonly #act: OrderAct;
  readonly #flush: Flush;
  /** Undefined: it is over when it would be found there. */
  readonly #key: OrderKey | undefined;
  readonly #givenWallMs: number;
  readonly #givenSeconds: number;
  /** Of each partition the last number that is meant. */
  readonly #untilNumber = new Map<Partition, number>();
  /** Of which it may not have seen all. */
  readonly #inPart = new Set<Partition>();
  /** Of which it meant all when it went, and is to see all. */
  readonly #wholeAtGo = new Set<Partition>();
  /** Of those, which went away, or began to, before it was done with them. */
  readonly #moved = new Set<Partition>();
  /** Of each partition the messages that were counted and not dealt with. */
  readonly #open = new Map<Partition, number>();
  readonly #counts = { matched: 0, recipients: 0, bytes: 0, done: 0, unread: 0, keptBack: 0 };
  /** Of the walk under way, and of the last one that is through. */
  #waiting = 0;
  #notDone = 0;
  #lastWaiting = 0;
  /** Why the last of those can not be done yet, if some can't. */
  #waitsFor = '';
  #lastWaitsFor = '';
  #lastNotDone = 0;
  #cursor: QueueCursor | undefined;
  #nextWalkMs = 0;
  #pauseMs = PAUSE_FIRST_MS;
  /** Walks that acted and are through. */
  #walks = 0;
  /** In this queue, and walk, something is waited for: what is behind it waits, too. */
  #gapIn: MailQueue | undefined;
  /** Changes that copies have to acknowledge. */
  readonly #changed = new Map<Partition, number>();
  readonly #met: MetMessage[] = [];
  /** Of the ids that the selector says, those that were not met, as it says them. Undefined: it says none. */
  readonly #unmet: Map<number, string> | undefined;
  readonly #refused: MetMessage[] = [];
  #graceUntilMs = Infinity;
  #askedMs: number;
  #askedInGrace = 0;
  #isUnfollowed = false;
  #nowMs: number;
  #sinceMs = 0;
  #wasIncomplete = false;
  /** When it went, began to act, or something was done to a message last. */
  #progressMs = -Infinity;
  /** When it was done. */
  #passed: readonly string[] | undefined;

  constructor(id: string, order: QueueOrder, ports: OrderPassPorts) {
    this.id = id;
    this.order = order;
    this.#ports = ports;
    this.#act = new OrderAct(order, ports, (queue, envelope, meant, why) => {
      this.#noteRefused(metOf(queue, envelope, meant.length, why));
    });
    this.#flush = new Flush(ports);
    this.#givenWallMs = ports.clock.wallMs();
    this.#givenSeconds = Math.floor(ports.frame.wallMs() / 1000);
    this.#nowMs = ports.clock.nowMs();
    this.#askedMs = this.#nowMs;
    for (const partition of ports.registry.partitions) {
      this.#untilNumber.set(partition, partition.lastNumber);
      if (partition.isRecovering) this.#inPart.add(partition);
    }
    const { verb, reason, who, selector, dry_run: isDry = false } = order;
    const { ids } = selector;
    this.#unmet = ids === undefined ? undefined : new Map(ids.map((id) => [parseMessageId(id) ?? NaN, id]));
    this.#key = verb === 'flush' ? undefined : new OrderKey(id, {
      verb, selector, ...termsOf(order), who, reason, wallMs: Math.floor(this.#givenWallMs),
    }, ports, () => this.#passed ?? this.#wholeNames());
    ports.log.warn('order', 'an operator orders something for many messages', {
      order: id, verb, selector: JSON.stringify(selector), dry_run: isDry, ...termsOf(order),
      reason, who,
    });
  }

  get isOver(): boolean {
    return this.phase === 'done' || this.phase === 'cancelled';
  }

  /** What was found is dealt with, after so long. False: it is not the time for that. */
  go(graceMs: number): boolean {
    if (this.phase !== 'found' || this.order.dry_run === true) return false;
    this.#progressMs = this.#ports.clock.nowMs();
    this.#graceUntilMs = this.#progressMs + graceMs;
    this.#transition('grace');
    const isKept = graceMs > 0 && isFinal(this.order.verb);
    for (const one of this.#ports.registry.partitions) if (this.#isWhole(one)) this.#wholeAtGo.add(one);
    this.#key?.want(isKept ? KeyPhase.KEPT : KeyPhase.ACTED, graceMs);
    return true;
  }

  /** It passes over all of it, or has, or was taken back: whatever the register says is done to it. */
  hasPassedOver(partition: Partition): boolean {
    const { phase } = this;
    if (phase === 'grace' || phase === 'acting') {
      return this.#wholeAtGo.has(partition) && !this.#moved.has(partition);
    }
    if (phase === 'cancelled') return !this.#isUnfollowed && this.#untilNumber.has(partition);
    return phase === 'done' && this.#passed?.includes(partition.name) === true;
  }

  /** What became of it is in the register, as far as that is known. */
  get isTold(): boolean {
    return this.#key?.isQuiet !== false;
  }

  /** What of it concerns mail that comes later; undefined while nothing is to be done, or by a flush. */
  get toLeave(): OrderToLeave | undefined {
    return this.phase === 'acting' || this.phase === 'done' ? this.#key?.order : undefined;
  }

  /** It is to pass over this partition, which stays here until then. */
  keeps(partition: Partition): boolean {
    const isUnderWay = this.phase === 'grace' || this.phase === 'acting';
    if (!isUnderWay || !this.#untilNumber.has(partition) || this.#moved.has(partition)) return false;
    return this.#ports.clock.nowMs() - this.#progressMs < KEEPS_MS;
  }

  /** What it means there is not handed out, nor expires, before it is through with it. */
  keepsBack(partition: Partition): boolean {
    if (!isFinal(this.order.verb) || !this.#untilNumber.has(partition) || this.#moved.has(partition)) {
      return false;
    }
    if (this.phase === 'grace') return true;
    return this.phase === 'acting' && this.#ports.clock.nowMs() - this.#progressMs < KEEPS_MS;
  }

  concernsQueue(queue: MailQueue): boolean {
    return this.#act.selection.concernsQueue(queue);
  }

  /** It would end this entry, or lead it elsewhere, if it came to it now. */
  means(queue: MailQueue, row: number): boolean {
    const { entries, settlement } = this.#ports;
    const { matched, done } = this.#counts;
    if (done + this.#notDone >= matched || !this.#concerns(queue, row)) return false;
    const envelope = this.#act.envelopeOf(queue, row);
    if (envelope === undefined) return entries.isAllAbsent(row);
    const note = settlement.noteOf(row, envelope.recipients.length);
    return this.#act.meantOf(queue, row, envelope, note).length > 0;
  }

  /** As far as is known of it without its envelope. */
  #concerns(queue: MailQueue, row: number): boolean {
    const { table } = this.#ports.entries;
    const { selection } = this.#act;
    return table.position.get(row) <= (this.#untilNumber.get(queue.partition) ?? 0)
      && selection.concernsQueue(queue) && selection.concernsRow(table, row, this.#givenSeconds);
  }

  /** False: it is over. */
  cancel(): boolean {
    if (this.isOver) return false;
    this.#end('cancelled');
    return true;
  }

  get isWalking(): boolean {
    return this.#cursor !== undefined;
  }

  /** Called a few times in a tenth of a second; `sinceMs`: when the walks of this tick began. */
  tick(nowMs: number, sinceMs: number): void {
    if (!this.isOver) this.#noteMoved();
    this.#key?.tick();
    if (this.phase !== 'cancelled') this.#flush.tick(nowMs);
    if (this.isOver) return;
    this.#nowMs = nowMs;
    this.#sinceMs = sinceMs;
    const patienceMs = this.#askedInGrace >= FOLLOWED_FROM ? UNFOLLOWED_MS : UNASKED_MS;
    if (this.phase !== 'acting' && nowMs - this.#askedMs >= patienceMs) {
      this.#isUnfollowed = true;
      return this.#end('cancelled');
    }
    if (this.phase === 'looking') this.#look();
    if (this.phase === 'grace' && nowMs >= this.#graceUntilMs) this.#beginToAct();
    if (this.phase === 'acting') this.#actUntilDone();
  }

  /** `isAsked`: by whoever gave it, who is still there. */
  answer(isAsked: boolean): QueueOrderAnswer {
    const nowMs = this.#ports.clock.nowMs();
    if (isAsked) this.#askedMs = nowMs;
    if (isAsked && this.phase === 'grace') this.#askedInGrace += 1;
    const { matched, recipients, bytes, done, unread, keptBack } = this.#counts;
    const { verb, selector, reason, who, dry_run: isDry = false } = this.order;
    const moved = this.#movedCount();
    const isWalking = !this.isOver && this.#cursor !== undefined;
    const waiting = isWalking ? Math.max(this.#waiting, this.#lastWaiting) : this.#lastWaiting;
    const notDone = moved + (isWalking ? Math.max(this.#notDone, this.#lastNotDone) : this.#lastNotDone);
    const isThrough = this.phase === 'done';
    const unmet = isAsked && this.phase !== 'looking' ? this.#unmet : undefined;
    const left = this.phase === 'grace' ? Math.ceil((this.#graceUntilMs - nowMs) / 1000) : 0;
    return {
      order: this.id, gateway: this.#ports.gatewayId, verb, selector, ...termsOf(this.order),
      phase: this.phase, ...(this.#isUnfollowed ? { unfollowed: true as const } : {}),
      dry_run: isDry, reason, who,
      given: Math.floor(this.#givenWallMs / 1000),
      looked_share: this.phase === 'looking' ? Math.min(this.#cursor?.share ?? 0, 0.999) : 1,
      matched, matched_recipients: recipients, matched_bytes: bytes, done,
      ...(verb === 'flush' ? { kept_back: keptBack } : {}),
      gone_before: isThrough ? Math.max(0, matched - done - notDone) : 0,
      waiting, waits_for: waiting === 0 ? '' : this.#waitsFor || this.#lastWaitsFor,
      not_done: notDone, moved, unread, incomplete: this.#wasIncomplete,
      grace_left_seconds: Math.max(0, left), partitions: this.#passed ?? this.#passedOver(),
      kept: this.#isKept(), unregistered: this.#key?.whyNot ?? '', met: this.#met, refused: this.#refused,
      ...(unmet === undefined ? {} : { ids_unmet: [...unmet.values()] }),
    };
  }

  /** Undefined: it is over, or a dry run. Whoever looks is not who gave it. */
  inForce(): OrderInForceAnswer | undefined {
    const { phase } = this;
    const { verb, selector, who, reason, dry_run: isDry = false } = this.order;
    if (phase === 'done' || phase === 'cancelled' || isDry) return undefined;
    const { clock } = this.#ports;
    const graceEndsMs = clock.wallMs() + this.#graceUntilMs - clock.nowMs();
    return {
      order: this.id, verb, selector: selectorWords(selector, this.order), phase, who, reason,
      given: Math.floor(this.#givenWallMs / 1000), matched: this.#counts.matched, done: this.#counts.done,
      grace_ends: phase === 'grace' ? Math.ceil(graceEndsMs / 1000) : null, until: null,
    };
  }

  /** Names of partitions of which it means all that is there. */
  #passedOver(): readonly string[] {
    return this.#ports.registry.partitions.filter((one) => this.#isWhole(one)).map(({ name }) => name);
  }

  /** Of those over which it passes, from `go` on, whatever it can not see of them. */
  #wholeNames(): readonly string[] {
    return [...this.#wholeAtGo].filter((one) => !this.#moved.has(one)).map(({ name }) => name);
  }

  #isWhole(partition: Partition): boolean {
    return this.#untilNumber.has(partition) && !this.#inPart.has(partition) && !partition.isLeaving;
  }

  #beginToAct(): void {
    this.#key?.want(KeyPhase.ACTED);
    if (this.#key?.isSettled === false) return;
    if (this.#key !== undefined && this.#key.whyNot !== '') {
      this.#ports.log.warn('order', 'an order acts though it is not in the register: a crash would end it', {
        order: this.id, verb: this.order.verb, error: this.#key.whyNot,
      });
    }
    this.#progressMs = this.#nowMs;
    this.#flush.begin(this.#nowMs);
    this.#transition('acting');
  }

  /** What goes to another gateway is not passed over by anybody: it is to be left in the register. */
  #noteMoved(): void {
    for (const partition of this.#untilNumber.keys()) {
      if (this.#moved.has(partition) || (!partition.isLeaving && !partition.isForgotten)) continue;
      this.#moved.add(partition);
      this.#inPart.add(partition);
      this.#wasIncomplete = true;
    }
  }

  /** What was counted and went away: nobody here knows what became of it. */
  #movedCount(): number {
    let count = 0;
    for (const partition of this.#moved) count += this.#open.get(partition) ?? 0;
    return count;
  }

  #look(): void {
    if (this.#ports.isIncomplete()) this.#wasIncomplete = true;
    const isThrough = this.#walk((queue, row, envelope, note) => this.#count(queue, row, envelope, note));
    if (isThrough) this.#transition('found');
  }

  #actUntilDone(): void {
    const isDone = this.#walks > 0 && this.#lastWaiting === 0;
    if (!isDone && (this.#cursor !== undefined || this.#nowMs >= this.#nextWalkMs)) this.#actOn();
    if (this.#walks > 0 && this.#lastWaiting === 0 && this.#isKept()) this.#end('done');
  }

  #actOn(): void {
    const isThrough = this.#walk((queue, row, envelope, note) => this.#dealWith(queue, row, envelope, note));
    this.#flush.hastenHops();
    if (!isThrough) return;
    this.#walks += 1;
    this.#lastWaiting = this.#waiting;
    this.#lastNotDone = this.#notDone;
    this.#lastWaitsFor = this.#waitsFor;
    this.#waiting = 0;
    this.#waitsFor = '';
    this.#notDone = 0;
    this.#nextWalkMs = this.#nowMs + this.#pauseMs;
    this.#pauseMs = longerPause(this.#pauseMs);
    this.#gapIn = undefined;
  }

  /** One part of a walk: true when it is through. */
  #walk(visit: Visit): boolean {
    const { entries: { table }, registry, clock } = this.#ports;
    this.#cursor ??= new QueueCursor(registry, table, (queue) => this.#act.selection.concernsQueue(queue));
    const isThrough = this.#cursor.walk(
      clock, (queue, row) => this.#visit(queue, row, visit), this.#sinceMs,
    );
    if (isThrough) this.#cursor = undefined;
    return isThrough;
  }

  /** The work that it was beside the entry itself: each recipient. Or NOT_NOW. */
  #visit(queue: MailQueue, row: number, visit: Visit): number {
    const { entries: { table }, settlement } = this.#ports;
    const { partition } = queue;
    if (table.position.get(row) > (this.#untilNumber.get(partition) ?? 0) || this.#moved.has(partition)) {
      return 0;
    }
    if (!this.#act.selection.concernsRow(table, row, this.#givenSeconds)) return 0;
    const envelope = this.#act.envelopeOf(queue, row);
    if (envelope === undefined) {
      this.#noteUnread(queue, row);
      return 0;
    }
    const { length } = envelope.recipients;
    const came = visit(queue, row, envelope, settlement.noteOf(row, length));
    const isSoon = came === Came.NOT_YET && this.#ports.rebinding.isUnderWay;
    if (came === Came.NOT_YET && !isSoon) this.#noteNotYet();
    return came === Came.LATER || isSoon ? NOT_NOW : length;
  }

  /** One that was counted may have gone back to the stores: it is asked for, and met by a later walk. */
  #noteUnread(queue: MailQueue, row: number): void {
    const { partition } = queue;
    const mayBeCounted = this.phase === 'acting' && (this.#open.get(partition) ?? 0) > 0;
    const isAwaited = this.#nowMs - this.#progressMs < UNREAD_MS && this.#ports.entries.isAllAbsent(row);
    if (mayBeCounted && isAwaited) {
      this.#waiting += 1;
      this.#gapIn = queue;
      return;
    }
    this.#inPart.add(partition);
    if (this.phase === 'looking') {
      this.#counts.unread += 1;
      this.#noteMet(row);
    } else this.#wasIncomplete = true;
  }

  #noteNotYet(): void {
    this.#waiting += 1;
    this.#waitsFor = this.#act.whyNotYet;
  }

  #count(queue: MailQueue, row: number, envelope: Envelope, note: Note): Came {
    const meant = this.#act.meantOf(queue, row, envelope, note).length;
    const isKeptBack = this.#act.isKeptFromFlush(row, envelope, note);
    if (isKeptBack) this.#counts.keptBack += 1;
    if (isKeptBack || meant > 0) this.#noteMet(row);
    if (meant === 0) return Came.NOT_MEANT;
    this.#counts.matched += 1;
    this.#open.set(queue.partition, (this.#open.get(queue.partition) ?? 0) + 1);
    this.#counts.recipients += meant;
    this.#counts.bytes += this.#ports.entries.table.bodyBytes.get(row);
    if (this.#met.length < MET_MAX) this.#met.push(metOf(queue, envelope, meant, ''));
    return Came.NOT_MEANT;
  }

  #noteMet(row: number): void {
    this.#unmet?.delete(this.#ports.entries.table.messageId(row));
  }

  #dealWith(queue: MailQueue, row: number, envelope: Envelope, note: Note): Came {
    const { matched, done } = this.#counts;
    const meant = this.#act.meantOf(queue, row, envelope, note);
    // Never more than the operator saw.
    if (meant.length === 0 || done + this.#notDone >= matched) return Came.NOT_MEANT;
    const came = this.#tryOn(queue, row, envelope, meant, note);
    if (came === Came.DONE) {
      this.#counts.done += 1;
      this.#progressMs = this.#nowMs;
      this.#open.set(queue.partition, Math.max(0, (this.#open.get(queue.partition) ?? 0) - 1));
    } else if (came === Came.IN_HAND) this.#waiting += 1;
    else if (came === Came.NOT_DONE) this.#notDone += 1;
    return came;
  }

  #tryOn(queue: MailQueue, row: number, envelope: Envelope, meant: readonly number[], note: Note): Came {
    const { verb } = this.order;
    if (verb === 'flush') {
      // It lifts no suspension.
      if (queue.isSuspended) return this.#act.refuse(queue, envelope, meant, IS_SUSPENDED);
      return this.#flush.meet(queue, row, this.#gapIn === queue);
    }
    if (this.#walks > 0 && this.#act.isDoneBefore(row, note)) return Came.NOT_MEANT;
    const came = this.#act.doTo(queue, row, envelope, meant, verb, this.#nowMs);
    if (came === Came.DONE) this.#changed.set(queue.partition, queue.partition.lastNumber);
    return came;
  }

  #noteRefused(met: MetMessage): void {
    const { queue_id: id, queue_name: name } = met;
    const isKnown = this.#refused.some((one) => one.queue_id === id && one.queue_name === name);
    if (!isKnown && this.#refused.length < MET_MAX) this.#refused.push(met);
  }

  #isKept(): boolean {
    for (const [partition, number] of this.#changed) {
      // Whoever has a partition that left us has all that we changed.
      if (partition.ackedNumber < number && this.#ports.registry.partitions.includes(partition)) return false;
    }
    return true;
  }

  #end(phase: 'done' | 'cancelled'): void {
    this.#cursor = undefined;
    this.#passed = this.#passedOver();
    this.endedMs = this.#ports.clock.nowMs();
    this.#transition(phase);
    const taken = this.#isUnfollowed ? KeyPhase.UNFOLLOWED : KeyPhase.CANCELLED;
    this.#key?.end(phase === 'done' ? KeyPhase.DONE : taken);
    const { matched, done, unread } = this.#counts;
    const cancelled = this.#isUnfollowed ? 'an order is cancelled: nobody asks for it any more'
      : 'an order is cancelled';
    this.#ports.log.warn('order', phase === 'done' ? 'an order is done' : cancelled, {
      order: this.id, verb: this.order.verb, matched, done, unread,
      not_done: this.#lastNotDone + this.#movedCount(),
    });
  }

  #transition(to: OrderPhase): void {
    invariant(NEXT[this.phase].includes(to), `an order goes from ${this.phase} to ${to}`);
    this.phase = to;
  }
}

function metOf(queue: MailQueue, envelope: Envelope, recipients: number, why: string): MetMessage {
  return {
    queue_id: formatMessageId(envelope.messageId), queue_name: queue.name,
    queue_class: queue.route.queueClass, sender: envelope.reversePath, recipients, why,
  };
}
