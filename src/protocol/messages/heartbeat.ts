/**
 * HEARTBEAT: the gateway lives; renews its lease. On every path, also on a connection that stands by.
 *
 *   element  wire  field            meaning
 *   0        u53   token            comes back in BEAT: when it was sent, as the gateway counts
 *   1        u53   wallMs           milliseconds since 1970, as the gateway reckons due times and expiry
 *   2        u53   fencesProcessed  fences of this process at this store, up to which it has stopped what was fenced
 *
 * Answered by BEAT.
 */
import type { Packer } from '../../platform/ports.js';
import { isWhole, unpackControl } from '../fields.js';
import { InvalidMessage } from '../invalid.js';

export interface Heartbeat {
  readonly token: number;
  readonly wallMs: number;
  readonly fencesProcessed: number;
}

export function encodeHeartbeat(packer: Packer, message: Heartbeat): Uint8Array {
  return packer.pack([message.token, message.wallMs, message.fencesProcessed]);
}

export function decodeHeartbeat(packer: Packer, control: Uint8Array): Heartbeat | InvalidMessage {
  const values = unpackControl(packer, control, 3);
  if (values instanceof InvalidMessage) return values;
  const [token, wallMs, fencesProcessed] = values;
  if (!isWhole(token)) return new InvalidMessage('token');
  if (!isWhole(wallMs)) return new InvalidMessage('wallMs');
  if (!isWhole(fencesProcessed)) return new InvalidMessage('fencesProcessed');
  return { token, wallMs, fencesProcessed };
}
