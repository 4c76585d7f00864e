/**
 * Whether a chain of certificates may be given to OpenSSL to verify: what a stranger made should take some
 * milliseconds. Each certificate costs a signature by the key of another (bounded-key.ts). And each name in
 * one is compared with all name constraints of each authority above it (RFC 5280 4.2.1.10), which OpenSSL
 * ends only after a million of them for each two certificates.
 */
import { OBJECT_IDENTIFIER, SEQUENCE, elementAt } from '../../base/der.js';
import { hasBoundedKey, hexOf, publicKeyIn } from './bounded-key.js';

/** Who shows all authorities that he knows is not meant. */
const CERTIFICATES_MAX = 10;
/**
 * Octets of name constraints by those of the whole chain: a name and a constraint have four at least each, so
 * half a million comparisons at most. A chain of 8 KiB may have 1 KiB of them.
 */
const COMPARED_MAX = 8 * 1024 * 1024;
const EXTENSIONS = 0xa3;
const NAME_CONSTRAINTS = '551d1e';

export const TOO_MANY = 'it shows more, or longer, certificates than are read';
const UNREADABLE = 'the certificates that it shows can not be read';

/** Why it may not, or ''; DER, in any order. */
export function whyNotBounded(chain: readonly Uint8Array[]): string {
  if (chain.length > CERTIFICATES_MAX) return TOO_MANY;
  let octets = 0;
  let constraints = 0;
  for (const der of chain) {
    const own = constraintOctetsIn(der);
    if (own === undefined) return UNREADABLE;
    if (!hasBoundedKey(der)) {
      return 'it shows a certificate whose key is not read: neither RSA of up to 8,192 bits nor on a known '
        + 'curve';
    }
    octets += der.length;
    constraints += own;
  }
  return octets * constraints <= COMPARED_MAX ? '' : 'it shows certificates with too many name constraints';
}

/** Undefined: it is no certificate in DER. */
function constraintOctetsIn(der: Uint8Array): number | undefined {
  const rest = publicKeyIn(der)?.rest;
  if (rest === undefined) return undefined;
  let octets = 0;
  for (let at = 0; at < rest.length;) {
    const field = elementAt(rest, at);
    if (field === undefined) return undefined;
    at = field.end;
    if (field.tag !== EXTENSIONS) continue;
    const list = elementAt(rest, field.from, field.end);
    if (list?.tag !== SEQUENCE) return undefined;
    for (let next = list.from; next < list.end;) {
      const extension = elementAt(rest, next, list.end);
      const name = extension && elementAt(rest, extension.from, extension.end);
      if (extension?.tag !== SEQUENCE || name?.tag !== OBJECT_IDENTIFIER) return undefined;
      if (hexOf(rest, name) === NAME_CONSTRAINTS) octets += extension.end - extension.from;
      next = extension.end;
    }
  }
  return octets;
}
