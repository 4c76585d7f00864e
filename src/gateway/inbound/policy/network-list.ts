/**
 * A list of networks in CIDR notation (RFC 4632, RFC 4291 2.3), and whether an address lies in one of them.
 * An address without a length is that one address. IPv4 in its IPv6 form counts as IPv4.
 */
import ipaddr from 'ipaddr.js';

type Network = [ipaddr.IPv4 | ipaddr.IPv6, number];

/** Addresses whose answer is kept: parsing one costs as much as a command. */
const ANSWERS_MAX = 4096;

export class NetworkList {
  readonly #networks: readonly Network[];
  readonly #answers = new Map<string, boolean>();

  /** Throws on a text that is no network; `what` names the list in the error. */
  constructor(networks: readonly string[], what: string) {
    this.#networks = networks.map((network) => parseNetwork(network, what));
  }

  get isEmpty(): boolean {
    return this.#networks.length === 0;
  }

  has(address: string): boolean {
    let answer = this.#answers.get(address);
    if (answer === undefined) {
      answer = this.#look(address);
      if (this.#answers.size === ANSWERS_MAX) this.#answers.clear();
      this.#answers.set(address, answer);
    }
    return answer;
  }

  #look(address: string): boolean {
    if (!ipaddr.isValid(address)) return false;
    const parsed = ipaddr.process(address);
    return this.#networks.some((network) => network[0].kind() === parsed.kind() && parsed.match(network));
  }
}

function parseNetwork(network: string, what: string): Network {
  const slash = network.indexOf('/');
  const address = slash < 0 ? network : network.slice(0, slash);
  if (ipaddr.IPv4.isValidFourPartDecimal(address) || ipaddr.IPv6.isValid(address)) {
    if (slash < 0) {
      const parsed = ipaddr.parse(address);
      return [parsed, parsed.kind() === 'ipv4' ? 32 : 128];
    }
    if (ipaddr.isValidCIDR(network)) return ipaddr.parseCIDR(network);
  }
  throw new Error(`Reading the ${what}: "${network}" is no network; write it like 192.0.2.0/24 or `
    + '2001:db8::/32.');
}
