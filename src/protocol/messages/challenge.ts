/**
 * CHALLENGE: a store answers HELLO, shows that it knows the secret and asks for the same.
 *
 *   element  wire   field    meaning
 *   0        u8     version  the version spoken from here on
 *   1        str    storeId  its name
 *   2        bin16  bootId   fresh at each start of the store process
 *   3        bin16  nonce    fresh
 *   4        bin32  proof    proofS
 *
 * Answered by PROOF (handshake.ts).
 */
import { between, bytesOf, isIdentifier } from '../fields.js';
import { BOOT_ID_BYTES, NONCE_BYTES, PROOF_BYTES } from '../handshake.js';
import type { MessageOf } from '../layout.js';
import { layout } from '../layout.js';

const challenge = layout({
  version: between(1, 255),
  storeId: isIdentifier,
  bootId: bytesOf(BOOT_ID_BYTES),
  nonce: bytesOf(NONCE_BYTES),
  proof: bytesOf(PROOF_BYTES),
});
export type Challenge = MessageOf<typeof challenge>;
export const encodeChallenge = challenge.encode;
export const decodeChallenge = challenge.decode;
