/**
 * How many connections each client has open. An IPv6 client owns a whole /64 and could use a fresh address
 * for each connection, so addresses of one /64 count together (RFC 7934 section 6 is why hosts have so many).
 *
 * Owns one small entry a connected client; none is left when the client has gone.
 */

export class ClientCounts {
  readonly #countOf = new Map<string, number>();

  /** Counts one more connection; the number open now. */
  open(key: string): number {
    const count = (this.#countOf.get(key) ?? 0) + 1;
    this.#countOf.set(key, count);
    return count;
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
