/**
 * Who may send where: a client inside the configured networks may send anywhere there is a route; everyone
 * else only to the relay domains (the domains this gateway takes mail for). An open relay needs an operator
 * who lists 0.0.0.0/0 by hand.
 *
 * A relay domain "example.com" covers itself only, ".example.com" its subdomains.
 * Networks are CIDR notation; an address without a length is that one address.
 */

import { BlockList, isIP, isIPv4 } from 'node:net';
import { normalizeDomain } from './address.js';

export interface RelayRules {
  readonly networks: readonly string[];
  readonly domains: readonly string[];
}

export const LOOPBACK_NETWORKS: readonly string[] = ['127.0.0.0/8', '::1/128'];

/** Addresses whose answer is kept. */
const ANSWERS_MAX = 4096;

export class RelayPolicy {
  readonly #networks = new BlockList();
  readonly #domains = new Set<string>();
  readonly #parents = new Set<string>();
  readonly #answers = new Map<string, boolean>();

  /** Throws on a rule that is none: configuration is checked before a port opens. */
  constructor(rules: RelayRules) {
    for (const network of rules.networks) this.#addNetwork(network);
    for (const domain of rules.domains) this.#addDomain(domain);
  }

  /** Asked once a connection. Answers are kept: Node makes two objects outside its heap to look into the list. */
  isTrusted(address: string): boolean {
    let trusted = this.#answers.get(address);
    if (trusted === undefined) {
      const version = isIP(address);
      trusted = version !== 0 && this.#networks.check(address, version === 4 ? 'ipv4' : 'ipv6');
      if (this.#answers.size === ANSWERS_MAX) this.#answers.clear();
      this.#answers.set(address, trusted);
    }
    return trusted;
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

  #addNetwork(network: string): void {
    const slash = network.indexOf('/');
    const address = slash < 0 ? network : network.slice(0, slash);
    const family = isIPv4(address) ? 'ipv4' : 'ipv6';
    const bits = slash < 0 ? (family === 'ipv4' ? 32 : 128) : Number(network.slice(slash + 1));
    if (isIP(address) === 0 || slash === network.length - 1 || !Number.isInteger(bits) || bits < 0 || bits > (family === 'ipv4' ? 32 : 128)) {
      throw new Error(`Reading the relay networks: "${network}" is no network; write it like 192.0.2.0/24 or 2001:db8::/32.`);
    }
    this.#networks.addSubnet(address, bits, family);
  }

  #addDomain(domain: string): void {
    const isParent = domain.startsWith('.');
    const name = normalizeDomain(isParent ? domain.slice(1) : domain);
    if (name === '') throw new Error(`Reading the relay domains: "${domain}" is no domain; write it like example.com, or .example.com for its subdomains.`);
    (isParent ? this.#parents : this.#domains).add(name);
  }
}
