/**
 * BEAT: the store lives and has renewed the lease.
 *
 *   element  wire  field    meaning
 *   0        u53   token    of the HEARTBEAT
 *   1        u53   credit   as in ACK, after all requests up to this one's sequence
 *   2        u32   leaseMs  length of the lease, from the sending of HEARTBEAT on
 *
 * An answer.
 */
import type { Packer } from '../../platform/ports.js';
import { isUint32, isWhole, unpackControl } from '../fields.js';
import { InvalidMessage } from '../invalid.js';

export interface Beat {
  readonly token: number;
  readonly credit: number;
  readonly leaseMs: number;
}

export function encodeBeat(packer: Packer, message: Beat): Uint8Array {
  return packer.pack([message.token, message.credit, message.leaseMs]);
}

export function decodeBeat(packer: Packer, control: Uint8Array): Beat | InvalidMessage {
  const values = unpackControl(packer, control, 3);
  if (values instanceof InvalidMessage) return values;
  const [token, credit, leaseMs] = values;
  if (!isWhole(token)) return new InvalidMessage('token');
  if (!isWhole(credit)) return new InvalidMessage('credit');
  if (!isUint32(leaseMs)) return new InvalidMessage('leaseMs');
  return { token, credit, leaseMs };
}
