/** What a domain publishes of a key that it signs with (RFC 6376 3.6.1, RFC 8463 4). */
import { createPublicKey } from 'node:crypto';
import type { KeyObject } from 'node:crypto';
import { readDkimKey } from './dkim-keys.js';
import type { DkimKey, DkimKeyOptions } from './dkim-keys.js';

/** What stands in front of the 32 octets of an Ed25519 key in its SubjectPublicKeyInfo (RFC 8410 4). */
const ED25519_START_BYTES = 12;

/** As it should stand in the DNS. */
export interface PublishedKey {
  readonly name: string;
  readonly record: string;
}

/** What domains publish that mail is signed for. */
export interface PublishedKeys {
  readonly domains: readonly string[];
  of(domain: string): readonly PublishedKey[];
}

/** By the files; `of` throws as readDkimKey(). */
export function publishedKeys(options: readonly DkimKeyOptions[]): PublishedKeys {
  const byDomain = new Map<string, DkimKeyOptions[]>();
  for (const one of options) byDomain.set(one.domain, [...byDomain.get(one.domain) ?? [], one]);
  return {
    domains: [...byDomain.keys()],
    of: (domain) => (byDomain.get(domain) ?? []).map((one) => publishedKey(readDkimKey(one))),
  };
}

export function publishedKey(
  { domain, selector, key }: Pick<DkimKey, 'domain' | 'selector' | 'key'>,
): PublishedKey {
  return { name: recordName(domain, selector), record: publicRecord(createPublicKey(key)) };
}

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
