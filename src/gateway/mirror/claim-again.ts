/**
 * A queue's owner that is fenced at a store although the queue is its own: when may it claim there again, with a token
 * above all that the store has seen?
 *
 *   a claim of another process that came to nothing: released, or its RELEASE was lost
 *   ─► our token is void there (TOKEN_LOW), for good; the set goes on without that mirror
 *   ─► CLAIM (highest told + 1) ─► granted when no lease of its holder runs there ─► tail or refill, the set with it
 *
 * WHY THIS IS SAFE. Only for a mirror that is neither in the acknowledged set nor in one that was sent: survivors have
 * acknowledged a newer epoch without it, and they took that change from us as their holder.
 *   1. It takes nothing away from a takeover: that needs every member of the newest epoch, and this store is none. A
 *      rescuer that still counts it as one finds the newer epoch at a survivor, and this claim when it asks to confirm.
 *   2. It gives no right: deliveries and 250s rest on members in sync, and this one becomes a member only when the
 *      survivors acknowledge the set with it, which they do for nobody but their holder.
 *   3. What we remember may be out of date, our queue another's since. Then this store may hold a copy of a newer epoch
 *      than we ever began: it is left as it is, not filled from here (isNewer), until the members have fenced us too.
 * With no survivor there is no such claim, but where an operator has said that we may go on without what is there: a member's right comes from claims at every member at once, which is
 * recovery's to make; the queue is given up to it as soon as it is fenced wherever we could go on (replica-set.ts).
 * A process that stands in for the owner never does this: its claims are those of its takeover, or it is none.
 */
import { ROLE_MEMBER, ROLE_SPILLED } from '../../protocol/reasons.js';
import type { Claimed } from '../../protocol/messages/claimed.js';
import type { Partition } from './partition.js';
import type { Replica } from './replica.js';

export function mayClaimAbove(partition: Partition, replica: Replica): boolean {
  return partition.isOwn && ((!replica.member && !replica.wanted) || replica.isGivenUp);
}

/**
 * The token of our next CLAIM at this store. One that did not know the queue, and was sent an OPEN, knows us by our
 * incarnation: the queue's own token, told to stores that have forgotten it since, could be above that of a rescuer who has
 * the queue by now.
 */
export function tokenAt(partition: Partition, replica: Replica, incarnation: number): number {
  return Math.max(replica.isOpenedAnew ? incarnation : partition.token, replica.token);
}

/**
 * The store's copy belongs to a set that we never began. While a change of ours is open, its number may have been used by
 * another process, too, which took the queue over without having heard of it: then the sets differ. Not where the set is the
 * same: each member of that one is a member of ours, and is asked as such.
 */
export function isNewer(partition: Partition, storeId: string, told: Pick<Claimed, 'role' | 'epoch' | 'members'>): boolean {
  if (partition.given.has(storeId) || (told.role !== ROLE_MEMBER && told.role !== ROLE_SPILLED)) return false;
  if (told.epoch !== partition.newestEpoch) return told.epoch > partition.newestEpoch;
  return partition.setChangeNumber !== 0 && !isSetSent(partition, told.members);
}

function isSetSent(partition: Partition, members: readonly string[]): boolean {
  const sent = partition.replicas.filter(({ wanted }) => wanted);
  return sent.length === members.length && sent.every(({ store }) => members.includes(store.storeId));
}
