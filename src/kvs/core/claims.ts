/**
 * Who may write to a queue, and how that passes to another process.
 *
 *              CLAIM granted (token above all seen)             RELEASE by the holder
 *   owner ───────────────────────────────────────► claimant ───────────────────────► owner, who claims before it writes
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
 * Gives the queue to its owner, whoever had it before; a release of another claim, or by the owner, changes nothing.
 *
 * Nobody gets an old token back, not even where nothing was changed: the claimant, or the process of it before this
 * one, may have served the queue by this claim, and what it did may have reached other mirrors only. Who went on from
 * memory here would do so beside them, under the same epoch (docs/model, RELEASED_TO_OWNER). A rescuer from whom the
 * queue was taken has no claim to it: were it the holder, nobody could have the queue while it lives.
 */
export function release(queue: MirroredQueue, asker: string, token: number): void {
  const { ownerId } = queue.attributes;
  if (queue.holder !== asker || queue.holderToken !== token || asker === ownerId) return;
  queue.holder = ownerId;
  queue.holderToken = 0;
  queue.mustClaim = true;
  queue.isClaimOfThisBoot = false;
}

/** A holder to whom a queue was given back has no right by its old token: it claims first. */
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
