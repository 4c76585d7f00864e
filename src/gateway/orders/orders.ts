/**
 * The orders for many messages that this gateway is busy with, and those that have ended lately.
 * Each is an OrderPass; they share nothing but the mail. Those that wait in the register for mail that nobody
 * had who was asked are left-orders.ts.
 */
import type { Order } from '../../admin-api/orders.js';
import type { LeftOrderAnswer, QueueOrder, QueueOrderAnswer } from '../../admin-api/queue-orders.js';
import { whyNoSelector, whyNoTerms } from '../../admin-api/queue-orders.js';
import type { Partition } from '../mirror/partition.js';
import type { LeaveOutcome } from './left-desk.js';
import { LeftDesk } from './left-desk.js';
import type { LeftOrdersPorts } from './left-orders.js';
import { LeftOrders } from './left-orders.js';
import { OrderPass } from './order-pass.js';
import type { OrderPassPorts } from './order-pass.js';
import type { QueueRule } from '../../register/records.js';
import type { RuleOutcome } from './rule-desk.js';
import { StandingOrders } from './standing-orders.js';

/** At the same time: each may keep a note of every message. */
const BUSY_MAX = 8;
const KNOWN_MAX = 64;
const KNOWN_MS = 600_000;

type OrdersPorts = OrderPassPorts & LeftOrdersPorts;

export class Orders {
  readonly #incarnation: number;
  readonly #ports: OrdersPorts;
  readonly left: LeftOrders;
  readonly standing: StandingOrders;
  readonly #desk: LeftDesk;
  /** The oldest first. */
  readonly #passes = new Map<string, OrderPass>();
  #given = 0;

  constructor(incarnation: number, ports: OrdersPorts) {
    this.#incarnation = incarnation;
    this.#ports = ports;
    this.standing = new StandingOrders(ports);
    this.left = new LeftOrders(ports, this.standing);
    this.#desk = new LeftDesk(ports, this.left);
  }

  /** Begins to look; a text says why it can't. */
  begin(order: QueueOrder): QueueOrderAnswer | string {
    const why = whyNoSelector(order.selector) || whyNoTerms(order.verb, order)
      || (order.route === undefined ? '' : this.#ports.rebinding.whyNoRoute(order.route));
    if (why !== '') return why;
    const busy = [...this.#passes.values()].filter(({ isOver }) => !isOver).length;
    if (busy >= BUSY_MAX) return `${String(BUSY_MAX)} orders are under way: wait for one, or cancel it`;
    this.#given += 1;
    // Incarnations are each gateway's own.
    const id = `${this.#ports.gatewayId}-${String(this.#incarnation)}-${String(this.#given)}`;
    const pass = new OrderPass(id, order, this.#ports);
    this.#passes.set(id, pass);
    for (const [known, { isOver }] of this.#passes) {
      if (this.#passes.size > KNOWN_MAX && isOver) this.#passes.delete(known);
    }
    return pass.answer(true);
  }

  /** Undefined: there is none of this id. */
  answerOf(id: string): QueueOrderAnswer | undefined {
    return this.#passes.get(id)?.answer(true);
  }

  all(): readonly QueueOrderAnswer[] {
    return [...this.#passes.values()].map((pass) => pass.answer(false));
  }

  /** False: it is not the time for that. */
  go(id: string, graceMs: number): boolean {
    return this.#passes.get(id)?.go(graceMs) ?? false;
  }

  /**
   * It is left in the register for partitions that nobody has passed over; undefined: it is not the time for
   * that, or a flush, which is never left.
   */
  leave(id: string, passed: readonly string[]): Promise<LeaveOutcome> | undefined {
    const order = this.#passes.get(id)?.toLeave;
    return order === undefined ? undefined : this.#desk.leave(id, order, new Set(passed));
  }

  /** One that is left there goes. */
  withdraw(id: string, order: Order): Promise<RuleOutcome> {
    return this.#desk.withdraw(id, order);
  }

  /** Rules that stand now: some may be orders. */
  obey(rules: ReadonlyMap<string, QueueRule>): void {
    if (this.standing.obey(rules)) this.left.mark();
  }

  /** An order is to pass over it, and was not through with it long ago: it does not go to another gateway. */
  keeps(partition: Partition): boolean {
    for (const pass of this.#passes.values()) if (pass.keeps(partition)) return true;
    return false;
  }

  /** Those that are left there, as this gateway has them. */
  allLeft(): readonly LeftOrderAnswer[] {
    return this.left.answers();
  }

  /** False: it is over. */
  cancel(id: string, { reason, who }: Order): boolean {
    const isCancelled = this.#passes.get(id)?.cancel() ?? false;
    if (isCancelled)
      this.#ports.log.warn('order', 'an operator cancels an order', { order: id, reason, who });
    return isCancelled;
  }

  /** Called a few times in a tenth of a second. */
  tick(nowMs: number): void {
    this.left.tick(nowMs);
    this.standing.tick(nowMs);
    for (const [id, pass] of this.#passes) {
      if (!pass.isOver) pass.tick(nowMs);
      else if (nowMs - pass.endedMs >= KNOWN_MS) this.#passes.delete(id);
    }
  }
}
