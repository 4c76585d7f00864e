/**
 * The next hops of the simulated world, and the outbound part of each gateway process that speaks to them. The
 * carrier keeps to what the real dispatcher promises the core: entries are taken in order up to the route's
 * concurrency, the right to deliver is asked for right before each final dot, each entry is settled once.
 *
 *   take ─ dotMs ─► mayDot? ─► content arrives ─ replyMs ─► settle
 *                     │ no: nothing was handed over         a process that ends in between leaves the copy here
 *                     └─► given back, in its place
 */
import assert from 'node:assert/strict';
import type { GatewayCore } from '../../src/gateway/daemon/core.js';
import type { Delivery, DeliveryQueue, DeliveryResult, DeliverySink, Outage, RecipientResult } from '../../src/gateway/mail-types.js';
import { DEFERRED, DELIVERED, FAILED } from '../../src/gateway/mail-types.js';
import type { Timeline } from '../scenario/timeline.js';

export type Answer = 'accept' | 'defer' | 'reject' | 'cut' | 'down' | 'hang';

/** What is to be judged of an attempt; the world hands it to its checkers. */
export interface AttemptWatch {
  answer(queueName: string): Answer;
  onAttempt(gateway: string, delivery: Delivery): void;
  onDot(gateway: string, core: GatewayCore, delivery: Delivery, content: Uint8Array, answers: readonly Answer[]): void;
  onSettled(gateway: string, core: GatewayCore, delivery: Delivery): void;
}

export interface CarrierOptions {
  readonly gateway: string;
  readonly dotMs: number;
  readonly replyMs: number;
  /** What it says beside its codes, at great length. */
  readonly words?: string | undefined;
}

const RESULTS: Readonly<Record<'accept' | 'defer' | 'reject', RecipientResult>> = {
  accept: { status: DELIVERED, code: 250, enhanced: '2.0.0', text: 'ok' },
  defer: { status: DEFERRED, code: 451, enhanced: '4.3.0', text: 'not now' },
  reject: { status: FAILED, code: 550, enhanced: '5.1.1', text: 'no such user' },
};
const CUT: RecipientResult = { status: DEFERRED, code: 0, enhanced: '4.4.2', text: 'no reply after the dot' };
const SILENT: RecipientResult = { status: DEFERRED, code: 0, enhanced: '4.4.2', text: 'the next hop fell silent' };
const UNREACHED: RecipientResult = { status: DEFERRED, code: 0, enhanced: '4.4.1', text: 'connection refused' };
const NO_RIGHT: RecipientResult = { status: DEFERRED, code: 0, enhanced: '4.3.0', text: 'no right to deliver' };
const DOWN_PAUSE_MS = 500;
/** A next hop that says nothing any more is given up after this. */
const HANG_MS = 5000;
const EMPTY: DeliveryResult = { results: [], relay: 'next-hop', setupMs: 0, transmitMs: 0, dotUnanswered: false };

function said(result: RecipientResult, words: string | undefined): RecipientResult {
  return words === undefined ? result : { ...result, text: words };
}

export class SimCarrier implements DeliverySink {
  private readonly options: CarrierOptions;
  private readonly core: GatewayCore;
  private readonly timeline: Timeline;
  private readonly watch: AttemptWatch;
  private readonly isAlive: () => boolean;
  private readonly inFlight = new Map<DeliveryQueue, number>();
  private readonly down = new Set<DeliveryQueue>();
  /** Those of partitions that went. */
  private readonly forgotten = new WeakSet<DeliveryQueue>();

  constructor(options: CarrierOptions, core: GatewayCore, timeline: Timeline, watch: AttemptWatch, isAlive: () => boolean) {
    this.options = options;
    this.core = core;
    this.timeline = timeline;
    this.watch = watch;
    this.isAlive = isAlive;
  }

  get inFlightCount(): number {
    let count = 0;
    for (const one of this.inFlight.values()) count += one;
    return count;
  }

  hasten(queue: DeliveryQueue): void {
    this.down.delete(queue);
    this.onReady(queue);
  }

  forget(queue: DeliveryQueue): void {
    this.forgotten.add(queue);
  }

  outageOf(queue: DeliveryQueue): Outage | undefined {
    return this.down.has(queue) ? { relay: 'next-hop', why: UNREACHED } : undefined;
  }

  onReady(queue: DeliveryQueue): void {
    if (this.forgotten.has(queue)) return;
    const most = queue.route.ordering === 'strict' ? 1 : queue.route.concurrency;
    while (!this.down.has(queue) && (this.inFlight.get(queue) ?? 0) < most) {
      const delivery = this.core.take(queue);
      if (delivery === undefined) return;
      this.inFlight.set(queue, (this.inFlight.get(queue) ?? 0) + 1);
      this.attempt(delivery);
    }
  }

  private attempt(delivery: Delivery): void {
    const { watch, options, timeline } = this;
    assert.ok(delivery.pending.length > 0, 'a delivery has somebody to deliver to');
    const answers = delivery.pending.map(() => watch.answer(delivery.queue.route.queueName));
    timeline.trace(`attempt ${String(delivery.envelope.messageId)} ${answers.join()}`);
    if (answers.includes('down')) {
      this.down.add(delivery.queue);
      timeline.after(options.dotMs, () => { this.settle(delivery, { ...EMPTY, results: delivery.pending.map(() => UNREACHED), notAttempted: true }); });
      timeline.after(DOWN_PAUSE_MS, () => {
        this.down.delete(delivery.queue);
        if (this.isAlive()) this.onReady(delivery.queue);
      });
      return;
    }
    watch.onAttempt(options.gateway, delivery);
    if (answers.includes('hang')) timeline.after(HANG_MS, () => { this.settle(delivery, { ...EMPTY, results: delivery.pending.map(() => SILENT) }); });
    else timeline.after(options.dotMs, () => { this.dot(delivery, answers); });
  }

  private dot(delivery: Delivery, answers: readonly Answer[]): void {
    if (!this.isAlive()) return;
    const { watch, options, core } = this;
    if (!core.mayDeliver(delivery)) {
      this.timeline.trace(`no right to deliver ${String(delivery.envelope.messageId)}`);
      this.settle(delivery, { ...EMPTY, results: delivery.pending.map(() => NO_RIGHT), noRight: true });
      return;
    }
    const content = new Uint8Array(delivery.contentBytes);
    core.copyContent(delivery, content, 0, 0, content.length);
    watch.onDot(options.gateway, core, delivery, content, answers);
    const isCut = answers.includes('cut');
    const results = answers.map((answer) => (!isCut && (answer === 'accept' || answer === 'defer' || answer === 'reject') ? said(RESULTS[answer], options.words) : CUT));
    this.timeline.after(options.replyMs, () => { this.settle(delivery, { ...EMPTY, results, dotUnanswered: isCut }); });
  }

  private settle(delivery: Delivery, result: DeliveryResult): void {
    if (!this.isAlive()) return;
    this.inFlight.set(delivery.queue, (this.inFlight.get(delivery.queue) ?? 0) - 1);
    this.core.settle(delivery, result);
    this.watch.onSettled(this.options.gateway, this.core, delivery);
    this.onReady(delivery.queue);
  }
}
