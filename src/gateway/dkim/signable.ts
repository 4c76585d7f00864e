/**
 * What of a message is signed, and by whose key: that of the one domain of its one From field (RFC 5322
 * 3.6.2), for it is what readers are shown and what DMARC looks at (RFC 9989). Pure.
 *
 * Nobody gets the signature of a domain that he may not send from: a user's From must be one of his
 * addresses.
 */
import type { DkimOutcome } from '../../observability/dkim-metrics.js';
import type { Latin1Text, ToAscii } from '../../platform/ports.js';
import { authorOf } from './author.js';
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
  const author = authorOf(section, ports.toAscii);
  if (author === undefined) return 'from';
  const { addresses, domain } = author;
  if (!ports.hasKey(domain)) return 'no-key';
  if (!addresses.every(mayUse)) return 'not-theirs';
  const covered = coveredFields(section.fields);
  if (covered === undefined) return 'header';
  return { ...covered, domain, bodyPiece: section.bodyPiece, bodyAt: section.bodyAt };
}
