/**
 * Whether a stranger's public key may be worked with: one that takes long is of no use to anybody. For RSA
 * that hangs on its bits and on its exponent, which both may be as long as a record or certificate has room.
 */
import type { KeyObject } from 'node:crypto';

/** Twice what RFC 8301 3.2 asks a verifier for. */
const RSA_BITS_MAX = 8192;
const RSA_EXPONENT_MAX = 2n ** 32n;
/** Milliseconds at most. DSA, which takes longer, is used by nobody. */
const OTHERS = ['ec', 'ed25519', 'ed448'];

export function isBounded({ asymmetricKeyType: type, asymmetricKeyDetails }: KeyObject): boolean {
  if (type !== 'rsa' && type !== 'rsa-pss') return type !== undefined && OTHERS.includes(type);
  const { modulusLength = Infinity, publicExponent = 0n } = asymmetricKeyDetails ?? {};
  return modulusLength <= RSA_BITS_MAX && publicExponent <= RSA_EXPONENT_MAX;
}
