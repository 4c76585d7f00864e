/**
 * Hosts that did not do what was tried, so that it is not tried at each connection to them: for an hour, then
 * again. One memory of hosts whose TLS did not come up where a route has `tls: may`, and which are spoken to
 * in clear meanwhile, with what went wrong; one of hosts that do not bear an envelope behind a dot (RFC 2920
 * 3.1); one of hosts that took a content too slowly, for what is told of them; one of addresses of hosts that
 * routes name, which are tried behind others.
 *
 * Of all pools of a dispatcher, for a pool ends when nobody uses it. Bounded: the oldest is forgotten first,
 * which costs one more try. Times are session time (dispatcher.ts).
 */

const REMEMBERED_MS = 3_600_000;
const HOSTS_MAX = 10_000;

export interface Remembered {
  /** Session time until which it is not tried. */
  readonly untilMs: number;
  /** What went wrong. */
  readonly why: string;
}

/** For operators: why mail goes to a host in clear now. */
export interface LostTls {
  readonly why: string;
  readonly untilWallMs: number;
}

export class HostMemory {
  /** In the order in which they were noted. */
  readonly #hosts = new Map<string, Remembered>();

  /** It was tried, and failed. */
  note(host: string, port: number, nowMs: number, why: string): void {
    const key = keyOf(host, port);
    this.#hosts.delete(key);
    this.#hosts.set(key, { untilMs: nowMs + REMEMBERED_MS, why });
    if (this.#hosts.size <= HOSTS_MAX) return;
    for (const oldest of this.#hosts.keys()) {
      this.#hosts.delete(oldest);
      return;
    }
  }

  /** It is to be tried again. */
  forget(host: string, port: number): void {
    this.#hosts.delete(keyOf(host, port));
  }

  has(host: string, port: number, nowMs: number): boolean {
    return this.known(host, port, nowMs) !== undefined;
  }

  /** While it is not tried. */
  known(host: string, port: number, nowMs: number): Remembered | undefined {
    if (this.#hosts.size === 0) return undefined;
    const key = keyOf(host, port);
    const known = this.#hosts.get(key);
    if (known === undefined) return undefined;
    if (nowMs < known.untilMs) return known;
    this.#hosts.delete(key);
    return undefined;
  }
}

function keyOf(host: string, port: number): string {
  return `${host} ${String(port)}`;
}
