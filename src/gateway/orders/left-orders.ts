/**
 * Orders over mail of partitions that nobody had who was asked: of gateways that did not answer, or were
 * taking their mail back, or have crashed since (order-key.ts). They stand in the register (rules/orders/ID),
 * and whoever gets such a partition obeys them, until it has passed over all of it (left-pass.ts) and takes
 * its name out; the last one deletes the key. Nothing of them is kept with a message.
 *
 *   register told, time is over ─► look() ─► a flag in each partition that is concerned
 *   a partition is taken ────────► look(), when its holder has read the rules; nothing of it begins before
 *   an entry would be handed out, or expire, where the flag is ─► meet(): done to it at once, or later
 *
 * They are obeyed in the order in which they were given: a walk comes to a partition when those before it are
 * through there.
 *
 * Behind them, at the same places: orders that stand (standing-orders.ts), and those that go on here and keep
 * mail back (keeping-back.ts).
 *
 * Not here: who leaves and withdraws them (left-desk.ts). Pure.
 */
import { termsOf } from '../../admin-api/queue-orders.js';
import type { LeftOrderAnswer } from '../../admin-api/queue-orders.js';
import type { LeftOrder } from '../../register/records.js';
import type { Partition } from '../mirror/set/partition.js';
import type { OwnershipRegister } from '../ownership/ownership-register.js';
import { Ordered } from '../queue/handing-out.js';
import type { MailQueue } from '../queue/mail-queue.js';
import type { KeepingBack, Keeper } from './keeping-back.js';
import { LeftPass } from './left-pass.js';
import type { LeftPassPorts } from './left-pass.js';
import { Came } from './order-act.js';
import { withoutNames } from './order-key.js';
import { LEFT_ORDERS_MAX, isOver, nextEnd, standing } from './standing.js';
import type { StandingOrders } from './standing-orders.js';

export interface LeftOrdersPorts extends LeftPassPorts {
  readonly register: OwnershipRegister;
  wake(queue: MailQueue): void;
}

/** What Orders knows beside them. */
export interface BesideLeft {
  readonly standing: StandingOrders;
  readonly keeping: KeepingBack;
  /** The order of this id passes here over all of it, or has. */
  isPassedOver(id: string, partition: Partition): boolean;
  /** Others are in force. */
  onChanged(): void;
}

/** Met where they are handed out, in one tick: a call may find a long run of them. */
const MET_PER_TICK = 200;
/** Kept back in one tick: each is judged, and nothing of it changes at the stores. */
const KEPT_PER_TICK = 2_000;
/** So long mail that can not be dealt with yet makes way for other mail; a walk deals with it before. */
const SET_ASIDE_MS = 30_000;
/** What was done by those that are over is told so long. */
const OVER_KEPT_MS = 600_000;
/** Between writes of one order that something is done, or over. */
const WRITE_MS = 1_000;

export class LeftOrders {
  readonly #ports: LeftOrdersPorts;
  /** Met where these are, and behind them. */
  readonly #beside: BesideLeft;
  /** In force, in the order in which they were given. */
  #passes: ReadonlyMap<string, LeftPass> = new Map();
  /** Gone from the register, with what was done here; the oldest first. */
  readonly #over = new Map<string, { readonly pass: LeftPass; readonly untilMs: number }>();
  #told: ReadonlyMap<string, LeftOrder> = new Map();
  #nextEndWallMs = Infinity;
  /** When each order was last written of. */
  readonly #writtenMs = new Map<string, number>();
  /** Queues whose next entry is meant and was not dealt with. */
  readonly #waiting = new Set<MailQueue>();
  #met = 0;
  #kept = 0;
  /** Where the last one was kept back: others have their turn before it. */
  #keptIn: MailQueue | undefined;

  constructor(ports: LeftOrdersPorts, beside: BesideLeft) {
    this.#ports = ports;
    this.#beside = beside;
  }

  /** Those that others pass over, too. */
  get count(): number {
    this.look();
    return this.#passes.size;
  }

  get waitingCount(): number {
    return this.answers().length;
  }

  has(id: string): boolean {
    this.look();
    return this.#passes.has(id);
  }

