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
import type { Packer } from '../../platform/ports.js';
import { isBetween, isBytesOf, isIdentifier, unpackControl } from '../fields.js';
import { InvalidMessage } from '../invalid.js';
import { BOOT_ID_BYTES, NONCE_BYTES, PROOF_BYTES } from '../handshake.js';

export interface Challenge {
  readonly version: number;
  readonly storeId: string;
  readonly bootId: Uint8Array;
  readonly nonce: Uint8Array;
  readonly proof: Uint8Array;
}

export function encodeChallenge(packer: Packer, message: Challenge): Uint8Array {
  return packer.pack([message.version, message.storeId, message.bootId, message.nonce, message.proof]);
}

export function decodeChallenge(packer: Packer, control: Uint8Array): Challenge | InvalidMessage {
  const values = unpackControl(packer, control, 5);
  if (values instanceof InvalidMessage) return values;
  const [version, storeId, bootId, nonce, proof] = values;
  if (!isBetween(version, 1, 255)) return new InvalidMessage('version');
  if (!isIdentifier(storeId)) return new InvalidMessage('storeId');
  if (!isBytesOf(bootId, BOOT_ID_BYTES)) return new InvalidMessage('bootId');
  if (!isBytesOf(nonce, NONCE_BYTES)) return new InvalidMessage('nonce');
  if (!isBytesOf(proof, PROOF_BYTES)) return new InvalidMessage('proof');
  return { version, storeId, bootId, nonce, proof };
}
