/**
 * One order that stands in the register (left-orders.ts), at a gateway that has some of the mail that waits
 * for it: a walk through each partition that the order names, when all of its entries are here, and again
 * until nothing that is meant is in hand. What would be delivered, or expire, before the walk has come to it
 * is met there. What arrived after the order was given is not meant, and each message is judged once, in the
 * order of its queue: so the walk comes on, too, where memory is too short to have all envelopes here.
 *
 *   a partition   comes, entry by entry ─► all are here ─► walked ─► none in hand ─► at the copies ─► done
 *                 met where it is handed out, or expires ────────────┘
 *
 * While it is in its grace nothing is done, and what it means is kept back (keeping-back.ts). Partitions over
 * which the order itself passes here (order-pass.ts) are not its concern. Pure.
 */
import type { Clock, EventLog } from '../../platform/ports.js';
import type { LeftOrder } from '../../register/records.js';
import type { Partition } from '../mirror/set/partition.js';
import type { MailQueue } from '../queue/mail-queue.js';
import type { QueueRegistry } from '../queue/queue-registry.js';
import type { Envelope } from '../mail-types.js';
import type { Keeper } from './keeping-back.js';
import { Came, OrderAct } from './order-act.js';
import type { OrderActPorts } from './order-act.js';
import { namesOf } from './order-key.js';
import { NOT_NOW, PAUSE_FIRST_MS, QueueCursor, longerPause } from './queue-cursor.js';

export interface LeftPassPorts extends OrderActPorts {
  readonly clock: Clock;
  readonly log: EventLog;
  readonly registry: QueueRegistry;
}

/** What it means of an entry that was not done to it before. */
interface Meant {
  readonly envelope: Envelope;
  readonly recipients: readonly number[];
}

export class LeftPass implements Keeper {
  readonly id: string;
  /** Messages that it was done to here. */
  done = 0;
  #order: LeftOrder;
  #names: ReadonlySet<string>;
  readonly #ports: LeftPassPorts;
  readonly #isPassedOver: (partition: Partition) => boolean;
  readonly #act: OrderAct;
  readonly #givenSeconds: number;
  /** Walked, with nothing in hand, and the number of the last change then. */
  readonly #through = new Map<Partition, number>();
  /** Of the walk under way: where it goes, and where something that is meant is in hand. */
  #cursor: QueueCursor | undefined;
  #walked: ReadonlySet<Partition> = new Set();
  readonly #waiting = new Set<Partition>();
  #queue: MailQueue | undefined;
  /** All before in this queue is judged; in this walk some was that was not before. */
  #isUnbroken = true;
  #cameOn = false;
  #notDone = 0;
  /** Of each queue, up to which position all is judged. */
  readonly #judged = new WeakMap<MailQueue, number>();
  /** Recipients of the message that was looked at last: the work that it was. */
  #looked = 0;
  #nextWalkMs = -Infinity;
  #pauseMs = PAUSE_FIRST_MS;

  /** `isPassedOver`: the order itself passes here over all of it, or has. */
  constructor(
    id: string, order: LeftOrder, ports: LeftPassPorts, isPassedOver: (partition: Partition) => boolean,
  ) {
    this.id = id;
    this.#order = order;
    this.#names = new Set(namesOf(order));
    this.#ports = ports;
    this.#isPassedOver = isPassedOver;
    this.#givenSeconds = Math.floor(order.wallMs / 1000);
    this.#act = new OrderAct(order, ports, () => undefined);
  }

  get order(): LeftOrder {
    return this.#order;
  }

  /** The register tells it anew: other partitions may be named. */
  update(order: LeftOrder): void {
    const before = this.#names;
    this.#order = order;
    this.#names = new Set(namesOf(order));
    for (const partition of this.#through.keys()) {
      if (!before.has(partition.name)) this.#through.delete(partition);
    }
  }

  get isWalking(): boolean {
    return this.#cursor !== undefined;
  }

  /** Something in it may be meant that it was not done to. */
  concerns(partition: Partition): boolean {
    return this.#order.inGrace !== true && this.#isOpen(partition);
  }

  /** In its grace. */
  keepsBack(partition: Partition): boolean {
    return this.#order.inGrace === true && this.#isOpen(partition);
  }

