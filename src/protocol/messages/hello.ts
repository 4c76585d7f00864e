/**
 * HELLO: a gateway opens a connection and says who it is.
 *
 *   element  wire   field             meaning
 *   0        u8     versionMin        lowest protocol version it speaks
 *   1        u8     versionMax        highest, ≥ versionMin
 *   2        str    gatewayId         its name
 *   3        u53    incarnation       grows with every start of the gateway
 *   4        bin8   incarnationNonce  tells two processes of one incarnation apart
 *   5        str    path              network path of this connection, "A" or "B"
 *   6        u53    generation        grows with every connection that asks to be active
 *   7        bin16  nonce             fresh
 *   8        u8     flags             1 HELLO_ACTIVE; other bits 0
 *
 * Answered by CHALLENGE or CLOSE.
 */
import type { Packer } from '../../platform/ports.js';
import { isBetween, isBytesOf, isIdentifier, isWhole, unpackControl } from '../fields.js';
import { InvalidMessage } from '../invalid.js';
import { INCARNATION_NONCE_BYTES, NONCE_BYTES } from '../handshake.js';

/** This connection asks to be the active one. */
export const HELLO_ACTIVE = 1;

export interface Hello {
  readonly versionMin: number;
  readonly versionMax: number;
  readonly gatewayId: string;
  readonly incarnation: number;
  readonly incarnationNonce: Uint8Array;
  readonly path: string;
  readonly generation: number;
  readonly nonce: Uint8Array;
  readonly flags: number;
}

export function encodeHello(packer: Packer, message: Hello): Uint8Array {
  return packer.pack([
    message.versionMin, message.versionMax, message.gatewayId, message.incarnation, message.incarnationNonce,
    message.path, message.generation, message.nonce, message.flags,
  ]);
}

export function decodeHello(packer: Packer, control: Uint8Array): Hello | InvalidMessage {
  const values = unpackControl(packer, control, 9);
  if (values instanceof InvalidMessage) return values;
  const [versionMin, versionMax, gatewayId, incarnation, incarnationNonce, path, generation, nonce, flags] = values;
  if (!isBetween(versionMin, 1, 255)) return new InvalidMessage('versionMin');
  if (!isBetween(versionMax, versionMin, 255)) return new InvalidMessage('versionMax');
  if (!isIdentifier(gatewayId)) return new InvalidMessage('gatewayId');
  if (!isWhole(incarnation)) return new InvalidMessage('incarnation');
  if (!isBytesOf(incarnationNonce, INCARNATION_NONCE_BYTES)) return new InvalidMessage('incarnationNonce');
  if (!isIdentifier(path)) return new InvalidMessage('path');
  if (!isWhole(generation)) return new InvalidMessage('generation');
  if (!isBytesOf(nonce, NONCE_BYTES)) return new InvalidMessage('nonce');
  if (!isBetween(flags, 0, HELLO_ACTIVE)) return new InvalidMessage('flags');
  return { versionMin, versionMax, gatewayId, incarnation, incarnationNonce, path, generation, nonce, flags };
}
