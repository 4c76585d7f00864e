/**
 * The OPEN request for a queue of this gateway (docs/PROTOCOL.md "Queues").
 */
import type { Packer } from '../../platform/ports.js';
import { encodeOpen } from '../../protocol/messages/open.js';
import type { MailQueue } from '../queue/mail-queue.js';

/** OPEN of `queue`, claimable by the other gateways of its group; epoch 0 and no members: it will be filled and is no mirror yet. */
export function encodeOpenOf(packer: Packer, group: readonly string[], queue: MailQueue, epoch: number, members: readonly string[]): Uint8Array {
  return encodeOpen(packer, {
    handle: queue.handle,
    birth: queue.identity.birth,
    serial: queue.identity.serial,
    name: queue.name,
    queueClass: queue.route.queueClass,
    ordering: queue.route.ordering === 'strict' ? 1 : 0,
    lengthMax: queue.route.lengthMax,
    bytesMax: 0,
    ownerId: queue.identity.ownerId,
    claimants: group.filter((id) => id !== queue.identity.ownerId),
    epoch,
    members: [...members],
  });
}
