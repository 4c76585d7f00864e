/**
 * What a gateway's mail depends on and does not answer, for status and metrics: next hops to which no
 * connection comes up, and hooks that give no verdict. The log told of them once (`nexthop`, `hook`); here
 * they stand as long as it lasts.
 */
import type { HookFailing, NextHopDown, OutageFigures } from '../observability/figures.js';
import type { NextHopState } from './outbound/connection-pool.js';

/** Of the next hops, those for which most waits; the others are counted. */
const NEXT_HOPS_SHOWN_MAX = 5;

export function outagesOf(hops: readonly NextHopState[], hooks: readonly HookFailing[]): OutageFigures {
  const down: NextHopDown[] = [];
  for (const { relay, downSinceWallMs: sinceWallMs, waiting, lastError: why } of hops) {
    if (sinceWallMs !== undefined) down.push({ relay, sinceWallMs, waiting, why });
  }
  down.sort((a, b) => b.waiting - a.waiting || a.sinceWallMs - b.sinceWallMs);
  return { nextHops: down.slice(0, NEXT_HOPS_SHOWN_MAX), nextHopCount: down.length, hooks };
}
