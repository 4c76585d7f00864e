/**
 * What an operator's order does to one message: which of its recipients it means at this moment, and holds,
 * delays, releases or ends it for them (queue/message-holds.ts), or leads it by another route (rebinding.ts),
 * if it rests and there is room for the change. The same for an order that passes over what is here
 * (order-pass.ts) and for one that waited in the register for its mail (left-orders.ts). Pure.
 */
import { termsOf } from '../../admin-api/queue-orders.js';
import type { LeftVerb, OrderTerms, OrderVerb, QueueOrder } from '../../admin-api/queue-orders.js';
import type { DeliveryRoom } from '../queue/delivery-room.js';
import type { Entries } from '../queue/entries.js';
import { EntryState } from '../queue/entry-table.js';
import { isResting } from '../queue/interruptions.js';
import type { MailQueue } from '../queue/mail-queue.js';
import type { MessageHolds } from '../queue/message-holds.js';
import type { Note } from '../queue/note.js';
import { TO_TRY } from '../queue/note.js';
import type { Settlement } from '../queue/settlement.js';
import type { Envelope } from '../mail-types.js';
import type { Rebinding } from './rebinding.js';
import type { ToAscii } from '../../platform/ports.js';
import type { ReportPace } from './report-pace.js';
import { Selection } from './selection.js';
import type { RouteNames } from './selection.js';

export interface OrderActPorts {
  readonly entries: Entries;
  readonly settlement: Settlement;
  readonly holds: MessageHolds;
  readonly room: DeliveryRoom;
  readonly reports: ReportPace;
  readonly rebinding: Rebinding;
  readonly names: RouteNames;
  readonly toAscii: ToAscii;
}

/**
 * What became of a message. NOT_MEANT: or it was done to it already. LATER: others are no use now, too.
 * NOT_YET: there is no room for it, or its partition is not ready, whoever else may go.
 */
export const Came = { DONE: 0, IN_HAND: 1, NOT_DONE: 2, NOT_MEANT: 3, LATER: 4, NOT_YET: 5 } as const;
export type Came = (typeof Came)[keyof typeof Came];

/** Why not. */
type OnRefused = (queue: MailQueue, envelope: Envelope, meant: readonly number[], why: string) => void;

export class OrderAct {
  readonly selection: Selection;
  /** Why the last one was NOT_YET. */
  whyNotYet = '';
  readonly #verb: OrderVerb;
  readonly #order: Pick<QueueOrder, 'reason' | 'who'>;
  readonly #terms: OrderTerms;
  readonly #ports: OrderActPorts;
  readonly #onRefused: OnRefused;

  constructor(
    order: Omit<QueueOrder, 'dry_run'>, ports: OrderActPorts, onRefused: OnRefused,
  ) {
    const { verb, selector, reason, who } = order;
    this.selection = new Selection(selector, ports.names, ports.toAscii);
    this.#verb = verb;
    this.#order = { reason, who };
    this.#terms = termsOf(order);
    this.#ports = ports;
    this.#onRefused = onRefused;
  }

  /**
   * Undefined: it is still at the stores, and asked for; or this release can't read it. Of one that is meant
   * by its id alone that is no matter: it can be deleted.
   */
  envelopeOf(queue: MailQueue, row: number): Envelope | undefined {
    const { entries, settlement } = this.#ports;
    if (!entries.isAllAbsent(row)) {
      const envelope = settlement.envelopeOf(row);
      if (envelope !== undefined || !this.selection.isByIdAlone) return envelope;
      return unreadEnvelope(queue, entries.table.messageId(row));
    }
    entries.absent.wantLater(queue.partition, row);
    return undefined;
  }

  /** Indexes of recipients who are meant; none: the message is not. */
  meantOf(queue: MailQueue, row: number, envelope: Envelope, note: Note): readonly number[] {
    const verb = this.#verb;
    const { rebinding } = this.#ports;
    const isKeptBack = this.#isKeptBack(row, note);
    if ((verb === 'release' && !isKeptBack) || (verb === 'flush' && isKeptBack)) return [];
    const meant = this.selection.recipientsOf(envelope, note);
    const { route } = this.#terms;
    if (route !== undefined && rebinding.isThere(queue, envelope, note, route)) return [];
    // Of whom a report is owed already can't fail again, nor go elsewhere.
    if (verb !== 'bounce' && verb !== 'expire' && verb !== 'rebind') return meant;
    return meant.filter((index) => note.states[index] === TO_TRY);
  }

