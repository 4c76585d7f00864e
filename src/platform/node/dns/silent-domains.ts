/**
 * Domains whose last question had no answer at all, for the client of DNS (dns-client.ts): what is asked of
 * them waits behind all others. Bounded: the oldest is forgotten first, which costs one more try.
 *
 * A domain is taken for registered by its last two labels, by three where these are a registry's own in most
 * countries ("co.uk"): by the length of a label alone, whoever has "abc.de" would have as many fresh domains
 * as he likes. Of reversed addresses by the network. Who shares one by mistake waits as long, until any name
 * in it is answered.
 */

const DOMAINS_MAX = 10_000;
const REGISTRIES: ReadonlySet<string> = new Set(['co', 'com', 'net', 'org', 'gov', 'edu', 'ac', 'gob', 'or']);
const COUNTRY_CHARACTERS = 2;
/** 192.0.0.0/16 in "2.0.192.in-addr.arpa"; a /32 of IPv6. */
const [LABELS_OF_IPV4, LABELS_OF_IPV6] = [4, 10] as const;

export class SilentDomains {
  /** In the order in which they were noted. */
  readonly #domains = new Set<string>();

  has(name: string): boolean {
    return this.#domains.size > 0 && this.#domains.has(domainOf(name));
  }

  note(name: string): void {
    const domain = domainOf(name);
    this.#domains.delete(domain);
    this.#domains.add(domain);
    if (this.#domains.size <= DOMAINS_MAX) return;
    for (const oldest of this.#domains) {
      this.#domains.delete(oldest);
      return;
    }
  }

  noteAnswer(name: string): void {
    if (this.#domains.size > 0) this.#domains.delete(domainOf(name));
  }
}

function domainOf(name: string): string {
  const labels = name.split('.');
  return labels.slice(-labelsOf(labels)).join('.');
}

function labelsOf(labels: readonly string[]): number {
  const [top = '', second = ''] = [labels.at(-1), labels.at(-2)];
  if (top === 'arpa') return second === 'ip6' ? LABELS_OF_IPV6 : LABELS_OF_IPV4;
  const isRegistry = top.length === COUNTRY_CHARACTERS && REGISTRIES.has(second);
  return isRegistry ? 3 : 2;
}
