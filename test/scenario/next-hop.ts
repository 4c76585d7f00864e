/**
 * The next hops of the scenario world, and the outbound part of a gateway that speaks to them: takes what is
 * ready in order, up to the route's concurrency, and settles as the script says.
 *
 *   take ─ dotMs ─► content arrives here ─ replyMs ─► settle        a gateway killed in between leaves the copy here
 *             └ no right to the dot any more: given back, nothing arrives
 *
 * The next hop outlives gateways; a Carrier ends with its gateway's process.
 */
import assert from 'node:assert/strict';
import type { Delivery, DeliveryQueue, DeliveryResult, DeliverySink, DeliverySource, Outage, RecipientResult } from '../../src/gateway/mail-types.js';
import { DEFERRED, DELIVERED, FAILED } from '../../src/gateway/mail-types.js';
import { checkStrict } from './checks.js';
import type { Letters } from './letters.js';
import { sameBytes, textOf } from './letters.js';
import type { Timeline } from './timeline.js';

/**
 * What becomes of one recipient's attempt. `unfit`: it fails before the next hop is asked. `unanswered`: the content arrives, the reply does not. `untried`: the attempt
 * goes on with him, as that of a delivery that was cut.
 */
export type Answer = 'accept' | 'defer' | 'reject' | 'unfit' | 'unanswered' | 'unreachable' | 'hang' | 'untried';

export interface Attempt {
  readonly messageId: number;
  readonly queueName: string;
  readonly address: string;
  /** How often this message was tried at this queue before, by whichever gateway process. */
  readonly earlier: number;
}

const RESULTS: Readonly<Record<'accept' | 'defer' | 'reject' | 'unfit', RecipientResult>> = {
  accept: { status: DELIVERED, code: 250, enhanced: '2.0.0', text: 'ok' },
  defer: { status: DEFERRED, code: 451, enhanced: '4.3.0', text: 'not now' },
  reject: { status: FAILED, code: 550, enhanced: '5.1.1', text: 'no such user' },
  unfit: { status: FAILED, code: 0, enhanced: '5.6.3', text: 'it takes no such mail' },
};
const UNANSWERED: RecipientResult = { status: DEFERRED, code: 0, enhanced: '4.4.2', text: 'no reply after the dot' };
const UNREACHED: RecipientResult = { status: DEFERRED, code: 0, enhanced: '4.4.1', text: 'connection refused' };
const NO_RIGHT: RecipientResult = { status: DEFERRED, code: 0, enhanced: '4.3.2', text: 'no right to deliver' };
const UNREACHABLE_PAUSE_MS = 500;
/** A report about a hundred recipients is read whole. */
const REPORT_BYTES_MAX = 4096;

/** What the carrier needs of the core. */
export interface OwnedSource extends DeliverySource {
  mayDeliver(delivery: Delivery): boolean;
}

/** What a scenario's signer puts in front of a report. */
export const SIGNED = 'DKIM-Signature: scenario\r\n';

export class NextHops {
  script: (attempt: Attempt) => Answer = () => 'accept';
  /** What it says with an answer, where a test wants more words. */
  words: ((attempt: Attempt) => string) | undefined;
  dotMs = 2;
  replyMs = 2;
  dsnPassedOn = false;
  /** Message ids in the order in which their contents arrived. */
  readonly arrivals: { readonly messageId: number; readonly queueName: string; readonly address: string; readonly atMs: number }[] = [];
  /** Reports that arrived: the text of each. */
  readonly reports: string[] = [];
  /** Of these, those that came with SIGNED in front. */
  signedReports = 0;
  readonly letters: Letters;
  /** What outbound has been told of, and not told to forget. */
  readonly lanes = new Set<DeliveryQueue>();

  constructor(letters: Letters) {
    this.letters = letters;
  }

  receive(delivery: Delivery, content: Uint8Array, addresses: readonly string[], atMs: number): void {
    const letter = this.letters.byId.get(delivery.envelope.messageId);
    const start = textOf(content.subarray(0, REPORT_BYTES_MAX));
    const isSigned = start.startsWith(SIGNED);
    const text = isSigned ? start.slice(SIGNED.length) : start;
    if (letter === undefined) {
      if (isSigned) this.signedReports += 1;
      assert.match(text, /^report /, `an unknown message ${String(delivery.envelope.messageId)} arrived`);
      this.reports.push(text.trimEnd());
      this.noteReport(delivery.envelope.messageId, text.trimEnd());
      return;
    }
    assert.ok(sameBytes(content, letter.content), `message ${String(letter.id)} arrived altered: ${text.slice(0, 60)}`);
    for (const address of addresses) {
      letter.arrivals.set(address, (letter.arrivals.get(address) ?? 0) + 1);
      this.arrivals.push({ messageId: letter.id, queueName: delivery.queue.route.queueName, address, atMs });
    }
  }

  private noteReport(reportId: number, text: string): void {
    const [, id, kind, ...addresses] = text.split(' ');
    const letter = this.letters.byId.get(Number(id));
    for (const address of addresses) {
      const key = `${kind ?? ''} ${address}`;
      const ids = letter?.reports.get(key) ?? new Set<number>();
      ids.add(reportId);
      letter?.reports.set(key, ids);
    }
  }
}

export class Carrier implements DeliverySink {
  inFlightCount = 0;
  private readonly hops: NextHops;
  private readonly source: OwnedSource;
  private readonly scheduler: Timeline;
  private readonly isAlive: () => boolean;
  private readonly inFlight = new Map<DeliveryQueue, number>();
  /** Queues whose next hop is not there: nothing is begun until it is tried again. */
  private readonly down = new Set<DeliveryQueue>();
  /** Those to which no connection came up when that was tried last. */
  private readonly unreached = new Set<DeliveryQueue>();
  private readonly forgotten = new WeakSet<DeliveryQueue>();

