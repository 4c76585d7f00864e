/**
 * What becomes of mail that waits when the routes are other ones: whether it has a way out of its queue,
 * asked before they are put in force, so that no mail is left behind by a name that somebody has taken out of
 * the file; and how much of it goes another way. Pure.
 */
import type { MailQueue } from './mail-queue.js';
import { nextHopKey } from './next-hop.js';
import type { Router } from '../mail-types.js';

/** Queues named in one refusal: the first. */
const NAMED_MAX = 5;

type Waiting = Pick<MailQueue, 'name' | 'length' | 'routed'> & {
  readonly route: Pick<MailQueue['route'], 'queueClass' | 'nextHop'>;
};

/** Why these routes can't be put in force; '' when they can. */
export function whyNoSuccessor(queues: Iterable<Waiting>, router: Pick<Router, 'routeOfQueue'>): string {
  const left = new Map<string, number>();
  const back = new Map<string, number>();
  for (const { name, length, routed, route } of queues) {
    // One without a route is not to take mail by one that it was not made for: strict, maybe.
    if (length === 0 && routed) continue;
    const isLed = router.routeOfQueue(name, route.queueClass) !== undefined;
    if (isLed === routed) continue;
    const counts = routed ? left : back;
    counts.set(name, (counts.get(name) ?? 0) + length);
  }
  if (left.size > 0) {
    const [first = ''] = left.keys();
    return `mail waits in ${listOf(left)}, and no route of this file has that name: keep the name and change `
      + `its via, or lead the mail elsewhere first (twinpost queue rebind --queue ${first} --route OTHER)`;
  }
  if (back.size === 0) return '';
  const isEmpty = [...back.values()].every((count) => count === 0);
  if (isEmpty) return `${listOf(back)} had no route until now, and will be forgotten: ask again in a minute`;
  return `mail is held in ${listOf(back)} for want of a route that this file has again: restart the `
    + 'gateway, which takes that mail back';
}

/** Messages that would go to another next hop, or to the same in another way. */
export function followingCount(queues: Iterable<Waiting>, router: Pick<Router, 'routeOfQueue'>): number {
  let count = 0;
  for (const { name, length, route } of queues) {
    if (length === 0) continue;
    const next = router.routeOfQueue(name, route.queueClass);
    if (next !== undefined && nextHopKey(next.nextHop) !== nextHopKey(route.nextHop)) count += length;
  }
  return count;
}

function listOf(counts: ReadonlyMap<string, number>): string {
  const named = [...counts].slice(0, NAMED_MAX).map(([name, count]) =>
    `${name} (${String(count)} ${count === 1 ? 'message' : 'messages'})`);
  const more = counts.size - named.length;
  return named.join(', ') + (more > 0 ? ` and ${String(more)} more queues` : '');
}
