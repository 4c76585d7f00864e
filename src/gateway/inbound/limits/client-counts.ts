/**
 * How many connections each client has open at a listener. An IPv6 client owns a whole /64 and could use a
 * fresh address for each connection, so addresses of one /64 count together (RFC 7934 section 6 is why hosts
 * have so many).
 *
 * Held across the workers of a gateway: once a second each tells the others what it has open. So a limit may
 * be passed by what the other workers let in within that second. What a worker told last counts until it
 * tells more, or for FRESH_MS: one that has died tells nothing more.
 *
 * Owns one small entry a connected client; none is left when the client has gone. Pure.
 */
import type { Counted } from './sliding-counts.js';

/** Clients of a worker in one report: those with most. */
const TOLD_MAX = 5_000;
const FRESH_MS = 5_000;

/** What one worker has open, by listener, in the order of the configuration. */
export interface OpenReport {
  readonly worker: string;
  readonly listeners: readonly (readonly Counted[])[];
}

interface Told {
  readonly counts: ReadonlyMap<string, number>;
  readonly atMs: number;
}

export class ClientCounts {
  readonly #countOf = new Map<string, number>();
  /** By worker. */
  readonly #elsewhere = new Map<string, Told>();

  /** Counts one more connection; the number open now, at all workers. */
  open(key: string, nowMs: number): number {
    let count = (this.#countOf.get(key) ?? 0) + 1;
    this.#countOf.set(key, count);
    for (const { counts, atMs } of this.#elsewhere.values()) {
      if (nowMs - atMs < FRESH_MS) count += counts.get(key) ?? 0;
    }
    return count;
  }

  /** Open here: for the other workers. */
  report(): readonly Counted[] {
    const counted = [...this.#countOf];
    return counted.length <= TOLD_MAX ? counted : counted.sort((a, b) => b[1] - a[1]).slice(0, TOLD_MAX);
  }

  /** Another worker told it. */
  onReport(worker: string, counted: readonly Counted[], nowMs: number): void {
    this.#elsewhere.set(worker, { counts: new Map(counted), atMs: nowMs });
  }

  close(key: string): void {
    const count = (this.#countOf.get(key) ?? 0) - 1;
    if (count > 0) this.#countOf.set(key, count);
    else this.#countOf.delete(key);
  }
}

/** What counts as one client: an IPv4 address, or the first 64 bits of an IPv6 address. */
export function clientKey(address: string): string {
  if (!address.includes(':')) return address;
  const bare = address.replace(/%.*$/, '').toLowerCase();
  const gap = bare.indexOf('::');
  const head = (gap < 0 ? bare : bare.slice(0, gap)).split(':').filter((group) => group !== '');
  const tail = (gap < 0 ? '' : bare.slice(gap + 2)).split(':').filter((group) => group !== '');
  // A dotted IPv4 tail stands for two groups; it lies behind the first 64 bits, only its length matters.
  const tailGroups = tail.length + (tail.at(-1)?.includes('.') === true ? 1 : 0);
  const zeros = gap < 0 ? 0 : Math.max(0, 8 - head.length - tailGroups);
  const groups = [...head, ...new Array<string>(zeros).fill('0'), ...tail];
  return groups.slice(0, 4).map((group) => Number.parseInt(group, 16).toString(16)).join(':') + '::/64';
}

/** /24 of IPv4, /48 of IPv6. */
export function networkKey(address: string): string {
  const key = clientKey(address);
  if (!key.includes(':')) return `${key.slice(0, key.lastIndexOf('.'))}.0/24`;
  return `${key.split(':').slice(0, 3).join(':')}::/48`;
}
