/**
 * Whether a stranger's public key may be read and worked with, found out of its octets before OpenSSL sees
 * them. For RSA that hangs on its bits and on its exponent, which both may be as long as a record or a
 * certificate has room. OpenSSL reckons with a key on a curve as soon as it reads it: where the key tells
 * the curve itself (RFC 5480 2.1.1 forbids it), over a prime of its choice, a point that is compressed takes
 * up to half a second. Of the curves that have names some are slow as well: what is signed on the binary ones
 * takes four milliseconds to verify.
 *
 * | algorithm                          | taken                                                         |
 * |------------------------------------|---------------------------------------------------------------|
 * | rsaEncryption, RSASSA-PSS          | up to RSA_BITS_MAX, exponent up to RSA_EXPONENT_OCTETS_MAX    |
 * | id-ecPublicKey                     | one of CURVES by its name, the point whole (RFC 5480 2.2: 04) |
 * | Ed25519, Ed448 (RFC 8410)          | any                                                           |
 * | others: DSA, DH, what is unknown   | none: no server of TLS and no signature needs them            |
 */
import {
  BIT_STRING, INTEGER, OBJECT_IDENTIFIER, SEQUENCE, elementAt, elementsAt,
} from '../../base/der.js';
import type { Element } from '../../base/der.js';

/** Twice what RFC 8301 3.2 asks a verifier for. */
const RSA_BITS_MAX = 8192;
/** 2^32 - 1 at most. */
const RSA_EXPONENT_OCTETS_MAX = 4;
const UNCOMPRESSED = 0x04;
/** As dots and numbers are written in DER. */
const RSA = ['2a864886f70d010101', '2a864886f70d01010a'];
const EC = '2a8648ce3d0201';
/** P-256, P-384, P-521; secp256k1; Brainpool's of 256, 384 and 512 bits. */
const CURVES = [
  '2a8648ce3d030107', '2b81040022', '2b81040023', '2b8104000a',
  '2b2403030208010107', '2b240303020801010b', '2b240303020801010d',
];
const EDWARDS = ['2b6570', '2b6571'];
const VERSION = 0xa0;

export type BoundedKind = 'rsa' | 'ec' | 'ed';

/** Of a SubjectPublicKeyInfo (RFC 5280 4.1.2.7); undefined: it is not to be read. */
export function boundedKindOf(spki: Uint8Array): BoundedKind | undefined {
  const whole = elementAt(spki, 0);
  if (whole?.tag !== SEQUENCE) return undefined;
  const [algorithm, key] = elementsAt(spki, whole.from, whole.end, [SEQUENCE, BIT_STRING]) ?? [];
  if (algorithm === undefined || key === undefined) return undefined;
  const name = elementAt(spki, algorithm.from, algorithm.end);
  // The octets of the key begin behind how many bits of the last one are none.
  if (name?.tag !== OBJECT_IDENTIFIER || spki[key.from] !== 0) return undefined;
  const algorithmName = hexOf(spki, name);
  if (EDWARDS.includes(algorithmName)) return 'ed';
  if (RSA.includes(algorithmName)) return isBoundedRsa(spki, key.from + 1, key.end) ? 'rsa' : undefined;
  if (algorithmName !== EC) return undefined;
  const curve = elementAt(spki, name.end, algorithm.end);
  const isKnown = curve?.tag === OBJECT_IDENTIFIER && CURVES.includes(hexOf(spki, curve));
  return isKnown && spki[key.from + 1] === UNCOMPRESSED ? 'ec' : undefined;
}

/** An RSAPublicKey (RFC 8017 A.1.1) from `at` to `limit`. */
export function isBoundedRsa(der: Uint8Array, at = 0, limit = der.length): boolean {
  const whole = elementAt(der, at, limit);
  if (whole?.tag !== SEQUENCE) return false;
  const [modulus, exponent] = elementsAt(der, whole.from, whole.end, [INTEGER, INTEGER]) ?? [];
  return modulus !== undefined && exponent !== undefined
    && octetsOf(der, modulus) * 8 <= RSA_BITS_MAX && octetsOf(der, exponent) <= RSA_EXPONENT_OCTETS_MAX;
}

export function hexOf(der: Uint8Array, { from, end }: Element): string {
  return Buffer.from(der.subarray(from, end)).toString('hex');
}

/** Without the one that only says that it is not negative. */
function octetsOf(der: Uint8Array, { from, end }: Element): number {
  return end - from - (der[from] === 0 ? 1 : 0);
}

/**
 * The SubjectPublicKeyInfo as it stands in a certificate (RFC 5280 4.1): OpenSSL would write a key that it
 * has read in its own way, which need not be the same. `rest`: what is signed behind it. Undefined: there is
 * none where it should be.
 */
export function publicKeyIn(
  der: Uint8Array,
): { key: Uint8Array; issuerBytes: number; rest: Uint8Array } | undefined {
  const certificate = elementAt(der, 0);
  if (certificate?.tag !== SEQUENCE) return undefined;
  const signed = elementAt(der, certificate.from, certificate.end);
  if (signed?.tag !== SEQUENCE) return undefined;
  const first = elementAt(der, signed.from, signed.end);
  const at = first?.tag === VERSION ? first.end : signed.from;
  // Serial number, signature, issuer, validity, subject, key.
  const fields = elementsAt(der, at, signed.end, [INTEGER, SEQUENCE, SEQUENCE, SEQUENCE, SEQUENCE, SEQUENCE]);
  const [, , issuer, , before, key] = fields ?? [];
  if (issuer === undefined || before === undefined || key === undefined) return undefined;
  return {
    key: der.subarray(before.end, key.end), issuerBytes: issuer.end - issuer.from,
    rest: der.subarray(key.end, signed.end),
  };
}
