/**
 * HEARTBEAT: the gateway lives; renews its lease. On every path, also on a connection that stands by.
 *
 *   element  wire  field  meaning
 *   0        u53   token  comes back in BEAT: when it was sent, as the gateway counts
 *
 * Answered by BEAT.
 */
import type { Packer } from '../../platform/ports.js';
import { isWhole, unpackControl } from '../fields.js';
import { InvalidMessage } from '../invalid.js';

export interface Heartbeat {
  readonly token: number;
}

export function encodeHeartbeat(packer: Packer, message: Heartbeat): Uint8Array {
  return packer.pack([message.token]);
}

export function decodeHeartbeat(packer: Packer, control: Uint8Array): Heartbeat | InvalidMessage {
  const values = unpackControl(packer, control, 1);
  if (values instanceof InvalidMessage) return values;
  const [token] = values;
  if (!isWhole(token)) return new InvalidMessage('token');
  return { token };
}
