/**
 * PROOF: a gateway shows that it knows the secret (handshake.ts).
 *
 *   element  wire   field  meaning
 *   0        bin32  proof  proofG
 *
 * Answered by WELCOME or CLOSE.
 */
import type { Packer } from '../../platform/ports.js';
import { isBytesOf, unpackControl } from '../fields.js';
import { InvalidMessage } from '../invalid.js';
import { PROOF_BYTES } from '../handshake.js';

export interface Proof {
  readonly proof: Uint8Array;
}

export function encodeProof(packer: Packer, message: Proof): Uint8Array {
  return packer.pack([message.proof]);
}

export function decodeProof(packer: Packer, control: Uint8Array): Proof | InvalidMessage {
  const values = unpackControl(packer, control, 1);
  if (values instanceof InvalidMessage) return values;
  const [proof] = values;
  if (!isBytesOf(proof, PROOF_BYTES)) return new InvalidMessage('proof');
  return { proof };
}
