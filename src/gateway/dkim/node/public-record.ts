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
  /** Where its private key is. */
  readonly file: string;
  /** The record of another domain or selector whose key is in the same file; '': none is known. */
  readonly sharedWith: string;
}

/** What domains publish that mail is signed for. */
export interface PublishedKeys {
  readonly domains: readonly string[];
  of(domain: string): readonly PublishedKey[];
}

/** By the files; `of` throws as readDkimKey(). */
export function publishedKeys(options: readonly DkimKeyOptions[]): PublishedKeys {
  const byDomain = new Map<string, DkimKeyOptions[]>();
  const byFile = new Map<string, string[]>();
  for (const one of options) {
    byDomain.set(one.domain, [...byDomain.get(one.domain) ?? [], one]);
    const names = byFile.get(one.keyFile) ?? [];
    // Two tell of another than any one; a file may be that of thousands.
    if (names.length < 2) byFile.set(one.keyFile, [...names, recordName(one.domain, one.selector)]);
  }
  return {
    domains: [...byDomain.keys()],
    of: (domain) => (byDomain.get(domain) ?? []).map((one) => {
      const own = recordName(one.domain, one.selector);
      return publishedKey(readDkimKey(one), byFile.get(one.keyFile)?.find((name) => name !== own));
    }),
  };
}

export function publishedKey(
  { domain, selector, key, keyFile }: Pick<DkimKey, 'domain' | 'selector' | 'key' | 'keyFile'>,
  sharedWith = '',
): PublishedKey {
  const record = publicRecord(createPublicKey(key));
  return { name: recordName(domain, selector), record, file: keyFile, sharedWith };
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
