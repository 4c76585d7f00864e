/** What others can bring about again and again is told once in so long: who sends could write the log. */
export class OnceInAWhile {
  readonly #everyMs: number;
  #lastMs = -Infinity;

  constructor(everyMs: number) {
    this.#everyMs = everyMs;
  }

  /** Whether it is to be told now; then it counts as told. */
  isDue(nowMs: number): boolean {
    if (nowMs - this.#lastMs < this.#everyMs) return false;
    this.#lastMs = nowMs;
    return true;
  }
}
