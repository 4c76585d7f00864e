/**
 * A queue as the dispatcher works on it: how many of its deliveries are in flight, and whether more may
 * start. Takes entries from the source in order and gives each back exactly once.
 */
import { invariant } from '../../base/invariant.js';
import type { SecuredFacts } from '../../platform/transport.js';
import type {
  Delivery, DeliveryQueue, DeliveryResult, DeliverySource, RecipientResult,
} from '../mail-types.js';
import { DEFERRED, FAILED } from '../mail-types.js';
import type { DeliveryPart } from './cut-delivery.js';
import { CutDelivery, isPart } from './cut-delivery.js';

/**
 * What outbound says at the end of an attempt, besides the queue's DeliveryResult: whether the next hop was
 * given the DSN parameters, so that success reports are its duty and no longer ours (RFC 3461 5.2.1-5.2.2).
 */
export interface AttemptResult extends DeliveryResult {
  readonly dsnPassedOn: boolean;
}

/** Some ten seconds. */
const CUT_IDLE_TICKS = 40;
/**
 * Some thirty seconds: what was done by then is settled before it goes on, so that a crash repeats no more
 * than that, and the end of its time and orders of an operator get their turn.
 */
const CUT_TICKS_MAX = 120;
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
  /** So many ticks ago its first part began. */
  #cutTicks = 0;
  /** By message id, of attempts that go on: who was deferred in them. Lost, they are tried again too soon. */
  readonly #deferredOf = new Map<number, ReadonlySet<number>>();
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
    return isCut ? this.#firstPart(delivery) : delivery;
  }

  #firstPart(delivery: Delivery): Delivery {
    this.#cutTicks = 0;
    return this.#nextPart(new CutDelivery(delivery, this.#deferredOf.get(delivery.envelope.messageId)));
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
    if (cut.isOver) this.#settleWhole(cut);
  }

  /** What has begun must not wait for ever for connections, which may be other queues', nor take hours. */
  tick(): void {
    if (this.#cut === undefined) return;
    this.#cutIdleTicks = this.#inFlightCount > 0 ? 0 : this.#cutIdleTicks + 1;
    this.#cutTicks++;
    if (this.#cutIdleTicks >= CUT_IDLE_TICKS || this.#cutTicks >= CUT_TICKS_MAX) this.endParts();
  }

  settle(delivery: Delivery, result: AttemptResult): void {
    invariant(this.#inFlightCount > 0, 'only what was taken is settled');
    this.#inFlightCount--;
    this.#inFlight.count--;
    if (isPart(delivery)) this.#settlePart(delivery, result);
    else this.#source.settle(delivery, result);
    this.home?.mayStart(this);
    this.#inFlight.onSettled();
  }

  #settlePart(part: DeliveryPart, result: AttemptResult): void {
    const { of: cut } = part;
    cut.settle(part, result);
    if (this.#cut === cut && cut.waitingCount === 0) this.#cut = undefined;
    if (cut.isOver) this.#settleWhole(cut);
  }

  #settleWhole(cut: CutDelivery): void {
    const { whole } = cut;
    const { messageId } = whole.envelope;
    this.#deferredOf.delete(messageId);
    if (cut.goesOn) this.#remember(messageId, cut.deferred());
    this.#source.settle(whole, cut.result());
  }

  /** Attempts that go on are the next that are taken: there are no more of them than begin side by side. */
  #remember(messageId: number, deferred: ReadonlySet<number>): void {
    if (deferred.size === 0) return;
    this.#deferredOf.set(messageId, deferred);
    if (this.#deferredOf.size <= this.queue.route.concurrency + 1) return;
    // An operator holds it, or it is gone.
    for (const oldest of this.#deferredOf.keys()) {
      this.#deferredOf.delete(oldest);
      return;
    }
  }

  /**
   * Ends an attempt that never reached a transaction. A deferral of that kind is no attempt of the message:
   * it keeps its place, and the pool's back-off decides when the next hop is tried again.
   * A failure is one of the next hop, whoever the recipient.
   */
  settleAll(
    delivery: Delivery, relay: string, result: RecipientResult, setupMs: number, tls?: SecuredFacts,
    source = '',
  ): void {
    const results = delivery.pending.map(() => result);
    const notAttempted = result.status === DEFERRED;
    const ended = { ...NOTHING_SENT, results, relay, setupMs, notAttempted, tls, source };
    // The next hop takes mail for nobody: it need not be asked about each of them.
    if (isPart(delivery) && result.status === FAILED) delivery.of.settleRest(ended);
    this.settle(delivery, ended);
  }

  /** Ends one that was not given its dot (G5): it keeps its place, and waits until the right is back. */
  withoutRight(delivery: Delivery, relay: string, why: RecipientResult, setupMs: number): void {
    const results = delivery.pending.map(() => why);
    this.settle(delivery, { ...NOTHING_SENT, results, relay, setupMs, noRight: true });
  }
}