  /** A flush would mean it if it were not held or delayed. */
  isKeptFromFlush(row: number, envelope: Envelope, note: Note): boolean {
    return this.#verb === 'flush' && this.#isKeptBack(row, note)
      && this.selection.recipientsOf(envelope, note).length > 0;
  }

  #isKeptBack(row: number, note: Note): boolean {
    const { entries: { table }, holds } = this.#ports;
    return table.state(row) === EntryState.HELD || holds.isDelayed(row, note);
  }

  /** What ends a message shows by itself. */
  isDoneBefore(row: number, note: Note): boolean {
    const { holds } = this.#ports;
    if (this.#verb === 'release') return holds.isReleasing(row);
    const { not_before_ms: notBeforeMs } = this.#terms;
    if (notBeforeMs !== undefined) return holds.isDelayedUntil(row, note, notBeforeMs);
    // Who holds by hand what a standing hold has, keeps it when that is over.
    const isFirm = this.#terms.standing === true || !note.isHeldByRule;
    return this.#verb === 'hold' && note.heldSinceWallMs !== 0 && isFirm;
  }

  doTo(
    queue: MailQueue, row: number, envelope: Envelope, meant: readonly number[], verb: LeftVerb,
    nowMs: number,
  ): Came {
    const { entries, settlement, room, reports } = this.#ports;
    if (!isResting(entries.table.state(row))) {
      // One that is delivered part by part rests for whoever was refused (refused-orders.ts).
      settlement.refused.note(envelope.messageId, nowMs);
      return Came.IN_HAND;
    }
    const isReported = verb === 'bounce' || verb === 'expire';
    if ((isReported || verb === 'rebind') && entries.isAbsent(row)) {
      entries.absent.wantLater(queue.partition, row);
      return Came.IN_HAND;
    }
    if (!room.admitsExpiry(queue.partition, entries.room(row))) return Came.IN_HAND;
    if (verb === 'rebind') return this.#rebind(queue, row, envelope, meant);
    if (isReported && !reports.take(nowMs)) return Came.LATER;
    const why = this.#do(queue, row, meant, verb);
    return why === '' ? Came.DONE : this.refuse(queue, envelope, meant, why);
  }

  #rebind(queue: MailQueue, row: number, envelope: Envelope, meant: readonly number[]): Came {
    const { rebinding } = this.#ports;
    const plan = rebinding.planFor(queue, row, this.#terms.route ?? '');
    if (typeof plan === 'string') return this.refuse(queue, envelope, meant, plan);
    const whyNotYet = rebinding.whyNotYet(queue, row);
    if (whyNotYet !== '') {
      this.whyNotYet = whyNotYet;
      return Came.NOT_YET;
    }
    const why = rebinding.carryOut(plan, this.#order);
    return why === '' ? Came.DONE : this.refuse(queue, envelope, meant, why);
  }

  /** It is not done to this one. */
  refuse(queue: MailQueue, envelope: Envelope, meant: readonly number[], why: string): Came {
    this.#onRefused(queue, envelope, meant, why);
    return Came.NOT_DONE;
  }

  #do(
    queue: MailQueue, row: number, meant: readonly number[], verb: Exclude<LeftVerb, 'rebind'>,
  ): string {
    const { holds } = this.#ports;
    if (verb === 'hold') return holds.holdEntry(queue, row, this.#order, this.#terms.standing === true);
    if (verb === 'delay') return holds.delayEntry(queue, row, this.#terms.not_before_ms ?? 0, this.#order);
    if (verb === 'release') return holds.releaseEntry(queue, row, this.#order);
    return holds.endEntry(queue, row, meant, verb, this.#order);
  }
}

/** Stands for all who wait for a message that can't be read. */
const NOBODY = { address: '', notify: 0, orcpt: '' };

function unreadEnvelope({ name, route: { queueClass } }: MailQueue, messageId: number): Envelope {
  return {
    messageId, queueClass, queueName: name, reversePath: '', recipients: [NOBODY], flags: 0, ret: 0,
    envid: '', arrivalWallMs: 0, expiryWallMs: 0, client: '', helo: '',
  };
}
