/**
 * Next hops whose TLS did not come up though they offer it, where a route has `tls: may`: for an hour they
 * are spoken to in clear, so that not each connection to them fails once. Then TLS is tried again.
 *
 * Of all pools of a dispatcher, for a pool ends when nobody uses it. Bounded: the oldest is forgotten first,
 * which costs a failed connection. Times are session time (dispatcher.ts). Routes that must have TLS never
 * ask here (connection-pool.ts).
 */

const REMEMBERED_MS = 3_600_000;
const HOSTS_MAX = 10_000;

export class TlsMemory {
  /** Session time until which the host is spoken to in clear; in the order in which they were noted. */
  readonly #untilMs = new Map<string, number>();

  /** Its TLS has failed. */
  note(host: string, port: number, nowMs: number): void {
    const key = keyOf(host, port);
    this.#untilMs.delete(key);
    this.#untilMs.set(key, nowMs + REMEMBERED_MS);
    if (this.#untilMs.size <= HOSTS_MAX) return;
    for (const oldest of this.#untilMs.keys()) {
      this.#untilMs.delete(oldest);
      return;
    }
  }

  hasFailed(host: string, port: number, nowMs: number): boolean {
    if (this.#untilMs.size === 0) return false;
    const key = keyOf(host, port);
    const untilMs = this.#untilMs.get(key);
    if (untilMs === undefined) return false;
    if (nowMs < untilMs) return true;
    this.#untilMs.delete(key);
    return false;
  }
}

function keyOf(host: string, port: number): string {
  return `${host} ${String(port)}`;
}
