/**
 * Looks at a list in parts, one a tick, so that a tick stays short however long the list has grown: of a
 * short list all with each tick, of a long one the next part, and from the beginning again when its end was
 * reached.
 *
 *   list   a b c . d e f …      holes are passed over; what comes or goes meanwhile is met in this round
 *          └─ part ─┘└─ next part     or the next
 */
export class Round<T> {
  readonly #partMax: number;
  readonly #part: T[] = [];
  #at = 0;

  constructor(options: { readonly partMax: number }) {
    this.#partMax = options.partMax;
  }

  /** Valid until the next call. */
  next(list: readonly (T | undefined)[]): readonly T[] {
    const part = this.#part;
    part.length = 0;
    for (; this.#at < list.length && part.length < this.#partMax; this.#at++) {
      const one = list[this.#at];
      if (one !== undefined) part.push(one);
    }
    if (this.#at >= list.length) this.#at = 0;
    return part;
  }
}
