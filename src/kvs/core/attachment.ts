/**
 * A copy under the handle that a gateway chose for it on one connection, and the term under which it did
 * (FENCE). Ends with the connection.
 *
 *   refused   after a refusal every change is passed over until the next FENCE: what was pipelined behind it
 *             can't apply, and one refusal says so
 */

import type { Term } from '../../protocol/partition-record.js';
import type { MirroredPartition } from './mirrored-partition.js';

export class Attachment {
  readonly handle: number;
  readonly copy: MirroredPartition;
  readonly term: Term;
  refused = false;
  /** Named in the acknowledgement of this turn. */
  touched = false;

  constructor(handle: number, copy: MirroredPartition, term: Term) {
    this.handle = handle;
    this.copy = copy;
    this.term = term;
  }
}
