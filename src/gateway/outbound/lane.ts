/**
 * A queue as the dispatcher works on it: how many of its deliveries are in flight, and whether more may
 * start. Takes entries from the source in order and gives each back exactly once.
 */
import { invariant } from '../../base/invariant.js';
import type { SecuredFacts } from '../../platform/transport.js';
import type {
  Delivery, DeliveryQueue, DeliveryResult, DeliverySource, RecipientResult,
} from '../queue/types.js';
import { DEFERRED } from '../queue/types.js';
import { CutDelivery, DeliveryPart } from './cut-delivery.js';

/**
 * What outbound says at the end of an attempt, besides the queue's DeliveryResult: whether the next hop was
 * given the DSN parameters, so that success reports are its duty and no longer ours (RFC 3461 5.2.1-5.2.2).
 */
export interface AttemptResult extends DeliveryResult {
  readonly dsnPassedOn: boolean;
}

/** Some ten seconds. */
const CUT_IDLE_TICKS = 40;
/** Of an attempt that never came to its dot. */
const NOTHING_SENT = { transmitMs: 0, dotUnanswered: false, dsnPassedOn: false } as const;

/** Counts what is in flight over all queues; told at zero while stopping. */
export interface InFlight {
  count: number;
  onSettled(): void;
}

/** The pool that a lane is in. */
export interface LaneHome {
  /** The lane may have something to start that it had not before. */
  mayStart(lane: Lane): void;
}

export class Lane {
  readonly queue: DeliveryQueue;
  readonly #source: DeliverySource;
  readonly #inFlight: InFlight;
  #inFlightCount = 0;
  /** What is handed out recipient by recipient: parts of the last one may still begin. */
  #cut: CutDelivery | undefined;
  /** So many ticks ago something of it was in flight. */
  #cutIdleTicks = 0;
  /** take() had nothing although readyCount said so: wait for the next onReady. */
  isDry = false;
  home: LaneHome | undefined;
  /** Its place among those that wait for their turn (lane-ring.ts). */
  isInTurn = false;
  before: Lane | undefined;
  behind: Lane | undefined;

  constructor(queue: DeliveryQueue, source: DeliverySource, inFlight: InFlight) {
    this.queue = queue;
    this.#source = source;
    this.#inFlight = inFlight;
  }

  get inFlightCount(): number {
    return this.#inFlightCount;
  }

  /** Deliveries that could start now: bounded by the route's concurrency (strict: one, G3). */
  get startable(): number {
    if (this.isDry) return 0;
    const { route } = this.queue;
    const places = (route.ordering === 'strict' ? 1 : route.concurrency) - this.#inFlightCount;
    return Math.max(0, Math.min(places, this.waitingCount));
  }

  /** Deliveries that wait to be taken. */
  get waitingCount(): number {
    return this.queue.readyCount + (this.#cut?.waitingCount ?? 0);
  }

  take(): Delivery | undefined {
    const cut = this.#cut;
    const delivery = cut === undefined ? this.#source.take(this.queue) : this.#nextPart(cut);
    if (delivery === undefined) {
      this.isDry = true;
      return undefined;
    }
    this.#inFlightCount++;
    this.#inFlight.count++;
    const isCut = delivery.verp !== undefined && delivery.pending.length > 1;
    return isCut ? this.#nextPart(new CutDelivery(delivery)) : delivery;
  }

  #nextPart(cut: CutDelivery): Delivery {
    const part = cut.take();
    this.#cut = cut.waitingCount > 0 ? cut : undefined;
    this.#cutIdleTicks = 0;
    return part;
  }

  /** No further part of a delivery begins: the gateway stops, or its next hop can't be had for a while. */
  endParts(): void {
    const cut = this.#cut;
    if (cut === undefined) return;
    this.#cut = undefined;
    cut.end();
    if (cut.isOver) this.#source.settle(cut.whole, cut.result());
  }

  /** A delivery that has begun must not wait for ever for connections, which may be other queues'. */
  tick(): void {
    if (this.#cut === undefined || this.#inFlightCount > 0) this.#cutIdleTicks = 0;
    else if (++this.#cutIdleTicks >= CUT_IDLE_TICKS) this.endParts();
  }

  settle(delivery: Delivery, result: AttemptResult): void {
    invariant(this.#inFlightCount > 0, 'only what was taken is settled');
    this.#inFlightCount--;
    this.#inFlight.count--;
    if (delivery instanceof DeliveryPart) this.#settlePart(delivery, result);
    else this.#source.settle(delivery, result);
    this.home?.mayStart(this);
    this.#inFlight.onSettled();
  }

  #settlePart(part: DeliveryPart, result: AttemptResult): void {
    const { of: cut } = part;
    cut.settle(part, result);
    if (this.#cut === cut && cut.waitingCount === 0) this.#cut = undefined;
    if (cut.isOver) this.#source.settle(cut.whole, cut.result());
  }

  /**
   * Ends an attempt that never reached a transaction. A deferral of that kind is no attempt of the message:
   * it keeps its place, and the pool's back-off decides when the next hop is tried again.
   */
  settleAll(
    delivery: Delivery, relay: string, result: RecipientResult, setupMs: number, tls?: SecuredFacts,
  ): void {
    const results = delivery.pending.map(() => result);
    const notAttempted = result.status === DEFERRED;
    this.settle(delivery, { ...NOTHING_SENT, results, relay, setupMs, notAttempted, tls });
  }

  /** Ends one that was not given its dot (G5): it keeps its place, and waits until the right is back. */
  withoutRight(delivery: Delivery, relay: string, why: RecipientResult, setupMs: number): void {
    const results = delivery.pending.map(() => why);
    this.settle(delivery, { ...NOTHING_SENT, results, relay, setupMs, noRight: true });
  }
}
