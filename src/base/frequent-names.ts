/**
 * The names that come most often, in bounded memory, however many different ones there are (Misra and Gries:
 * when the table is full, a new name takes one off each). A count is never too high, and too low by at most
 * what was noted / (namesMax + 1). Pure.
 */

export class FrequentNames {
  readonly #counts = new Map<string, number>();
  readonly #namesMax: number;

  constructor(namesMax: number) {
    this.#namesMax = namesMax;
  }

  note(name: string): void {
    const count = this.#counts.get(name);
    if (count !== undefined) this.#counts.set(name, count + 1);
    else if (this.#counts.size < this.#namesMax) this.#counts.set(name, 1);
    else this.#takeOneOffEach();
  }

  /** Of a name that is not known any more, 0. */
  countOf(name: string): number {
    return this.#counts.get(name) ?? 0;
  }

  names(): IterableIterator<string> {
    return this.#counts.keys();
  }

  /** Paid for by those who noted what is taken off. */
  #takeOneOffEach(): void {
    for (const [name, count] of this.#counts) {
      if (count === 1) this.#counts.delete(name);
      else this.#counts.set(name, count - 1);
    }
  }
}
