/**
 * Who is not let in, for the store's log: a gateway that is told "no" is mostly one that the configuration
 * forgot, and the store alone can say which half of it is wrong without telling an asker which names exist.
 *
 * Anybody who can connect can bring this about under any name: one line for each name in EVERY_MS, and names
 * beyond NAMES_MAX in that time have none. Connections that end before anybody was let in, of a scanner of
 * ports or of a gateway with a wrong secret that tries again and again, have a line in CLOSES_EVERY_MS.
 */
import { OnceInAWhile } from '../../base/once-in-a-while.js';

const EVERY_MS = 600_000;
const NAMES_MAX = 32;
const CLOSES_EVERY_MS = 10_000;

export class Strangers {
  readonly #told = new Map<string, OnceInAWhile>();
  #sinceMs = -Infinity;
  readonly #closes = new OnceInAWhile(CLOSES_EVERY_MS);
  #untold = 0;

  /** Whether it is to be told that this one is not let in. */
  isNews(gatewayId: string, nowMs: number): boolean {
    if (nowMs - this.#sinceMs >= EVERY_MS && this.#told.size >= NAMES_MAX) this.#told.clear();
    if (this.#told.size === 0) this.#sinceMs = nowMs;
    let told = this.#told.get(gatewayId);
    if (told === undefined) {
      if (this.#told.size >= NAMES_MAX) return false;
      told = new OnceInAWhile(EVERY_MS);
      this.#told.set(gatewayId, told);
    }
    return told.isDue(nowMs);
  }

  /** How many that were not let in ended since the last line of one; undefined: this one has none either. */
  untoldCloses(nowMs: number): number | undefined {
    if (!this.#closes.isDue(nowMs)) {
      this.#untold += 1;
      return undefined;
    }
    const untold = this.#untold;
    this.#untold = 0;
    return untold;
  }

  /** It was let in: what comes later is news. */
  forget(gatewayId: string): void {
    this.#told.delete(gatewayId);
  }
}
