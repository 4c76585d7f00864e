/**
 * Work that comes in bursts gets a share of each turn of the event loop: what does not fit goes on in the
 * next turns, in its order, and whatever else the loop has to do lies between.
 */

/** Also of what takes longer by itself one is done in each turn. */
const SHARE_MS = 5;

export class TurnShare {
  readonly #waiting: (() => void)[] = [];
  #spentMs = 0;
  #isRunning = false;
  #nextTurn: NodeJS.Immediate | undefined;

  /** At once, if this turn has room for it. */
  run(work: () => void): void {
    this.#waiting.push(work);
    // One piece of work may bring about another.
    if (!this.#isRunning) this.#goOn();
  }

  /** What it gives, or throws, when a turn has had room for it. */
  resultOf<T>(work: () => T): Promise<T> {
    return new Promise((resolve, reject) => {
      this.run(() => {
        try {
          resolve(work());
        } catch (error) {
          reject(error as Error);
        }
      });
    });
  }

  #goOn(): void {
    this.#isRunning = true;
    try {
      while (this.#spentMs < SHARE_MS) {
        const work = this.#waiting.shift();
        if (work === undefined) break;
        const sinceMs = performance.now();
        work();
        this.#spentMs += performance.now() - sinceMs;
      }
    } finally {
      // Also where it has thrown: what others have given is done all the same.
      this.#isRunning = false;
      this.#nextTurn ??= setImmediate(() => {
        this.#nextTurn = undefined;
        this.#spentMs = 0;
        if (this.#waiting.length > 0) this.#goOn();
      });
    }
  }
}
