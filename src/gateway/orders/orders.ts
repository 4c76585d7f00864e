/**
 * The orders for many messages that this gateway is busy with, and those that have ended lately.
 * Each is an OrderPass; they share nothing but the mail. Those that wait in the register for mail that nobody
 * had who was asked are left-orders.ts.
 */
import type { OrderInForceAnswer } from '../../admin-api/gateway-answers.js';
import type { Order } from '../../admin-api/orders.js';
import type {
  LeftOrderAnswer, QueueOrder, QueueOrderAnswer, Selector,
} from '../../admin-api/queue-orders.js';
import { termsOf, whyNoSelector, whyNoTerms, whyNotThen } from '../../admin-api/queue-orders.js';
import { isRuleId } from '../../register/keys.js';
import { selectorWords } from '../../admin-api/selector-words.js';
import type { Partition } from '../mirror/set/partition.js';
import type { MailQueue } from '../queue/mail-queue.js';
import type { Router } from '../mail-types.js';
import { KeepingBack } from './keeping-back.js';
import type { LeaveOutcome } from './left-desk.js';
import { LeftDesk } from './left-desk.js';
import type { LeftOrdersPorts } from './left-orders.js';
import { LeftOrders } from './left-orders.js';
import { OrderPass } from './order-pass.js';
import type { OrderPassPorts } from './order-pass.js';
import type { QueueRule } from '../../register/records.js';
import type { RuleOutcome } from './rule-desk.js';
import { whyNoRoute } from './selection.js';
import { StandingOrders } from './standing-orders.js';

/** At the same time: each may keep a note of every message. */
const BUSY_MAX = 8;
const KNOWN_MAX = 64;
/** Those of whose end the register is to be told are known until it is. */
const UNTOLD_MAX = 256;
const KNOWN_MS = 600_000;

const NO_ID = 'an id of an order is up to 120 letters and digits, and . _ : - between them';

type OrdersPorts = OrderPassPorts & LeftOrdersPorts & { readonly names: Pick<Router, 'mailRoutes'> };

export class Orders {
  readonly #incarnation: number;
  readonly #ports: OrdersPorts;
  readonly left: LeftOrders;
  readonly standing: StandingOrders;
  readonly #keeping: KeepingBack;
  readonly #desk: LeftDesk;
  /** The oldest first. */
  readonly #passes = new Map<string, OrderPass>();
  #given = 0;

  constructor(incarnation: number, ports: OrdersPorts) {
    this.#incarnation = incarnation;
    this.#ports = ports;
    this.standing = new StandingOrders(ports);
    const keeping = new KeepingBack(ports);
    this.#keeping = keeping;
    this.left = new LeftOrders(ports, {
      standing: this.standing, keeping,
      isPassedOver: (id, partition) => this.#passes.get(id)?.hasPassedOver(partition) === true,
      onChanged: () => {
        this.#noteKeeping();
        this.left.mark();
      },
    });
    this.#desk = new LeftDesk(ports, this.left);
  }

