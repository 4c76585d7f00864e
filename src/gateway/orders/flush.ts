/**
 * What an order to flush does to the messages that it means: each is tried once more, a thousand a second.
 *
 *   the walk meets one that waits for its time ─► it is due, in its turn; its next hop is tried at once
 *             one that is tried or reported now ─► deferred within LIVES_MS of the order ─► it is due at once
 *
 * What was refused again waits for its own times. Kept in memory alone (docs/decisions/0051). Pure.
 */
import type { Entries } from '../queue/entries.js';
import { EntryState } from '../queue/entry-table.js';
import type { MailQueue } from '../queue/mail-queue.js';
import type { MessageHolds } from '../queue/message-holds.js';
import type { Settlement } from '../queue/settlement.js';
import { Came } from './order-act.js';

export interface FlushPorts {
  readonly entries: Entries;
  readonly settlement: Settlement;
  readonly holds: MessageHolds;
  /** What keeps the next hop of a queue from being tried now is forgotten. */
  hasten(queue: MailQueue): void;
}

/** Flushed messages are tried so many a second: no storm. */
const PER_SECOND = 1_000;
/** So long what was being tried may take to be deferred. */
const LIVES_MS = 60_000;
/** Between looks at that. */
const LOOK_MS = 250;
/** What is beyond them waits for its own times. */
const BEING_TRIED_MAX = 10_000;

interface BeingTried {
  readonly queue: MailQueue;
  readonly messageId: number;
}

export class Flush {
  readonly #ports: FlushPorts;
  /** Met in this tick: their next hops are tried before the first of their mail is due. */
  readonly #queues = new Set<MailQueue>();
  /** Of each queue, up to which position it has come: what is refused again is not tried twice. */
  readonly #metTo = new WeakMap<MailQueue, number>();
  #hastened = 0;
  #beingTried: BeingTried[] = [];
  #sinceMs = -Infinity;
  #nextLookMs = -Infinity;

  constructor(ports: FlushPorts) {
    this.#ports = ports;
  }

  begin(nowMs: number): void {
    this.#sinceMs = nowMs;
  }

  /** `isBehindGap`: something before it in its queue waits to be met. */
  meet(queue: MailQueue, row: number, isBehindGap: boolean): Came {
    const { entries: { table }, settlement } = this.#ports;
    const position = table.position.get(row);
    if (position <= (this.#metTo.get(queue) ?? 0)) return Came.NOT_MEANT;
    if (isBehindGap) return Came.IN_HAND;
    if (!this.#metTo.has(queue)) this.#queues.add(queue);
    this.#metTo.set(queue, position);
    if (isUnderWay(table.state(row)) && this.#beingTried.length < BEING_TRIED_MAX) {
      this.#beingTried.push({ queue, messageId: table.messageId(row) });
    }
    const delayMs = Math.floor((this.#hastened * 1000) / PER_SECOND);
    if (settlement.hasten(queue, row, delayMs)) this.#hastened += 1;
    return Came.DONE;
  }

  /** A part of the walk is over. */
  hastenHops(): void {
    for (const queue of this.#queues) this.#ports.hasten(queue);
    this.#queues.clear();
  }

  /** Also when the walk is through. */
  tick(nowMs: number): void {
    if (this.#beingTried.length === 0 || nowMs < this.#nextLookMs) return;
    this.#nextLookMs = nowMs + LOOK_MS;
    const isOver = nowMs - this.#sinceMs >= LIVES_MS;
    this.#beingTried = isOver ? [] : this.#beingTried.filter((one) => this.#isStillTried(one));
  }

  /** One that waits for its time again is due now. */
  #isStillTried({ queue, messageId }: BeingTried): boolean {
    const { entries, settlement, holds } = this.#ports;
    const { table } = entries;
    const row = queue.partition.isForgotten ? 0 : table.index.find(messageId, queue.handle);
    if (row === 0) return false;
    if (isUnderWay(table.state(row))) return true;
    const envelope = entries.isAllAbsent(row) ? undefined : settlement.envelopeOf(row);
    if (envelope === undefined) return false;
    const isDelayed = holds.isDelayed(row, settlement.noteOf(row, envelope.recipients.length));
    if (!isDelayed) settlement.hasten(queue, row, 0);
    return false;
  }
}

/** Some of its recipients may be deferred by what is done with it now: a report on others may come first. */
function isUnderWay(state: number): boolean {
  return state === EntryState.IN_FLIGHT || state === EntryState.REPORTING;
}
