/**
 * ASK: what does this store know of a partition, and does the lease of this holder still run there? Changes
 * nothing.
 *
 *   element  wire  field        meaning
 *   0        str   partition    GATEWAY/N
 *   1        str   gatewayId    the holder that is asked for
 *   2        u53   incarnation  of it
 *
 * Answered by ASKED.
 */
import type { Packer } from '../../platform/ports.js';
import { isIdentifier, isWhole } from '../fields.js';
import { InvalidMessage } from '../invalid.js';
import { layout } from '../layout.js';
import type { HolderId } from '../partition-record.js';
import { isPartition } from '../partition-record.js';

const flat = layout({
  partition: isPartition,
  gatewayId: isIdentifier,
  incarnation: isWhole,
});

export interface Ask {
  readonly partition: string;
  readonly holder: HolderId;
}

export function encodeAsk(packer: Packer, { partition, holder }: Ask): Uint8Array {
  return flat.encode(packer, { partition, ...holder });
}

export function decodeAsk(packer: Packer, control: Uint8Array): Ask | InvalidMessage {
  const message = flat.decode(packer, control);
  if (message instanceof InvalidMessage) return message;
  const { partition, ...holder } = message;
  return { partition, holder };
}
