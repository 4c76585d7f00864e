/**
 * One mail transaction of a session: which recipients have a result, whose RCPT is awaited, who was accepted.
 * Positions are indexes into delivery.pending; a position without a result is *open*. Pure.
 *
 *   pending   [0] refused  [1] accepted  [2] awaited  [3] not named yet      results  [R, -, -, -]
 */
import { invariant } from '../../../base/invariant.js';
import type { Delivery, Recipient, RecipientResult } from '../../mail-types.js';
import type { Capabilities } from '../../../smtp/capabilities.js';
import { Trouble, classifyTrouble } from './classify.js';
import { recipientTrouble } from './envelope-commands.js';

export class Transaction {
  #delivery: Delivery | undefined;
  #results: (RecipientResult | undefined)[] = [];
  #open = 0;
  #accepted = 0;
  /** Position whose RCPT reply comes next; -1 when all have come. */
  #awaited = -1;
  /** MAIL was refused: every RCPT reply that still comes means this. */
  mailRefusal: RecipientResult | undefined;
  /** Something of it needs SMTPUTF8, which the peer offers. */
  isUtf8 = false;

  get delivery(): Delivery | undefined { return this.#delivery; }
  get openCount(): number { return this.#open; }
  get acceptedCount(): number { return this.#accepted; }
  /** Nobody has a result yet. */
  get isWhole(): boolean { return this.#open === this.#results.length; }
  get awaited(): number { return this.#awaited; }

  begin(delivery: Delivery): void {
    const count = delivery.pending.length;
    invariant(this.#delivery === undefined, 'one transaction at a time');
    invariant(count > 0, 'a delivery has someone to deliver to');
    this.#delivery = delivery;
    // Given away with settle: a new one each time.
    this.#results = new Array<RecipientResult | undefined>(count).fill(undefined);
    this.#open = count;
    this.#accepted = 0;
    this.#awaited = 0;
    this.mailRefusal = undefined;
  }

  current(): Delivery {
    invariant(this.#delivery !== undefined, 'a transaction is under way');
    return this.#delivery;
  }

  recipient(position: number): Recipient {
    const delivery = this.current();
    const recipient = delivery.envelope.recipients[delivery.pending[position] ?? -1];
    invariant(recipient !== undefined, 'pending recipients are in the envelope');
    return recipient;
  }

  /** Settles those whose address can't be sent to this peer; RCPT begins with the first of the others. */
  resolveUnsendable(peer: Capabilities, relay: string): void {
    const delivery = this.current();
    for (let i = 0; i < delivery.pending.length; i++) {
      const trouble = recipientTrouble(this.recipient(i), peer);
      if (trouble === undefined) continue;
      const text = trouble === Trouble.UTF8
        ? `address needs SMTPUTF8, which ${relay} does not offer`
        : 'the address holds characters that can not be sent';
      this.#resolve(i, classifyTrouble(trouble, text));
    }
    this.#awaited = this.nextToName(0);
  }

  /** The first open position at or after `from`, or -1. Of use before MAIL is answered. */
  nextToName(from: number): number {
    for (let i = from; i < this.#results.length; i++) if (this.#results[i] === undefined) return i;
    return -1;
  }

  /** The RCPT awaited was accepted; after a refused MAIL that counts for nothing. */
  accept(): void {
    if (this.mailRefusal !== undefined) return this.refuse(this.mailRefusal);
    this.#accepted++;
    this.#awaited = this.nextToName(this.#awaited + 1);
  }

  /** The RCPT awaited was refused. */
  refuse(result: RecipientResult): void {
    this.#resolve(this.#awaited, this.mailRefusal ?? result);
    this.#awaited = this.nextToName(this.#awaited + 1);
  }

  /** The first open recipient gets `result`. */
  resolveNext(result: RecipientResult): void {
    const next = this.nextToName(0);
    invariant(next >= 0, 'a reply after the dot belongs to an accepted recipient');
    this.#resolve(next, result);
  }

  /** Everyone still open gets `result`. */
  resolveOpen(result: RecipientResult): void {
    if (this.#open === 0) return;
    for (let i = 0; i < this.#results.length; i++) {
      if (this.#results[i] === undefined) this.#resolve(i, result);
    }
  }

  /** Ends the transaction; its results when all are there. */
  end(): readonly RecipientResult[] {
    const results = this.#results;
    this.#delivery = undefined;
    this.#results = [];
    return results as RecipientResult[];
  }

  #resolve(position: number, result: RecipientResult): void {
    invariant(this.#results[position] === undefined, 'a recipient gets one result');
    this.#results[position] = result;
    this.#open--;
  }
}
