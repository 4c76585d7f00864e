/** Keys for tests of signatures, in files as operators have them. */
import { createPrivateKey, createPublicKey, generateKeyPairSync } from 'node:crypto';
import type { KeyObject } from 'node:crypto';
import { chmodSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

/** One for all tests of a process: it takes a while to be found. */
export const RSA = generateKeyPairSync('rsa', { modulusLength: 2048 }).privateKey;
export const ED25519 = generateKeyPairSync('ed25519').privateKey;

export function pem(key: KeyObject, type: 'pkcs1' | 'pkcs8' = 'pkcs8'): string {
  return key.export({ type, format: 'pem' }).toString();
}

/** Mode 600 unless told otherwise. */
export function writeKey(folder: string, name: string, text: string, mode = 0o600): string {
  const file = join(folder, name);
  writeFileSync(file, text);
  chmodSync(file, mode);
  return file;
}

/** What its domain publishes (RFC 6376 3.6.1, RFC 8463 4). */
export function recordOf(text: string): string {
  const key = createPublicKey(createPrivateKey(text));
  const der = key.export({ type: 'spki', format: 'der' });
  return key.asymmetricKeyType === 'rsa' ? `v=DKIM1; k=rsa; p=${der.toString('base64')}` : `v=DKIM1; k=ed25519; p=${der.subarray(-32).toString('base64')}`;
}
