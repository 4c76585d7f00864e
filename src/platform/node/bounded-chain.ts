/**
 * Whether certificates may be given to OpenSSL to read and verify: what a stranger made should take some
 * milliseconds. What it costs by their number, or by their octets twice over:
 *
 *   keys                        each certificate costs a signature by the key of another (bounded-key.ts)
 *   name constraints            each name is compared with those of each authority above it (RFC 5280
 *                               4.2.1.10), ended only after a million for each two certificates
 *   CRL distribution points     each that is named relative to the issuer gets a copy of the issuer's whole
 *                               name (RFC 5280 4.2.1.13), kept as long as the certificate
 */
import { OBJECT_IDENTIFIER, SEQUENCE, elementAt } from '../../base/der.js';
import type { Element } from '../../base/der.js';
import { boundedKindOf, hexOf, publicKeyIn } from './bounded-key.js';

/** Who shows all authorities that he knows is not meant. */
const CERTIFICATES_MAX = 10;
/** One with a hundred long names has half of it. */
const CERTIFICATE_BYTES_MAX = 16 * 1024;
/** Octets of name constraints by those of the whole chain. One of 8 KiB may have 1 KiB of them. */
const COMPARED_MAX = 8 * 1024 * 1024;
/** Octets of distribution points by those of the issuer, of all: sixty times what known authorities have. */
const COPIED_MAX = 1024 * 1024;
const EXTENSIONS = 0xa3;
const NAME_CONSTRAINTS = '551d1e';
const DISTRIBUTION_POINTS = '551d1f';

export const TOO_MANY = 'it shows more, or longer, certificates than are read';
const UNREADABLE = 'the certificates that it shows can not be read';

/** Why they may not, or ''; DER, in any order. */
export function whyNotBounded(chain: readonly Uint8Array[]): string {
  if (chain.length > CERTIFICATES_MAX) return TOO_MANY;
  let octets = 0;
  let constraints = 0;
  let copied = 0;
  for (const der of chain) {
    if (der.length > CERTIFICATE_BYTES_MAX) return TOO_MANY;
    const found = publicKeyIn(der);
    const extensions = found && extensionsIn(found.rest);
    if (found === undefined || extensions === undefined) return UNREADABLE;
    if (boundedKindOf(found.key) === undefined) {
      return 'it shows a certificate whose key is not read: neither RSA of up to 8,192 bits nor on a known '
        + 'curve';
    }
    octets += der.length;
    for (const [name, bytes] of extensions) {
      if (name === NAME_CONSTRAINTS) constraints += bytes;
      if (name === DISTRIBUTION_POINTS) copied += bytes * found.issuerBytes;
    }
  }
  if (octets * constraints > COMPARED_MAX) return 'it shows certificates with too many name constraints';
  return copied <= COPIED_MAX ? '' : 'it shows a certificate with too many CRL distribution points';
}

/** By their identifiers in hex, with their octets. Undefined: they are no extensions in DER. */
function extensionsIn(rest: Uint8Array): readonly (readonly [name: string, bytes: number])[] | undefined {
  const found: (readonly [string, number])[] = [];
  for (let at = 0; at < rest.length;) {
    const field = elementAt(rest, at);
    if (field === undefined) return undefined;
    at = field.end;
    // Before it there may be identifiers of issuer and subject.
    if (field.tag === EXTENSIONS && !addListed(rest, field, found)) return undefined;
  }
  return found;
}

function addListed(der: Uint8Array, { from, end }: Element, to: (readonly [string, number])[]): boolean {
  const list = elementAt(der, from, end);
  if (list?.tag !== SEQUENCE) return false;
  for (let at = list.from; at < list.end;) {
    const extension = elementAt(der, at, list.end);
    const name = extension && elementAt(der, extension.from, extension.end);
    if (extension?.tag !== SEQUENCE || name?.tag !== OBJECT_IDENTIFIER) return false;
    to.push([hexOf(der, name), extension.end - extension.from]);
    at = extension.end;
  }
  return true;
}