  /** Called a few times a second, and before anything is asked. */
  look(): void {
    const { register, clock, log } = this.#ports;
    const told = register.leftOrders();
    const nowWallMs = clock.wallMs();
    if (told === this.#told && nowWallMs < this.#nextEndWallMs) return;
    this.#told = told;
    const inForce = standing(told, nowWallMs, LEFT_ORDERS_MAX);
    this.#nextEndWallMs = nextEnd(inForce.values());
    for (const id of this.#writtenMs.keys()) if (!told.has(id)) this.#writtenMs.delete(id);
    if (inForce.size === 0 && this.#passes.size === 0) return;
    for (const [id, pass] of this.#passes) {
      if (inForce.has(id)) continue;
      if (pass.done > 0) this.#keepOver(pass);
      else if (pass.waiting().length === 0) continue;
      const why = told.has(id) ? 'its time is over' : 'it is done with, or withdrawn';
      log.info('order', `an order waits in the register for no mail any more: ${why}`, { order: id });
    }
    this.#passes = new Map([...inForce].map(([id, order]) => [id, this.#passOf(id, order)]));
    this.#beside.onChanged();
  }

  /** Of a partition that is taken now. */
  isUnder(partition: Partition): boolean {
    this.look();
    const { standing, keeping } = this.#beside;
    keeping.meet(partition);
    return standing.isAny || keeping.concerns(partition)
      || [...this.#passes.values()].some((pass) => pass.concerns(partition));
  }

  /** Those that are in their grace, at gateways that are gone maybe. */
  get keepers(): readonly Keeper[] {
    return [...this.#passes.values()].filter(({ order }) => order.inGrace === true);
  }

  /** An entry that rests in a partition with the flag would be handed out, or fail, its time being up. */
  meet(queue: MailQueue, row: number): Ordered {
    if (this.#met >= MET_PER_TICK) return this.#later(queue);
    const nowMs = this.#ports.clock.nowMs();
    for (const pass of this.#passes.values()) {
      if (!pass.concerns(queue.partition)) continue;
      const came = pass.meet(queue, row, nowMs);
      if (came === Came.NOT_MEANT) continue;
      if (came === Came.NOT_YET) this.#ports.settlement.setAside(queue, row, SET_ASIDE_MS);
      else if (came !== Came.DONE) return this.#later(queue);
      this.#met += 1;
      return Ordered.DONE;
    }
    return this.#meetStanding(queue, row);
  }

  /** The next entry of a queue would be handed out. KEPT: it was set aside, and the one behind it is next. */
  meetNext(queue: MailQueue, row: number): Ordered {
    if (this.#kept >= KEPT_PER_TICK && this.#isOnlyKept(queue.partition)) return this.#later(queue);
    const ordered = this.meet(queue, row);
    if (ordered !== Ordered.KEPT) return ordered;
    this.#kept += 1;
    if (queue.route.ordering === 'strict' || this.#kept > KEPT_PER_TICK) return this.#later(queue);
    this.#keptIn = queue;
    queue.keepBack(row);
    return Ordered.KEPT;
  }

  /** Nothing but what keeps mail back concerns it. */
  #isOnlyKept(partition: Partition): boolean {
    if (this.#beside.standing.isAny) return false;
    for (const pass of this.#passes.values()) if (pass.concerns(partition)) return false;
    return true;
  }

  #meetStanding(queue: MailQueue, row: number): Ordered {
    const { standing, keeping } = this.#beside;
    const came = standing.meet(queue, row);
    if (came === Came.NOT_MEANT) return keeping.keeps(queue, row) ? Ordered.KEPT : Ordered.NOT;
    if (came !== Came.DONE) return this.#later(queue);
    this.#met += 1;
    return Ordered.DONE;
  }

  get isWalking(): boolean {
    for (const pass of this.#passes.values()) if (pass.isWalking) return true;
    return false;
  }

  /** Called a few times in a tenth of a second; `sinceMs`: when the walks of this tick began. */
  tick(nowMs: number, sinceMs: number): void {
    this.#met = 0;
    this.#wakeWaiting();
    let isDone = false;
    const before: LeftPass[] = [];
    for (const pass of this.#passes.values()) {
      // In the order in which they were given: what one holds another may release.
      const isTurn = (partition: Partition): boolean => !before.some((one) => one.concerns(partition));
      isDone = pass.tick(nowMs, sinceMs, isTurn) || isDone;
      before.push(pass);
      this.#tellKept(pass, nowMs);
    }
    if (isDone) this.mark();
    const nowWallMs = this.#ports.clock.wallMs();
    const left = (known: LeftOrder | undefined): LeftOrder | undefined =>
      (known === undefined || isOver(known, nowWallMs) ? undefined : known);
    // Deleted by whoever comes to it first.
    for (const [id, order] of this.#told) if (isOver(order, nowWallMs)) this.#write(id, nowMs, left);
  }

  #wakeWaiting(): void {
    const last = this.#keptIn;
    this.#kept = 0;
    this.#keptIn = undefined;
    if (last !== undefined && this.#waiting.delete(last)) this.#waiting.add(last);
    for (const queue of this.#waiting) this.#ports.wake(queue);
    this.#waiting.clear();
  }

  answers(): readonly LeftOrderAnswer[] {
    this.look();
    return [...this.#passes.values()].flatMap((pass) => {
      const partitions = pass.waiting();
      return partitions.length === 0 ? []
        : [this.answerOf(pass.id, { ...pass.order, partitions: [...partitions] }, pass.done)];
    });
  }

  /** Those, too, that were over in the last minutes, which wait for no partition. */
  allAnswers(): readonly LeftOrderAnswer[] {
    const inForce = this.answers();
    const nowMs = this.#ports.clock.nowMs();
    for (const [id, { untilMs }] of this.#over) if (nowMs >= untilMs) this.#over.delete(id);
    const over = [...this.#over.values()].filter(({ pass: { id } }) => !this.#passes.has(id));
    return [...inForce, ...over.map(({ pass: { id, order, done } }) =>
      this.answerOf(id, { ...order, partitions: [] }, done))];
  }

  answerOf(id: string, order: LeftOrder, done: number): LeftOrderAnswer {
    const { verb, selector, reason, who, wallMs, untilWallMs, partitions, inGrace } = order;
    const names = new Set(partitions);
    const holders = this.#ports.register.heldByOthers()
      .filter((one) => one.partitions.some((name) => names.has(name))).map(({ holder }) => holder);
    return {
      order: id, verb, selector, ...termsOf(order), reason, who, given: Math.floor(wallMs / 1000),
      until: Math.floor(untilWallMs / 1000), partitions, holders, done,
      ...(inGrace === true ? { in_grace: true as const } : {}),
    };
  }

  #keepOver(pass: LeftPass): void {
    this.#over.set(pass.id, { pass, untilMs: this.#ports.clock.nowMs() + OVER_KEPT_MS });
    const [oldest = ''] = this.#over.keys();
    if (this.#over.size > LEFT_ORDERS_MAX) this.#over.delete(oldest);
  }

  #passOf(id: string, order: LeftOrder): LeftPass {
    const pass = this.#passes.get(id);
    if (pass === undefined) {
      return new LeftPass(id, order, this.#ports, (partition) => this.#beside.isPassedOver(id, partition));
    }
    pass.update(order);
    return pass;
  }

  /** Also called when orders begin to stand, or none does any more; and when one keeps back, or lets go. */
  mark(): void {
    const passes = [...this.#passes.values()];
    for (const partition of this.#ports.registry.partitions) {
      const { standing, keeping } = this.#beside;
      partition.isUnderOrder = standing.isAny || keeping.concerns(partition)
        || passes.some((pass) => pass.concerns(partition));
    }
  }

  #later(queue: MailQueue): Ordered {
    this.#waiting.add(queue);
    return Ordered.LATER;
  }

  /** Their names go out of the register: whoever gets them next has no more to do. */
  #tellKept(pass: LeftPass, nowMs: number): void {
    const kept = pass.kept();
    if (kept.length === 0) return;
    const gone = new Set(kept);
    this.#write(pass.id, nowMs, (known) => (known === undefined ? undefined : withoutNames(known, gone)));
  }

  /** What comes of it is told by the watch; until then it is tried again. */
  #write(id: string, nowMs: number, change: (known: LeftOrder | undefined) => LeftOrder | undefined): void {
    if (nowMs - (this.#writtenMs.get(id) ?? -Infinity) < WRITE_MS) return;
    this.#writtenMs.set(id, nowMs);
    this.#ports.register.changeLeftOrder(id, change, () => undefined);
  }
}
