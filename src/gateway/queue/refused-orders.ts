/**
 * Messages that an operator wanted to hold or delete while they were being delivered. Where that takes long,
 * recipient by recipient (outbound/cut-delivery.ts), the message rests when the attempt would go on
 * (settlement.ts): who asks again then finds it. Lost with the process, as the refusal itself. Pure.
 */

/** Who was refused asks again by then. */
const KNOWN_MS = 120_000;
const KNOWN_MAX = 1000;

/** So long it rests. */
export const REFUSED_REST_MS = 60_000;

export class RefusedOrders {
  /** By message id, in the order of time. */
  readonly #atMs = new Map<number, number>();

  note(messageId: number, nowMs: number): void {
    this.#atMs.delete(messageId);
    this.#atMs.set(messageId, nowMs);
    if (this.#atMs.size <= KNOWN_MAX) return;
    const [oldest] = this.#atMs.keys();
    if (oldest !== undefined) this.#atMs.delete(oldest);
  }

  isAwaited(messageId: number, nowMs: number): boolean {
    return nowMs - (this.#atMs.get(messageId) ?? -Infinity) < KNOWN_MS;
  }
}
