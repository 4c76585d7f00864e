/**
 * The OPEN request for a partition of this gateway (docs/PROTOCOL.md "Partitions").
 */
import type { Packer } from '../../platform/ports.js';
import { encodeOpen } from '../../protocol/messages/open.js';
import type { Partition } from './partition.js';

/** OPEN, claimable by the other gateways of its group; epoch 0 and no members: it will be filled and is no mirror yet. */
export function encodeOpenOf(
  packer: Packer, group: readonly string[], partition: Partition, epoch: number, members: readonly string[],
): Uint8Array {
  const { ownerId, birth, serial } = partition.identity;
  return encodeOpen(packer, {
    handle: partition.handle,
    birth,
    serial,
    name: partition.name,
    queueClass: 'mail',
    ordering: 0,
    lengthMax: 0,
    bytesMax: 0,
    ownerId,
    claimants: group.filter((id) => id !== ownerId),
    epoch,
    members: [...members],
  });
}