  constructor(hops: NextHops, source: OwnedSource, scheduler: Timeline, isAlive: () => boolean) {
    this.hops = hops;
    this.source = source;
    this.scheduler = scheduler;
    this.isAlive = isAlive;
  }

  onReady(queue: DeliveryQueue): void {
    assert.ok(!this.forgotten.has(queue), 'nothing is handed out of a partition that went');
    this.hops.lanes.add(queue);
    while (!this.down.has(queue) && (this.inFlight.get(queue) ?? 0) < queue.route.concurrency) {
      const delivery = this.source.take(queue);
      if (delivery === undefined) return;
      assert.ok(delivery.pending.length > 0, 'a delivery has somebody to deliver to');
      this.inFlight.set(queue, (this.inFlight.get(queue) ?? 0) + 1);
      this.inFlightCount += 1;
      this.attempt(delivery);
    }
  }

  hasten(queue: DeliveryQueue): void {
    this.down.delete(queue);
    this.onReady(queue);
  }

  forget(queue: DeliveryQueue): void {
    this.forgotten.add(queue);
    this.hops.lanes.delete(queue);
  }

  outageOf(queue: DeliveryQueue): Outage | undefined {
    return this.unreached.has(queue) ? { relay: 'mx.hop.example:25', why: UNREACHED } : undefined;
  }

  private attempt(delivery: Delivery): void {
    const { hops, scheduler } = this;
    const letter = hops.letters.byId.get(delivery.envelope.messageId);
    const queueName = delivery.queue.route.queueName;
    const earlier = letter?.attempts.get(queueName) ?? 0;
    const attempts = delivery.pending.map((index): Attempt => ({ messageId: delivery.envelope.messageId, queueName, address: this.addressOf(delivery, index), earlier }));
    const answers = attempts.map((attempt) => hops.script(attempt));
    scheduler.trace(`attempt ${String(delivery.envelope.messageId)} ${answers.join()}`);
    this.unreached.delete(delivery.queue);
    if (answers.includes('unreachable')) {
      this.unreached.add(delivery.queue);
      this.down.add(delivery.queue);
      scheduler.after(hops.dotMs, () => { this.settle(delivery, { ...EMPTY, results: delivery.pending.map(() => UNREACHED), notAttempted: true }); });
      scheduler.after(UNREACHABLE_PAUSE_MS, () => {
        this.down.delete(delivery.queue);
        if (this.isAlive() && !this.forgotten.has(delivery.queue)) this.onReady(delivery.queue);
      });
      return;
    }
    if (letter !== undefined) {
      if (delivery.queue.route.ordering === 'strict') checkStrict(hops.letters, letter, queueName);
      letter.attempts.set(queueName, earlier + 1);
      if (!letter.firstAttempt.has(queueName)) letter.firstAttempt.set(queueName, hops.letters.moment());
    }
    if (answers.includes('hang')) return;
    const { words } = hops;
    scheduler.after(hops.dotMs, () => { this.dot(delivery, answers, words === undefined ? undefined : attempts.map(words)); });
  }

  private dot(delivery: Delivery, answers: readonly Answer[], words: readonly string[] | undefined): void {
    if (!this.isAlive()) return;
    if (!this.source.mayDeliver(delivery)) return this.settle(delivery, { ...EMPTY, results: delivery.pending.map(() => NO_RIGHT), noRight: true });
    const arrives = answers.map((answer) => answer === 'accept' || answer === 'unanswered');
    if (arrives.includes(true)) {
      const content = new Uint8Array(delivery.contentBytes);
      this.source.copyContent(delivery, content, 0, 0, content.length);
      this.hops.receive(delivery, content, delivery.pending.filter((_, i) => arrives[i]).map((index) => this.addressOf(delivery, index)), this.scheduler.nowMs);
    }
    const plain = answers.map((answer) => (answer === 'untried' ? undefined : answer in RESULTS ? RESULTS[answer as keyof typeof RESULTS] : UNANSWERED));
    const results = words === undefined ? plain : plain.map((result, i) => (result === undefined ? undefined : { ...result, text: words[i] ?? '' }));
    const letter = this.hops.letters.byId.get(delivery.envelope.messageId);
    if (letter !== undefined && answers.includes('unanswered')) letter.mayRepeat = true;
    answers.forEach((answer, i) => { if (answer === 'reject' || answer === 'unfit') letter?.rejected.add(this.addressOf(delivery, delivery.pending[i] ?? 0)); });
    this.scheduler.after(this.hops.replyMs, () => {
      this.settle(delivery, { ...EMPTY, results, dotUnanswered: answers.includes('unanswered'), dsnPassedOn: this.hops.dsnPassedOn, goesOn: answers.includes('untried') });
    });
  }

  private settle(delivery: Delivery, result: DeliveryResult): void {
    if (!this.isAlive()) return;
    this.inFlight.set(delivery.queue, (this.inFlight.get(delivery.queue) ?? 0) - 1);
    this.inFlightCount -= 1;
    this.source.settle(delivery, result);
    if (!this.forgotten.has(delivery.queue)) this.onReady(delivery.queue);
  }

  private addressOf(delivery: Delivery, index: number): string {
    return delivery.envelope.recipients[index]?.address ?? '';
  }
}

const EMPTY: DeliveryResult = { results: [], relay: 'mx.hop.example[192.0.2.1]:25', setupMs: 0, transmitMs: 0, dotUnanswered: false };
