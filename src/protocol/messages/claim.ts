/**
 * CLAIM: the asker takes a queue; the last holder is refused from then on, also on open connections.
 *
 *   element  wire  field      meaning
 *   0        u31   handle     what the queue is called on this connection if granted
 *   1        str   gatewayId  of the queue's identity
 *   2        u53   birth
 *   3        u32   serial
 *   4        u53   token      above every token that the queue has seen: the asker's incarnation
 *
 * Answered by CLAIMED.
 */
import type { Packer } from '../../platform/ports.js';
import { isHandle, isIdentifier, isUint32, isWhole, unpackControl } from '../fields.js';
import { InvalidMessage } from '../invalid.js';

export interface Claim {
  readonly handle: number;
  readonly gatewayId: string;
  readonly birth: number;
  readonly serial: number;
  readonly token: number;
}

export function encodeClaim(packer: Packer, message: Claim): Uint8Array {
  return packer.pack([message.handle, message.gatewayId, message.birth, message.serial, message.token]);
}

export function decodeClaim(packer: Packer, control: Uint8Array): Claim | InvalidMessage {
  const values = unpackControl(packer, control, 5);
  if (values instanceof InvalidMessage) return values;
  const [handle, gatewayId, birth, serial, token] = values;
  if (!isHandle(handle)) return new InvalidMessage('handle');
  if (!isIdentifier(gatewayId)) return new InvalidMessage('gatewayId');
  if (!isWhole(birth)) return new InvalidMessage('birth');
  if (!isUint32(serial)) return new InvalidMessage('serial');
  if (!isWhole(token)) return new InvalidMessage('token');
  return { handle, gatewayId, birth, serial, token };
}
