/**
 * Hosts that did not do what was tried, so that it is not tried at each connection to them: for an hour, then
 * again. One memory of hosts whose TLS did not come up where a route has `tls: may`, and which are spoken to
 * in clear meanwhile; one of hosts that do not bear an envelope behind a dot (RFC 2920 3.1); one of hosts
 * that took a content too slowly, for what is told of them.
 *
 * Of all pools of a dispatcher, for a pool ends when nobody uses it. Bounded: the oldest is forgotten first,
 * which costs one more try. Times are session time (dispatcher.ts).
 */

const REMEMBERED_MS = 3_600_000;
const HOSTS_MAX = 10_000;

export class HostMemory {
  /** Session time until which it is not tried; in the order in which they were noted. */
  readonly #untilMs = new Map<string, number>();

  /** It was tried, and failed. */
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

  has(host: string, port: number, nowMs: number): boolean {
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
