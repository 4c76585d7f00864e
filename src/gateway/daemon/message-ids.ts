/**
 * Message ids: no two processes of a group draw the same one, whatever their clocks do.
 *
 *   id = ordinal × 2^29 + count        count = 0, 1, …, 2^29 − 1        ordinal from 1 to 2^24 − 1
 *
 * An ordinal belongs to one process of one gateway for ever. Whoever draws ordinals gives each to nobody else
 * in the group and to no later process. A process that has used all ids of one (536 million, 15 hours at
 * 10,000 messages a second) draws another, at once: who has to ask for it elsewhere keeps one in hand. 2^24
 * ordinals are some 46 years for 100 gateways that each start or use one up ten times a day.
 *
 * Below 2^53, so that ids are safe integers; people see them as 11 characters (base/text-id.ts).
 */
import { invariant } from '../../base/invariant.js';

export const IDS_PER_ORDINAL = 2 ** 29;
export const ORDINAL_MAX = 2 ** 24 - 1;

export class MessageIds {
  readonly #countMax: number;
  readonly #drawOrdinal: () => number;
  #next = 0;
  #end = 0;

  /** `countMax`: ids taken of one ordinal, at most IDS_PER_ORDINAL. */
  constructor(options: { readonly countMax: number }, ports: { readonly drawOrdinal: () => number }) {
    this.#countMax = options.countMax;
    this.#drawOrdinal = ports.drawOrdinal;
  }

  next(): number {
    if (this.#next === this.#end) this.#begin(this.#drawOrdinal());
    const id = this.#next;
    this.#next += 1;
    return id;
  }

  #begin(ordinal: number): void {
    const isOne = Number.isInteger(ordinal) && ordinal > 0 && ordinal <= ORDINAL_MAX;
    invariant(isOne, 'an ordinal is a whole number from 1 to 2^24 − 1');
    this.#next = ordinal * IDS_PER_ORDINAL;
    this.#end = this.#next + this.#countMax;
  }
}
