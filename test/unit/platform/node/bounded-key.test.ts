/** Which public keys of strangers OpenSSL is given to read. */
import assert from 'node:assert/strict';
import { X509Certificate, createPublicKey, generateKeyPairSync } from 'node:crypto';
import { describe, test } from 'node:test';

import { boundedKindOf, isBoundedRsa, publicKeyIn } from '../../../../src/platform/node/bounded-key.js';
import { certificateOf, element, explicitCurve, rsaKeyOf, spkiOf } from './odd-certificates.js';

const EC = (name: string) => generateKeyPairSync('ec', { namedCurve: name }).publicKey.export({ type: 'spki', format: 'der' });
const OF_P256 = '301306072a8648ce3d020106082a8648ce3d030107';

describe('a public key of a stranger', () => {
  test('is read where it takes no long', () => {
    for (const name of ['P-256', 'P-384', 'P-521', 'secp256k1', 'brainpoolP256r1', 'brainpoolP384r1', 'brainpoolP512r1']) assert.equal(boundedKindOf(EC(name)), 'ec', name);
    for (const name of ['ed25519', 'ed448'] as const) {
      const { publicKey } = name === 'ed448' ? generateKeyPairSync('ed448') : generateKeyPairSync('ed25519');
      assert.equal(boundedKindOf(publicKey.export({ type: 'spki', format: 'der' })), 'ed', name);
    }
    const pss = generateKeyPairSync('rsa-pss', { modulusLength: 2048 }).publicKey.export({ type: 'spki', format: 'der' });
    assert.equal(boundedKindOf(pss), 'rsa');
    for (const [bits, exponent] of [[1024, '03'], [8192, '010001'], [4096, '00ffffffff']] as const) {
      assert.equal(boundedKindOf(spkiOf(rsaKeyOf(bits, exponent))), 'rsa', `${String(bits)} ${exponent}`);
      assert.ok(isBoundedRsa(rsaKeyOf(bits, exponent)));
    }
  });

  test('is not where it takes long, or is of no use', () => {
    const compressed = Buffer.concat([Buffer.from([2]), Buffer.alloc(32, 1)]);
    const dsa = generateKeyPairSync('dsa', { modulusLength: 1024, divisorLength: 160 }).publicKey.export({ type: 'spki', format: 'der' });
    const odd: Readonly<Record<string, Uint8Array>> = {
      'a curve by its numbers': explicitCurve(), 'a binary curve': EC('sect571r1'),
      'a point that is compressed': spkiOf(compressed, OF_P256),
      'a curve that is nowhere told': spkiOf(Buffer.from([4, 1, 1]), '300906072a8648ce3d0201'),
      'RSA of 8,200 bits': spkiOf(rsaKeyOf(8200)), 'an exponent of 33 bits': spkiOf(rsaKeyOf(2048, '0100000001')),
      'DSA': dsa, 'nothing': Buffer.alloc(0), 'a tag of two octets': Buffer.from('3f1003020101', 'hex'),
      'a length that is not told': Buffer.concat([Buffer.from([0x30, 0x80]), EC('P-256').subarray(2)]),
      'something else': element(0x31, EC('P-256')),
    };
    for (const [what, spki] of Object.entries(odd)) assert.equal(boundedKindOf(spki), undefined, what);
    const whole = spkiOf(rsaKeyOf(2048));
    for (let length = 0; length < whole.length; length++) assert.equal(boundedKindOf(whole.subarray(0, length)), undefined, String(length));
    assert.equal(isBoundedRsa(rsaKeyOf(8200)), false);
  });

  test('is found in a certificate as it stands there', () => {
    const spki = EC('P-256');
    const certificate = certificateOf(spki);
    assert.deepEqual(publicKeyIn(certificate)?.key, spki);
    assert.deepEqual(new X509Certificate(certificate).publicKey.export({ type: 'spki', format: 'der' }), spki, 'as OpenSSL finds it');
    assert.equal(createPublicKey({ key: explicitCurve(), format: 'der', type: 'spki' }).asymmetricKeyType, 'ec', 'OpenSSL would read it');
    for (let length = 0; length < certificate.length; length++) assert.equal(publicKeyIn(certificate.subarray(0, length)), undefined, String(length));
  });
});