  /** Begins to look; a text says why it can't. */
  begin(order: QueueOrder): QueueOrderAnswer | string {
    const known = order.id === undefined ? undefined : this.#passes.get(order.id);
    if (known !== undefined) {
      return isSameOrder(known.order, order) ? known.answer(true) : `${known.id} is another order`;
    }
    const why = whyNoSelector(order.selector) || whyNoTerms(order.verb, order)
      || whyNotThen(order.not_before_ms, this.#ports.clock.wallMs())
      || (order.route === undefined ? '' : this.#ports.rebinding.whyNoRoute(order.route));
    if (why !== '') return why;
    if (order.id !== undefined && !isRuleId(order.id)) return NO_ID;
    if (this.left.has(order.id ?? '')) return `${order.id ?? ''} is left in the register already`;
    const busy = [...this.#passes.values()].filter(({ isOver }) => !isOver).length;
    if (busy >= BUSY_MAX) return `${String(BUSY_MAX)} orders are under way: wait for one, or cancel it`;
    if (this.#passes.size >= UNTOLD_MAX) return 'the register is to be told of too many orders: wait for it';
    this.#given += 1;
    // Incarnations are each gateway's own.
    const id = order.id ?? `${this.#ports.gatewayId}-${String(this.#incarnation)}-${String(this.#given)}`;
    const pass = new OrderPass(id, order, this.#ports);
    this.#passes.set(id, pass);
    for (const [known, { isOver, isTold }] of this.#passes) {
      if (this.#passes.size > KNOWN_MAX && isOver && isTold) this.#passes.delete(known);
    }
    return pass.answer(true);
  }

  /** It means no route that is known here, and so no mail; '' when it does. */
  whyNoRoute(selector: Selector): string {
    return whyNoRoute(selector, this.#ports.names, this.#ports.registry.queues());
  }

  /** Undefined: there is none of this id. */
  answerOf(id: string): QueueOrderAnswer | undefined {
    return this.#passes.get(id)?.answer(true);
  }

  all(): readonly QueueOrderAnswer[] {
    return [...this.#passes.values()].map((pass) => pass.answer(false));
  }

  /** For status: those that are not over, and those that are left. */
  inForce(): readonly OrderInForceAnswer[] {
    const own = [...this.#passes.values()].flatMap((pass) => pass.inForce() ?? []);
    const left = this.left.answers().map((one): OrderInForceAnswer => {
      const { order, verb, selector, who, reason, given, until, done, in_grace: isInGrace = false } = one;
      return {
        order, verb, selector: selectorWords(selector, one), phase: isInGrace ? 'kept' : 'left', who, reason,
        given, matched: 0, done, grace_ends: null, until,
      };
    });
    return [...own, ...left];
  }

  /** False: it is not the time for that. */
  go(id: string, graceMs: number): boolean {
    const isGoing = this.#passes.get(id)?.go(graceMs) ?? false;
    if (isGoing) this.#noteKeeping();
    return isGoing;
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

  /** Those that are left there, as this gateway has them, and what came of those that were. */
  allLeft(): readonly LeftOrderAnswer[] {
    return this.left.allAnswers();
  }

  /** False: it is over. */
  cancel(id: string, { reason, who }: Order): boolean {
    const isCancelled = this.#passes.get(id)?.cancel() ?? false;
    if (!isCancelled) return false;
    this.#ports.log.warn('order', 'an operator cancels an order', { order: id, reason, who });
    this.#noteKeeping();
    return true;
  }

  /** It is not handed out now: an order is about to end it, or to lead it elsewhere. */
  keepsBack(queue: MailQueue, row: number): boolean {
    return this.#keeping.keeps(queue, row);
  }

  #noteKeeping(): void {
    const going = [...this.#passes.values()].filter(({ phase }) => phase === 'grace' || phase === 'acting');
    if (this.#keeping.note([...going, ...this.left.keepers])) this.left.mark();
  }

  /** A walk through what is queued is under way: the more ticks, the sooner it is over. */
  get isWalking(): boolean {
    if (this.#keeping.isWalking || this.left.isWalking || this.standing.isWalking) return true;
    for (const pass of this.#passes.values()) if (pass.isWalking) return true;
    return false;
  }

  /**
   * Called a few times in a tenth of a second, and more often while isWalking. All walks share what one may
   * take of a turn: each ends some time, and pauses then, so that those behind it get on.
   */
  tick(nowMs: number): void {
    const sinceMs = this.#ports.clock.nowMs();
    this.#keeping.tick(sinceMs);
    this.left.tick(nowMs, sinceMs);
    this.standing.tick(nowMs, sinceMs);
    for (const [id, pass] of this.#passes) {
      pass.tick(nowMs, sinceMs);
      if (nowMs - pass.endedMs >= KNOWN_MS && pass.isTold) this.#passes.delete(id);
    }
    this.#noteKeeping();
  }
}

/** It does the same to the same mail. */
function isSameOrder(a: QueueOrder, b: QueueOrder): boolean {
  const what = ({ verb, selector, dry_run: isDry = false, ...order }: QueueOrder): string =>
    JSON.stringify([verb, isDry, termsOf(order), Object.entries(selector).sort()]);
  return what(a) === what(b);
}
