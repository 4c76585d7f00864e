/** Key records of strangers: which of them give a key. What signatures make of them is tested in check-line.test.ts. */
import assert from 'node:assert/strict';
import { generateKeyPairSync } from 'node:crypto';
import { test } from 'node:test';

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