  /** The names of those that wait for it: for whoever gets them, or they are here. */
  waiting(): readonly string[] {
    const here = this.#ports.registry.partitions.filter((one) => this.#isOpen(one)).map(({ name }) => name);
    return [...new Set([...this.#order.partitions, ...here])];
  }

  #isOpen(partition: Partition): boolean {
    return this.#names.has(partition.name) && !this.#through.has(partition) && !this.#isPassedOver(partition);
  }

  /** Names of partitions that are done with, which the register still names: the copies have all of it. */
  kept(): readonly string[] {
    const names: string[] = [];
    for (const [partition, number] of this.#through) {
      if (!this.#isHere(partition)) this.#through.delete(partition);
      else if (partition.ackedNumber >= number && this.#names.has(partition.name)) names.push(partition.name);
    }
    return names;
  }

  /** Does to an entry what it means for it, if it does. */
  meet(queue: MailQueue, row: number, nowMs: number): Came {
    const meant = this.#meantOf(queue, row);
    if (typeof meant !== 'object') return meant;
    const { envelope, recipients } = meant;
    // It may have ended the process that released it by this order: who releases it has to have seen that.
    const { holds } = this.#ports;
    if (this.#order.verb === 'release' && holds.isPoison(queue, row)) return Came.NOT_DONE;
    const came = this.#act.doTo(queue, row, envelope, recipients, this.#order.verb, nowMs);
    if (came === Came.DONE) this.done += 1;
    return came;
  }

  concernsQueue(queue: MailQueue): boolean {
    return this.#act.selection.concernsQueue(queue);
  }

  means(queue: MailQueue, row: number): boolean {
    return this.#meantOf(queue, row) !== Came.NOT_MEANT;
  }

  /** IN_HAND: nobody can tell before its envelope is here. */
  #meantOf(queue: MailQueue, row: number): Meant | typeof Came.NOT_MEANT | typeof Came.IN_HAND {
    const { entries: { table }, settlement } = this.#ports;
    const { selection } = this.#act;
    this.#looked = 0;
    if (table.arrivalSeconds.get(row) > this.#givenSeconds) return Came.NOT_MEANT;
    if (table.position.get(row) <= (this.#judged.get(queue) ?? 0)) return Came.NOT_MEANT;
    if (!selection.concernsQueue(queue) || !selection.concernsRow(table, row, this.#givenSeconds)) {
      return Came.NOT_MEANT;
    }
    const envelope = this.#act.envelopeOf(queue, row);
    if (envelope === undefined) return this.#ports.entries.isAllAbsent(row) ? Came.IN_HAND : Came.NOT_MEANT;
    this.#looked = envelope.recipients.length;
    const note = settlement.noteOf(row, this.#looked);
    const recipients = this.#act.meantOf(queue, row, envelope, note);
    if (recipients.length === 0 || this.#act.isDoneBefore(row, note)) return Came.NOT_MEANT;
    return { envelope, recipients };
  }

  /**
   * Called a few times in a tenth of a second; `sinceMs`: when the walks of this tick began. It goes where it
   * is its turn. True: of a partition all is done.
   */
  tick(nowMs: number, sinceMs: number, isTurn: (partition: Partition) => boolean): boolean {
    const { clock, registry, entries: { table } } = this.#ports;
    if (this.#cursor === undefined) {
      if (!this.#begins(nowMs, isTurn)) return false;
      this.#cursor = new QueueCursor(registry, table, ({ partition }) => this.#walked.has(partition));
    }
    const isWhole = this.#cursor.walk(clock, (queue, row) => this.#visit(queue, row, nowMs), sinceMs);
    if (!isWhole) return false;
    this.#cursor = undefined;
    this.#pauseMs = this.#cameOn ? PAUSE_FIRST_MS : longerPause(this.#pauseMs);
    this.#nextWalkMs = nowMs + this.#pauseMs;
    return this.#noteThrough();
  }

  #visit(queue: MailQueue, row: number, nowMs: number): number {
    // It may be gone then.
    const position = this.#ports.entries.table.position.get(row);
    if (queue !== this.#queue) {
      this.#queue = queue;
      this.#isUnbroken = true;
    }
    const came = this.meet(queue, row, nowMs);
    const isSoon = came === Came.NOT_YET && this.#ports.rebinding.isUnderWay;
    if (came === Came.LATER || isSoon) return NOT_NOW;
    const isInHand = came === Came.IN_HAND || came === Came.NOT_YET;
    if (isInHand || (came === Came.NOT_DONE && queue.partition.isLeaving)) {
      this.#waiting.add(queue.partition);
      this.#isUnbroken = false;
    } else if (this.#isUnbroken && this.#looked > 0) {
      this.#judged.set(queue, position);
      this.#cameOn = true;
      if (came === Came.NOT_DONE) this.#notDone += 1;
    }
    return this.#looked;
  }

  /** There is something to walk through, and it is the time for it. */
  #begins(nowMs: number, isTurn: (partition: Partition) => boolean): boolean {
    const walked = this.#ports.registry.partitions
      .filter((one) => this.concerns(one) && !one.isRecovering && isTurn(one));
    if (walked.length === 0) return false;
    const isNew = walked.some((one) => !this.#walked.has(one));
    if (!isNew && nowMs < this.#nextWalkMs) return false;
    this.#walked = new Set(walked);
    this.#waiting.clear();
    this.#queue = undefined;
    this.#cameOn = false;
    return true;
  }

  #noteThrough(): boolean {
    const through = [...this.#walked].filter((one) => this.#isHere(one) && !this.#waiting.has(one));
    if (through.length === 0) return false;
    for (const partition of through) this.#through.set(partition, partition.lastNumber);
    this.#ports.log.warn('order', 'an order that waited in the register for mail is done with it', {
      order: this.id, verb: this.#order.verb, partitions: through.map(({ name }) => name), done: this.done,
      not_done: this.#notDone,
    });
    return true;
  }

  #isHere(partition: Partition): boolean {
    return this.#ports.registry.partitions.includes(partition);
  }
}
