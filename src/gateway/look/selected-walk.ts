/**
 * A walk over all the mail here that a selector means, to look at it: a bounded share of a turn at a time,
 * each queue in its order. Whoever walks says what is to become of what is met; nothing is changed. What has
 * its envelope at the stores alone, or can't be read, is told apart: nobody knows whether it is meant. Pure.
 */
import type { Selector } from '../../admin-api/queue-orders.js';
import type { Clock, ToAscii } from '../../platform/ports.js';
import { QueueCursor } from '../orders/queue-cursor.js';
import { Selection } from '../orders/selection.js';
import type { RouteNames } from '../orders/selection.js';
import type { Entries } from '../queue/entries.js';
import type { MailQueue } from '../queue/mail-queue.js';
import type { Note } from '../queue/note.js';
import type { QueueRegistry } from '../queue/queue-registry.js';
import type { Envelope } from '../mail-types.js';
import type { WallFrame } from '../queue/wall-frame.js';

export interface WalkPorts {
  readonly clock: Clock;
  /** Of arrival times. */
  readonly frame: WallFrame;
  readonly entries: Entries;
  readonly registry: QueueRegistry;
  readonly names: RouteNames;
  readonly toAscii: ToAscii;
  envelopeOf(row: number): Envelope | undefined;
  noteOf(row: number, recipientCount: number): Note;
  isIncomplete(): boolean;
}

export interface Visitor {
  /** Nothing more is wanted. */
  readonly isFull: boolean;
  /** By its columns it may be meant. True: its envelope need not be read. */
  onRow(queue: MailQueue, row: number, ageSeconds: number): boolean;
  /** `meant`: those of its recipients. Answers the work that it was, as many entries. */
  onMeant(queue: MailQueue, row: number, envelope: Envelope, meant: readonly number[]): number;
  onUnread(): void;
}

export class SelectedWalk {
  readonly #ports: WalkPorts;
  readonly #visitor: Visitor;
  readonly #selection: Selection;
  /** A message is meant whatever became of its recipients. */
  readonly #isAll: boolean;
  readonly #cursor: QueueCursor;
  readonly #nowSeconds: number;
  #isThrough = false;
  /** Not all that this gateway is to serve was here while it walked. */
  wasIncomplete = false;

  constructor(selector: Selector, ports: WalkPorts, visitor: Visitor) {
    const { entries: { table }, registry, frame, names, toAscii } = ports;
    this.#ports = ports;
    this.#visitor = visitor;
    const selection = new Selection(selector, names, toAscii);
    this.#selection = selection;
    this.#isAll = selector.everything === true;
    this.#cursor = new QueueCursor(registry, table, (queue) => selection.concernsQueue(queue));
    this.#nowSeconds = Math.floor(frame.wallMs() / 1000);
  }

  /** A share of this turn; true at the end. */
  step(): boolean {
    const { clock } = this.#ports;
    if (this.#ports.isIncomplete()) this.wasIncomplete = true;
    const isThrough = this.#cursor.walk(clock, (queue, row) => this.#visit(queue, row));
    this.#isThrough = isThrough || this.#visitor.isFull;
    return this.#isThrough;
  }

  get lookedShare(): number {
    return this.#isThrough ? 1 : Math.min(this.#cursor.share, 0.999);
  }

  /** The work that it was beside the entry itself. */
  #visit(queue: MailQueue, row: number): number {
    const { entries: { table } } = this.#ports;
    if (!this.#selection.concernsRow(table, row, this.#nowSeconds)) return 0;
    const ageSeconds = this.#nowSeconds - table.arrivalSeconds.get(row);
    const work = this.#visitor.onRow(queue, row, ageSeconds) ? 0 : this.#read(queue, row);
    // More than a turn has.
    return this.#visitor.isFull ? Infinity : work;
  }

  #read(queue: MailQueue, row: number): number {
    const { entries, envelopeOf, noteOf } = this.#ports;
    const envelope = entries.isAllAbsent(row) ? undefined : envelopeOf(row);
    if (envelope === undefined) {
      this.#visitor.onUnread();
      return 0;
    }
    const { length } = envelope.recipients;
    const meant = this.#selection.recipientsOf(envelope, noteOf(row, length));
    const isMeant = meant.length > 0 || this.#isAll;
    return isMeant ? length + this.#visitor.onMeant(queue, row, envelope, meant) : length;
  }
}
