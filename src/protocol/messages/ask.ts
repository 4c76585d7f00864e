/**
 * ASK: what does this store know of a partition, and does the lease of this holder still run there? Changes nothing.
 *
 *   element  wire  field        meaning
 *   0        str   partition    GATEWAY/N
 *   1        str   gatewayId    the holder that is asked for
 *   2        u53   incarnation  of it
 *
 * Answered by ASKED.
 */
import type { Packer } from '../../platform/ports.js';
import { isIdentifier, isWhole, unpackControl } from '../fields.js';
import { InvalidMessage } from '../invalid.js';
import type { HolderId } from '../partition-record.js';
import { isPartition } from '../partition-record.js';

export interface Ask {
  readonly partition: string;
  readonly holder: HolderId;
}

export function encodeAsk(packer: Packer, message: Ask): Uint8Array {
  return packer.pack([message.partition, message.holder.gatewayId, message.holder.incarnation]);
}

export function decodeAsk(packer: Packer, control: Uint8Array): Ask | InvalidMessage {
  const values = unpackControl(packer, control, 3);
  if (values instanceof InvalidMessage) return values;
  const [partition, gatewayId, incarnation] = values;
  if (!isPartition(partition)) return new InvalidMessage('partition');
  if (!isIdentifier(gatewayId)) return new InvalidMessage('gatewayId');
  if (!isWhole(incarnation)) return new InvalidMessage('incarnation');
  return { partition, holder: { gatewayId, incarnation } };
}
