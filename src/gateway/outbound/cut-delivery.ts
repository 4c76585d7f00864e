/**
 * A delivery whose recipients each have a reverse-path of their own (base/return-addresses.ts): handed to
 * next hops in as many transactions, of one recipient each, and given back to its queue as one. Made for
 * routes with `verp` only, and where more than one recipient is left.
 *
 *   whole ─► part, part, …   side by side, as the route allows
 *              │  one was not attempted, or had no right to its dot, or the gateway stops: no more begin
 *              ▼
 *   all that began have ended ─► one result: whoever was not begun has none, and waits for the next attempt
 */
import { invariant } from '../../base/invariant.js';
import type {
  Delivery, DeliveryQueue, DeliveryResult, Envelope, OwnAttempt, RecipientResult,
} from '../queue/types.js';
import { DELIVERED } from '../queue/types.js';
import type { AttemptResult } from './lane.js';

export class CutDelivery {
  readonly whole: Delivery;
  readonly #results: (RecipientResult | undefined)[];
  readonly #own: (OwnAttempt | undefined)[];
  /** Position in whole.pending of the next part. */
  #next = 0;
  /** Begun and not ended. */
  #openCount = 0;
  #last: AttemptResult | undefined;
  /** What ended it before anybody was attempted. */
  #unbegun: AttemptResult | undefined;
  #hasAttempted = false;
  #isDotUnanswered = false;
  #isDsnPassedOn = true;
  #isEnding = false;

  constructor(whole: Delivery) {
    this.whole = whole;
    this.#results = new Array<undefined>(whole.pending.length).fill(undefined);
    this.#own = new Array<undefined>(whole.pending.length).fill(undefined);
  }

  /** Parts that may begin. */
  get waitingCount(): number {
    return this.#isEnding ? 0 : this.whole.pending.length - this.#next;
  }

  get isOver(): boolean {
    return this.#openCount === 0 && this.waitingCount === 0;
  }

  take(): DeliveryPart {
    invariant(this.waitingCount > 0, 'a part is taken while there is one');
    this.#openCount++;
    return new DeliveryPart(this, this.#next++);
  }

  settle({ position, reversePath }: DeliveryPart, result: AttemptResult): void {
    this.#openCount--;
    this.#last = result;
    if (result.notAttempted === true || result.noRight === true) {
      this.#isEnding = true;
      this.#unbegun = result;
      return;
    }
    this.#hasAttempted = true;
    const [said] = result.results;
    const { relay, setupMs, transmitMs, tls } = result;
    this.#results[position] = said;
    this.#own[position] = { reversePath, relay, setupMs, transmitMs, tls };
    if (result.dotUnanswered) this.#isDotUnanswered = true;
    // One that has it without them is reported by us; so are then the others, twice at worst.
    if (said?.status === DELIVERED && !result.dsnPassedOn) this.#isDsnPassedOn = false;
  }

  /** No more of it begins. */
  end(): void {
    this.#isEnding = true;
  }

  /** It is over: what became of it. */
  result(): DeliveryResult {
    const last = this.#hasAttempted ? this.#last : this.#unbegun;
    invariant(last !== undefined, 'it is over when a part has ended');
    const { pending } = this.whole;
    if (!this.#hasAttempted) return { ...last, results: pending.map(() => last.results[0]) };
    const { relay, setupMs, transmitMs, tls } = last;
    return {
      results: this.#results, own: this.#own, relay, setupMs, transmitMs, tls,
      dotUnanswered: this.#isDotUnanswered, dsnPassedOn: this.#isDsnPassedOn,
    };
  }
}

/** One recipient of it: for outbound a delivery as any other. */
export class DeliveryPart implements Delivery {
  readonly of: CutDelivery;
  readonly position: number;
  readonly entry: number;
  readonly queue: DeliveryQueue;
  readonly envelope: Envelope;
  readonly reversePath: string;
  readonly pending: readonly number[];
  readonly contentBytes: number;

  constructor(of: CutDelivery, position: number) {
    const { entry, queue, envelope, pending, contentBytes, verp } = of.whole;
    const index = pending[position] ?? 0;
    const { messageId, reversePath: sender, recipients } = envelope;
    this.of = of;
    this.position = position;
    this.entry = entry;
    this.queue = queue;
    this.envelope = envelope;
    this.reversePath = verp?.written(messageId, recipients[index]?.address ?? '', sender) ?? sender;
    this.pending = [index];
    this.contentBytes = contentBytes;
  }
}
