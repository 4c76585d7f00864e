/**
 * Of which of our domains `explain` says what receivers find in the DNS (sender-findings.ts): of that of the
 * reverse-path that was asked about; of the null one those that mail is signed for.
 */
import { toAscii } from '../../platform/node/idna.js';
import { normalizeDomain } from '../../smtp/address.js';
import type { MailSource } from '../outbound/pure/source-choice.js';
import type { Route } from '../mail-types.js';
import type { ExplainOptions } from './explanation.js';
import type { SenderQuestion, SigningDomain } from './sender-findings.js';

/** Without one that was asked about: who signs for thousands names it. */
const DOMAINS_MAX = 5;

/** `used`: by MX, that the mail goes by. */
export function senderQuestion(
  reversePath: string, used: readonly Route[], { dkim, routes, sources }: ExplainOptions,
): SenderQuestion {
  const isUsed = ({ address }: MailSource): boolean =>
    used.some(({ nextHop: { sources: allowed } }) => allowed?.includes(address) ?? true);
  const rewriting = routes.filter(({ name }) => used.some(({ verp }) => verp === name));
  const made = new Set(rewriting.flatMap(({ verp }) => verp?.domain ?? []));
  const asked = normalizeDomain(reversePath.slice(reversePath.lastIndexOf('@') + 1), toAscii);
  const names = reversePath === '' ? dkim.domains : asked === '' || asked.startsWith('[') ? [] : [asked];
  const domains: SigningDomain[] = names.slice(0, DOMAINS_MAX)
    .map((domain) => ({ domain, keys: dkim.of(domain) }));
  return {
    domains, returnDomains: [...made].filter((domain) => !names.includes(domain)),
    sources: sources.filter(isUsed), leftOut: names.length - domains.length,
  };
}
