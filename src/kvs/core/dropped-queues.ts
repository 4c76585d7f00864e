/**
 * Queues that this store dropped after somebody had claimed them: their founder may not know. It may have sent the OPEN
 * that names the first members, and never have read an answer; repeated now, that OPEN would make it a mirror of
 * a queue which another process has carried on elsewhere, and both would deliver.
 *
 * So the founding OPEN of such a queue is refused for as long as the store runs (after a restart the gateway sees
 * another boot, and repeats nothing). An OPEN that only prepares a refill has no such power, and is taken.
 *
 * Bounded: the oldest are forgotten. One stands for a queue taken over and moved away, which is rare.
 */

const DROPPED_MAX = 65_536;

export class DroppedQueues {
  /** Identities, oldest first. */
  readonly #identities = new Set<string>();

  add(identity: string): void {
    this.#identities.add(identity);
    if (this.#identities.size <= DROPPED_MAX) return;
    for (const oldest of this.#identities) {
      this.#identities.delete(oldest);
      return;
    }
  }

  has(identity: string): boolean {
    return this.#identities.has(identity);
  }
}
