/**
 * Who may write to a queue, and how that passes to another process.
 *
 *              CLAIM granted (token above all seen)             RELEASE by the holder
 *   owner ───────────────────────────────────────► claimant ───────────────────────► who had it before; if it was changed, the owner
 *
 *   granted when   the store's first lease period is over, or nobody but the owner may claim the queue; and
 *                  the holder itself asks under a higher incarnation (its older process is fenced already), or
 *                  no lease of the holder runs here
 *   repeated       the holder asks again with the token it holds: granted again
 *
 *   probed         token 0 asks what another's claim would be answered, and never changes anything
 *
 * A grant ends every right of the old holder at once, also on open connections: each request is checked against
 * `holder` (store.ts). Tokens only rise, a release does not lower the highest seen.
 *
 * Only the present holder is exempt from waiting for a lease (docs/PROTOCOL.md "Claims"). An owner that a rescue has
 * displaced waits for the rescue's lease like anyone else, or two would deliver. Nobody is exempt from the first lease
 * period where another may have claimed: a displaced owner may have filled this store anew, and be its holder, while
 * the rescue still delivers by a lease of the boot before.
 */

import { CLAIM_DENIED, CLAIM_GRACE, CLAIM_GRANTED, CLAIM_LEASE_RUNS, CLAIM_TOKEN_LOW } from '../../protocol/reasons.js';
import type { MirroredQueue } from './mirrored-queue.js';

/** No gateway has this incarnation. */
const PROBE_TOKEN = 0;

export interface ClaimVerdict {
  readonly result: number;
  /** When asking again makes sense; of a CONFIRM what is left of the owner's lease; else 0. */
  readonly waitMs: number;
}

/** Decides and, when granted, hands the queue over. `holderLeaseEndsMs` is the lease of the present holder at this store. */
export function claim(
  queue: MirroredQueue, asker: string, token: number, nowMs: number, holderLeaseEndsMs: number, firstPeriodEndsMs: number,
): ClaimVerdict {
  if (!mayClaim(queue, asker)) return { result: CLAIM_DENIED, waitMs: 0 };
  if (token === PROBE_TOKEN) return standsInTheWay(queue, asker, nowMs, holderLeaseEndsMs, firstPeriodEndsMs) ?? { result: CLAIM_TOKEN_LOW, waitMs: 0 };
  if (asker === queue.holder && token === queue.holderToken) {
    queue.isClaimOfThisBoot = true;
    return { result: CLAIM_GRANTED, waitMs: 0 };
  }
  if (token <= queue.highestToken) return { result: CLAIM_TOKEN_LOW, waitMs: 0 };
  const wait = standsInTheWay(queue, asker, nowMs, holderLeaseEndsMs, firstPeriodEndsMs);
  if (wait !== undefined) return wait;
  if (asker !== queue.holder) {
    queue.previousHolder = queue.holder;
    queue.previousToken = queue.holderToken;
    queue.claimedNumber = queue.number;
  }
  queue.holder = asker;
  queue.holderToken = token;
  queue.highestToken = token;
  queue.wasClaimed = true;
  queue.mustClaim = false;
  queue.isClaimOfThisBoot = true;
  return { result: CLAIM_GRANTED, waitMs: 0 };
}

/** Why the asker has to wait, whatever its token. */
function standsInTheWay(queue: MirroredQueue, asker: string, nowMs: number, holderLeaseEndsMs: number, firstPeriodEndsMs: number): ClaimVerdict | undefined {
  if (nowMs < firstPeriodEndsMs && queue.attributes.claimants.length > 0) return { result: CLAIM_GRACE, waitMs: Math.ceil(firstPeriodEndsMs - nowMs) };
  if (asker === queue.holder) return undefined;
  if (nowMs < holderLeaseEndsMs) return { result: CLAIM_LEASE_RUNS, waitMs: Math.ceil(holderLeaseEndsMs - nowMs) };
  return undefined;
}

/**
 * Gives the queue back to whom the claim took it from; one that was changed meanwhile to its owner. A release of another
 * claim changes nothing. A rescuer from whom the queue was taken and that is changed since has no right to go on from
 * there: were it the holder, nobody could claim the queue while it lives, and it would not know why.
 */
export function release(queue: MirroredQueue, asker: string, token: number): void {
  if (queue.holder !== asker || queue.holderToken !== token) return;
  if (queue.previousHolder === '') {
    // Founded or filled here on behalf of its owner: no one had it before, so the owner may have it now.
    if (asker === queue.attributes.ownerId) return;
    queue.previousHolder = queue.attributes.ownerId;
    queue.previousToken = 0;
  }
  // A holder whose queue was changed meanwhile must not go on by its old token: what it remembers is out of date.
  queue.mustClaim = queue.previousToken === 0 || queue.number !== queue.claimedNumber;
  queue.holder = queue.mustClaim ? queue.attributes.ownerId : queue.previousHolder;
  queue.holderToken = queue.mustClaim ? 0 : queue.previousToken;
  queue.previousHolder = '';
  queue.previousToken = 0;
  // Whoever has it again asks before it believes that nothing happened in between.
  queue.isClaimOfThisBoot = false;
}

/** A holder to whom a changed queue was given back has no right by its old token: it claims first. */
export function mayWrite(queue: MirroredQueue, asker: string): boolean {
  return queue.holder === asker && !queue.mustClaim;
}

/** Does the asker hold the queue by this token, granted since the store started? */
export function confirms(queue: MirroredQueue, asker: string, token: number): boolean {
  return queue.holder === asker && queue.holderToken === token && queue.isClaimOfThisBoot;
}

export function mayClaim(queue: MirroredQueue, asker: string): boolean {
  return asker === queue.attributes.ownerId || queue.attributes.claimants.includes(asker);
}
