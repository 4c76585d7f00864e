/**
 * Orders of operators that stand for a time, as rules of the register (queue-rules.ts): new mail that one of
 * them means is held, delayed, returned or deleted when it enters its queue, before anything is tried. The
 * newest that means a message is done to it, and once: what an operator releases then is not caught again.
 *
 *   committed ─────────────► cameIn() ─ end of the turn ─► done to it
 *   handed out, or expires ► meet() ─ nothing was done yet: memory was short, a gateway ended ─► done to it
 *   one is given, or over; mail that one held came from the stores; routes are other ones ─► a walk through
 *                                     all queues, and again while something could not be done:
 *                                       came since one was given, nothing was done to it, or it was but
 *                                       tried before all could know of the order ─────────► done to it
 *                                       held by one, and none that stands holds it ───────► released
 *
 * Nothing is kept of them with a message but what the order leaves: of a hold, that it is by one that stands.
 * So mail goes on when the hold is over, whoever has taken it over meanwhile. Mail that was there before is
 * dealt with by an order that passes once (order-pass.ts). Pure.
 */
import { isStandingVerb } from '../../admin-api/queue-rules.js';
import type { Clock, EventLog } from '../../platform/ports.js';
import type { QueueRule } from '../../register/records.js';
import { EntryState } from '../queue/entry-table.js';
import type { MailQueue } from '../queue/mail-queue.js';
import type { Note } from '../queue/note.js';
import type { QueueRegistry } from '../queue/queue-registry.js';
import { Came, OrderAct } from './order-act.js';
import type { OrderActPorts } from './order-act.js';
import { NOT_NOW, PAUSE_FIRST_MS, QueueCursor, longerPause } from './queue-cursor.js';
import { ofOneClass } from './selection.js';

export interface StandingOrdersPorts extends OrderActPorts {
  readonly clock: Clock;
  readonly log: EventLog;
  readonly registry: QueueRegistry;
}

/** The longest between walks for what could not be done. */
const PAUSE_MAX_MS = 60_000;
const OVER = { who: 'twinpost', reason: 'no hold that stands means it any more' } as const;

interface StandingOrder {
  readonly id: string;
  readonly rule: QueueRule;
  readonly verb: 'hold' | 'delay' | 'bounce' | 'delete';
  readonly act: OrderAct;
  /** What arrived before, by its second, is not meant. */
  readonly sinceSeconds: number;
  /** What arrived until then, by its second, is meant though it was tried; 0: nothing is. */
  readonly triedUntilSeconds: number;
  /** Messages that it was done to here. */
  caught: number;
}

interface NewEntry {
  readonly queue: MailQueue;
  readonly row: number;
  readonly messageId: number;
}

export class StandingOrders {
  /** Some stand: asked with each message, so that it costs nothing where none does. */
  isAny = false;
  readonly #ports: StandingOrdersPorts;
  /** The newest first. */
  #orders: readonly StandingOrder[] = [];
  /** Committed in this turn. */
  #came: NewEntry[] = [];
  #cursor: QueueCursor | undefined;
  #isWalkWanted = false;
  /** The walk under way has met what could not be done. */
  #isToCome = false;
  #nextWalkMs = -Infinity;
  #pauseMs = PAUSE_FIRST_MS;

  constructor(ports: StandingOrdersPorts) {
    this.#ports = ports;
  }

  /** Rules that stand now, in the order in which they were given. False: no order of them is another one. */
  obey(rules: ReadonlyMap<string, QueueRule>): boolean {
    const orders: StandingOrder[] = [];
    for (const [id, rule] of rules) {
      const order = this.#orders.find((one) => one.id === id) ?? this.#orderOf(id, rule);
      if (order !== undefined) orders.unshift(order);
    }
    const isSame = orders.length === this.#orders.length && orders.every((one, i) => one === this.#orders[i]);
    if (isSame) return false;
    this.#orders = orders;
    this.isAny = orders.length > 0;
    this.#walkSoon();
    return true;
  }

