/**
 * The proofs of the handshake (docs/PROTOCOL.md, "Handshake"): each side shows that it knows the gateway's
 * secret by a MAC over all that both said, nonces included. Pure: randomness and HMAC come in through
 * Secrets. Who sends what and when is the link's (gateway/mirror/link, kvs/daemon); which version is spoken:
 * versions.ts.
 *
 *   T      = control bytes of HELLO ‖ MessagePack array [version, storeId, bootId, nonceS], shortest forms
 *   proofS = HMAC-SHA-256(secret, "twinpost store 1" ‖ T)
 *   proofG = HMAC-SHA-256(secret, "twinpost gateway 1" ‖ T)
 *
 * The two labels keep one side's proof from being played back as the other's.
 */
import type { Packer, Secrets } from '../platform/ports.js';

export const NONCE_BYTES = 16;
export const BOOT_ID_BYTES = 16;
export const INCARNATION_NONCE_BYTES = 8;
export const PROOF_BYTES = 32;

const STORE_LABEL = 'twinpost store 1';
const GATEWAY_LABEL = 'twinpost gateway 1';

/** What the store says of itself before its proof. */
export interface StoreGreeting {
  readonly version: number;
  readonly storeId: string;
  readonly bootId: Uint8Array;
  readonly nonce: Uint8Array;
}

/** T: what both sides sign. `hello` is the control part of HELLO exactly as it went over the wire. */
export function transcript(packer: Packer, hello: Uint8Array, greeting: StoreGreeting): Uint8Array {
  const answer = encodeGreeting(packer, greeting);
  const joined = new Uint8Array(hello.length + answer.length);
  joined.set(hello);
  joined.set(answer, hello.length);
  return joined;
}

function encodeGreeting(packer: Packer, greeting: StoreGreeting): Uint8Array {
  return packer.pack([greeting.version, greeting.storeId, greeting.bootId, greeting.nonce]);
}

export function storeProof(secrets: Secrets, secret: Uint8Array, signed: Uint8Array): Uint8Array {
  return proof(secrets, secret, STORE_LABEL, signed);
}

export function gatewayProof(secrets: Secrets, secret: Uint8Array, signed: Uint8Array): Uint8Array {
  return proof(secrets, secret, GATEWAY_LABEL, signed);
}

/** Whether the store's proof is right; in constant time. */
export function isStoreProof(
  secrets: Secrets, secret: Uint8Array, signed: Uint8Array, shown: Uint8Array,
): boolean {
  return secrets.equal(storeProof(secrets, secret, signed), shown);
}

/** Whether the gateway's proof is right; in constant time. */
export function isGatewayProof(
  secrets: Secrets, secret: Uint8Array, signed: Uint8Array, shown: Uint8Array,
): boolean {
  return secrets.equal(gatewayProof(secrets, secret, signed), shown);
}

function proof(secrets: Secrets, secret: Uint8Array, label: string, signed: Uint8Array): Uint8Array {
  const data = new Uint8Array(label.length + signed.length);
  for (let i = 0; i < label.length; i++) data[i] = label.charCodeAt(i);
  data.set(signed, label.length);
  return secrets.hmacSha256(secret, data);
}
