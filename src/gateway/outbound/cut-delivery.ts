/**
 * A delivery whose recipients each have a reverse-path of their own (base/return-addresses.ts; but for those
 * that an alias led out): handed to next hops in as many transactions, of one recipient each, and given back
 * to its queue as one. Made for routes with `verp` only, and where more than one recipient is left.
 *
 *   whole ─► part, part, …   side by side, as the route allows
 *              │  one was not attempted, or had no right to its dot, or the gateway stops, or it has taken
 *              │  long (lane.ts): no more begin
 *              ▼
 *   all that began have ended ─► one result; where some were not begun, the attempt goes on with them:
 *                                those that were deferred in it already are not tried again before its end
 */
import { invariant } from '../../base/invariant.js';
import type { Delivery, DeliveryResult, OwnAttempt, RecipientResult } from '../mail-types.js';
import { ALIAS_LEAVES, DEFERRED, DELIVERED } from '../mail-types.js';
import type { AttemptResult } from './lane.js';

const NOBODY: ReadonlySet<number> = new Set();

export class CutDelivery {
  readonly whole: Delivery;
  /** Recipients of the envelope who were deferred earlier in this attempt. */
  readonly #deferred: ReadonlySet<number>;
  /** Positions in whole.pending of those whose turn it is. */
  readonly #turns: readonly number[];
  readonly #results: (RecipientResult | undefined)[];
  readonly #own: (OwnAttempt | undefined)[];
  /** Index into #turns of the next part. */
  #next = 0;
  /** Begun and not ended. */
  #openCount = 0;
  /** One that was attempted, for the relay that is named: of an unanswered dot where there is one. */
  #told: AttemptResult | undefined;
  /** What ended it before anybody was attempted. */
  #unbegun: AttemptResult | undefined;
  #isDsnPassedOn = true;
  #isEnding = false;

  constructor(whole: Delivery, deferred: ReadonlySet<number> = NOBODY) {
    const positions = whole.pending.map((_, position) => position);
    const turns = positions.filter((position) => !deferred.has(whole.pending[position] ?? 0));
    this.whole = whole;
    this.#deferred = deferred;
    this.#turns = turns.length > 0 ? turns : positions;
    this.#results = new Array<undefined>(whole.pending.length).fill(undefined);
    this.#own = new Array<undefined>(whole.pending.length).fill(undefined);
  }

  /** Parts that may begin. */
  get waitingCount(): number {
    return this.#isEnding ? 0 : this.#turns.length - this.#next;
  }

  get isOver(): boolean {
    return this.#openCount === 0 && this.waitingCount === 0;
  }

  /** Somebody has not had his turn. */
  get goesOn(): boolean {
    return this.#turns.some((position) => this.#results[position] === undefined);
  }

  /** Recipients of the envelope who have had theirs in this attempt, and are to be tried in the next. */
  deferred(): ReadonlySet<number> {
    const indexes = new Set(this.#deferred);
    this.#results.forEach((said, position) => {
      if (said?.status === DEFERRED) indexes.add(this.whole.pending[position] ?? 0);
    });
    return indexes;
  }

  take(): DeliveryPart {
    invariant(this.waitingCount > 0, 'a part is taken while there is one');
    this.#openCount++;
    return partOf(this, this.#turns[this.#next++] ?? 0);
  }

  settle({ position, reversePath }: DeliveryPart, result: AttemptResult): void {
    this.#openCount--;
    if (result.notAttempted === true || result.noRight === true) {
      this.#isEnding = true;
      this.#unbegun = result;
      return;
    }
    const [said] = result.results;
    const { relay, source, setupMs, transmitMs, tls } = result;
    this.#results[position] = said;
    this.#own[position] = { reversePath, relay, source, setupMs, transmitMs, tls };
    if (result.dotUnanswered || this.#told?.dotUnanswered !== true) this.#told = result;
    // One that has it without them is reported by us; so are then the others, twice at worst.
    if (said?.status === DELIVERED && !result.dsnPassedOn) this.#isDsnPassedOn = false;
  }

  /** What is true of all who were not begun, whoever they are. */
  settleRest(result: AttemptResult): void {
    while (this.waitingCount > 0) this.settle(this.take(), result);
  }

  /** No more of it begins. */
  end(): void {
    this.#isEnding = true;
  }

  /** It is over: what became of it. */
  result(): DeliveryResult {
    const { pending } = this.whole;
    const told = this.#told;
    if (told === undefined) {
      const unbegun = this.#unbegun;
      invariant(unbegun !== undefined, 'it is over when a part has ended');
      return { ...unbegun, results: pending.map(() => unbegun.results[0]) };
    }
    const { relay, source, setupMs, transmitMs, tls, dotUnanswered } = told;
    return {
      results: this.#results, own: this.#own, relay, source, setupMs, transmitMs, tls, dotUnanswered,
      dsnPassedOn: this.#isDsnPassedOn, goesOn: this.goesOn,
    };
  }
}

/** One recipient of it: for outbound a delivery as any other. */
export interface DeliveryPart extends Delivery {
  readonly of: CutDelivery;
  readonly position: number;
}

export function isPart(delivery: Delivery): delivery is DeliveryPart {
  return 'of' in delivery;
}

function partOf(of: CutDelivery, position: number): DeliveryPart {
  const { entry, queue, envelope, pending, contentBytes, verp } = of.whole;
  const index = pending[position] ?? 0;
  const { messageId, reversePath: sender, recipients } = envelope;
  const { address = '', notify = 0 } = recipients[index] ?? {};
  const hasOwn = verp !== undefined && (notify & ALIAS_LEAVES) === 0;
  const reversePath = hasOwn ? verp.written(messageId, address, sender) : of.whole.reversePath;
  return { of, position, entry, queue, envelope, reversePath, pending: [index], contentBytes };
}
