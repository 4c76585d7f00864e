/**
 * Who may send where: a client inside the configured networks may send anywhere there is a route; everyone
 * else only to the relay domains (the domains this gateway takes mail for). An open relay needs an operator
 * who lists 0.0.0.0/0 by hand.
 *
 * A relay domain "example.com" covers itself only, ".example.com" its subdomains.
 * NetworkList are CIDR notation; an address without a length is that one address.
 */

import type { ToAscii } from '../../../platform/ports.js';
import { normalizeDomain } from '../../../smtp/address.js';
import { NetworkList } from './network-list.js';

export interface RelayRules {
  readonly networks: readonly string[];
  readonly domains: readonly string[];
}

export class RelayPolicy {
  readonly #networks: NetworkList;
  readonly #domains = new Set<string>();
  readonly #parents = new Set<string>();

  /** Throws on a rule that is none: configuration is checked before a port opens. */
  constructor(rules: RelayRules, toAscii: ToAscii) {
    this.#networks = new NetworkList(rules.networks, 'relay networks');
    for (const domain of rules.domains) this.#addDomain(domain, toAscii);
  }

  isTrusted(address: string): boolean {
    return this.#networks.has(address);
  }

  /** `domain` is lower-case A-labels. */
  isRelayDomain(domain: string): boolean {
    if (this.#domains.has(domain)) return true;
    if (this.#parents.size === 0) return false;
    for (let dot = domain.indexOf('.'); dot >= 0; dot = domain.indexOf('.', dot + 1)) {
      if (this.#parents.has(domain.slice(dot + 1))) return true;
    }
    return false;
  }

  #addDomain(domain: string, toAscii: ToAscii): void {
    const isParent = domain.startsWith('.');
    const name = normalizeDomain(isParent ? domain.slice(1) : domain, toAscii);
    if (name === '') {
      throw new Error(`Reading the relay domains: "${domain}" is no domain; write it like example.com, or `
        + '.example.com for its subdomains.');
    }
    (isParent ? this.#parents : this.#domains).add(name);
  }
}
