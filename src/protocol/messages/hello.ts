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
import { between, bytesOf, isIdentifier, isWhole } from '../fields.js';
import { INCARNATION_NONCE_BYTES, NONCE_BYTES } from '../handshake.js';
import { InvalidMessage } from '../invalid.js';
import type { MessageOf } from '../layout.js';
import { layout } from '../layout.js';

/** This connection asks to be the active one. */
export const HELLO_ACTIVE = 1;

const hello = layout({
  versionMin: between(1, 255),
  versionMax: between(1, 255),
  gatewayId: isIdentifier,
  incarnation: isWhole,
  incarnationNonce: bytesOf(INCARNATION_NONCE_BYTES),
  path: isIdentifier,
  generation: isWhole,
  nonce: bytesOf(NONCE_BYTES),
  flags: between(0, HELLO_ACTIVE),
});
export type Hello = MessageOf<typeof hello>;
export const encodeHello = hello.encode;

export function decodeHello(packer: Packer, control: Uint8Array): Hello | InvalidMessage {
  const message = hello.decode(packer, control);
  const isSpan = message instanceof InvalidMessage || message.versionMin <= message.versionMax;
  return isSpan ? message : new InvalidMessage('versionMax');
}
