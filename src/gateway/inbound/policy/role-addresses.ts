/**
 * Addresses that every mail server has readers for, whoever writes and whatever a table says of them:
 * postmaster without a domain, at our own name, at domains of reverse-paths that are made here and at every
 * domain that we relay for (RFC 5321 4.5.1), and
 * abuse at the same (RFC 2142 4). An operator says who reads them; else they go where their domain leads.
 */
import { withoutNeedlessQuotes } from '../../../base/needless-quotes.js';
import type { InboundOptions, MadeAddresses } from '../options.js';
import type { Path } from '../../../smtp/address.js';
import type { RelayPolicy } from './relay-policy.js';

/** Where a recipient goes: the address as next hops get it, its domain as routes know it. */
export interface Destination {
  readonly address: string;
  readonly domain: string;
}

const LOWER_CASE = 0x20;
const LETTER_A = 0x61;
const LETTER_P = 0x70;

export class RoleAddresses {
  readonly #hostName: string;
  readonly #hostDomain: string;
  readonly #readers: Destination | undefined;
  readonly #policy: RelayPolicy;
  readonly #made: Pick<MadeAddresses, 'domains'>;

  constructor(
    options: Pick<InboundOptions, 'hostName' | 'postmaster'>, policy: RelayPolicy,
    made: Pick<MadeAddresses, 'domains'>,
  ) {
    const { hostName, postmaster } = options;
    this.#made = made;
    this.#hostName = hostName;
    this.#hostDomain = hostName.toLowerCase();
    this.#policy = policy;
    if (postmaster === '') return;
    this.#readers = { address: postmaster, domain: postmaster.slice(postmaster.lastIndexOf('@') + 1) };
  }

  /** Where such an address goes; undefined for any other. */
  destinationOf({ address: written, domain }: Path): Destination | undefined {
    const address = withoutNeedlessQuotes(written);
    // Nearly no recipient begins so.
    const first = address.charCodeAt(0) | LOWER_CASE;
    if (first !== LETTER_P && first !== LETTER_A) return undefined;
    const local = (domain === '' ? address : address.slice(0, address.lastIndexOf('@'))).toLowerCase();
    if (local !== 'postmaster' && local !== 'abuse') return undefined;
    const isOurs = domain === '' || domain === this.#hostDomain || this.#made.domains.includes(domain);
    if (!isOurs && !this.#policy.isRelayDomain(domain)) return undefined;
    if (this.#readers !== undefined) return this.#readers;
    if (domain !== '') return { address, domain };
    return { address: `${address}@${this.#hostName}`, domain: this.#hostDomain };
  }
}
