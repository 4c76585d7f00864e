/**
 * PROOF: a gateway shows that it knows the secret (handshake.ts).
 *
 *   element  wire   field  meaning
 *   0        bin32  proof  proofG
 *
 * Answered by WELCOME or CLOSE.
 */
import { bytesOf } from '../fields.js';
import { PROOF_BYTES } from '../handshake.js';
import type { MessageOf } from '../layout.js';
import { layout } from '../layout.js';

const proof = layout({
  proof: bytesOf(PROOF_BYTES),
});
export type Proof = MessageOf<typeof proof>;
export const encodeProof = proof.encode;
export const decodeProof = proof.decode;
