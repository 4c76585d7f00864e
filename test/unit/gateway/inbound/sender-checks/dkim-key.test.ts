/** Key records of strangers: which of them give a key. What signatures make of them is tested in check-line.test.ts. */
import assert from 'node:assert/strict';
import { generateKeyPairSync } from 'node:crypto';
import { test } from 'node:test';

import { explicitCurve, rsaKeyOf, spkiOf } from '../../../platform/node/odd-certificates.js';
import { keyFor } from '../../../../../src/gateway/inbound/sender-checks/node/dkim-key.js';

const KEY = generateKeyPairSync('rsa', { modulusLength: 2048 }).publicKey.export({ format: 'der', type: 'spki' }).toString('base64');
const WANTED = { algorithm: 'rsa', isOfSubdomain: false } as const;

test('a record of 4,096 characters may hold a key, and no longer one', () => {
  const long = (length: number): string => `v=DKIM1; p=${KEY}; n=`.padEnd(length, 'x');
  const key = keyFor(long(4096), WANTED);
  assert.ok('asymmetricKeyDetails' in key);
  assert.equal(key.asymmetricKeyDetails.modulusLength, 2048);
  assert.deepEqual(keyFor(long(4097), WANTED), ['permerror', 'unusable key']);
});

test('a key that takes long is not read', () => {
  const asked = (der: Uint8Array): unknown => keyFor(`v=DKIM1; p=${Buffer.from(der).toString('base64')}`, WANTED);
  for (const der of [rsaKeyOf(8192), spkiOf(rsaKeyOf(8192))]) assert.ok('asymmetricKeyDetails' in (asked(der) as object));
  const odd = [rsaKeyOf(8200), rsaKeyOf(2048, '0100000001'), explicitCurve()];
  for (const der of [...odd, ...odd.slice(0, 2).map((key) => spkiOf(key))]) assert.deepEqual(asked(der), ['permerror', 'unusable key']);
});
