/**
 * What the register has of an order that goes on here (order-pass.ts; the key is rules/orders/ID): it stands
 * there before anything is done, so that whoever starts again, or takes a partition over, finds the order
 * before it delivers, and obeys it (left-orders.ts). Each gateway names the partitions over which it passes,
 * and takes them out when it is through. All gateways that have the order share its key.
 *
 *   phase        what is to stand there
 *   KEPT         in its grace: our partitions are under way; nothing is done, and what is meant is kept back
 *   ACTED        our partitions are under way, and it is done to what is meant by whoever has them
 *   DONE         none of those
 *   CANCELLED    nothing; whoever goes on all the same names its own again
 *   UNFOLLOWED   as DONE while all are in their grace; else the others go on, for us, too
 *
 * The register may be away, or have no room: the order acts without it after a while (ACTS_WITHOUT_MS), which
 * is told, and the key is tried again. Pure.
 */
import type { Clock } from '../../platform/ports.js';
import { utf8Bytes } from '../../register/limits.js';
import type { LeftOrder } from '../../register/records.js';
import { LEFT_PARTITIONS_MAX, encodeLeftOrder } from '../../register/records.js';
import type { OwnershipRegister } from '../ownership/ownership-register.js';
import { awayText } from './rule-desk.js';
import { LEFT_ORDERS_MAX } from './standing.js';

/** What of an order concerns mail that comes later. */
export type OrderToLeave = Omit<LeftOrder, 'untilWallMs' | 'partitions' | 'underWay' | 'inGrace'>;

/** Whoever is away for longer is met by an order that is given anew. */
export const LEFT_MS = 24 * 3_600_000;
/** Some hundred queue ids, or partitions: all of them together are half a megabyte. */
const LEFT_ORDER_BYTES_MAX = 8 * 1024;
/** Between writes of one order. */
const WRITE_MS = 1_000;
/** The register answers within milliseconds, or not for long. */
const ACTS_WITHOUT_MS = 2_000;
/** Beyond the grace: so long nobody has begun, and nobody has taken it back. */
const KEPT_BEYOND_MS = 30_000;

export const KeyPhase = {
  KEPT: 'kept', ACTED: 'acted', DONE: 'done', CANCELLED: 'cancelled', UNFOLLOWED: 'unfollowed',
} as const;
export type KeyPhase = (typeof KeyPhase)[keyof typeof KeyPhase];

export interface OrderKeyPorts {
  readonly clock: Clock;
  readonly register: OwnershipRegister;
}

/** What is to stand in the register, and why that is not all. */
interface Change {
  readonly order: LeftOrder | undefined;
  readonly why: string;
}

/** All partitions that an order names. */
export function namesOf({ partitions, underWay = [] }: LeftOrder): readonly string[] {
  return [...partitions, ...underWay];
}

/** With these lists; undefined when it names none. */
export function withNames(
  order: LeftOrder, partitions: readonly string[], underWay: readonly string[],
): LeftOrder | undefined {
  if (partitions.length === 0 && underWay.length === 0) return undefined;
  const { underWay: _, ...rest } = order;
  const under = underWay.length === 0 ? {} : { underWay: [...underWay] };
  return { ...rest, partitions: [...partitions], ...under };
}

/** Without these names; undefined when none is left. */
export function withoutNames(order: LeftOrder, gone: ReadonlySet<string>): LeftOrder | undefined {
  const isLeft = (name: string): boolean => !gone.has(name);
  return withNames(order, order.partitions.filter(isLeft), (order.underWay ?? []).filter(isLeft));
}

/** Why the register has no room for it; '' when it has. */
export function whyNoRoom(order: LeftOrder): string {
  const { length } = namesOf(order);
  if (length <= LEFT_PARTITIONS_MAX && utf8Bytes(encodeLeftOrder(order)) <= LEFT_ORDER_BYTES_MAX) return '';
  return `it names ${String(length)} partitions, and has more words than the register keeps of one order`;
}

export class OrderKey {
  readonly order: OrderToLeave;
  readonly #id: string;
  readonly #ports: OrderKeyPorts;
  /** Of our partitions those that the phase is about, as they are now. */
  readonly #names: () => readonly string[];
  #phase: KeyPhase | undefined;
  /** Of a phase in which nothing is done. */
  #keptUntilWallMs = 0;
  #sinceMs = 0;
  #nextWriteMs = -Infinity;
  #isWriting = false;
  /** What the phase wants has stood there. */
  #isWritten = false;
  /** Why it was not written last. */
  #why = '';

  constructor(id: string, order: OrderToLeave, ports: OrderKeyPorts, names: () => readonly string[]) {
    this.#id = id;
    this.order = order;
    this.#ports = ports;
    this.#names = names;
  }

