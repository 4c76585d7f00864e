/** What a refusal says of a mirror's copy, and when it is looked at again (docs/PROTOCOL.md "Reasons"). */
import type { Refusal } from '../../protocol/messages/refusal.js';
import { REFUSAL_BODY, REFUSAL_CHECKSUM, REFUSAL_GAP, REFUSAL_LIMIT, refusalReasonName } from '../../protocol/reasons.js';
import { Decline, decline } from './declined.js';
import type { Replica } from './replica.js';

/** A full store is asked again after retryMs, then after twice that, up to this many times it. */
const BACKOFF_FACTOR_MAX = 32;

/** Notes on the replica whether its store takes the copy, and whether that can be continued; returns after how many retryMs it is looked at again. */
export function judgeRefusal(replica: Replica, { reason, sequence, number }: Refusal): number {
  const isOpen = replica.attachSequence === sequence;
  replica.attachSequence = 0;
  replica.refusals += 1;
  if (reason === REFUSAL_LIMIT) {
    decline(replica, isOpen ? Decline.TABLE_FULL : Decline.FULL);
    // What was refused came behind REFILL_BEGIN, whose acknowledgement comes behind this refusal, and finds no refill any more.
    if (!isOpen && replica.isFilling && number >= replica.refillBase) replica.onEmptied();
    return Math.min(BACKOFF_FACTOR_MAX, 2 ** (replica.refusals - 1));
  }
  if (replica.isFilling) decline(replica, Decline.REFUSED, refusalReasonName(reason));
  // These may be over when it is asked where it stands; any other says that its copy is not what it should be.
  const mayPass = (reason === REFUSAL_GAP || reason === REFUSAL_CHECKSUM || reason === REFUSAL_BODY) && replica.refusals < 2;
  if (!mayPass) replica.mustRefill = true;
  return 1;
}
