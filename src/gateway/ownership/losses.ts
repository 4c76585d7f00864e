/**
 * Partitions that began empty in this process, because every copy was lost or given up: which, when, and by
 * whose order. For status, which shows them until the process ends: what was lost stays lost. Pure.
 */

/** An operator, and why. */
export interface OrderedBy {
  readonly who: string;
  readonly reason: string;
}

export interface Loss {
  readonly partition: string;
  readonly wallMs: number;
  /** Undefined: nobody ordered it; every store that had a copy came back without it. */
  readonly by: OrderedBy | undefined;
}

/** Older ones are in the log. */
const KEPT_MAX = 64;

export class Losses {
  /** The last ones, in the order in which they came. */
  readonly #kept: Loss[] = [];

  began(loss: Loss): void {
    if (this.#kept.length === KEPT_MAX) this.#kept.shift();
    this.#kept.push(loss);
  }

  get last(): readonly Loss[] {
    return this.#kept;
  }
}
