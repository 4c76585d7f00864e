/** Which chains of strangers OpenSSL is given to verify. */
import assert from 'node:assert/strict';
import { X509Certificate, generateKeyPairSync } from 'node:crypto';
import { test } from 'node:test';

import { whyNotBounded } from '../../../../src/platform/node/bounded-chain.js';
import { certificateOf, element, explicitCurve, extension, nameOf } from './odd-certificates.js';

const KEY = generateKeyPairSync('ec', { namedCurve: 'P-256' }).publicKey.export({ type: 'spki', format: 'der' });
const PLAIN = certificateOf(KEY);
/** Of so many octets in all; `b` as a DNS name is excluded. */
const constrained = (octets: number): Buffer => {
  const subtree = Buffer.from('30038201' + '62', 'hex');
  const value = element(0x30, element(0xa1, Buffer.alloc(Math.max(0, octets - 21), subtree)));
  return extension('551d1e', value);
};

test('ten certificates, and no more', () => {
  assert.equal(whyNotBounded(Array.from({ length: 10 }, () => PLAIN)), '');
  assert.match(whyNotBounded(Array.from({ length: 11 }, () => PLAIN)), /more, or longer/);
  assert.equal(whyNotBounded([]), '');
});

test('keys that take no long, each of them', () => {
  assert.match(whyNotBounded([PLAIN, PLAIN, certificateOf(explicitCurve())]), /key is not read/);
});

test('few name constraints, or few names, wherever they stand', () => {
  const names = certificateOf(KEY, [extension('551d11', element(0x30, Buffer.alloc(15_000, Buffer.from('820161', 'hex'))))]);
  const authority = (octets: number): Buffer => certificateOf(KEY, [extension('551d0f', Buffer.from('03020106', 'hex')), constrained(octets)]);
  assert.ok(new X509Certificate(authority(100)).raw.length > 100, 'OpenSSL reads it');
  assert.equal(whyNotBounded([names, names]), '', 'names alone are compared with nothing');
  assert.equal(whyNotBounded([PLAIN, authority(2000)]), '');
  assert.equal(whyNotBounded([certificateOf(Buffer.concat([KEY, element(0x81, Buffer.from([0, 1]))]))]), '', 'an id of its issuer');
  assert.equal(whyNotBounded([names, names, authority(200)]), '');
  for (const chain of [[names, authority(600)], [authority(600), names], [PLAIN, authority(4000)], [names, authority(300), authority(300)]]) {
    assert.equal(whyNotBounded(chain), 'it shows certificates with too many name constraints');
  }
});

test('few points that copy the name of the issuer, or a short one', () => {
  const points = (count: number): Buffer => extension('551d1f', element(0x30, Buffer.alloc(6 * count, Buffer.from('3004a002a100', 'hex'))));
  const issued = (count: number, nameBytes: number): Buffer => certificateOf(KEY, [points(count)], nameOf('x'.repeat(nameBytes)));
  assert.equal(new X509Certificate(issued(10, 100)).subject.length, 103, 'OpenSSL reads it');
  assert.equal(whyNotBounded([issued(10, 5000), issued(1000, 50)]), '');
  for (const chain of [[issued(1000, 5000)], [PLAIN, issued(20, 7000), issued(20, 7000)]]) {
    assert.equal(whyNotBounded(chain), 'it shows a certificate with too many CRL distribution points');
  }
});

test('certificates of 16 KiB, and no longer ones', () => {
  const long = (bytes: number): Buffer => certificateOf(KEY, [extension('551d11', Buffer.alloc(bytes - PLAIN.length - 23))]);
  assert.equal(long(16_384).length, 16_384);
  assert.equal(whyNotBounded([long(16_384)]), '');
  assert.match(whyNotBounded([long(16_385)]), /more, or longer/);
});

test('what OpenSSL could read in another way is not read', () => {
  const whole = certificateOf(KEY, [constrained(100)]);
  for (let length = 0; length < whole.length; length++) assert.match(whyNotBounded([whole.subarray(0, length)]), /can not be read/);
  const odd = [element(0x31, constrained(100)), element(0x30, element(0x30, Buffer.from('0401', 'hex'))), element(0x30, Buffer.from('1f0100', 'hex'))];
  for (const list of odd) assert.match(whyNotBounded([certificateOf(Buffer.concat([KEY, element(0xa3, list)]))]), /can not be read/);
});
