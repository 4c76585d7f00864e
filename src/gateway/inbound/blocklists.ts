/**
 * Asks DNS blocklists (RFC 5782) about clients that nobody knows. A list answers with an address out of
 * 127.0.0.0/8 for who is on it; out of 127.255.255.0/24 when it will not say, for it was asked through a
 * resolver of everybody's or too often: that is no listing. What can't be asked is no listing either: mail
 * comes in, and the log tells. How long an answer holds is said by the list (its TTL).
 *
 *   192.0.2.7 ─► 7.2.0.192.zen.example.org ─► 127.0.0.2: listed;  none: not;  127.255.255.254: told
 */
import ipaddr from 'ipaddr.js';
import { reversedAddress } from '../../base/reversed-address.js';
import { OnceInAWhile } from '../../base/once-in-a-while.js';
import type { BlocklistPort } from './options.js';
import type { Clock, EventLog } from '../../platform/ports.js';
import type { DnsAnswer, Resolver } from '../../platform/resolver.js';

/** Clients asked about at a time: more are taken as they are. */
const ASKED_MAX = 2000;
const TOLD_EVERY_MS = 60_000;
const NO_ANSWER = '127.255.255.';

export interface BlocklistPorts {
  readonly resolver: Resolver;
  readonly clock: Clock;
  readonly log: EventLog;
}

export class Blocklists implements BlocklistPort {
  readonly #ports: BlocklistPorts;
  readonly #telling = new OnceInAWhile(TOLD_EVERY_MS);
  #asked = 0;

  constructor(ports: BlocklistPorts) {
    this.#ports = ports;
  }

  look(address: string, lists: readonly string[], done: (list: string) => void): void {
    if (this.#asked >= ASKED_MAX || !ipaddr.isValid(address) || lists.length === 0) return done('');
    this.#asked++;
    const reversed = reversedAddress(address);
    let open = lists.length;
    let listing = '';
    // Of several, the first in the configuration is named, whichever answered first.
    let listingAt = lists.length;
    for (const [at, list] of lists.entries()) {
      this.#ports.resolver.ask(`${reversed}.${list}`, 'A', (answer) => {
        if (at < listingAt && this.#isListing(list, answer)) {
          listing = list;
          listingAt = at;
        }
        open--;
        if (open > 0) return;
        this.#asked--;
        done(listing);
      });
    }
  }

  #isListing(list: string, answer: DnsAnswer<'A'>): boolean {
    if (answer.kind === 'found') {
      if (answer.records.some((each) => each.startsWith('127.') && !each.startsWith(NO_ANSWER))) return true;
      this.#tell(list, `it answered ${answer.records.join(', ')}`);
    } else if (answer.kind === 'failed') this.#tell(list, answer.why);
    return false;
  }

  #tell(list: string, why: string): void {
    if (!this.#telling.isDue(this.#ports.clock.nowMs())) return;
    const text = 'a DNS blocklist can\'t be asked; clients are taken as if they were not on it';
    this.#ports.log.error('blocklist', text, { list, why });
  }
}
