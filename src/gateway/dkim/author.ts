/**
 * Whose message it is by its one From field (RFC 5322 3.6.2): what readers are shown, what a signature is
 * made for (signable.ts), and what DMARC looks at (inbound/sender-checks). Pure.
 */
import { latin1Bytes, utf8Text } from '../../base/utf8.js';
import type { ToAscii } from '../../platform/ports.js';
import { normalizeDomain } from '../../smtp/address.js';
import { fromAddresses } from './from-addresses.js';
import type { HeaderSection } from './header-section.js';

export interface Author {
  readonly addresses: readonly string[];
  /** Of all of them; lower-case A-labels. */
  readonly domain: string;
}

/** Undefined where that is not plain: several From fields, or domains, or what is no address. */
export function authorOf({ fields }: HeaderSection, toAscii: ToAscii): Author | undefined {
  const [from, another] = fields.filter(({ name }) => name === 'from');
  if (from === undefined || another !== undefined) return undefined;
  const addresses = addressesIn(from.value);
  const domains = new Set(addresses.map((address) => domainOf(address, toAscii)));
  const [domain = ''] = domains;
  return domain === '' || domains.size > 1 ? undefined : { addresses, domain };
}

/** Empty when it is not plain which they are. */
function addressesIn(value: string): readonly string[] {
  const octets = latin1Bytes(value);
  const text = utf8Text(octets, 0, octets.length);
  return text === undefined ? [] : (fromAddresses(text) ?? []);
}

function domainOf(address: string, toAscii: ToAscii): string {
  return normalizeDomain(address.slice(address.lastIndexOf('@') + 1), toAscii);
}
