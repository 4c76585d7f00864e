/**
 * The digests a copy had at its last numbers: a repeated section is compared at the number it ends at
 * (docs/PROTOCOL.md "Applying a section"), so a repeat that differs is noticed however the sender cut its
 * sections the second time.
 *
 *   number n stands at (n mod HISTORY): a, b;   known: base ≤ n ≤ last, last - n < HISTORY
 *
 * Not here: the changes themselves (applied-changes.ts).
 */

/** 8 bytes each: 8 KiB for a copy in use. More than a window of 8 MiB holds of messages of 8 KB. */
const HISTORY = 1024;

export class DigestHistory {
  #digests = new Uint32Array(0);
  #base = 0;
  #last = 0;

  /** Forgets everything but this number. */
  restart(number: number, a: number, b: number): void {
    this.#base = number;
    this.#last = number - 1;
    if (number === 0 && a === 0 && b === 0) {
      // A copy that never changes costs no ring: number 0 is (0, 0) by definition.
      this.#last = 0;
      this.#digests.fill(0, 0, 2);
      return;
    }
    this.push(a, b);
  }

  /** The digest after the next number. */
  push(a: number, b: number): void {
    if (this.#digests.length === 0) this.#digests = new Uint32Array(2 * HISTORY);
    this.#last += 1;
    const at = 2 * (this.#last % HISTORY);
    this.#digests[at] = a;
    this.#digests[at + 1] = b;
  }

  /** Takes numbers above `last` back, after a section was refused. What they overwrote is known no more. */
  truncate(last: number): void {
    this.#base = Math.max(this.#base, Math.min(last + 1, this.#last - HISTORY + 1));
    this.#last = last;
  }

  knows(number: number): boolean {
    return number >= this.#base && number <= this.#last && this.#last - number < HISTORY;
  }

  matches(number: number, a: number, b: number): boolean {
    const at = 2 * (number % HISTORY);
    return (this.#digests[at] ?? 0) === a && (this.#digests[at + 1] ?? 0) === b;
  }
}