  /** Routes are other ones: what is held by its site may have another, and what waits may have come to it. */
  renew(): void {
    if (this.isAny) this.#walkSoon();
  }

  /** Messages that it was done to here. */
  caughtBy(id: string): number {
    return this.#orders.find((one) => one.id === id)?.caught ?? 0;
  }

  /** It is committed, and may be tried from now on. */
  cameIn(queue: MailQueue, row: number): void {
    this.#came.push({ queue, row, messageId: this.#ports.entries.table.messageId(row) });
  }

  endOfTurn(): void {
    if (this.#came.length === 0) return;
    const came = this.#came;
    this.#came = [];
    const { entries: { table }, clock } = this.#ports;
    const nowMs = clock.nowMs();
    for (const { queue, row, messageId } of came) {
      // It may have been handed out within the turn: it was met there.
      const isHere = table.index.find(messageId, queue.handle) === row;
      const isReady = isHere && table.state(row) === EntryState.READY;
      if (isReady && !isSettled(this.#judge(queue, row, nowMs, true))) this.#isWalkWanted = true;
    }
  }

  /** An entry that rests would be handed out, or fail, its time being up. */
  meet(queue: MailQueue, row: number): Came {
    return this.isAny ? this.#judge(queue, row, this.#ports.clock.nowMs(), false) : Came.NOT_MEANT;
  }

  get isWalking(): boolean {
    return this.#cursor !== undefined;
  }

  /** Called a few times in a tenth of a second; `sinceMs`: when the walks of this tick began. */
  tick(nowMs: number, sinceMs: number): void {
    const { holds, registry, entries: { table }, clock } = this.#ports;
    if (holds.takeMetHeldByRule()) this.#walkSoon();
    if (this.#cursor === undefined) {
      if (!this.#isWalkWanted || nowMs < this.#nextWalkMs) return;
      this.#isWalkWanted = false;
      this.#isToCome = false;
      this.#cursor = new QueueCursor(registry, table, ({ length }) => length > 0);
    }
    if (!this.#cursor.walk(clock, (queue, row) => this.#visit(queue, row), sinceMs)) return;
    this.#cursor = undefined;
    this.#pauseMs = this.#isToCome ? longerPause(this.#pauseMs, PAUSE_MAX_MS) : PAUSE_FIRST_MS;
    this.#nextWalkMs = nowMs + this.#pauseMs;
    this.#isWalkWanted ||= this.#isToCome;
  }

  /** From the start: what is behind the cursor may be meant now. */
  #walkSoon(): void {
    this.#cursor = undefined;
    this.#isWalkWanted = true;
    this.#pauseMs = PAUSE_FIRST_MS;
    this.#nextWalkMs = -Infinity;
  }

  #orderOf(id: string, rule: QueueRule): StandingOrder | undefined {
    const { verb, selector, reason, who, not_before_ms: notBeforeMs } = rule;
    if (selector === undefined || !isStandingVerb(verb)) return undefined;
    const act = new OrderAct({
      verb, selector: ofOneClass(selector), who, reason: `${reason} (rule ${id})`,
      ...(notBeforeMs === undefined ? {} : { not_before_ms: notBeforeMs }),
      ...(verb === 'hold' ? { standing: true as const } : {}),
    }, this.#ports, () => undefined);
    return {
      id, rule, verb, act, sinceSeconds: Math.floor(rule.wallMs / 1000),
      triedUntilSeconds: Math.floor((rule.triedUntilWallMs ?? 0) / 1000), caught: 0,
    };
  }

  /** What has a note came while one that stands was thought over, or was not heard of. */
  #mayBeMeant(row: number): boolean {
    const { entries } = this.#ports;
    const arrivalSeconds = entries.table.arrivalSeconds.get(row);
    return entries.isAllAbsent(row) || !entries.hasNote(row)
      || this.#orders.some((order) => arrivalSeconds <= order.triedUntilSeconds);
  }

  /** `isNew`: it came just now, whatever its gateway's clock said when it arrived. */
  #judge(queue: MailQueue, row: number, nowMs: number, isNew: boolean): Came {
    const { entries, settlement, clock } = this.#ports;
    if (!this.#mayBeMeant(row)) return Came.NOT_MEANT;
    const arrivalSeconds = entries.table.arrivalSeconds.get(row);
    for (const order of this.#orders) {
      const { act, rule, verb } = order;
      if (!isNew && arrivalSeconds < order.sinceSeconds) continue;
      if (verb === 'delay' && (rule.not_before_ms ?? 0) <= clock.wallMs()) continue;
      if (!act.selection.concernsQueue(queue)) continue;
      if (!act.selection.concernsRow(entries.table, row, arrivalSeconds)) continue;
      const envelope = act.envelopeOf(queue, row);
      if (envelope === undefined) return entries.isAllAbsent(row) ? Came.IN_HAND : Came.NOT_MEANT;
      const note = settlement.noteOf(row, envelope.recipients.length);
      if (entries.hasNote(row) && (arrivalSeconds > order.triedUntilSeconds || !isOnlyTried(note))) continue;
      const meant = act.meantOf(queue, row, envelope, note);
      if (meant.length === 0) continue;
      const came = act.doTo(queue, row, envelope, meant, verb, nowMs);
      if (came === Came.DONE) order.caught += 1;
      return came;
    }
    return Came.NOT_MEANT;
  }

  /** The work that it was, beside the entry itself; or NOT_NOW. */
  #visit(queue: MailQueue, row: number): number {
    const { entries } = this.#ports;
    const state = entries.table.state(row);
    if (state === EntryState.HELD) return this.#lookAtHeld(queue, row);
    if (entries.isAllAbsent(row) || (state !== EntryState.READY && state !== EntryState.DEFERRED)) return 0;
    if (!this.#mayBeMeant(row)) return 0;
    const came = this.meet(queue, row);
    if (came === Came.LATER) return NOT_NOW;
    if (!isSettled(came)) this.#isToCome = true;
    return 1;
  }

  /** Released, if a hold that stood has it, and none does now. */
  #lookAtHeld(queue: MailQueue, row: number): number {
    const { entries, holds, settlement, clock } = this.#ports;
    if (holds.isReleasing(row)) return 0;
    if (entries.isAllAbsent(row)) {
      entries.absent.wantLater(queue.partition, row);
      this.#isToCome = true;
      return 0;
    }
    const envelope = settlement.envelopeOf(row);
    if (envelope === undefined) return 0;
    const { length } = envelope.recipients;
    const note = settlement.noteOf(row, length);
    if (!note.isHeldByRule) return length;
    const isMeant = this.#orders.some(({ verb, rule, act: { selection } }) =>
      verb === 'hold' && (selection.concernsQueue(queue) || isSiteUnknown(rule, queue))
      && selection.concernsRow(entries.table, row, entries.table.arrivalSeconds.get(row))
      && selection.recipientsOf(envelope, note).length > 0);
    if (isMeant) return length;
    // Before that the rules may not have been read of its partition.
    const mayGo = queue.partition.mayDeliver(clock.nowMs());
    if (!mayGo || holds.releaseEntry(queue, row, OVER) !== '') this.#isToCome = true;
    return length;
  }
}

/** The DNS is not asked for a queue of which all is held: what was held by its site stays so. */
function isSiteUnknown({ selector }: QueueRule, { route, mxHosts }: MailQueue): boolean {
  return selector?.site !== undefined && route.nextHop.isByMx === true && mxHosts.length === 0;
}

/** No operator, and no rule, has kept it back: what one has let go is not caught. */
function isOnlyTried({ attempts, heldSinceWallMs, isDelayed, addedSeconds }: Note): boolean {
  return attempts > 0 && heldSinceWallMs === 0 && !isDelayed && addedSeconds === 0;
}

function isSettled(came: Came): boolean {
  return came === Came.DONE || came === Came.NOT_MEANT;
}
