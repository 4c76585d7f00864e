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
import type { BlocklistMeter } from '../../observability/reception-metrics.js';
import type { Blocked, BlocklistPort } from './options.js';
import type { Clock, EventLog } from '../../platform/ports.js';
import type { DnsAnswer, Resolver } from '../../platform/resolver.js';

/** Clients asked about at a time: more are taken as they are. */
const ASKED_MAX = 2000;
const TOLD_EVERY_MS = 60_000;
const NO_ANSWER = '127.255.255.';
const NOT_ASKED = `more than ${String(ASKED_MAX)} clients are being asked about`;

export interface BlocklistPorts {
  readonly resolver: Resolver;
  readonly clock: Clock;
  readonly log: EventLog;
  readonly meter: BlocklistMeter;
}

/** What an answer says of a client: on which grounds it is listed, that it is not, or why nobody knows. */
export type ListAnswer =
  | { readonly kind: 'listed'; readonly code: string }
  | { readonly kind: 'clear' }
  | { readonly kind: 'refused' | 'failed'; readonly why: string };

export class Blocklists implements BlocklistPort {
  readonly #ports: BlocklistPorts;
  /** By list: one that fails must not hide another. */
  readonly #telling = new Map<string, OnceInAWhile>();
  #asked = 0;

  constructor(ports: BlocklistPorts) {
    this.#ports = ports;
  }

  look(address: string, lists: readonly string[], done: (blocked: Blocked | '') => void): void {
    if (!ipaddr.isValid(address) || lists.length === 0) return done('');
    if (this.#asked >= ASKED_MAX) {
      for (const list of lists) {
        this.#ports.meter.answered(list, 'unasked');
        this.#tell(list, NOT_ASKED);
      }
      return done('');
    }
    this.#asked++;
    const reversed = reversedAddress(address);
    let open = lists.length;
    let listing: Blocked | '' = '';
    // Of several, the first in the configuration is named, whichever answered first.
    let listingAt = lists.length;
    for (const [at, list] of lists.entries()) {
      this.#ports.resolver.ask(`${reversed}.${list}`, 'A', (answer) => {
        const said = listAnswer(answer);
        this.#ports.meter.answered(list, said.kind);
        if (said.kind === 'refused' || said.kind === 'failed') this.#tell(list, said.why);
        if (said.kind === 'listed' && at < listingAt) {
          listing = { list, code: said.code };
          listingAt = at;
        }
        open--;
        if (open > 0) return;
        this.#asked--;
        done(listing);
      });
    }
  }

  #tell(list: string, why: string): void {
    const telling = this.#telling.get(list) ?? new OnceInAWhile(TOLD_EVERY_MS);
    this.#telling.set(list, telling);
    if (!telling.isDue(this.#ports.clock.nowMs())) return;
    const text = 'a DNS blocklist can\'t be asked; clients are taken as if they were not on it';
    this.#ports.log.error('blocklist', text, { list, why });
  }
}

export function listAnswer(answer: DnsAnswer<'A'>): ListAnswer {
  if (answer.kind === 'failed') return { kind: 'failed', why: answer.why };
  if (answer.kind !== 'found') return { kind: 'clear' };
  const { records } = answer;
  const code = records.find((each) => each.startsWith('127.') && !each.startsWith(NO_ANSWER));
  if (code !== undefined) return { kind: 'listed', code };
  return { kind: 'refused', why: `it answered ${records.join(', ')}` };
}
