/**
 * A queue under the handle that a gateway chose for it on one connection (OPEN, CLAIM). Ends with the connection.
 *
 *   refused   after a refusal every change is passed over until OPEN, REFILL_BEGIN or CLAIM: what was pipelined
 *             behind it can't apply, and one refusal says so
 */

import type { MirroredQueue } from './mirrored-queue.js';

export class Attachment {
  readonly handle: number;
  queue: MirroredQueue;
  refused = false;
  /** Named in the acknowledgement of this turn. */
  touched = false;

  constructor(handle: number, queue: MirroredQueue) {
    this.handle = handle;
    this.queue = queue;
  }
}
