/**
 * Where orders are left in the register for mail that nobody had who was asked (left-orders.ts), and
 * withdrawn from it: by the gateway that the operator asks. It knows all partitions from the register, and
 * names those that no gateway which was given the order has passed over. Pure.
 */
import type { LeftOrderAnswer } from '../../admin-api/queue-orders.js';
import type { Order } from '../../admin-api/orders.js';
import { isRuleId } from '../../register/keys.js';
import type { LeftOrder } from '../../register/records.js';
import type { LeftOrders, LeftOrdersPorts } from './left-orders.js';
import { LEFT_MS, whyNoRoom, withNames } from './order-key.js';
import type { OrderToLeave } from './order-key.js';
import type { RuleOutcome } from './rule-desk.js';
import { awayText } from './rule-desk.js';
import { LEFT_ORDERS_MAX } from './standing.js';

/** With a text it was not left, and `code` says of what kind that is, as HTTP has them. */
export interface LeaveOutcome {
  readonly code: 200 | 409 | 503;
  readonly why: string;
  /** One without partitions was not needed, and is not there. */
  readonly left: LeftOrderAnswer;
}

export class LeftDesk {
  readonly #ports: LeftOrdersPorts;
  readonly #orders: LeftOrders;

  constructor(ports: LeftOrdersPorts, orders: LeftOrders) {
    this.#ports = ports;
    this.#orders = orders;
  }

  /**
   * For all partitions but those that were passed over. Once more: for those, instead. Those that are under
   * way (order-key.ts) stay so, unless they are among them.
   */
  leave(id: string, given: OrderToLeave, passed: ReadonlySet<string>): Promise<LeaveOutcome> {
    const { register, clock, log } = this.#ports;
    const partitions = [...register.partitions()]
      .filter(({ partition, isEnded }) => !isEnded && !passed.has(partition))
      .map(({ partition }) => partition);
    const order = { ...given, untilWallMs: Math.floor(clock.wallMs()) + LEFT_MS, partitions };
    const left = this.#orders.answerOf(id, order, 0);
    const refused = (code: 409 | 503, why: string): Promise<LeaveOutcome> =>
      Promise.resolve({ code, why, left });
    if (register.away !== '') return refused(503, awayText(register.away));
    const isLeft = register.leftOrders().has(id);
    if (partitions.length === 0 && !isLeft) return Promise.resolve({ code: 200, why: '', left });
    const whyNot = whyNoRoom(order);
    if (whyNot !== '') {
      return refused(409, `${whyNot}: give it anew with fewer ids, or when more gateways answer`);
    }
    if (!isLeft && this.#orders.count >= LEFT_ORDERS_MAX) {
      return refused(409, `${String(LEFT_ORDERS_MAX)} orders are left already: cancel one of them`);
    }
    if (partitions.length === 0) return this.#write(id, order, left);
    const { verb, selector, reason, who } = order;
    log.warn('order', 'an order is left in the register for mail that nobody had who was asked', {
      order: id, verb, selector: JSON.stringify(selector), partitions, holders: left.holders, reason, who,
    });
    return this.#write(id, order, left);
  }

  #write(id: string, order: LeftOrder, left: LeftOrderAnswer): Promise<LeaveOutcome> {
    const { partitions } = order;
    return new Promise((resolve) => {
      this.#ports.register.changeLeftOrder(id, (known) => {
        const underWay = known?.underWay?.filter((name) => !partitions.includes(name)) ?? [];
        return withNames(order, partitions, underWay);
      }, (why) => {
        resolve({ code: why === '' ? 200 : 503, why, left });
      });
    });
  }

  /** What it was done to stays so. */
  withdraw(id: string, { reason, who }: Order): Promise<RuleOutcome> {
    const { register, log } = this.#ports;
    if (register.away !== '') return Promise.resolve({ id, code: 503, why: awayText(register.away) });
    const unknown = { id, code: 404, why: 'no order of this id is left in the register' } as const;
    if (!isRuleId(id)) return Promise.resolve(unknown);
    return new Promise((resolve) => {
      let isThere = false;
      // What stands there is asked, not what was told: it may have been left a moment ago.
      register.changeLeftOrder(id, (known) => {
        isThere = known !== undefined;
        return undefined;
      }, (why) => {
        if (why === '' && !isThere) return resolve(unknown);
        const text = 'an operator withdraws an order that was left in the register';
        log.warn('order', text, { order: id, reason, who, ...(why === '' ? {} : { error: why }) });
        resolve({ id, code: why === '' ? 200 : 503, why });
      });
    });
  }
}
