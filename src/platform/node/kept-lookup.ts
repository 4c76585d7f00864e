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
 * One that does not come back within STUCK_AFTER_MS may never do so: then the next attempt asks anew.
 */
import type { LookupAddress, LookupOptions } from 'node:dns';
import { isIP } from 'node:net';
import type { LookupFunction } from 'node:net';
import type { HostAddresses, LookUpHost } from '../resolver.js';

/** A resolver nearby answers sooner: a store that has moved is found where it is. */
const KNOWN_AFTER_MS = 250;
/** Three silent resolvers cost 30 s, 5 s each and asked twice: what takes twice that is no matter of them. */
const STUCK_AFTER_MS = 60_000;
/** Each keeps one of the two threads that libuv has for this: the other is all that there is for the rest. */
const LEFT_MAX = 1;

interface Asked {
  readonly found: Promise<HostAddresses>;
  isStuck: boolean;
}

export class KeptLookups {
  readonly #look: LookUpHost;
  /** By name; no more than the configuration and stores have said. */
  readonly #known = new Map<string, HostAddresses>();
  readonly #asked = new Map<string, Asked>();
  /** Lookups that were stuck, and whose names were asked for anew. */
  #left = 0;

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
    if (before !== undefined) {
      if (!before.isStuck || this.#left >= LEFT_MAX) return before.found;
      this.#left += 1;
    }
    const bound = setTimeout(() => { asked.isStuck = true; }, STUCK_AFTER_MS).unref();
    const found = this.#look(host).then((told) => {
      clearTimeout(bound);
      return this.#onFound(host, asked, told);
    });
    const asked: Asked = { found, isStuck: false };
    this.#asked.set(host, asked);
    return found;
  }

  #onFound(host: string, asked: Asked, found: HostAddresses): HostAddresses {
    if (this.#asked.get(host) !== asked) {
      // What was asked for later knows better.
      this.#left -= 1;
      return found;
    }
    this.#asked.delete(host);
    if (found.isFailed) return this.#known.get(host) ?? found;
    if (found.addresses.length > 0) this.#known.set(host, found);
    else this.#known.delete(host);
    return found;
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
