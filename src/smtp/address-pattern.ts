/**
 * A pattern of an address, or of a domain alone, as operators write it (base/wildcards.ts). A domain beyond
 * ASCII is meant however it is spelled, in Unicode or as A-labels (RFC 5890 2.3.2.1), here and in the mail;
 * where the pattern has none such, nothing is converted. Pure.
 */
import { Wildcards } from '../base/wildcards.js';
import type { ToAscii } from '../platform/ports.js';
import { isAscii, normalizeDomain } from './address.js';

const A_LABEL = /(^|\.)xn--/i;

export class AddressPattern {
  /** The part of the pattern that stands in each spelling of what it means. */
  readonly sameInAll: string;
  readonly #written: Wildcards;
  /** Undefined where the domain has one spelling. */
  readonly #routed: Wildcards | undefined;
  readonly #toAscii: ToAscii;

  constructor(pattern: string, toAscii: ToAscii) {
    const [local, domain] = partsOf(pattern);
    const hasSpellings = !isAscii(domain) || A_LABEL.test(domain);
    this.#written = new Wildcards([pattern]);
    this.#routed = hasSpellings ? new Wildcards([local + routedDomain(domain, toAscii)]) : undefined;
    this.#toAscii = toAscii;
    this.sameInAll = hasSpellings ? local : pattern;
  }

  matches(address: string): boolean {
    if (this.#written.matches(address)) return true;
    if (this.#routed === undefined) return false;
    const [local, domain] = partsOf(address);
    const isRouted = isAscii(domain);
    return this.#routed.matches(isRouted ? address : local + routedDomain(domain, this.#toAscii));
  }
}

/** The first with the "@"; '' of a domain alone. */
function partsOf(address: string): readonly [local: string, domain: string] {
  const at = address.lastIndexOf('@') + 1;
  return [address.slice(0, at), address.slice(at)];
}

/** As routes and queues have it: A-labels in lower case, also those of a pattern that are whole. */
export function routedDomain(domain: string, toAscii: ToAscii): string {
  if (!domain.includes('*')) return normalizeDomain(domain, toAscii) || domain.toLowerCase();
  const labels = domain.split('.').map((label) =>
    (label.includes('*') || isAscii(label) ? label : normalizeDomain(label, toAscii) || label));
  return labels.join('.').toLowerCase();
}