  /** It goes no further. What never went is not there. */
  end(phase: KeyPhase): void {
    if (this.#phase !== undefined) this.want(phase);
  }

  want(phase: KeyPhase, graceMs = 0): void {
    if (phase === this.#phase) return;
    const { clock } = this.#ports;
    this.#phase = phase;
    this.#sinceMs = clock.nowMs();
    this.#keptUntilWallMs = Math.floor(clock.wallMs() + graceMs) + KEPT_BEYOND_MS;
    this.#isWritten = false;
    this.#why = '';
    this.#nextWriteMs = -Infinity;
    this.tick();
  }

  /** It stands there, or that is waited for no longer. */
  get isSettled(): boolean {
    const { clock, register } = this.#ports;
    const isRefused = this.#why !== '' || register.away !== '';
    return this.#isWritten || isRefused || clock.nowMs() - this.#sinceMs >= ACTS_WITHOUT_MS;
  }

  /** Why what is not done yet would go on if this gateway crashed; '' when it would not. */
  get whyNot(): string {
    if (this.#isWritten || this.#phase !== KeyPhase.ACTED) return '';
    const { clock, register: { away } } = this.#ports;
    if (away !== '') return awayText(away);
    const isSilent = clock.nowMs() - this.#sinceMs >= ACTS_WITHOUT_MS;
    return this.#why === '' && isSilent ? 'the register has not answered' : this.#why;
  }

  /** As far as is known, the register has what it is to have. */
  get isQuiet(): boolean {
    return !this.#isWriting && !this.#isAmiss();
  }

  /** Called a few times in a tenth of a second. */
  tick(): void {
    const { clock, register } = this.#ports;
    const nowMs = clock.nowMs();
    if (this.#isWriting || nowMs < this.#nextWriteMs || register.away !== '' || !this.#isAmiss()) return;
    const phase = this.#phase;
    this.#nextWriteMs = nowMs + WRITE_MS;
    this.#isWriting = true;
    let whyLess = '';
    register.changeLeftOrder(this.#id, (known) => {
      const { order, why } = this.#changed(known);
      whyLess = why;
      return order;
    }, (why) => {
      this.#isWriting = false;
      // What became of another phase says nothing of this one.
      if (phase !== this.#phase) {
        this.#nextWriteMs = -Infinity;
        return;
      }
      this.#why = why === '' ? whyLess : why;
      this.#isWritten = this.#why === '';
    });
  }

  /** It is not as it is to be, as the register told it last. */
  #isAmiss(): boolean {
    const known = this.#ports.register.leftOrders().get(this.#id);
    const names = this.#names();
    const named = known === undefined ? [] : namesOf(known);
    const isNamed = named.some((name) => names.includes(name));
    const isInGrace = known?.inGrace === true;
    switch (this.#phase) {
      case undefined: return false;
      case KeyPhase.KEPT: return !this.#isWritten || (!isNamed && names.length > 0);
      case KeyPhase.ACTED: return !this.#isWritten || isInGrace || (!isNamed && names.length > 0);
      case KeyPhase.DONE: case KeyPhase.CANCELLED: return !this.#isWritten || isNamed;
      case KeyPhase.UNFOLLOWED: return isNamed && isInGrace;
    }
  }

  /** `known`: what stands there; undefined: nothing. With a text not all of what is wanted has room. */
  #changed(known: LeftOrder | undefined): Change {
    const names = new Set(this.#names());
    const without = known === undefined ? undefined : withoutNames(known, names);
    switch (this.#phase) {
      case undefined: return { order: known, why: '' };
      case KeyPhase.KEPT: case KeyPhase.ACTED: return this.#named(known, names);
      case KeyPhase.DONE: return { order: without, why: '' };
      case KeyPhase.CANCELLED: return { order: undefined, why: '' };
      case KeyPhase.UNFOLLOWED: return { order: known?.inGrace === true ? without : known, why: '' };
    }
  }

  #named(known: LeftOrder | undefined, names: ReadonlySet<string>): Change {
    const { register } = this.#ports;
    const given = this.#inPhase(known ?? { ...this.order, untilWallMs: 0, partitions: [], inGrace: true });
    const others = given.partitions.filter((name) => !names.has(name));
    const underWay = [...new Set([...given.underWay ?? [], ...names])].sort();
    const order = withNames(given, others, underWay);
    if (order === undefined) return { order: known, why: '' };
    const isBeyond = known === undefined && register.leftOrders().size >= LEFT_ORDERS_MAX;
    const whyBeyond = `${String(LEFT_ORDERS_MAX)} orders stand in the register already`;
    const why = isBeyond ? whyBeyond : whyNoRoom(order);
    if (why === '') return { order, why };
    // The grace of the others is over all the same.
    return { order: known === undefined ? undefined : given, why };
  }

  #inPhase(known: LeftOrder): LeftOrder {
    if (known.inGrace !== true) return known;
    if (this.#phase === KeyPhase.KEPT) {
      return { ...known, untilWallMs: Math.max(known.untilWallMs, this.#keptUntilWallMs) };
    }
    const { inGrace: _, ...given } = known;
    return { ...given, untilWallMs: Math.floor(this.#ports.clock.wallMs()) + LEFT_MS };
  }
}
