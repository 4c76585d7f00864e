import { test } from 'node:test';
import assert from 'node:assert/strict';
import { SystemSecrets } from '../../../../src/platform/node/secrets.js';

test('HMAC-SHA-256 agrees with RFC 4231, test case 2', () => {
  const ascii = (text: string): Uint8Array => Uint8Array.from(text, (c) => c.charCodeAt(0));
  const mac = new SystemSecrets().hmacSha256(ascii('Jefe'), ascii('what do ya want for nothing?'));
  assert.equal(Buffer.from(mac).toString('hex'), '5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843');
});

test('equal tells bytes apart, and lengths without throwing', () => {
  const secrets = new SystemSecrets();
  assert.equal(secrets.equal(new Uint8Array([1, 2]), new Uint8Array([1, 2])), true);
  assert.equal(secrets.equal(new Uint8Array([1, 2]), new Uint8Array([1, 3])), false);
  assert.equal(secrets.equal(new Uint8Array([1, 2]), new Uint8Array([1, 2, 3])), false);
});

test('nonces have the length asked for and differ', () => {
  const secrets = new SystemSecrets();
  const a = secrets.randomBytes(16);
  assert.equal(a.length, 16);
  assert.equal(secrets.equal(a, secrets.randomBytes(16)), false);
});
