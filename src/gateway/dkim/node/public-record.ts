/** What a domain publishes of a key that it signs with (RFC 6376 3.6.1, RFC 8463 4). */
import type { KeyObject } from 'node:crypto';

/** What stands in front of the 32 octets of an Ed25519 key in its SubjectPublicKeyInfo (RFC 8410 4). */
const ED25519_START_BYTES = 12;

/** Of a public key, RSA or Ed25519: the text of the TXT record. */
export function publicRecord(key: KeyObject): string {
  const der = key.export({ type: 'spki', format: 'der' });
  if (key.asymmetricKeyType !== 'ed25519') return `v=DKIM1; k=rsa; p=${der.toString('base64')}`;
  return `v=DKIM1; k=ed25519; p=${der.subarray(ED25519_START_BYTES).toString('base64')}`;
}

/** The name of that record. */
export function recordName(domain: string, selector: string): string {
  return `${selector}._domainkey.${domain}`;
}
