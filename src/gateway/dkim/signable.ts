/**
 * What of a message is signed, and by whose key: that of the one domain of its one From field (RFC 5322
 * 3.6.2), for it is what readers are shown and what DMARC looks at (RFC 9989). Pure.
 *
 * Nobody gets the signature of a domain that he may not send from: a user's From must be one of his
 * addresses.
 */
import { latin1Bytes, utf8Text } from '../../base/utf8.js';
import type { DkimOutcome } from '../../observability/dkim-metrics.js';
import type { Latin1Text, ToAscii } from '../../platform/ports.js';
import { normalizeDomain } from '../inbound/policy/address.js';
import { fromAddresses } from './from-addresses.js';
import { readHeaderSection } from './header-section.js';
import type { HeaderSection } from './header-section.js';
import { coveredFields } from './signed-fields.js';
import type { CoveredFields } from './signed-fields.js';

export interface Signable extends CoveredFields, Pick<HeaderSection, 'bodyPiece' | 'bodyAt'> {
  readonly domain: string;
}

/** Why it goes unsigned. */
export type Unsigned = Extract<DkimOutcome, 'no-key' | 'from' | 'not-theirs' | 'header'>;

export interface SignablePorts {
  readonly latin1Text: Latin1Text;
  readonly toAscii: ToAscii;
  /** `domain` in lower-case A-labels. */
  hasKey(domain: string): boolean;
}

export function signableOf(
  pieces: readonly Uint8Array[], mayUse: (address: string) => boolean, ports: SignablePorts,
): Signable | Unsigned {
  const section = readHeaderSection(pieces, ports.latin1Text);
  if (section === undefined) return 'header';
  const [from, another] = section.fields.filter(({ name }) => name === 'from');
  if (from === undefined || another !== undefined) return 'from';
  const addresses = addressesIn(from.value);
  const domains = new Set(addresses.map((address) => domainOf(address, ports.toAscii)));
  const [domain = ''] = domains;
  if (domain === '' || domains.size > 1) return 'from';
  if (!ports.hasKey(domain)) return 'no-key';
  if (!addresses.every(mayUse)) return 'not-theirs';
  const covered = coveredFields(section.fields);
  if (covered === undefined) return 'header';
  return { ...covered, domain, bodyPiece: section.bodyPiece, bodyAt: section.bodyAt };
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
