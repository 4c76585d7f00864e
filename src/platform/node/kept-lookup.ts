/**
 * Addresses of stores, and of the endpoints of etcd, by name. Unlike a next hop, one that can't be reached
 * costs copies of mail, partitions, and in the end the port: so what was ever found is connected to as it was
 * found last, whatever the resolvers do now. Which store answers there is seen in the handshake.
 *
 *   wanted ─► the system is asked, once for all who want it ─ answered ─► told, and kept
 *     └─ KNOWN_AFTER_MS/told what is kept                   └ nobody could tell ─► told what is kept
 *
 * Attempts are given up after two seconds (`failover_timeout`; etcd-line.ts), less than one silent resolver
 * takes. The lookup goes on, the next attempt waits for the same one, and none of them stand in libuv's line.
 */
import type { LookupAddress, LookupOptions } from 'node:dns';
import { isIP } from 'node:net';
import type { LookupFunction } from 'node:net';
import type { HostAddresses, LookUpHost } from '../resolver.js';

/** A resolver nearby answers sooner: a store that has moved is found where it is. */
const KNOWN_AFTER_MS = 250;

export class KeptLookups {
  readonly #look: LookUpHost;
  /** By name; no more than the configuration and stores have said. */
  readonly #known = new Map<string, HostAddresses>();
  readonly #asked = new Map<string, Promise<HostAddresses>>();

  constructor(look: LookUpHost) {
    this.#look = look;
  }

  /** As net.connect() takes it. */
  readonly lookup: LookupFunction = (host, options, done) => {
    let isTold = false;
    const tell = (found: HostAddresses): void => {
      if (isTold) return;
      isTold = true;
      clearTimeout(timer);
      answer(found, options, done);
    };
    const known = this.#known.get(host);
    const timer = known === undefined ? undefined : setTimeout(tell, KNOWN_AFTER_MS, known);
    void this.#ask(host).then(tell);
  };

  #ask(host: string): Promise<HostAddresses> {
    const before = this.#asked.get(host);
    if (before !== undefined) return before;
    const asked = this.#look(host).then((found) => {
      this.#asked.delete(host);
      if (found.isFailed) return this.#known.get(host) ?? found;
      if (found.addresses.length > 0) this.#known.set(host, found);
      else this.#known.delete(host);
      return found;
    });
    this.#asked.set(host, asked);
    return asked;
  }
}

function answer(
  { addresses, why }: HostAddresses, { all }: LookupOptions, done: Parameters<LookupFunction>[2],
): void {
  const [first, ...others] = addresses.map((address): LookupAddress => ({ address, family: isIP(address) }));
  if (first === undefined) done(new Error(why), '');
  else if (all === true) done(null, [first, ...others]);
  else done(null, first.address, first.family);
}
