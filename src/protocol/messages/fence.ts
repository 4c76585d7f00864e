/**
 * FENCE: a term takes the copy of a partition at this store, and binds a handle to it on this connection.
 * From here on lower terms are refused, whatever connection they come on (rule 10 of docs/model).
 *
 *   element  wire    field       meaning
 *   0        u31     handle      1 … 2^31 − 1, picked by the gateway; bound to the copy and this term
 *   1        str     partition   GATEWAY/N
 *   2        [term]  term        [number, nonce] of the asker
 *   3        u8      how         1 JOIN the copy that is there; 2 FOUND a new one, empty and complete;
 *                                3 FILL: it is emptied, stands at number and digest, and is filled by REFILL
 *   4        u53     provenDead  incarnation of the asker's own gateway that is proven dead: its lease is not
 *                                waited for; 0: none is
 *   5        u53     number      FILL: where the copy stands from here on; FOUND: the epoch of the newest
 *                                record that the asker knows of, 0: of none; else 0
 *   6        u32     digestA     at that number
 *   7        u32     digestB
 *
 * Answered by FENCED or DECLINED.
 */
import type { Packer } from '../../platform/ports.js';
import { between, isHandle, isUint32, isWhole } from '../fields.js';
import { InvalidMessage } from '../invalid.js';
import type { MessageOf } from '../layout.js';
import { layout } from '../layout.js';
import { isPartition } from '../partition-record.js';
import { TERM } from '../wire-record.js';

export const FENCE_JOIN = 1;
export const FENCE_FOUND = 2;
export const FENCE_FILL = 3;

const fence = layout({
  handle: isHandle,
  partition: isPartition,
  term: TERM,
  how: between(FENCE_JOIN, FENCE_FILL),
  provenDead: isWhole,
  number: isWhole,
  digestA: isUint32,
  digestB: isUint32,
});
export type Fence = MessageOf<typeof fence>;
export const encodeFence = fence.encode;

export function decodeFence(packer: Packer, control: Uint8Array): Fence | InvalidMessage {
  const message = fence.decode(packer, control);
  const isNone = !(message instanceof InvalidMessage) && message.term.number === 0;
  return isNone ? new InvalidMessage('term') : message;
}
