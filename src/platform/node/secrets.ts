/**
 * The real Secrets, from node:crypto: HMAC-SHA-256 for the proofs of the handshake (docs/PROTOCOL.md,
 * "Handshake"), nonces from the system's generator, comparison in constant time.
 */
import { createHash, createHmac, randomBytes, timingSafeEqual } from 'node:crypto';
import type { Secrets } from '../ports.js';

export class SystemSecrets implements Secrets {
  hmacSha256(key: Uint8Array, data: Uint8Array): Uint8Array {
    return createHmac('sha256', key).update(data).digest();
  }

  sha256(data: Uint8Array): Uint8Array {
    return createHash('sha256').update(data).digest();
  }

  randomBytes(count: number): Uint8Array {
    return randomBytes(count);
  }

  equal(a: Uint8Array, b: Uint8Array): boolean {
    // timingSafeEqual throws on unequal lengths; a length is no secret.
    return a.length === b.length && timingSafeEqual(a, b);
  }
}
